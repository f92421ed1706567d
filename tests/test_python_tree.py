"""Light trees: positions, what stands before a syntax error, and no trace in astroid's singleton."""

from __future__ import annotations

import time
import warnings

import pytest
from astroid import nodes
from astroid.manager import AstroidManager
from collected import for_every
from snippets import parsed, source, tree

from ldlm_lint.python.flow import summarize
from ldlm_lint.python.tree import Parsed, parse

GOOD = "import a\nx = 1\n"


def statements(result: Parsed) -> list[tuple[str, int]]:
    """Kind and line of every statement that was read, nested ones included."""
    assert result.module is not None
    found = result.module.nodes_of_class(nodes.NodeNG)
    return [(type(one).__name__, one.lineno) for one in found if one.is_statement]


@for_every(
    "code, error_line, expected",
    [
        pytest.param("def\nx = 1\n", 1, None, id="first-line"),
        pytest.param("x = (\n", 1, None, id="first-line-open"),
        pytest.param("  x = 1\ny = 2\n", 1, None, id="indented-first-line"),
        pytest.param("# only\n# comments\n)\n", 3, [], id="comments-before-it"),
        pytest.param(f"{GOOD}y = = 2\nz = 3\n", 3, [("Import", 1), ("Assign", 2)], id="second-half"),
        pytest.param(
            f"{GOOD}def f():\n    y = 2\n    z = = 3\n",
            5,
            [("Import", 1), ("Assign", 2), ("FunctionDef", 3), ("Assign", 4)],
            id="inside-a-function",
        ),
        pytest.param(
            f"{GOOD}def f():\n    z = = 3\n    y = 2\n",
            4,
            [("Import", 1), ("Assign", 2)],
            id="first-line-of-a-function",
        ),
        pytest.param(
            f"{GOOD}def f():\n    if x:\n    y = 2\n",
            5,
            [("Import", 1), ("Assign", 2), ("FunctionDef", 3), ("If", 4), ("Pass", 4), ("Assign", 5)],
            id="missing-block",
        ),
        pytest.param(
            f"{GOOD}try:\n    y = 2\n    z = = 3\nexcept E: ...\n",
            5,
            [("Import", 1), ("Assign", 2), ("Try", 3), ("Assign", 4), ("Pass", 6)],
            id="inside-a-try",
        ),
        pytest.param(
            f"{GOOD}try:\n    def f():\n        try:  # twice\n            y = 2\n            z = = 3\n",
            7,
            [
                ("Import", 1),
                ("Assign", 2),
                ("Try", 3),
                ("FunctionDef", 4),
                ("Try", 5),
                ("Assign", 6),
                ("Pass", 8),
                ("Pass", 10),
            ],
            id="inside-two-tries",
        ),
        pytest.param(
            f"{GOOD}try:\n    y = 2\nexcept E:\n    z = = 3\n",
            6,
            [("Import", 1), ("Assign", 2), ("Try", 3), ("Assign", 4), ("Pass", 6)],
            id="inside-an-except",
        ),
        pytest.param(f"{GOOD}f(a,\n  b\ny = 2\n", 3, [("Import", 1), ("Assign", 2)], id="unclosed-bracket"),
        pytest.param(f"{GOOD}f(a,\n  'b' c\n)\n", 4, [("Import", 1), ("Assign", 2)], id="inside-a-bracket"),
        pytest.param(f'{GOOD}s = """open\ntext\n', 3, [("Import", 1), ("Assign", 2)], id="unclosed-text"),
        pytest.param(f"{GOOD}if x:\n\ty = 1\n        z = 2\n", 5, None, id="tabs-and-blanks"),
        pytest.param(f"{GOOD}\x0cy = 2\nz = = 3\n", 4, [("Import", 1), ("Assign", 2), ("Assign", 3)], id="form-feed"),
        pytest.param("s = 'a\x0b\x1c\x85\u2028b'\ny = = 2\n", 2, [("Assign", 1)], id="characters-that-end-no-line"),
        pytest.param("import a\rx = 1\ry = = 2\r", 3, [("Import", 1), ("Assign", 2)], id="carriage-returns"),
        pytest.param("import a\r\nx = 1\r\ny = = 2\r\n", 3, [("Import", 1), ("Assign", 2)], id="windows"),
        pytest.param(
            b"\xef\xbb\xbfimport a\nx = 1\ny = = 2\n", 3, [("Import", 1), ("Assign", 2)], id="byte-order-mark"
        ),
        pytest.param(b"# coding: latin-1\nx = '\xe9'\ny = = 2\n", 3, [("Assign", 2)], id="another-encoding"),
        pytest.param(f"{GOOD}print 'a'\n", 3, [("Import", 1), ("Assign", 2)], id="python-2"),
        pytest.param(f"{GOOD}y = 2\\", 3, [("Import", 1), ("Assign", 2)], id="continued-past-the-end"),
        pytest.param(f"{GOOD}y = {'9' * 5000}\n", 3, [("Import", 1), ("Assign", 2)], id="number-too-long-for-python"),
    ],
)
def test_prefix_before_a_syntax_error(
    code: str | bytes, error_line: int, expected: list[tuple[str, int]] | None
) -> None:
    result = parsed(code)
    assert result.error_line == error_line
    assert result.error
    if expected is not None:
        assert (statements(result) if result.module else []) == expected


