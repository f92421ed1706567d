"""Statements that set something to a literal, ``x.a = True`` or ``f(True)``, and another literal instead."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ldlm_lint.model import Applicability, Edit, Fix, Span
from ldlm_lint.python.syntax import syntax_of
from ldlm_lint.source import Source

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def statement_at(source: Source, offset: int) -> Span:
    """The simple statement at an offset in bytes; empty if none is there."""
    found = _statement(source, offset)
    return source.span(offset, offset) if found is None else _span(source, found)


def set_to(source: Source, statements: Sequence[Span], value: str, reason: str) -> Fix | None:
    """Give another literal value in some statements; None if one of them has no literal, or several."""
    literals = [_literal(_statement(source, one.start)) for one in statements]
    edits = tuple(Edit(_span(source, one), value) for one in literals if one is not None)
    return Fix(f"set it to {value}", edits, Applicability.UNSAFE, reason) if len(edits) == len(literals) else None


def _statement(source: Source, offset: int) -> ast.stmt | None:
    tree = syntax_of(source)
    every = (node for node in ast.walk(tree) if isinstance(node, _SIMPLE)) if tree is not None else ()
    return next((one for one in every if (span := _span(source, one)).start <= offset < span.end), None)


def _literal(statement: ast.stmt | None) -> ast.Constant | None:
    if isinstance(statement, ast.Assign):
        return statement.value if isinstance(statement.value, ast.Constant) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    given = [*call.args, *(one.value for one in call.keywords)] if isinstance(call, ast.Call) else []
    return given[0] if len(given) == 1 and isinstance(given[0], ast.Constant) else None


def _span(source: Source, node: ast.stmt | ast.expr) -> Span:
    return source.span(source.offset(node.lineno, node.col_offset), source.offset(node.end_lineno or node.lineno, node.end_col_offset or 0))


__all__ = ["set_to", "statement_at"]
