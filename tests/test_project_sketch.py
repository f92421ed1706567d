"""What the text of a project says of functions: never less than its facts."""

from __future__ import annotations

import pytest
from snippets import ROOT, context

MODULE = "def work():\n    pass\n"
NEEDS = "from model import work\n\n"



@pytest.mark.parametrize(
    ("between", "scope"),
    [
        ("    for x in y:\n", "main.step"),
        ("    if y:\n        pass\n    with y:\n", "main.step"),
        # None of these leaves the first function for certain.
        ("        for x in y:\n", "main.save.step"),
        ('        """\n    for one:\n        """\n        for x in y:\n', "main.save.step"),
        ("        z = (\n    y)\n        for x in y:\n", "main.save.step"),
    ],
)
def test_what_a_loop_behind_a_function_defines_is_not_in_it(between: str, scope: str) -> None:
    text = f"def main(y):\n    def save():\n        pass\n{between}            def step():\n                work()\n"
    sketch = context({"model.py": MODULE, "use.py": NEEDS + text}).calls.sketch
    assert scope in sketch.functions(f"{ROOT}/use.py")


def test_a_function_of_tabs_is_left_where_its_indentation_ends() -> None:
    text = "def main(y):\n\tdef save():\n\t\tfor x in y:\n\t\t\tdef one():\n\t\t\t\twork()\n\tfor x in y:\n\t\tdef two():\n\t\t\twork()\n"
    sketch = context({"model.py": MODULE, "use.py": NEEDS + text}).calls.sketch
    assert sketch.functions(f"{ROOT}/use.py") == ["main", "main.save", "main.save.one", "main.two"]