@for_every(
    "code",
    [
        pytest.param("", id="empty"),
        pytest.param("# only\n# comments", id="comments"),
        pytest.param("x = '\\d'\ny = 1 is 1\nassert (1, 2)\n", id="what-python-warns-of"),
        pytest.param("return 3\n", id="what-only-the-compiler-rejects"),
        pytest.param("x = '\\ud800'\n", id="lone-surrogate"),
        pytest.param("x = []  # type: List[int\n", id="broken-type-comment"),
        pytest.param("from ...... import x\n", id="above-every-package"),
    ],
)
def test_what_parses_is_no_error(code: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = parsed(code)
    assert result.module is not None
    assert (result.error_line, result.error) == (0, "")


@for_every(
    "code",
    [
        pytest.param("(" * 300 + "1" + ")" * 300, id="parentheses"),
        pytest.param("-" * 5000 + "1", id="signs"),
        pytest.param("-" * 100_000 + "1", id="more signs than the parser takes"),
        pytest.param("+".join("1" * 5000), id="sum"),
        pytest.param("a" + ".b" * 3000, id="attributes"),
        pytest.param("a" + "()" * 900, id="calls"),
        pytest.param("if a: pass\n" + "elif a: pass\n" * 2000, id="elif"),
    ],
)
def test_deep_nesting_is_said_and_nothing_else(code: str) -> None:
    result = parsed(code)
    assert result.module is not None or (result.error_line == 1 and result.error)


@for_every(
    "shape",
    [
        pytest.param(lambda n: f"x = {'-' * n}1", id="signs"),
        pytest.param(lambda n: f"x = {'+'.join(['a'] * n)}", id="sum"),
        pytest.param(lambda n: f"for b in a{'.b' * n}: ...", id="attributes"),
        pytest.param(lambda n: f"for b in a{'[0]' * n}: ...", id="subscripts"),
        pytest.param(lambda n: f"f(**{'{**' * n}a{'}' * n})", id="dictionaries"),
        pytest.param(lambda n: "if a: pass\n" + "elif a: pass\n" * n, id="elif"),
    ],
)
def test_a_tree_that_was_built_can_be_summarized(shape) -> None:
    """At every depth up to where the builder itself gives up."""
    for depth in range(20, 1000, 60):
        result = parsed(shape(depth))
        if result.module is not None:
            assert summarize(result.module, "/project/module.py").complete


@for_every("name", ["json", "torch", "builtins", "pkg.module", ""])
@for_every("code", ["x = 1\n", "x = = 1\n", "y = 1\nx = = 1\n", "from .. import x\nimport torch\n"])
def test_no_trace_in_astroids_cache(name: str, code: str) -> None:
    before = dict(AstroidManager().astroid_cache)
    parsed(code, name)
    assert dict(AstroidManager().astroid_cache) == before


def test_a_file_that_is_called_like_a_module_does_not_take_its_place() -> None:
    manager = AstroidManager()
    parsed("def loads(): ...\n", "json")
    assert manager.ast_from_module_name("json").file.endswith("__init__.py")
    parsed("x = 1\n", "builtins")
    assert "print" in manager.builtins_module


def test_nothing_is_imported() -> None:
    module = tree("from sched import *\nimport sched\nself.x = sched.scheduler\n")
    assert sorted(module.locals) == ["sched"]
    assert "sched" not in AstroidManager().astroid_cache


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("X = {\n" + "    'key': [1, 2, f(x=3)],\n" * 5000 + "    'a' 5 6\n}\n", id="data-table"),
        pytest.param("x = f(a, b)\n" * 10000 + "f(\n" + "    a,\n" * 3000 + "    b c\n)\n", id="long-call"),
    ],
)
def test_an_error_in_a_long_statement_costs_no_minutes(code: str) -> None:
    start = time.process_time()
    result = parse(source(code), "module")
    assert result.error_line == code[: code.rindex("\n}" if "}" in code else "\n)")].count("\n") + 1
    # Without leaving out what ends inside an open bracket: 12 s and 20 s.
    assert time.process_time() - start < 6
