"""The parts of calls, lists, dictionaries, signatures and assignments: places and names as Python's own tree has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from collected import for_every

from ldlm_lint.code import table_of
from ldlm_lint.code.tokens import line_of_tokens, pieces_of, signature_of, value_bound_by
from ldlm_lint.edits.written_parts import Part, parts_in, span_in
from ldlm_lint.model import Span
from ldlm_lint.source import Kind, Source, UnreadableError

_BEGIN, _END = re.compile(rb"^[(*\s]*(?:\w+ *:= *)?"), re.compile(rb"[)\s]*$")
ROOT = Path(__file__).parents[1]
FILES = sorted([*(ROOT / "ldlm_lint" / "checkers").rglob("*.py"), *(ROOT / "tests" / "fixtures").rglob("*.py")])[::6]


def _span(source: Source, node: ast.AST) -> Span:
    return source.span_of(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]


def _expected(source: Source, node: ast.AST) -> Iterator[tuple[str, Span]]:
    """The names and values of the parts of a node, in the order of the text."""
    if isinstance(node, ast.Call):
        named = [("", _span(source, one)) for one in node.args]
        named += [(one.arg or "**", _span(source, one.value)) for one in node.keywords]
        yield from sorted(named, key=lambda one: one[1].start)
    elif isinstance(node, ast.Dict):
        yield from (("" if key is not None else "**", _span(source, one)) for key, one in zip(node.keys, node.values, strict=True))
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        yield from (("", _span(source, one)) for one in node.elts)


def _is_same(part: Part, name: str, value: Span, data: bytes) -> bool:
    """An unpacked value begins after its stars, one in parentheses inside of them, and one that gets a name after it."""
    found, wanted = (_END.sub(b"", _BEGIN.sub(b"", data[one.start : one.end])) for one in (part.span, value))
    # The keys of a dictionary have no name unless they are names.
    return found == wanted and (part.name == name or not name)


@for_every("path", FILES, ids=lambda path: path.name)
def test_parts_are_where_the_tree_of_python_has_them(path: Path) -> None:
    try:
        source = Source.from_bytes(str(path), path.read_bytes(), Kind.PYTHON)
        tree = ast.parse(source.text)
    except (SyntaxError, UnreadableError):
        return
    table = table_of(tree)
    nodes = {(_span(source, one), one.__class__): one for one in ast.walk(tree) if isinstance(one, ast.expr)}
    kinds = {"call": (ast.Call,), "map": (ast.Dict,), "seq": (ast.List, ast.Tuple, ast.Set)}
    decorations = {call for call, _, _ in table.decorations}
    whole = {_span(source, one) for one in ast.walk(tree) if hasattr(one, "end_lineno")}
    for number, row in enumerate(table.nodes):
        assert not table.places[number] or span_in(source, table, number) in whole
        if row[0] not in kinds or number in decorations:
            continue
        span = span_in(source, table, number)
        node = next(nodes[span, kind] for kind in kinds[row[0]] if (span, kind) in nodes)
        parts, expected = parts_in(source, table, number), list(_expected(source, node))
        # A tuple without parentheses, and a lone generator with commas, are left alone.
        assert not parts or len(parts) == len(expected)
        assert all(_is_same(part, name, value, source.data) for part, (name, value) in zip(parts, expected, strict=False))


@for_every(
    ("text", "found"),
    [
        ("def f(a, b: int = 3, *, c={'x': 1}, d=lambda p, q=1: p): pass", {"b": "3", "c": "{'x': 1}", "d": "lambda p, q=1: p"}),
        ("async def f(\n    a=1,  # one, two\n    *rest,\n) -> int:\n    return 4\n", {"a": "1"}),
        ("def f(): return g(a=1)", {}),
    ],
)
def test_defaults_are_found_in_a_signature(text: str, found: dict[str, str]) -> None:
    pieces = pieces_of(signature_of(line_of_tokens(text)))
    assert {one.name: text[one.value : one.end] for one in pieces if one.name} == found


@for_every(
    ("text", "value"),
    [
        ("a = 3  # three\nb = 4\n", "3"),
        ("a = b = f(x=1)\n", "f(x=1)"),
        ("a: int = 2; b = 3", "2"),
        ("a = lambda p=1: p", "lambda p=1: p"),
        ("self.a['b'] = (\n    4\n)\n", "(\n    4\n)"),
        ("f(a=1)\n", ""),
        ("a, b=2)\n", ""),
        ("a += 1\n", ""),
        ("a == 1\n", ""),
    ],
)
def test_the_value_of_an_assignment_is_found(text: str, value: str) -> None:
    tokens = value_bound_by(line_of_tokens(text))
    assert (text[tokens[0].start : tokens[-1].end] if tokens else "") == value
