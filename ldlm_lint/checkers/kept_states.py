"""The best state of a training that is kept without a copy: in a name, an item or an attribute across further steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.python.flow import is_backward
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.walks import nodes_of

_SAVES = {"torch.save"}
_OF_MODULES = frozenset({"parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval"})
"""What only modules are asked for, and optimizers."""


class Kept(NamedTuple):
    """An assignment that keeps a state: the state, or the model itself, and its later use."""

    assign: nodes.Assign
    state: nodes.NodeNG
    use: nodes.NodeNG
    whole: bool = False


def kept_states(module: nodes.Module, is_live: Callable[[nodes.NodeNG], bool]) -> Iterator[Kept]:
    """``best = model.state_dict()`` and ``best = model`` inside a training loop, used after it: by then it is the last state."""
    for assign in nodes_of(module, nodes.Assign):
        for target, value in _pairs(assign):
            whole = isinstance(value, (nodes.Name, nodes.Attribute)) and _is_model(value)
            if not (whole or is_live(value)):
                continue
            use = _kept(assign, target, value if whole else None)
            if use is not None:
                yield Kept(assign, value, use, whole)
                break


def _pairs(assign: nodes.Assign) -> Iterator[tuple[nodes.NodeNG, nodes.NodeNG]]:
    """The targets of an assignment with their values: ``best_loss, best = loss, model.state_dict()``."""
    for target in assign.targets:
        if isinstance(target, nodes.Tuple):
            values = assign.value.elts if isinstance(assign.value, nodes.Tuple) else []
            if len(values) == len(target.elts):
                yield from zip(target.elts, values, strict=True)
        else:
            yield target, assign.value


def _is_model(value: nodes.Name | nodes.Attribute) -> bool:
    """Whether the function calls a value, or passes it on and uses attributes that only modules have."""
    text = value.as_string()
    calls = list(nodes_of(function_of(value), nodes.Call))
    if any(one.func.as_string() == text and one.args for one in calls):
        return True
    asked = any(isinstance(one.func, nodes.Attribute) and one.func.attrname in _OF_MODULES and one.func.expr.as_string() == text for one in calls)
    return asked and any(given.as_string() == text for one in calls for given in one.args)


def _kept(assign: nodes.Assign, target: nodes.NodeNG, model: nodes.NodeNG | None) -> nodes.NodeNG | None:
    """The use of the kept state after the enclosing training loop; None if it is not changed before, or not used."""
    loops = loops_around(assign)
    function = function_of(assign)
    if not loops or not isinstance(function, nodes.FunctionDef) or not isinstance(target, (nodes.AssignName, nodes.AssignAttr, nodes.Subscript)):
        return None
    outermost = loops[-1]
    if not any(is_backward(call) for call in nodes_of(outermost, nodes.Call)) or _is_refreshed(outermost, assign):
        return None
    if model is not None and (_is_bound_in(outermost, model) or not _is_improvement(assign)):
        return None
    name = target.value.as_string() if isinstance(target, nodes.Subscript) else target.as_string()
    if name == "self" or (model is not None and name == model.as_string()):
        return None
    own = _use_after(function, outermost, name, whole=model is not None)
    return own or (_use_elsewhere(function, name) if isinstance(target, nodes.AssignAttr) else None)


def _is_refreshed(loop: nodes.NodeNG, assign: nodes.Assign) -> bool:
    """Assigned in every iteration, or left by a break: then the state does not change before its use."""
    if assign in getattr(loop, "body", ()):
        return True
    block = getattr(assign.parent, "body", [])
    return assign in block and any(isinstance(one, (nodes.Break, nodes.Return)) for one in block)


def _is_bound_in(loop: nodes.NodeNG, model: nodes.NodeNG) -> bool:
    """Whether a loop creates a model again: then each iteration has its own."""
    text = model.as_string()
    return any(one.as_string() == text for one in nodes_of(loop, (nodes.AssignName, nodes.AssignAttr)))


def _is_improvement(assign: nodes.Assign) -> bool:
    """Whether an assignment is under a test for an improvement: ``if loss < best_loss: best_loss = loss``."""
    branch = assign.parent
    if not isinstance(branch, nodes.If) or assign not in branch.body:
        return False
    test = branch.test
    if isinstance(test, nodes.Name):
        held = bindings(test)
        return len(held) == 1 and _orders(getattr(held[0].parent, "value", None))
    changed = {one.as_string() for one in nodes_of(branch, (nodes.AssignName, nodes.AssignAttr))}
    return any(side.as_string() in changed for one in nodes_of(test, nodes.Compare) if _orders(one) for side in (one.left, one.ops[0][1]))


def _orders(node: nodes.NodeNG | None) -> bool:
    return isinstance(node, nodes.Compare) and node.ops[0][0] in ("<", "<=", ">", ">=")


def _use_after(function: nodes.FunctionDef, loop: nodes.NodeNG, name: str, *, whole: bool) -> nodes.NodeNG | None:
    end = loop.end_lineno or 0
    for one in nodes_of(function, (nodes.Call, nodes.Return)):
        if (one.lineno or 0) > end and _uses(one, name, whole=whole) and not _is_made_anew(one, loop, name):
            return one
    return None


def _use_elsewhere(function: nodes.FunctionDef, name: str) -> nodes.NodeNG | None:
    """A use of an attribute in another method of the class."""
    owner = function.parent
    methods = owner.mymethods() if isinstance(owner, nodes.ClassDef) and name.startswith("self.") else ()
    uses = (call for method in methods if method is not function for call in nodes_of(method, nodes.Call))
    return next((call for call in uses if _uses(call, name, whole=False)), None)


def _uses(node: nodes.Call | nodes.Return, name: str, *, whole: bool) -> bool:
    """Whether a state is loaded, saved or returned; a whole model also if its state is read."""
    if isinstance(node, nodes.Return):
        return node.value is not None and _holds(node.value, name)
    if isinstance(node.func, nodes.Attribute) and whole and node.func.attrname == "state_dict" and node.func.expr.as_string() == name:
        return True
    loads = isinstance(node.func, nodes.Attribute) and node.func.attrname == "load_state_dict"
    return bool(node.args) and (loads or qualified(node.func) <= _SAVES) and _holds(node.args[0], name)


def _holds(node: nodes.NodeNG, name: str) -> bool:
    """Whether an expression is the named value, an item of it, or a container with it."""
    if isinstance(node, (nodes.Tuple, nodes.List)):
        return any(_holds(one, name) for one in node.elts)
    if isinstance(node, nodes.Dict):
        return any(_holds(value, name) for _, value in node.items)
    while isinstance(node, nodes.Subscript):
        node = node.value
    return isinstance(node, (nodes.Name, nodes.Attribute)) and node.as_string() == name


def _is_made_anew(use: nodes.NodeNG, loop: nodes.NodeNG, name: str) -> bool:
    """Whether the name is assigned on the way from the loop to its use: the use then has that state, not the kept one."""
    around = set(use.node_ancestors())
    names = (one for one in nodes_of(function_of(use), (nodes.AssignName, nodes.AssignAttr)) if one.as_string() == name)
    return any((loop.end_lineno or 0) < (one.lineno or 0) < (use.lineno or 0) and one.statement().parent in around for one in names)


__all__ = ["Kept", "kept_states"]
