"""Calls as written in a file, for places and edits: the table of a file has their meaning, but not the ends of their
parts."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.code.expressions import end_of, place_of
from ldlm_lint.model import Edit, Span
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.of_project import tree_of
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View
    from ldlm_lint.program.modules import Module

_CATCHERS = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex"})


def call_as_written(view: View, call: int) -> ast.Call | None:
    """The syntax of a call, by its key."""
    module = view.program.module_of(call)
    site = module.table.sites[call & MASK]
    calls = (one for one in view.expressions(module).get(site.place, ()) if isinstance(one, ast.Call))
    return next((one for one in calls if end_of(one) == site.end), None)


def written_keyword(view: View, call: int, name: str) -> ast.expr | None:
    """The value of a keyword in a call."""
    written = call_as_written(view, call)
    return next((one.value for one in written.keywords if one.arg == name), None) if written is not None else None


def value_as_written(view: View, source: int, by: int, name: str) -> tuple[Module, ast.expr] | None:
    """The expression of a value under a name in a call or a dictionary (``by``); a name that is bound once is replaced
    by its value."""
    module = view.program.module_of(by)
    written = written_keyword(view, by, name) if by & MASK in module.table.sites else _in_dictionary(view, module, by, name)
    if not isinstance(written, ast.Name):
        return None if written is None else (module, written)
    row = module.nodes[source & MASK]
    bound = list(view.ask.bound_to(module, row)) if row[0] == "free" else [source]
    if len(bound) != 1:
        return module, written
    home = view.program.module_of(bound[0])
    place = bound_at(home, bound[0] & MASK, written.id)
    value = view.bound_expression(home, place) if place else None
    return (module, written) if value is None else (home, value)


def _in_dictionary(view: View, module: Module, by: int, name: str) -> ast.expr | None:
    place = module.table.places[by & MASK]
    for one in view.expressions(module).get(place, ()):
        if isinstance(one, ast.Dict):
            return next((value for key, value in zip(one.keys, one.values, strict=True) if isinstance(key, ast.Constant) and key.value == name), None)
    return view.bound_expression(module, place)


def constant_at(view: View, module: Module, place: int, number: int) -> ast.Constant | None:
    """A literal number in the construct at a place: a call, a dictionary, a binding, or a function with its
    defaults.
    """
    bound, function = view.bound_expression(module, place), view.function_as_written(module, place)
    parts: list[ast.expr] = [bound] if bound is not None else list(view.expressions(module).get(place, ())[:1])
    if function is not None:
        parts = [one for one in (*function.args.defaults, *function.args.kw_defaults) if one is not None]
    constants = (one for part in parts for one in ast.walk(part) if isinstance(one, ast.Constant))
    return next((one for one in constants if type(one.value) in (int, str) and str(one.value) == str(number)), None)


def bound_at(module: Module, number: int, name: str) -> int:
    """The place of a name that an expression is bound to; 0 if there is none."""
    events = (event for scope in module.scopes for event in scope.events)
    return next((int(event[4]) for event in events if event[0] == "bind" and event[1] == number and event[5] == name), 0)


def span_of_node(source: Source, node: ast.expr | ast.keyword) -> Span:
    """The span of a part of a file."""
    return source.span_of(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)


def without_keywords(view: View, call: int, names: Iterable[str]) -> tuple[Edit, ...]:
    """Take keywords out of a call; empty if one of them is not in it, or the text between them is too unusual."""
    wanted, written = set(names), call_as_written(view, call)
    keywords = [one for one in written.keywords if one.arg in wanted] if written is not None else []
    if not wanted or len(keywords) != len(wanted):
        return ()
    source = view.source(view.program.module_of(call))
    return remove_arguments(source, [span_of_node(source, one) for one in keywords]) or ()


def is_caught(view: View, call: int) -> bool:
    """Whether code around a call catches its exceptions."""
    module = view.program.module_of(call)
    return any(map(_catches, view.blocks_around(module, module.table.sites[call & MASK].place)))


def _catches(block: ast.Try | ast.With) -> bool:
    if isinstance(block, ast.Try):
        return bool(block.handlers)
    calls = [one.context_expr for one in block.items if isinstance(one.context_expr, ast.Call)]
    return any(_last_name(one.func) in _CATCHERS for one in calls)


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def keyword_of(view: View, call: int, name: str) -> ast.keyword | None:
    """The keyword that a call writes itself."""
    node = call_as_written(view, call)
    return next((one for one in node.keywords if one.arg == name), None) if node is not None else None


def written_argument(view: View, call: int, name: str, position: int | None = None) -> ast.expr | None:
    """The expression that a call writes for an argument, by its name or in its place."""
    keyword, node = keyword_of(view, call, name), call_as_written(view, call)
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
