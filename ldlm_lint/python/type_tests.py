"""What conditions say of the type of a value."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import last_name
from ldlm_lint.python.walks import nodes_of

# NumPy's arrays and numbers, and those of Python's abstract base classes.
_ON_HOST = frozenset({"ndarray", "generic", "number", "floating", "integer", "Number", "Real"})
_ISINSTANCE = 2


def may_be_array(place: nodes.NodeNG, name: str) -> bool:
    """Whether a name is used under a test that arrays or numbers on the host pass: ``isinstance(x, (Tensor, np.ndarray))``.

    A function that tests a parameter of its own for one anywhere takes either, and its callers decide.
    """
    child = place
    for parent in place.node_ancestors():
        if isinstance(parent, nodes.FunctionDef):
            return name in parent.argnames() and _tests(parent, name)
        if isinstance(parent, (nodes.If, nodes.IfExp)) and child is not parent.test and _tests(parent.test, name):
            return True
        if isinstance(parent, nodes.BoolOp) and parent.op == "and" and _tests(parent, name):
            return True
        child = parent
    return False


def _tests(around: nodes.NodeNG, name: str) -> bool:
    """Whether a condition, or a statement in a function, tests a name for a type on the host."""
    calls = (one for one in nodes_of(around, nodes.Call) if last_name(one.func) == "isinstance" and len(one.args) == _ISINSTANCE)
    return any(
        isinstance(one.args[0], nodes.Name)
        and one.args[0].name == name
        and any(last_name(kind) in _ON_HOST for kind in nodes_of(one.args[1], (nodes.Name, nodes.Attribute)))
        for one in calls
    )
