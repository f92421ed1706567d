"""Values of which the code itself says that they are no tensors: in that arm of a test there is nothing to wait for."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.host_names import READS
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.off_by_default import holds

_IS_TENSOR = frozenset({"torch.is_tensor"})
_KIND = 2


def is_told_from_tensors(place: nodes.NodeNG) -> bool:
    """Whether what is read or converted stands in the arm of a test that no tensor comes to: ``int(x)`` behind ``is_tensor(x)``."""
    value = _value_of(place)
    if not isinstance(value, (nodes.Name, nodes.Attribute)):
        return False
    text = value.as_string()
    child = place
    for parent in place.node_ancestors():
        if isinstance(parent, (nodes.FunctionDef, nodes.Lambda, nodes.Module)):
            return False
        if isinstance(parent, (nodes.If, nodes.IfExp)) and child is not parent.test:
            tells = _tells(parent.test, text)
            if tells is not None and tells is not _in_body(parent, child):
                return True
        child = parent
    return False


def _value_of(place: nodes.NodeNG) -> nodes.NodeNG | None:
    """What a place reads or converts."""
    if not isinstance(place, nodes.Call):
        return place
    if isinstance(place.func, nodes.Attribute) and (place.func.attrname in READS or place.func.attrname == "to"):
        return place.func.expr
    return place.args[0] if len(place.args) == 1 else None


def _in_body(branch: nodes.If | nodes.IfExp, child: nodes.NodeNG) -> bool:
    return child is branch.body if isinstance(branch, nodes.IfExp) else holds(branch.body, child)


def _tells(test: nodes.NodeNG, text: str) -> bool | None:
    """True for a test that a value is a tensor, False for one that it is something else, None for any other."""
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        inner = _tells(test.operand, text)
        return None if inner is None else not inner
    if not isinstance(test, nodes.Call) or not test.args or test.args[0].as_string() != text:
        return None
    if qualified(test.func) <= _IS_TENSOR:
        return True
    if last_name(test.func) != "isinstance" or len(test.args) != _KIND:
        return None
    kinds = test.args[1].elts if isinstance(test.args[1], nodes.Tuple) else [test.args[1]]
    tensors = {last_name(one).endswith("Tensor") for one in kinds}
    return tensors.pop() if len(tensors) == 1 else None


__all__ = ["is_told_from_tensors"]
