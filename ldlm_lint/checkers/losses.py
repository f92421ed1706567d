"""Losses in an expression: which names and calls are losses, whether a loss is bounded from above, and whether it is
used for training."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Argument, Arguments
from ldlm_lint.python.names import bindings, last_name, qualified, scope_of
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.losses import ABOUT, is_loss_name

_EVALUATION = lazily(
    r"^_*(eval\w*|valid\w*|val(_\w+)?|test(_\w+)?|infer\w*|predict\w*|generate\w*|sample|benchmark\w*"
    r"|(compute|log|get)_metrics?\w*)$"
)
_NO_GRADIENT = {"no_grad", "inference_mode"}
_KEEPS = {"mean", "sum", "float", "squeeze", "view", "reshape", "flatten", "to", "double", "nan_to_num", "nanmean"}
_LOSS_FUNCTIONS = lazily(
    r"^torch\.nn\.(functional\.(\w*_loss|\w*cross_entropy|kl_div|binary_cross_entropy\w*)|\w+Loss)$"
)
_DIVERGENCES = {"torch.distributions.kl_divergence", "torch.distributions.kl.kl_divergence"}
_CONSTANTS = {"torch.tensor", "torch.as_tensor", "torch.full", "torch.full_like", "torch.ones_like"}
_LIMITS = lazily(r"max|cap|limit|clip|clamp|ceil|upper|bound|thresh", re.I)
_CLAMPS: dict[str, tuple[str, ...]] = {f"torch.{name}": ("input", "min", "max") for name in ("clamp", "clamp_", "clip", "clip_")}
_CLAMPS |= {"torch.clamp_max": ("input", "max"), "torch.clamp_max_": ("input", "max")}
_METHODS: dict[str, tuple[str, ...]] = {name: ("min", "max") for name in ("clamp", "clamp_", "clip", "clip_")}
_METHODS |= {"clamp_max": ("max",), "clamp_max_": ("max",)}
_LOSES_GRADIENT = {
    "item", "detach", "exp", "float", "tolist", "numpy", "isnan", "isinf", "isfinite", "len", "str", "print", "cpu",
    "round",
}  # fmt: skip
_COLLECTS = {"append", "extend", "add", "update", "setdefault"}
_DEPTH = 4


def bounded_loss(call: nodes.Call) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    """The loss that a call bounds from above and the bound; None if it is not a loss, or has no upper bound."""
    found = _clamped(call) or _minimum(call)
    if found is None:
        return None
    operand, bound = found
    return found if is_loss(operand) and not _is_endless(bound) else None


def _clamped(call: nodes.Call) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    names = qualified(call.func)
    function = next((_CLAMPS[name] for name in names if name in _CLAMPS), None)
    if function is not None and names <= _CLAMPS.keys():
        arguments = Arguments(call, function)
        return _pair(arguments["input"].node, arguments["max"])
    if isinstance(call.func, nodes.Attribute) and call.func.attrname in _METHODS:
        return _pair(call.func.expr, Arguments(call, _METHODS[call.func.attrname])["max"])
    return None


def _pair(operand: nodes.NodeNG | None, bound: Argument) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    return (operand, bound.node) if operand is not None and bound.node is not None else None


def _minimum(call: nodes.Call) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    """``min(loss, 10.0)`` and ``torch.minimum(loss, torch.tensor(10.0))``, in either order."""
    builtin = isinstance(call.func, nodes.Name) and call.func.name == "min" and scope_of(call.func) is None
    if len(call.args) != 2 or not (builtin or qualified(call.func) <= {"torch.min", "torch.minimum"}):
        return None
    for operand, bound in (call.args, call.args[::-1]):
        if not is_loss(bound) and _is_limit(bound):
            return operand, bound
    return None


def _is_limit(node: nodes.NodeNG) -> bool:
    if isinstance(node, nodes.Call):
        made = qualified(node.func) <= _CONSTANTS or last_name(node.func) in ("new_tensor", "new_full")
        return made and all(not is_loss(one) for one in node.args[1:])
    value = constant(node)
    known = isinstance(value, (int, float)) and not isinstance(value, bool)
    return known or _LIMITS.search(last_name(node)) is not None


def _is_endless(bound: nodes.NodeNG) -> bool:
    """None, infinity, or the largest number of a type: only an overflow is cut off."""
    value = constant(bound)
    if isinstance(bound, nodes.Const) and bound.value is None:
        return True
    if isinstance(value, float) and math.isinf(value):
        return True
    return any(last_name(one) in ("inf", "finfo") for one in nodes_of(bound, (nodes.Name, nodes.Attribute)))


def is_loss(node: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether an expression is a loss with its gradient: by its name, or by its loss function."""
    if isinstance(node, (nodes.Name, nodes.Attribute)):
        named = is_loss_name(last_name(node))
        return named or (isinstance(node, nodes.Name) and depth < _DEPTH and _is_made_by_loss(node, depth))
    if isinstance(node, nodes.Subscript):
        key = constant(node.slice)
        if isinstance(key, str) and ABOUT.search(key.lower().rpartition("_")[2]):
            return False
        return (isinstance(key, str) and is_loss_name(key)) or is_loss_name(last_name(node.value))
    if isinstance(node, nodes.UnaryOp):
        return is_loss(node.operand, depth)
    if isinstance(node, nodes.BinOp) and node.op in "+-*/":
        sides = [node.left] if node.op == "/" else [node.left, node.right]
        return any(is_loss(side, depth + 1) for side in sides)
    return isinstance(node, nodes.Call) and _is_loss_call(node, depth)


