"""Calls as a file writes them, for places and edits: the table of a file says what they mean, not where their parts end."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ldlm_lint.code.expressions import end_of, place_of
from ldlm_lint.model import Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.of_project import tree_of

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View
    from ldlm_lint.program.modules import Module


def node_of_call(view: View, call: int) -> ast.Call | None:
    """The node of a call, by its key."""
    module = view.program.module_of(call)
    site = module.table.sites[call & MASK]
    nodes = view.expressions(module).get(site.place, ())
    return next((one for one in nodes if isinstance(one, ast.Call) and end_of(one) == site.end), None)


def keyword_of(view: View, call: int, name: str) -> ast.keyword | None:
    """The keyword that a call writes itself."""
    node = node_of_call(view, call)
    return next((one for one in node.keywords if one.arg == name), None) if node is not None else None


def written_argument(view: View, call: int, name: str, position: int | None = None) -> ast.expr | None:
    """The expression that a call writes for an argument, by its name or in its place."""
    keyword, node = keyword_of(view, call, name), node_of_call(view, call)
    if keyword is not None or node is None or position is None:
        return keyword.value if keyword is not None else None
    given = node.args[: position + 1]
    return given[position] if len(given) > position and not any(isinstance(one, ast.Starred) for one in given) else None


def written_default(view: View, module: Module, place: int, name: str) -> ast.expr | None:
    """The expression that a function, by its place, writes as the default of a parameter."""
    for node in ast.walk(tree_of(view.source(module))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and place_of(node) == place:
            plain = [*node.args.posonlyargs, *node.args.args]
            given = [*zip(reversed(plain), reversed(node.args.defaults), strict=False), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
            return next((value for one, value in given if one.arg == name), None)
    return None


def span_of(view: View, module: Module, node: ast.expr | ast.keyword) -> Span:
    """The span of an expression or keyword."""
    return view.source(module).span(view.offset(module, place_of(node)), view.offset(module, end_of(node)))
