"""How OpenMMLab's configurations have DDP search for unused parameters: through a variable that the runner reads, or
settings of the wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Span
from ldlm_lint.program.of_project import tree_of
from ldlm_lint.source import Kind, Source, UnreadableError

_FLAG, _STATIC = "find_unused_parameters", "static_graph"


class Switch(NamedTuple):
    """A flag that is True: the statement or settings, and the constant itself."""

    span: Span
    flag: Span


def mm_switches(view: View) -> Iterator[Switch]:
    """The flags of all configurations."""
    project = view.context.project
    for path in sorted(project.files):
        if _FLAG.encode() in project.data(path) and view.context.mm_configs.is_config(path):
            try:
                source = Source.from_bytes(path, project.data(path), Kind.PYTHON)
                tree = tree_of(source)
            except (SyntaxError, ValueError, RecursionError, UnreadableError):
                # Its own lint reports that.
                continue
            yield from (Switch(_span(source, one), _span(source, flag)) for one, flag in _found(tree))


def _found(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, ast.Constant]]:
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        if [getattr(one, "id", "") for one in statement.targets] == [_FLAG] and _is_true(statement.value):
            yield statement, statement.value
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and (flag := _of_settings(node)) is not None:
                yield node, flag


def _of_settings(node: ast.Call) -> ast.Constant | None:
    """The flag of ``dict(type="MMDistributedDataParallel", find_unused_parameters=True)``."""
    given = {one.arg: one.value for one in node.keywords}
    if getattr(node.func, "id", "") != "dict" or node.args or None in given or _STATIC in given:
        return None
    kind, flag = given.get("type"), given.get(_FLAG)
    name = kind.value if isinstance(kind, ast.Constant) else getattr(kind, "id", getattr(kind, "attr", ""))
    return flag if str(name).endswith("DistributedDataParallel") and _is_true(flag) else None


def _is_true(node: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and node.value is True


def _span(source: Source, node: ast.stmt | ast.expr) -> Span:
    return source.span_of(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)