def _is_loss_call(call: nodes.Call, depth: int) -> bool:
    name = last_name(call.func)
    if name in _KEEPS or name in _METHODS:
        if isinstance(call.func, nodes.Attribute) and not qualified(call.func) <= {f"torch.{name}"}:
            return is_loss(call.func.expr, depth + 1)
        return bool(call.args) and is_loss(call.args[0], depth + 1)
    names = qualified(call.func)
    if isinstance(call.func, nodes.Call):
        return all(map(_LOSS_FUNCTIONS.search, qualified(call.func.func)))
    if all(_LOSS_FUNCTIONS.search(one) or one in _DIVERGENCES for one in names):
        return True
    return name == "criterion" or name in ("loss_fn", "loss_func", "loss_function") or is_loss_name(name)


def _is_made_by_loss(name: nodes.Name, depth: int) -> bool:
    """Whether every binding of a name is the result of a loss function."""
    values = [one.parent.value if isinstance(one.parent, nodes.Assign) else None for one in bindings(name)]
    return bool(values) and all(isinstance(value, nodes.Call) and _is_loss_call(value, depth + 1) for value in values)


def trains(node: nodes.NodeNG) -> bool:
    """Whether gradients are recorded at a node: outside of evaluations and ``no_grad``."""
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.With) and any(_stops_gradients(context) for context, _ in parent.items):
            return False
        if isinstance(parent, nodes.FunctionDef):
            decorators = parent.decorators.nodes if parent.decorators else []
            if _EVALUATION.search(parent.name) or any(map(_stops_gradients, decorators)):
                return False
    return True


def _stops_gradients(node: nodes.NodeNG) -> bool:
    return last_name(node.func if isinstance(node, nodes.Call) else node) in _NO_GRADIENT


def reaches_backward(call: nodes.Call) -> bool:
    """Whether the value of a call is returned or runs backward, itself or through names bound to it."""
    function = function_of(call)
    known: set[str] = set()
    waiting: list[nodes.NodeNG] = [call]
    if last_name(call.func).endswith("_") and isinstance(call.func, nodes.Attribute):
        waiting += _uses_after(function, _base(call.func), call.lineno)
    while waiting:
        place = _destination(waiting.pop())
        if place is True:
            return True
        for name in set(place or ()) - known:
            known.add(name)
            waiting += _uses_after(function, name, call.lineno)
    return False


def _uses_after(function: nodes.NodeNG, name: str, line: int) -> Iterator[nodes.Name]:
    return (one for one in nodes_of(function, nodes.Name) if one.name == name and one.lineno > line)


def _destination(node: nodes.NodeNG) -> bool | list[str]:
    """True if a value is returned or runs backward, else the names that it is bound to."""
    child = node
    while not child.parent.is_statement:
        parent = child.parent
        if isinstance(parent, nodes.Attribute) and "backward" in parent.attrname:
            return True
        if isinstance(parent, nodes.Call):
            name = last_name(parent.func)
            handed = child is not parent.func
            if handed and "backward" in name:
                return True
            if name in _LOSES_GRADIENT:
                return []
            if handed and name in _COLLECTS and isinstance(parent.parent, nodes.Expr):
                return [base] if (base := _base(parent.func)) else []
        elif isinstance(parent, (nodes.Compare, nodes.JoinedStr, nodes.Lambda)) or _is_asked(child, parent):
            return []
        child = parent
    return _received(child.parent)


def _is_asked(child: nodes.NodeNG, parent: nodes.NodeNG) -> bool:
    return isinstance(parent, nodes.IfExp) and child is parent.test


def _received(statement: nodes.NodeNG) -> bool | list[str]:
    if isinstance(statement, nodes.Return):
        return True
    if not isinstance(statement, (nodes.Assign, nodes.AnnAssign, nodes.AugAssign)):
        return []
    found: list[str] = []
    for target in statement.targets if isinstance(statement, nodes.Assign) else [statement.target]:
        for part in target.elts if isinstance(target, (nodes.Tuple, nodes.List)) else [target]:
            if isinstance(part, nodes.AssignAttr):
                return is_loss_name(part.attrname)
            if base := _base(part):
                found.append(base)
            elif isinstance(part, nodes.Subscript):
                return "loss" in part.as_string()
    return found


def _base(node: nodes.NodeNG) -> str:
    """The plain name that an expression depends on; empty if it is an attribute."""
    while isinstance(node, nodes.Subscript):
        node = node.value
    if isinstance(node, nodes.Attribute) and isinstance(node.parent, nodes.Call):
        node = node.expr
    return node.name if isinstance(node, (nodes.Name, nodes.AssignName)) else ""
