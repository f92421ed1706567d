"""The table of a Python file: every call, binding, import and return stands in it with its place, and a read is what was written last."""

from __future__ import annotations

import ast
import contextlib
import symtable
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from collected import for_every
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written import FileWriter, Ways, observed

from ldlm_lint.code import Scope, Table, table_of
from ldlm_lint.code.table import COLUMNS, column_of, line_of

ROOT = Path(__file__).parents[1]
# One file in four, from all over: each kind of statement stands in them many times.
FILES = sorted([*(ROOT / "ldlm_lint").rglob("*.py"), *(ROOT / "tests" / "fixtures").rglob("*.py")])
LEAVE = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_EXITS = frozenset({"exit", "_exit", "quit"})


def _place(node: ast.AST) -> int:
    return node.lineno << COLUMNS | node.col_offset  # type: ignore[attr-defined]


def _end(node: ast.AST) -> int:
    return node.end_lineno << COLUMNS | node.end_col_offset  # type: ignore[attr-defined]


def _table(text: str) -> Table:
    return table_of(ast.parse(text))


class _Written:
    """What Python's own tree says of a file, without annotations and without what stands behind a way out of its block."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes: list[ast.AST] = []
        self.unreached: set[int] = set()
        self._visit(tree, False)

    def _visit(self, node: ast.AST, unreached: bool) -> None:
        self.nodes.append(node)
        if unreached:
            self.unreached.add(id(node))
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_params"):
                continue
            # The ``else`` of a ``try`` stands behind its body.
            behind = unreached or (name == "orelse" and isinstance(node, ast.Try) and any(map(_may_leave, node.body)))
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self._visit(child, behind)
                    # A way out that another one meets may be passed: what stands behind such a statement may be missing.
                    behind = behind or (isinstance(child, ast.stmt) and _may_leave(child))

    def of(self, kind: type[ast.AST] | tuple[type[ast.AST], ...]) -> Iterator[ast.AST]:
        return (node for node in self.nodes if isinstance(node, kind))


def _may_leave(statement: ast.stmt) -> bool:
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    calls = (node.func for node in ast.walk(statement) if isinstance(node, ast.Call))
    names = {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in calls}
    return not _EXITS.isdisjoint(names) or any(isinstance(node, LEAVE) for node in ast.walk(statement))


def _check_calls(written: _Written, table: Table) -> None:
    decorations = {call for call, _, _ in table.decorations}
    sites = Counter((site.place, site.end) for call, site in table.sites.items() if call not in decorations)
    for call in written.of(ast.Call):
        times = sites.pop((_place(call), _end(call)), 0)
        assert times == 1 or (times == 0 and id(call) in written.unreached), (times, ast.unparse(call))
    assert not sites
    named = Counter(call for calls in table.named.values() for call in calls)
    assert named == Counter({call: 1 for call in table.sites if call not in decorations})
    assert Counter(call for scope in table.scopes for call in scope.calls) == Counter(dict.fromkeys(table.sites, 1))


def _bound_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) or (
        isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name
    ):
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
    elif isinstance(node, ast.arg):
        yield node.arg


def _check_bindings(written: _Written, table: Table) -> None:
    own = {id(inner) for node in written.of(ast.comprehension) for inner in ast.walk(node.target)}  # type: ignore[attr-defined]
    only_annotated = {id(node.target) for node in written.of(ast.AnnAssign) if node.value is None}  # type: ignore[attr-defined]
    bound = {(event[4], event[5]) for scope in table.scopes for event in scope.events if event[0] == "bind"}
    elsewhere = {name for scope in table.scopes for name in scope.globals}
    for node in written.nodes:
        for name in _bound_names(node):
            known = (_place(node), name) in bound or name in elsewhere or id(node) in own | only_annotated
            assert known or id(node) in written.unreached, (name, line_of(_place(node)))


def _check_imports(written: _Written, table: Table) -> None:
    kept = Counter(table.imports)
    for node in written.of((ast.Import, ast.ImportFrom)):
        for one in node.names:  # type: ignore[attr-defined]
            row = (
                (one.name, "", 0, _place(node))
                if isinstance(node, ast.Import)
                else (node.module or "", one.name, node.level, _place(node))
            )  # type: ignore[attr-defined]
            assert kept[row] or id(node) in written.unreached
            kept[row] -= 1


def _check_returns(written: _Written, table: Table) -> None:
    places = {event[4] for scope in table.scopes for event in scope.events if event[0] == "return"}
    yields = {event[4] for scope in table.scopes for event in scope.events if event[0] == "yield"}
    for kind, known in ((ast.Return, places), ((ast.Yield, ast.YieldFrom), yields)):
        for node in written.of(kind):  # type: ignore[arg-type]
            assert _place(node) in known or id(node) in written.unreached


def _check_scopes(text: str, table: Table) -> None:
    """Python's own symbol table says which scope a name belongs to."""
    scopes: dict[tuple[str, int], list[Scope]] = {}
    for scope in table.scopes[1:]:
        scopes.setdefault((scope.name.replace("<lambda>", "lambda"), line_of(scope.place)), []).append(scope)
    todo = list(symtable.symtable(text, "x.py", "exec").get_children())
    while todo:
        one = todo.pop()
        todo += one.get_children()
        alike = scopes.get((one.get_name(), one.get_lineno()), [])
        if len(alike) == 1:
            for name, values in alike[0].bindings.items():
                # A container that is changed stands as what its name holds from there on, wherever the name belongs.
                changed = all(table.nodes[value][0] == "upd" for value in values)
                assert name == "*" or name.startswith("__") or changed or one.lookup(name).is_local(), (name, one)


