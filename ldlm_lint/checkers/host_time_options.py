"""Options that no step of a training may ask for: those of ``forward`` that are off by default, and texts that no call passes."""

from __future__ import annotations

import re

from astroid import nodes
from astroid.exceptions import NoDefault

from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.gradients import dotted
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_LEARNS = lazily(r"loss|train|grad", re.I)


def is_off_by_default(node: nodes.NodeNG) -> bool:
    """Whether ``forward`` waits only for callers that ask for it: under a parameter of its own whose default is False.

    So does the call of a module or loss under an attribute that its constructor gets from such a parameter. That every step
    calls it is taken for granted, that a step asks for more than its loss is not.
    """
    function = function_of(node)
    if not isinstance(function, nodes.FunctionDef) or function.name not in ("forward", "__call__"):
        return False
    tests = [one.test for one in node.node_ancestors() if isinstance(one, nodes.If) and _holds(one.body, node)]
    if any(isinstance(one, nodes.Name) and _is_off(function, one.name) for one in tests):
        return True
    return any(dotted(one).startswith("self.") and _is_left_off(function, one.attrname) for one in tests if isinstance(one, nodes.Attribute))


def _is_left_off(method: nodes.FunctionDef, attribute: str) -> bool:
    """Whether an attribute is nothing but a parameter of the constructor whose default is False."""
    owner = method.parent
    if not isinstance(owner, nodes.ClassDef):
        return False
    given = [value for one in nodes_of(owner, nodes.AssignAttr) if one.attrname == attribute for value in (_given(one),)]
    return bool(given) and all(isinstance(one, nodes.Name) and _is_off_in_constructor(one) for one in given)


def _given(target: nodes.AssignAttr) -> nodes.NodeNG | None:
    """What an assignment gives to an attribute, also where it is one of several: ``self.a, self.b = a, b``."""
    around = target.parent
    if isinstance(around, nodes.Assign):
        return around.value
    if isinstance(around, nodes.Tuple) and isinstance(around.parent, nodes.Assign):
        value = around.parent.value
        if isinstance(value, nodes.Tuple) and len(value.elts) == len(around.elts):
            return value.elts[around.elts.index(target)]
    return None


def _is_off_in_constructor(name: nodes.Name) -> bool:
    function = function_of(name)
    return isinstance(function, nodes.FunctionDef) and function.name == "__init__" and _is_off(function, name.name)


def _holds(body: list[nodes.NodeNG], node: nodes.NodeNG) -> bool:
    return any(one is node or one.parent_of(node) for one in body)


def _is_off(function: nodes.FunctionDef, name: str) -> bool:
    default = _default(function, name)
    return isinstance(default, nodes.Const) and default.value is False and not _LEARNS.search(name)


def is_never_chosen(node: nodes.NodeNG) -> bool:
    """Whether a place waits for one text of a parameter, ``if reduction == "mean":``, and every call of the file passes another."""
    function = function_of(node)
    if not isinstance(function, nodes.FunctionDef):
        return False
    for one in node.node_ancestors():
        if one is function:
            return False
        if isinstance(one, nodes.If) and _holds(one.body, node) and (asked := _asked_text(one.test)) is not None:
            passed = _passed(function, asked[0])
            return bool(passed) and asked[1] not in passed
    return False


def _asked_text(test: nodes.NodeNG) -> tuple[str, str] | None:
    """The name and the text that a condition compares."""
    if not isinstance(test, nodes.Compare) or not isinstance(test.left, nodes.Name) or len(test.ops) != 1:
        return None
    operator, right = test.ops[0]
    is_text = operator == "==" and isinstance(right, nodes.Const) and isinstance(right.value, str)
    return (test.left.name, right.value) if is_text else None


def _passed(function: nodes.FunctionDef, name: str) -> set[object]:
    """What the calls in its file pass to a function as one of its parameters; nothing where one of them is not known to."""
    names = function.argnames()
    if name not in names or any(one.name == name for one in nodes_of(function, nodes.AssignName) if one.parent is not function.args):
        return set()
    found: set[object] = set()
    for use in nodes_of(function.root(), (nodes.Name, nodes.Attribute)):
        if last_name(use) != function.name:
            continue
        call = use.parent
        if not isinstance(call, nodes.Call) or call.func is not use:
            return set()
        bound = names[1:] if isinstance(use, nodes.Attribute) and function.is_method() else names
        argument = Arguments(call, bound)[name]
        value = argument.node if not argument.absent else _default(function, name)
        if not isinstance(value, nodes.Const):
            return set()
        found.add(value.value)
    return found


def _default(function: nodes.FunctionDef, name: str) -> nodes.NodeNG | None:
    try:
        return function.args.default_value(name)
    except NoDefault:
        return None


__all__ = ["is_never_chosen", "is_off_by_default"]
