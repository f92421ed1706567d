"""Calls that move values between the host and the device, or compute a loss."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.host_names import NAMES_DEVICE, names_loss_call
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

_MOVES = lazily(
    r"to_device|to_cuda|move_to|send_to|to_gpu|prepare_(inputs?|batch|sample)|transfer|dict_to|batch_to|^cuda$|^to$"
)


def moves_to(call: nodes.Call) -> str:
    """Where ``.to(...)`` or ``.cuda()`` moves a value: ``"cpu"``, ``"device"``, or empty where it only casts."""
    if last_name(call.func) != "to":
        return "device"
    for argument in [*call.args, *(one.value for one in call.keywords if one.arg == "device")]:
        place = argument.args[0] if _is_device(argument) else argument
        value = constant(place)
        if isinstance(value, str):
            return "cpu" if value == "cpu" else "device"
        if NAMES_DEVICE.search(argument.as_string()):
            return "device"
    return ""


def _is_device(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Call) and qualified(node.func) <= {"torch.device"} and len(node.args) == 1


def moved_roots(node: nodes.NodeNG) -> set[str]:
    """The names whose value, or a part of it, is moved to the device below a node: they hold what lies on the host."""
    found: set[str] = set()
    for call in nodes_of(node, nodes.Call):
        name = last_name(call.func)
        if name in ("to", "cuda") and isinstance(call.func, nodes.Attribute):
            if moves_to(call) == "device":
                found.update(_roots(call.func.expr))
        elif _MOVES.search(name):
            found.update(one for argument in call.args for one in _roots(argument))
    return found - _filled(node)


def _filled(node: nodes.NodeNG) -> set[str]:
    """The names of which an element is assigned: ``batch[key] = batch[key].to(device)``."""
    targets = (one for one in nodes_of(node, nodes.Subscript) if isinstance(one.parent, nodes.Assign))
    return {root_name(one) for one in targets if one in one.parent.targets}


def _roots(node: nodes.NodeNG) -> Iterator[str]:
    name = root_name(node)
    yield name
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.ComprehensionScope):
            yield from (root_name(one.iter) for one in parent.generators)


def root_name(node: nodes.NodeNG) -> str:
    """The name at the bottom of an expression of attributes, elements and method calls; empty for others."""
    while True:
        if isinstance(node, nodes.Subscript):
            node = node.value
        elif isinstance(node, nodes.Attribute):
            node = node.expr
        elif isinstance(node, nodes.Call):
            node = node.func
        else:
            return getattr(node, "name", "") or ""


def is_loss_call(call: nodes.Call) -> bool:
    """A criterion or a loss function by its name: ``criterion(...)``, ``self.loss_fn(...)``, ``mse_loss(...)``."""
    return names_loss_call(last_name(call.func))


def is_text(node: nodes.NodeNG) -> bool:
    """A text, or one that is put together: ``"%9s" * 2 + "%9.4g"``."""
    if isinstance(node, nodes.BinOp):
        return node.op in "+*" and (is_text(node.left) or is_text(node.right))
    return isinstance(node, nodes.JoinedStr) or (isinstance(node, nodes.Const) and isinstance(node.value, str))


def formatted(value: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """What ``text % value`` formats, one by one."""
    for one in value.elts if isinstance(value, nodes.Tuple) else [value]:
        yield one.value if isinstance(one, nodes.Starred) else one


def is_made_an_array(call: nodes.Call) -> bool:
    """``x.data.cpu().numpy()``: whatever else has ``data``, only a tensor's can be moved and made an array."""
    base = call.func.expr
    taken = isinstance(call.parent, nodes.Attribute) and call.parent.attrname in ("numpy", "tolist")
    return taken and isinstance(base, nodes.Attribute) and base.attrname == "data" and call.func.attrname == "cpu"


__all__ = ["formatted", "is_loss_call", "is_made_an_array", "is_text", "moved_roots", "moves_to", "root_name"]
