"""A statement at the beginning of a function, a main guard or a script."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator

from ldlm_lint.edits.lines import indent_at, insert_above, is_alone
from ldlm_lint.model import Edit
from ldlm_lint.python.syntax import syntax_of
from ldlm_lint.source import Source

_PLAIN = (ast.Expr, ast.Assign, ast.AnnAssign, ast.Assert, ast.If, ast.Import, ast.ImportFrom)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def insert_at_beginning(source: Source, line: int, statement: str, like: Collection[int], before: Collection[int]) -> Edit | None:
    """Insert a statement in the function or guard of a line, or in front of a loop there: behind the first statements with
    ``like`` lines that are in front of all with ``before`` lines, else behind the assertions at its beginning; None if it
    cannot have its own line."""
    block = _block(source, line)
    first = [one for one in itertools.takewhile(lambda one: isinstance(one, _PLAIN) and not _is_on(one, before), block)]
    alike = list(itertools.takewhile(lambda one: _is_on(one, like), itertools.dropwhile(lambda one: not _is_on(one, like), first)))
    asserted = list(itertools.takewhile(lambda one: isinstance(one, ast.Assert), first))
    for last in (*alike[-1:], *asserted[-1:]):
        span = source.span(source.offset(last.lineno, last.col_offset), source.offset(last.end_lineno or 1, last.end_col_offset or 0))
        end = last.end_lineno or last.lineno
        if is_alone(source, span) and end < len(source.line_starts):
            at = source.line_starts[end]
            return Edit(source.span(at, at), f"{indent_at(source, last.lineno)}{statement}{source.newline}")
    is_first = bool(block) and not source.lines[block[0].lineno - 1].encode()[: block[0].col_offset].strip()
    return insert_above(source, block[0].lineno, statement) if is_first and not getattr(block[0], "decorator_list", None) else None


def _is_on(statement: ast.stmt, lines: Collection[int]) -> bool:
    return any(statement.lineno <= one <= (statement.end_lineno or 0) for one in lines)


def _block(source: Source, line: int) -> list[ast.stmt]:
    """The statements of the function or the test that begins on a line, without a docstring; of a loop those from it."""
    tree = syntax_of(source)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, _FUNCTIONS) and node.lineno == line:
            has_text = len(node.body) > 1 and ast.get_docstring(node, clean=False) is not None
            return node.body[1:] if has_text else node.body
        if isinstance(node, ast.If) and node.lineno == line:
            return node.body
    top = tree.body if tree is not None else []
    return [one for one in top if one.lineno >= line] if any(one.lineno == line for one in top) else []


def name_of_torch(source: Source, line: int) -> str:
    """The name by which a file, or the function of a line, imports torch itself; empty if it does not, or binds that again."""
    tree = syntax_of(source)
    nodes = list(ast.walk(tree)) if tree is not None else []
    around = [tree, *(one for one in nodes if isinstance(one, _FUNCTIONS) and one.lineno == line)] if tree is not None else []
    names = [name for scope in around for one in scope.body if isinstance(one, ast.Import) for name in _brought(one)]
    bound = {one.id for one in nodes if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)}
    bound |= {one.arg for one in nodes if isinstance(one, ast.arg)}
    return next((one for one in names if one not in bound), "")


def _brought(statement: ast.Import) -> Iterator[str]:
    for one in statement.names:
        if one.name == "torch" or (one.name.startswith("torch.") and one.asname is None):
            yield one.asname or "torch"


__all__ = ["insert_at_beginning", "name_of_torch"]
