"""Expressions that a guard writes a second time: which may be repeated, and which need no guard since their text shows
that they are positive."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import span_of_node
from ldlm_lint.code.expressions import end_of, place_of
from ldlm_lint.program.modules import Module

_LONGEST = 60
_BUILTINS = frozenset({f"builtins.{name}" for name in ("min", "max", "int", "len", "getattr")})
_LOOK_UPS = frozenset({"os.cpu_count", "os.process_cpu_count", "os.getenv", "os.sched_getaffinity", "multiprocessing.cpu_count"})
_RANKS = frozenset({"torch.distributed.get_world_size", "torch.distributed.get_rank", "torch.cuda.device_count"})
_DOES_SOMETHING = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def can_be_repeated(view: View, module: Module, call: ast.Call, node: ast.expr) -> bool:
    """Whether writing an expression of a call a second time computes the same, has no side effects, and stays
    readable.
    """
    if any(isinstance(one, _DOES_SOMETHING) for one in ast.walk(call)):
        return False
    if isinstance(node, (ast.Constant, ast.Lambda)) or node.end_lineno != node.lineno:
        return False
    if (node.end_col_offset or 0) - node.col_offset > _LONGEST:
        return False
    parts = list(ast.walk(node))
    calls = [one for one in parts if isinstance(one, ast.Call)]
    return not any(isinstance(one, ast.Lambda) for one in parts) and all(_only_looks_up(view, module, one) for one in calls)


def _only_looks_up(view: View, module: Module, call: ast.Call) -> bool:
    if isinstance(call.func, ast.Attribute) and call.func.attr == "get" and not is_named(view, module, call, _LOOK_UPS):
        # A queue's ``get`` removes an item; with a key it is a mapping's.
        return bool(call.args) and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    return is_named(view, module, call, _BUILTINS | _LOOK_UPS | _RANKS)


def is_named(view: View, module: Module, call: ast.Call, names: Collection[str]) -> bool:
    """Whether a call surely calls one of these functions, by dotted name."""
    key = view.call_of(module, place_of(call), end_of(call))
    if key is None:
        return False
    found = view.ask.names_of(view.program.ask(module.base | module.nodes[key][1]))
    return bool(found) and found <= frozenset(names)


def is_positive(view: View, module: Module, node: ast.expr) -> bool:
    """Whether an expression is above 0 by its own text: a number, either of two, ``n or 2``, ``max(1, ...)``."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int and node.value > 0
    if isinstance(node, ast.IfExp):
        return is_positive(view, module, node.body) and is_positive(view, module, node.orelse)
    if isinstance(node, ast.BoolOp):
        # A number other than 0 is positive, since a loader rejects negative ones.
        return isinstance(node.op, ast.Or) and is_positive(view, module, node.values[-1])
    if isinstance(node, ast.Call) and len(node.args) > 1 and not any(isinstance(one, ast.Starred) for one in node.args):
        positive = [is_positive(view, module, one) for one in node.args]
        by_largest = is_named(view, module, node, {"builtins.max"}) and any(positive)
        return by_largest or (is_named(view, module, node, {"builtins.min"}) and all(positive))
    return False


def as_operand(view: View, module: Module, node: ast.expr) -> str:
    """The text of an expression as an operand of a comparison."""
    source = view.source(module)
    text = source.slice(span_of_node(source, node))
    return f"({text})" if isinstance(node, (ast.IfExp, ast.BoolOp, ast.Compare, ast.UnaryOp)) else text