def _check_form(table: Table) -> None:
    """Numbers point to rows, and operands stand before their readers; only phis look ahead."""
    assert len(table.nodes) == len(table.places)
    for number, row in enumerate(table.nodes):
        if row[0] == "phi":
            assert len(row[1]) > 1
            assert all(0 <= one < len(table.nodes) and one != number for one in row[1])
        elif row[0] in ("attr", "star", "item", "elem", "part", "enter", "not"):
            assert row[1] < number
    for scope in table.scopes:
        for values in scope.bindings.values():
            assert all(0 <= one < len(table.nodes) for one in values)
    for tree in (table.loops, table.guards):
        assert all(-1 <= one.parent < number for number, one in enumerate(tree))  # type: ignore[attr-defined]


def check(text: str) -> Table:
    """Everything that must hold of the table of a text."""
    tree = ast.parse(text)
    table = table_of(tree)
    written = _Written(tree)
    _check_calls(written, table)
    _check_bindings(written, table)
    _check_imports(written, table)
    _check_returns(written, table)
    _check_scopes(text, table)
    _check_form(table)
    return table


@pytest.mark.parametrize("each", [12, pytest.param(1, marks=pytest.mark.slow)])
def test_files(each: int) -> None:
    failed = []
    for path in FILES[::each]:
        try:
            text = path.read_text(encoding="utf-8")
            ast.parse(text)
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue
        try:
            check(text)
        except AssertionError as error:
            failed.append(f"{path.relative_to(ROOT)}: {error}")
    assert not failed


KINDS = """\
import a.b, c as d
from . import e
from ..f import g as h, i
from star import *
with open(x) as file, lock() as (one, two): pass
for k, *rest in pairs(): pass
while (line := read()): pass
try: risky()
except (OSError, ValueError) as error: handle(error)
except KeyError: pass
else: fine()
finally: last()
match command():
    case {"x": px, **rest_of}: m(px)
    case [first, *others] if good(first): n(others)
    case Point(x=0) as point: o(point)
    case str(text) | text: pass
async def f(p, /, q: int = dq(), *args, r=dr(), **kwargs):
    global made
    made = 1
    async for u in p: await q(u)
    async with p as v: yield v
    def inner():
        nonlocal q
        q = 2
    return [w for w in q() if test(w)], {y: z() for y in p}, (lambda t: t())
class C(Base(), metaclass=Meta):
    field: int
    value: int = compute()
    @property
    def p(self): return self.q[key()]
    @decorated(1)
    @plain
    def s(self, **k): super().s(**k); self.q[first()] += second()
x.y = x[z()] = t = u = f"{fmt()!r:>{width()}}"
x.count += more()
del x.y, t, x[z2()]
assert checked(), message()
print(*args(), **kw())
v = [1, 2, 3][low():high()]
a, (b, c) = swap(c, b), (1, 2)
"""


def test_kinds() -> None:
    table = check(KINDS)
    assert {name for name in table.scopes[0].bindings if len(name) > 3} == {
        "file", "rest", "line", "error", "rest_of", "first", "others", "point", "text", "made",
    }  # fmt: skip
    assert table.scopes[0].bindings["*"]
    assert [scope.name for scope in table.scopes] == ["", "f", "inner", "<lambda>", "C", "p", "s"]


def test_places_count_bytes_from_the_begin_of_the_line() -> None:
    table = _table("x = 'é'; run(1)\n")
    (site,) = table.sites.values()
    assert (line_of(site.place), column_of(site.place), column_of(site.end)) == (1, 10, 16)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type statements are of Python 3.12")
def test_a_type_statement_binds_its_name() -> None:
    assert "Pair" in check("type Pair[T] = tuple[T, T]\ndef f[T](x: T) -> T: return x\n").scopes[0].bindings


