"""What conditions say of the type of a value: that it is no tensor, or that arrays on the host may come here, too."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from astroid import nodes

from ldlm_lint.python.host_names import READS
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.off_by_default import holds
from ldlm_lint.python.walks import nodes_of

_IS_TENSOR = frozenset({"torch.is_tensor"})
# NumPy's arrays and numbers, and those of Python's abstract base classes.
_ON_HOST = frozenset({"ndarray", "generic", "number", "floating", "integer", "Number", "Real"})
_NUMBERS = frozenset({"float", "int", "bool", "complex"})
_ISINSTANCE = 2


def is_told_from_tensors(place: nodes.NodeNG) -> bool:
    """Whether what is read or converted stands in the arm of a test that no tensor comes to: ``int(x)`` behind ``is_tensor(x)``."""
    value = _value_of(place)
    if not isinstance(value, (nodes.Name, nodes.Attribute)):
        return False
    if isinstance(value, nodes.Name) and _is_made_of_numbers(place, value):
        return True
    text = value.as_string()
    tests = ((_tells(branch.test, text), in_body) for branch, in_body in _arms_around(place))
    return any(tells is not None and tells is not in_body for tells, in_body in tests)


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


def _is_made_of_numbers(place: nodes.NodeNG, value: nodes.Name) -> bool:
    """``return out.item() if isinstance(t, float) else out``: who gives a number has made no tensor on the device of it."""
    function = next((one for one in place.node_ancestors() if isinstance(one, nodes.FunctionDef)), None)
    if function is None or value.name in (given := function.argnames()):
        return False
    return any(
        in_body and any(_is_number(one, given) for one in _conjuncts(branch.test)) for branch, in_body in _arms_around(place)
    )


def _is_number(test: nodes.NodeNG, given: Collection[str]) -> bool:
    kinds = set(_kinds(test)) if isinstance(test, nodes.Call) else set()
    return bool(kinds) and kinds <= _NUMBERS and getattr(test.args[0], "name", "") in given


def _conjuncts(test: nodes.NodeNG) -> list[nodes.NodeNG]:
    return list(test.values) if isinstance(test, nodes.BoolOp) and test.op == "and" else [test]


def _arms_around(place: nodes.NodeNG) -> Iterator[tuple[nodes.If | nodes.IfExp, bool]]:
    """The conditions around a place in its function, each with whether the place stands where it is true."""
    child = place
    for parent in place.node_ancestors():
        if isinstance(parent, (nodes.FunctionDef, nodes.Lambda, nodes.Module)):
            return
        if isinstance(parent, nodes.IfExp) and child is not parent.test:
            yield parent, child is parent.body
        elif isinstance(parent, nodes.If) and child is not parent.test:
            yield parent, holds(parent.body, child)
        child = parent


def _value_of(place: nodes.NodeNG) -> nodes.NodeNG | None:
    """What a place reads or converts."""
    if not isinstance(place, nodes.Call):
        return place
    if isinstance(place.func, nodes.Attribute) and (place.func.attrname in READS or place.func.attrname == "to"):
        return place.func.expr
    return place.args[0] if len(place.args) == 1 else None


def _tells(test: nodes.NodeNG, text: str) -> bool | None:
    """True for a test that a value is a tensor, False for one that it is something else, None for any other."""
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        inner = _tells(test.operand, text)
        return None if inner is None else not inner
    if not isinstance(test, nodes.Call) or not test.args or test.args[0].as_string() != text:
        return None
    if qualified(test.func) <= _IS_TENSOR:
        return True
    tensors = {kind.endswith("Tensor") for kind in _kinds(test)}
    return tensors.pop() if len(tensors) == 1 else None


def _tests(around: nodes.NodeNG, name: str) -> bool:
    """Whether a condition, or a statement in a function, tests a name for a type on the host."""
    calls = (one for one in nodes_of(around, nodes.Call) if one.args and isinstance(one.args[0], nodes.Name))
    return any(one.args[0].name == name and not _ON_HOST.isdisjoint(_kinds(one)) for one in calls)


def _kinds(test: nodes.Call) -> list[str]:
    """The last names of the types that ``isinstance`` is given; none for another call."""
    if last_name(test.func) != "isinstance" or len(test.args) != _ISINSTANCE:
        return []
    return [last_name(one) for one in _alternatives(test.args[1])]


def _alternatives(kinds: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """The types of ``(A, B)`` or ``A | B``."""
    if isinstance(kinds, nodes.Tuple):
        for one in kinds.elts:
            yield from _alternatives(one)
    elif isinstance(kinds, nodes.BinOp):
        yield from _alternatives(kinds.left)
        yield from _alternatives(kinds.right)
    else:
        yield kinds


__all__ = ["is_told_from_tensors", "may_be_array"]
