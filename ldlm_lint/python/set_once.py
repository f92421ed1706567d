"""Branches that run once: ``if first is None: first = …``, ``if not shown: shown = True``, and the value is never
removed."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.python.gradients import dotted
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

_TARGETS = (nodes.AssignName, nodes.AssignAttr)


def is_set_once(branch: nodes.If) -> bool:
    """Whether a branch runs if a value is missing, and then creates it permanently."""
    tests = branch.test.values if isinstance(branch.test, nodes.BoolOp) and branch.test.op == "and" else [branch.test]
    return any(_is_kept(name, branch) for test in tests for name in _missing(test)) or any(_turns_off(test, branch) for test in tests)


def _turns_off(test: nodes.NodeNG, branch: nodes.If) -> bool:
    """Whether a flag lets a branch run until the branch itself switches it, and no other code in the loop switches
    it.
    """
    negated = isinstance(test, nodes.UnaryOp) and test.op == "not"
    flag = test.operand if negated else test
    name = dotted(flag) if isinstance(flag, (nodes.Name, nodes.Attribute)) else ""
    lifetime = _rounds(name, branch) if name else None
    if lifetime is None:
        return False
    within = [one for one in nodes_of(lifetime, _TARGETS) if dotted(one) == name and not _stands_in_constructor(one)]
    given = [one for one in within if any(part.parent_of(one) for part in branch.body)]
    return bool(given) and len(given) == len(within) and all(constant(getattr(one.parent, "value", None)) is negated for one in given)


def _rounds(name: str, branch: nodes.If) -> nodes.NodeNG | None:
    """The code in which a flag keeps its value: for an attribute its class, for a variable the loop around the
    branch.
    """
    if "." in name:
        return _lifetime(name, branch)
    parents = list(branch.node_ancestors())
    around = parents[: parents.index(function_of(branch))]
    return next((one for one in around if isinstance(one, (nodes.For, nodes.While))), None)


def _missing(test: nodes.NodeNG) -> Iterator[str]:
    """The value that a condition finds missing, as written: ``x`` of ``x is None``, ``self.x`` of ``not hasattr(self,
    "x")``."""
    if isinstance(test, nodes.Compare):
        (operator, right), *others = test.ops
        if operator == "is" and not others and isinstance(right, nodes.Const) and right.value is None:
            yield dotted(test.left)
    elif isinstance(test, nodes.UnaryOp) and test.op == "not" and isinstance(test.operand, nodes.Call):
        call = test.operand
        if last_name(call.func) == "hasattr" and len(call.args) == 2:
            yield f"{dotted(call.args[0])}.{constant(call.args[1])}"


def _is_kept(name: str, branch: nodes.If) -> bool:
    """Whether a branch sets a name to a value that outlives the iteration, and no other code sets it, possibly to
    None.
    """
    lifetime = _lifetime(name, branch)
    if not name or lifetime is None:
        return False
    within = [one for one in nodes_of(lifetime, _TARGETS) if dotted(one) == name and not _stands_in_constructor(one)]
    given = [one for one in within if any(part.parent_of(one) for part in branch.body)]
    return bool(given) and len(given) == len(within) and not any(map(_is_none, given))


def _lifetime(name: str, branch: nodes.If) -> nodes.NodeNG | None:
    """The code in which a name keeps its value: for an attribute its class, for a variable the outermost loop; None
    without a loop."""
    parents = list(branch.node_ancestors())
    if "." in name:
        return next((one for one in parents if isinstance(one, nodes.ClassDef)), None)
    around = parents[: parents.index(function_of(branch))]
    return next((one for one in reversed(around) if isinstance(one, (nodes.For, nodes.While))), None)


def _stands_in_constructor(target: nodes.NodeNG) -> bool:
    function = function_of(target)
    return isinstance(function, nodes.FunctionDef) and function.name == "__init__"


def _is_none(target: nodes.NodeNG) -> bool:
    value = getattr(target.parent, "value", None)
    return isinstance(value, nodes.Const) and value.value is None