def test_what_stands_behind_suppressed_errors_is_read() -> None:
    text = "from contextlib import suppress\ndef f():\n    with suppress(OSError):\n        return read()\n    return other()\n"
    assert "other" in _table(text).named


def _held(text: str, name: str = "use") -> list[frozenset[object]]:
    """What the calls of a function are given first, as the numbers that were written."""
    table = _table(text)
    return [Ways(table).of(table.nodes[call][2][0]) for call in table.named[name]]


@for_every(
    ("text", "held"),
    [
        ("x = 1\nx = 2\nuse(x)\n", {2}),
        ("x = 1\nif c: x = 2\nuse(x)\n", {1, 2}),
        ("x = 1\nif c: x = 2\nelse: x = 3\nuse(x)\n", {2, 3}),
        ("x = 1\nfor i in y:\n    x = 2\nuse(x)\n", {1, 2}),
        ("x = 1\nfor i in y:\n    use(x)\n    x = 2\n", {1, 2}),
        ("x = 1\nwhile c():\n    x = 2\n    break\nelse:\n    x = 3\nuse(x)\n", {2, 3}),
        ("x = 1\nfor i in y:\n    if i: x = 2; continue\n    x = 3; break\nuse(x)\n", {1, 2, 3}),
        ("x = 1\ntry:\n    x = 2\n    f()\n    x = 3\nexcept E:\n    use(x)\n", {1, 2, 3}),
        ("x = 1\ntry:\n    f()\n    x = 2\nfinally:\n    use(x)\n", {1, 2}),
        ("x = 1\ntry:\n    x = 2\nfinally:\n    pass\nuse(x)\n", {2}),
        ("x = 1\nc and (x := 2)\nuse(x)\n", {1, 2}),
        ("x = 1\ny = (x := 2) if c else 3\nuse(x)\n", {1, 2}),
        ("x = 1\n[x := 2 for i in y]\nuse(x)\n", {1, 2}),
        ("x = 1\nif (x := 2): pass\nuse(x)\n", {2}),
        ("x, y = 1, 2\nx, y = y, x\nuse(x)\n", {2}),
        ("def f(x=1):\n    x = 2\n    return use(x)\n", {2}),
        ("x = 1\nif c: raise E\nelif d: x = 2\nelse: sys.exit(1)\nuse(x)\n", {2}),
        ("x = 1\nmatch c:\n    case 1: x = 2\n    case _: x = 3\nuse(x)\n", {2, 3}),
    ],
)  # fmt: skip
def test_a_read_is_what_was_written_last(text: str, held: set[int]) -> None:
    assert _held(text) == [frozenset(held)]


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32))
def test_a_read_may_be_what_it_is_when_the_program_runs(seed: int) -> None:
    text = FileWriter(seed).text()
    table = check(text)
    ways = Ways(table)
    may = {
        table.nodes[table.nodes[call][2][0]][1]: ways.of(table.nodes[call][2][1]) for call in table.named.get("use", ())
    }
    for read, values in observed(text, runs=40).items():
        assert values <= may[read], (
            f"{text}\nread {read}: {sorted(values)} are not all in {sorted(map(str, may[read]))}"
        )


@for_every("text", [
    "x = " + "-" * 5000 + "1\n",
    "x = " + "(" * 5000 + "1" + ")" * 5000 + "\n",
    "x = a" + ".b" * 5000 + "\n",
    "x = a" + "()" * 5000 + "\n",
    "x = " + "1 + " * 5000 + "1\n",
    "".join(f"{' ' * depth}if x:\n" for depth in range(90)) + " " * 90 + "pass\n",
    "if x: pass\n" + "elif y: pass\n" * 5000,
    "x = " + "lambda: " * 3000 + "1\n",
    "x = " + "[" * 150 + "f(1)" + " for a in b]" * 150 + "\n",
])  # fmt: skip
def test_deep_nesting_gives_a_table_or_a_recursion_error(text: str) -> None:
    with contextlib.suppress(RecursionError, MemoryError, SyntaxError):
        check_size(text)


def check_size(text: str) -> None:
    """A table is no larger than a small multiple of its text."""
    table = _table(text)
    assert len(table.nodes) < 4 * len(text) + 10


@for_every("text", [
    "x = 0\n" + "if c: x = 1\n" * 10_000,
    "x = {" + "'k': 1, " * 100_000 + "}\n",
    "for i in y:\n" + "    if i: a = b; b = a; continue\n" * 2000,
    "".join(f"x{n} = y\n" for n in range(2000)) + "".join(f"if c: x{n} = 1\n" for n in range(2000)),
    ", ".join(f"a{n}" for n in range(5000)) + " = f()\n",
    "def f():\n" + "    global x\n" * 5000,
])  # fmt: skip
def test_large_files_have_small_tables(text: str) -> None:
    check_size(text)
