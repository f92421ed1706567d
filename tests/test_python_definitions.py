"""Whether a text names the functions of a file as its tree does; where it may not, nobody relies on it."""

from __future__ import annotations

import ast

import pytest
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st
from snippets import ROOT, context

from ldlm_lint.shapes.outline import outline_of


def told(text: str) -> frozenset[str] | None:
    """The names by the text alone."""
    path, sketch = f"{ROOT}/a.py", context({"a.py": text}).calls.sketch
    return frozenset(sketch.functions(path)) if sketch.tells_functions(path) else None


def named(text: str) -> set[str]:
    """The names of the functions by the tree."""
    data = text.encode()
    return {one.scope for one in outline_of(ast.parse(data), data).owners} - {""}


@for_every(
    "text",
    [
        "def a():\n    def b(): ...\n    return b\n\n\nclass C:\n    def d(self): ...\n    async  def e(self): ...\n",
        "if x:\n    def a(): ...\nelse:\n    def b(): ...\n",
        "class C:\n    if x:\n        def a(self): ...\n    b = 3\n",
        "class C:\n    def a(\n        self,\n    ): ...\n\n    @staticmethod\n    def b(): ...\n",
        'class C:\n    def a(self):\n        """Text\nfrom the margin."""\n\n        def b(): ...\n',
        "class C:\r\n    def a(self): ...\r\n",
        "x = 'é'\n\n\ndef a(): ...\n",
    ],
)
def test_names_that_a_text_tells(text: str) -> None:
    found = told(text)
    assert found is not None and named(text) <= found


@for_every(
    "text",
    [
        pytest.param("def a(): ...\nif x:\n    def b(): ...\n", id="ended-before"),
        pytest.param("class C:\n    def a(self): ...\n    if x:\n        def b(self): ...\n", id="ended-inside-of-a-class"),
        pytest.param("class C:\n    \"\"\"Text:\n\ndef a():\n    \"\"\"\n    def b(self): ...\n", id="in-a-string"),
        pytest.param("class C:\n    x = '''\ndef a():\n    '''\n    def b(self): ...\n", id="in-another-string"),
        pytest.param("class C:\n    def \\\n a(self): ...\n", id="continued"),
        pytest.param("async \\\n def a(): ...\n", id="continued-before"),
        pytest.param("\fdef a(): ...\n", id="form-feed"),
        pytest.param("x = 1\rdef a(): ...\n", id="old-ends-of-lines"),
        pytest.param("class C:\n\tdef a(self):\n\t\tdef b(): ...\n", id="tabs"),
        pytest.param("def é(): ...\n", id="not-ascii"),
        pytest.param("class aé:\n    def b(self): ...\n", id="not-ascii-inside"),
    ],
)
def test_names_that_only_the_tree_tells(text: str) -> None:
    assert named(text)
    assert told(text) is None


_LINES = st.sampled_from(
    [
        *("def {}():", "class {}:", "async def {}(a,\n b):", "if x:", "for x in y:", "with x:", "try:", "else:", "except E:"),
        *("x = 1", "pass", '"""Text', '"""', "x = (1,", ")", "# def {}():", "x = '''", "'''", "def {}(): pass", "\\"),
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), _LINES), max_size=14))
def test_no_function_of_a_tree_is_missing(lines: list[tuple[int, str]]) -> None:
    text = "".join(f"{'    ' * depth}{line.format(f'f{number}')}\n" for number, (depth, line) in enumerate(lines))
    try:
        names = named(text)
    except SyntaxError:
        return
    found = told(text)
    assert found is None or names <= found
