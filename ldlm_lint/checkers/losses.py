"""Losses in an expression: which names and calls are losses, and whether gradients are recorded there."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.values import constant
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
_METHODS = {"clamp", "clamp_", "clip", "clip_", "clamp_max", "clamp_max_"}
_DEPTH = 4


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
