"""Code of ``forward`` that runs only on request: under parameters that are off by default."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.defaults import parameter_default
from ldlm_lint.python.gradients import dotted
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_LEARNS = lazily(r"loss|train|grad", re.I)
_ORDERS: Mapping[str, Callable[[int, int], bool]] = {">": operator.gt, ">=": operator.ge}


def is_off_by_default(node: nodes.NodeNG) -> bool:
    """Whether ``forward`` does something only on request: under its own parameter whose default is off.

    So does the call of a module or loss under an attribute that its constructor gets from such a parameter. That every
    step calls it is taken for granted, that a step requests more than its loss is not.
    """
    function = function_of(node)
    if not isinstance(function, nodes.FunctionDef) or function.name not in ("forward", "__call__"):
        return False
    tests = [one.test for one in node.node_ancestors() if isinstance(one, nodes.If) and holds(one.body, node)]
    if any(_is_left_out(function, one) for one in tests):
        return True
    return any(dotted(one).startswith("self.") and _is_left_off(function, one.attrname) for one in tests if isinstance(one, nodes.Attribute))


def _is_left_out(function: nodes.FunctionDef, test: nodes.NodeNG) -> bool:
    """``if flag:`` and ``if rounds > 1:`` of parameters that are False, and at most 1, by default."""
    if isinstance(test, nodes.Name):
        return _is_off(function, test.name)
    if not isinstance(test, nodes.Compare) or not isinstance(test.left, nodes.Name) or len(test.ops) != 1:
        return False
    (order, limit), default = test.ops[0], parameter_default(function, test.left.name)
    numbers = [one.value for one in (default, limit) if isinstance(one, nodes.Const) and type(one.value) is int]
    off = order in _ORDERS and len(numbers) == 2 and not _ORDERS[order](*numbers)
    return off and not _LEARNS.search(test.left.name)


def _is_left_off(method: nodes.FunctionDef, attribute: str) -> bool:
    """Whether an attribute is only a constructor parameter with the default False."""
    owner = method.parent
    if not isinstance(owner, nodes.ClassDef):
        return False
    given = [value for one in nodes_of(owner, nodes.AssignAttr) if one.attrname == attribute for value in (_given(one),)]
    return bool(given) and all(isinstance(one, nodes.Name) and _is_off_in_constructor(one) for one in given)


def _given(target: nodes.AssignAttr) -> nodes.NodeNG | None:
    """The value that an assignment gives to an attribute, also with several targets: ``self.a, self.b = a, b``."""
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


def holds(body: list[nodes.NodeNG], node: nodes.NodeNG) -> bool:
    """Whether a node is in a block."""
    return any(one is node or one.parent_of(node) for one in body)


def _is_off(function: nodes.FunctionDef, name: str) -> bool:
    default = parameter_default(function, name)
    return isinstance(default, nodes.Const) and default.value is False and not _LEARNS.search(name)


__all__ = ["holds", "is_off_by_default"]
