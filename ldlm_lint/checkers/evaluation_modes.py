"""Whether a model is in evaluation mode where it is called."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.python.gradients import computes_gradients, dotted, is_quiet, mode_of
from ldlm_lint.python.names import scope_of
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_SWITCHES = "_ldlm_switches"
_COMPUTES = "_ldlm_computes"



def switches(owner: nodes.NodeNG) -> list[tuple[nodes.Call, str, bool]]:
    """Each call that puts a model into training (True) or evaluation mode, with the model's dotted name."""
    # Needed for every call of the function; the result is cached on its node.
    known: list[tuple[nodes.Call, str, bool]] | None = owner.__dict__.get(_SWITCHES)
    if known is None:
        calls = (call for call in nodes_of(owner, nodes.Call) if mode_of(call) is not None)
        own = [call for call in calls if function_of(call) is owner and not _evaluates_a_set(call, owner)]
        known = [(call, root, mode_of(call) is True) for call in own for root in _receivers(call)]
        owner.__dict__[_SWITCHES] = known
    return known


def _evaluates_a_set(call: nodes.Call, owner: nodes.NodeNG) -> bool:
    """``self.eval()`` of a trainer whose own method iterates over a loader without gradients: not a switch of a
    module.
    """
    if dotted(call.func.expr) != "self" or not isinstance(owner.parent, nodes.ClassDef):
        return False
    method = owner.parent.locals.get(call.func.attrname, [None])[-1]
    return isinstance(method, nodes.FunctionDef) and any(map(is_quiet, nodes_of(method, nodes.With)))


def _receivers(call: nodes.Call) -> Iterator[str]:
    """The models of a call such as ``model.to(device).eval()``, with the name of its result."""
    node = call.func.expr
    while isinstance(node, nodes.Call) and isinstance(node.func, nodes.Attribute):
        node = node.func.expr
    while isinstance(node, nodes.Subscript):
        node = node.value
    if name := dotted(node):
        yield name.removesuffix(".module")
        yield from _elements(call, name)
    statement = call.statement()
    for target in statement.targets if isinstance(statement, nodes.Assign) else ():
        if name := dotted(target):
            yield name


def _elements(call: nodes.Call, name: str) -> Iterator[str]:
    """``for model in (encoder, decoder): model.eval()`` is about both."""
    for loop in call.node_ancestors():
        if isinstance(loop, (nodes.For, nodes.Comprehension)) and dotted(loop.target) == name:
            parts = loop.iter.elts if isinstance(loop.iter, (nodes.List, nodes.Tuple)) else [loop.iter]
            yield from filter(None, map(dotted, parts))


def evaluates_before(call: nodes.Call, root: str, owner: nodes.NodeNG) -> nodes.Call | None:
    """The call that put a model into evaluation mode last before it runs; None if it trains, or unknown."""
    found = [(one, mode) for one, name, mode in switches(owner) if _covers(name, root) and one.lineno < call.lineno]
    if not found or found[-1][1] or _is_one_of_two(found[-1][0], call):
        return None
    return found[-1][0]


def _covers(name: str, root: str) -> bool:
    return root == name or root.startswith(f"{name}.")


def _is_one_of_two(switch: nodes.Call, call: nodes.Call) -> bool:
    """``if training: model.train() else: model.eval()``: either may apply."""
    for test in switch.node_ancestors():
        if isinstance(test, nodes.If) and not test.parent_of(call):
            return any(mode_of(one) for one in nodes_of(test, nodes.Call))
    return False


def evaluates_elsewhere(call: nodes.Call, root: str, owner: nodes.NodeNG) -> nodes.Call | None:
    """The call that puts an attribute of the class, or a variable of the module, into evaluation mode for good."""
    place: nodes.NodeNG | None = None
    if root.startswith("self.") and isinstance(owner.parent, nodes.ClassDef):
        place = owner.parent
    else:
        name = next((one for one in nodes_of(call, nodes.Name) if one.name == root.partition(".")[0]), None)
        if name is not None and not isinstance(owner, nodes.Module) and isinstance(scope_of(name), nodes.Module):
            place = owner.root()
    if place is None:
        return None
    methods = nodes_of(place, nodes.FunctionDef) if isinstance(place, nodes.ClassDef) else [place]
    found = [(one, mode, name) for method in methods for one, name, mode in switches(method) if _covers(name, root)]
    if any(mode for _, mode, _ in found):
        return None
    # The owner of an object puts it back into training mode: its own `self.eval()` lasts only for the calling method.
    lasting = [one for one, _, name in found if name != "self" or one.scope().name == "__init__"]
    return None if not lasting or _computes(place) else lasting[0]


def _computes(place: nodes.NodeNG) -> bool:
    """Whether anything in a class or module computes gradients; cached on its node."""
    known: bool | None = place.__dict__.get(_COMPUTES)
    if known is None:
        kinds = (nodes.Call, nodes.AssignAttr, nodes.Attribute)
        known = place.__dict__[_COMPUTES] = any(map(computes_gradients, nodes_of(place, kinds)))
    return known
