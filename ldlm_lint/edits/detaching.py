"""Parts of a statement's value whose autograd graph the value holds on to: there ``.detach()`` belongs."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.model import Edit
from ldlm_lint.python.syntax import required

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.source import Source

_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
_OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def detach(source: Source, line: int, texts: Collection[str]) -> tuple[Edit, ...]:
    """Detach the parts with some texts in the values of the statement that begins on a line; empty if not all are there."""
    for statement in _statements(source, line):
        value = statement.value
        values = [*value.args, *(one.value for one in value.keywords)] if isinstance(statement, ast.Expr) and isinstance(value, ast.Call) else [value]
        spans = [span for one in values if one is not None for span in _parts(source, one, texts)]
        if {source.slice(span) for span in spans} == set(texts):
            return tuple(sorted(Edit(span, f"{source.slice(span)}.detach()") for span in spans))
    return ()


def statement_at(source: Source, line: int) -> Span | None:
    """The assignment, or the call that is a statement, that begins on a line."""
    return next((_span(source, one) for one in _statements(source, line)), None)


def _statements(source: Source, line: int) -> Iterator[ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr]:
    return (one for one in ast.walk(required(source)) if isinstance(one, _STATEMENTS) and one.lineno == line)


def _span(source: Source, node: ast.stmt | ast.expr) -> Span:
    return source.span_of(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)


def _parts(source: Source, value: ast.expr, texts: Collection[str]) -> Iterator[Span]:
    span = _span(source, value)
    if source.slice(span) in texts:
        yield span
    elif isinstance(value, ast.BinOp) and isinstance(value.op, _OPERATIONS):
        for side in (value.left, value.right) if not isinstance(value.op, ast.Div) else (value.left,):
            yield from _parts(source, side, texts)
    elif isinstance(value, (ast.Tuple, ast.List)):
        for one in value.elts:
            yield from _parts(source, one, texts)
    elif isinstance(value, ast.Dict):
        for entry in value.values:
            yield from _parts(source, entry, texts)
    elif isinstance(value, ast.UnaryOp):
        yield from _parts(source, value.operand, texts)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        yield from _parts(source, value.func.value, texts)


__all__ = ["detach", "statement_at"]
