"""Options that no step of a training asks for: values of a parameter that no call of the file passes."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.defaults import parameter_default
from ldlm_lint.python.names import last_name
from ldlm_lint.python.off_by_default import holds
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of


def is_never_chosen(node: nodes.NodeNG) -> bool:
    """Whether a place waits for one value of a parameter, and every call of the file passes another.

    ``if reduction == "mean":``, ``if keep is False:``.
    """
    function = function_of(node)
    if not isinstance(function, nodes.FunctionDef):
        return False
    for one in node.node_ancestors():
        if one is function:
            return False
        if isinstance(one, nodes.If) and holds(one.body, node) and (asked := _asked(one.test)) is not None:
            passed = _passed(function, asked[0])
            return bool(passed) and not any(value is asked[1] or (isinstance(value, str) and value == asked[1]) for value in passed)
    return False


def _asked(test: nodes.NodeNG) -> tuple[str, object] | None:
    """The name and the text, True, False or None that a condition compares."""
    if not isinstance(test, nodes.Compare) or not isinstance(test.left, nodes.Name) or len(test.ops) != 1:
        return None
    operator, right = test.ops[0]
    if not isinstance(right, nodes.Const):
        return None
    one = isinstance(right.value, str) if operator == "==" else operator == "is" and right.value in (True, False, None)
    return (test.left.name, right.value) if one else None


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
        value = argument.node if not argument.absent else parameter_default(function, name)
        if not isinstance(value, nodes.Const):
            return set()
        found.add(value.value)
    return found


__all__ = ["is_never_chosen"]
