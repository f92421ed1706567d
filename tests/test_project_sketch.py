"""What the text of a project says of calls and loops: never less than its facts."""

from __future__ import annotations

import pytest
from collected import for_every
from snippets import ROOT, context

MODULE = "def work():\n    pass\n"
NEEDS = "from model import work\n\n"


@for_every(
    ("caller", "scopes"),
    [
        ("def main():\n    for x in y:\n        if x:\n            work()\n", {"main"}),
        ("def main():\n    while True: work()\n", {"main"}),
        ("async def main():\n    async for x in y:\n        work(\n            x)\n", {"main"}),
        ("class A:\n    def run(self):\n        for x in y:\n            z = [\n                work(),\n            ]\n", {"A.run"}),
        ("def main():\n    for x in y:\n        a = (1,\n        ), work()\n", {"main"}),
        ("from model import work as w\ndef main():\n    for x in y:\n        w()\n", {"main", ""}),
        ("for x in y:\n    def inner():\n        pass\n    work()\n", {""}),
        # None of these repeats the call.
        ("def main():\n    work()\n    for x in y:\n        pass\n", set()),
        ("def main():\n    for x in y:\n        pass\n    work()\n", set()),
        ("def other():\n    for x in y:\n        pass\n\n\ndef main():\n    if x:\n        work()\n", set()),
        ("def main():\n    a = [work() for x in y]\n", set()),
    ],
)
def test_calls_that_a_loop_may_repeat(caller: str, scopes: set[str]) -> None:
    sketch = context({"model.py": MODULE, "use.py": NEEDS + caller}).calls.sketch
    known = {scope for path, scope in sketch.callers((f"{ROOT}/model.py", "work")) if path == f"{ROOT}/use.py"}
    assert {one for one in known if sketch.may_repeat((f"{ROOT}/use.py", one), "work")} == scopes


STEP = "def step(loss):\n    loss.backward()\n"


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
