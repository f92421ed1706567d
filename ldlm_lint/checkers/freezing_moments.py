"""Switches of gradients that are not defects: a copied flag, one moment only, networks that take turns."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.flow import is_backward
from ldlm_lint.python.freezing_names import MAKES
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

FLAG = "requires_grad"
PARAMETER_CLASSES = {"torch.nn.Parameter", "torch.nn.parameter.Parameter"}
PARAMETER_LISTS = {f"torch.nn.{where}Parameter{kind}" for where in ("", "modules.container.") for kind in ("List", "Dict")}
# Adversarial training takes turns: the network out of turn is frozen completely, which DDP handles (tried with torch
# 2.13: no error, and equal parameters on both ranks).
_ADVERSARY = lazily(
    r"discrim|\bdisc?(\b|_)|_disc\b|critic|\bgan\b|generator|advers|(net|model)_?[dgDG]\w?\b|(^|[_.\[( ])[DG]\d?(\b|_)"
)
_CRITIC = lazily(r"discriminator|critic|adversar", re.I)
_COUNTER = lazily(r"step|epoch|iter", re.I)
_ONCE = lazily(r"init|frozen|freez|done|setup|ready|built|first", re.I)


def is_left_alone(node: nodes.NodeNG, target: nodes.NodeNG, repeats: bool) -> bool:
    """Cases that are not defect: a flag copied, a custom autograd function, one moment only, taking turns."""
    function = function_of(node)
    if isinstance(function, nodes.FunctionDef) and [one.name for one in function.args.arguments[:1]] == ["ctx"]:
        return True
    values = [node.value] if isinstance(node, nodes.Assign) else getattr(node, "args", [])
    copied = any(_reads_flag(one) for value in values for one in nodes_of(value, (nodes.Attribute, nodes.Subscript)))
    if copied or _is_adversary(target) or (not repeats and _is_new(target)):
        return True
    return _is_put_away(node, target) or _happens_once(node) or _takes_turns(function)


def _reads_flag(node: nodes.Attribute | nodes.Subscript) -> bool:
    """``other.requires_grad``, or ``state["requires_grad"]``, where it was kept."""
    return node.attrname == FLAG if isinstance(node, nodes.Attribute) else constant(node.slice) == FLAG


def _is_adversary(target: nodes.NodeNG) -> bool:
    """A network that is adversarial by its name or its owner's."""
    owner = function_of(target).parent
    of_critic = isinstance(owner, nodes.ClassDef) and _CRITIC.search(owner.name) is not None
    return of_critic or _ADVERSARY.search(_origin(target)) is not None


def _is_put_away(node: nodes.NodeNG, target: nodes.NodeNG) -> bool:
    """``self.vae.eval()`` and ``self.vae.requires_grad_(False)``, which the file never undoes: it stays frozen."""
    if not isinstance(node, nodes.Call) or [constant(one) for one in node.args] != [False]:
        return False
    text = target.as_string()
    asked = [one for one in nodes_of(node.root(), nodes.Call) if isinstance(one.func, nodes.Attribute)]
    same = [one for one in asked if one.func.attrname in ("eval", "requires_grad_") and one.func.expr.as_string() == text]
    frozen = all(one.func.attrname == "eval" or [constant(given) for given in one.args] == [False] for one in same)
    return frozen and any(one.func.attrname == "eval" and one.parent.parent is node.parent.parent for one in same)


def _is_new(target: nodes.NodeNG) -> bool:
    """A network that the same function has just made: it is frozen once."""
    names = [one for one in nodes_of(target, nodes.Name) if one.scope() is function_of(target)]
    origins = [loop for one in names if (loop := loop_of(one)) is not None]
    names += [one for origin in origins for one in nodes_of(origin, nodes.Name)]
    values = [getattr(binding.parent, "value", None) for one in names for binding in bindings(one)]
    made = any(isinstance(value, nodes.Call) and MAKES.search(last_name(value.func)) for value in values)
    return made or _is_new_parameter(target)


def _is_new_parameter(target: nodes.NodeNG) -> bool:
    """An attribute that the same function binds to a parameter: a grown table is created again, not switched."""
    text = target.as_string()
    return any(
        one.as_string() == text
        and one.lineno < target.lineno
        and isinstance(value := getattr(one.parent, "value", None), nodes.Call)
        and qualified(value.func) <= PARAMETER_CLASSES
        for one in nodes_of(function_of(target), nodes.AssignAttr)
        if one.attrname == getattr(target, "attrname", None)
    )


def _origin(target: nodes.NodeNG) -> str:
    loop = loop_of(target) if isinstance(target, nodes.Name) else None
    return (loop if loop is not None else target).as_string()


def _happens_once(node: nodes.NodeNG) -> bool:
    """Under a test for one certain step or epoch, for a flag that says whether it happened, or for a value read
    once.
    """
    child = node
    while not isinstance(child, (nodes.FunctionDef, nodes.Module)):
        parent = child.parent
        if isinstance(parent, nodes.If) and child is not parent.test and FLAG in parent.test.as_string():
            return True
        if isinstance(parent, nodes.If) and child in parent.body and any(map(_is_moment, _tests(parent.test))):
            return True
        child = parent
    return False


def _tests(test: nodes.NodeNG) -> list[nodes.NodeNG]:
    return list(test.values) if isinstance(test, nodes.BoolOp) and test.op == "and" else [test]


def _is_moment(test: nodes.NodeNG) -> bool:
    if isinstance(test, nodes.Compare):
        sides = [test.left, test.ops[0][1]]
        names = [last_name(side) for side in sides]
        # From a step on: repeated settings do not change the first one.
        counts = test.ops[0][0] in ("==", ">", ">=", "<", "<=") and any(map(_COUNTER.search, names))
        return counts or (test.ops[0][0] == "is" and _ONCE.search(names[0]) is not None)
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        return _ONCE.search(last_name(test.operand)) is not None
    return "first" in last_name(test)


def _takes_turns(function: nodes.NodeNG) -> bool:
    """Whether several optimizers step in one function: then whole networks are trained in turns."""
    steppers, losses = set(), set()
    for call in nodes_of(function, nodes.Call):
        if not isinstance(call.func, nodes.Attribute):
            continue
        if call.func.attrname == "step" and "opt" in last_name(call.func.expr).lower():
            steppers.add(call.func.expr.as_string())
        elif is_backward(call) and "backward" in call.func.attrname:
            losses.add(call.args[0].as_string() if call.args else call.func.expr.as_string())
    return len(steppers) > 1 or (len(steppers) != 1 and len(losses) > 1)


def loop_of(name: nodes.Name) -> nodes.NodeNG | None:
    """The loop of a loop variable; None for other names."""
    for binding in bindings(name):
        owner = binding.parent
        while isinstance(owner, (nodes.Tuple, nodes.List)):
            owner = owner.parent
        if isinstance(owner, (nodes.For, nodes.Comprehension)):
            return owner.iter
    return None


def last_name(node: nodes.NodeNG) -> str:
    """The last part of a name, through subscripts; empty for other expressions."""
    if isinstance(node, nodes.Subscript):
        return last_name(node.value)
    return node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "") or ""
