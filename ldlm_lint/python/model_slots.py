"""The places of the model in an expression, through calls that return the same model: ``model.cuda()``,
``get_peft_model(model, …)``."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.slots import Slot, slots_of
from ldlm_lint.vocabulary.modules import RETURN_THEMSELVES

# Calls that return their first argument's model, or one with its layers.
_AROUND = frozenset({"peft.get_peft_model", "torch.compile", "torch.nn.SyncBatchNorm.convert_sync_batchnorm"})
_STEPS = 16


def model_slots(node: nodes.NodeNG) -> list[Slot]:
    """The slots that hold the model of an expression, the outermost first."""
    found: dict[Slot, None] = {}
    waiting = [node]
    seen: set[int] = set()
    while waiting and len(seen) < _STEPS:
        node = _inner(waiting.pop())
        if id(node) in seen:
            continue
        seen.add(id(node))
        found.update(dict.fromkeys(slots_of(node)))
        waiting += _layers_below(node)
    return list(found)


def _inner(node: nodes.NodeNG) -> nodes.NodeNG:
    """The beginning of a chain of methods that return their object."""
    while isinstance(node, nodes.Call) and isinstance(node.func, nodes.Attribute) and node.func.attrname in RETURN_THEMSELVES:
        node = node.func.expr
    return node


def _layers_below(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The models inside one: the argument of a wrapper, and the value of a name."""
    if isinstance(node, nodes.Call):
        return node.args[:1] if qualified(node.func) <= _AROUND else []
    if not isinstance(node, nodes.Name):
        return []
    values = (getattr(one.parent, "value", None) for one in bindings(node) if isinstance(one.parent, (nodes.Assign, nodes.AnnAssign)))
    return [value for value in values if isinstance(value, (nodes.Call, nodes.Name))]


__all__ = ["RETURN_THEMSELVES", "model_slots"]
