"""What a value of the device is read for: some uses exist on the host only, whoever waits for them."""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.host_time_calls import root_name
from ldlm_lint.patterns import lazily
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

# An environment takes its actions, and packing its lengths, from the host.
_NEEDED_ON_HOST = lazily(r"(^|_)(actions?|act|acts|choice|lengths?|lens|seq_?lens?|sizes?|splits?)(_|$)", re.I)
# Of what `.item()` reads: an action, and the greatest length, which kernels for sequences of many lengths take as a number.
_NUMBERS_ON_HOST = lazily(r"(^|_)(actions?|max_?(seq_?)?len(gth)?s?)(_|$)")
_TAKES_HOST_VALUES = frozenset({"pack_padded_sequence", "linear_sum_assignment", "rpc_sync", "rpc_async", "remote"})
_MAKES_SIZES = frozenset(
    {
        *("arange", "zeros", "ones", "empty", "rand", "randn"),
        *("new_zeros", "new_ones", "new_empty", "view", "reshape", "expand", "narrow"),
    }
)

_FINITE = frozenset({"isnan", "isinf", "isfinite"})
_RANGES = frozenset({"range", "trange"})
# What hands a number on: ``int(x.item())``, ``max(1, x.item())``.
_HANDS_ON = frozenset({"int", "float", "round", "abs", "min", "max", "bool"})
_TESTS = (nodes.If, nodes.While, nodes.IfExp, nodes.Assert)


class Need(enum.Enum):
    """What the host needs a value for as soon as it is read."""

    DECIDES = "decides"
    FINITE = "finite"
    SIZES = "sizes"
    INDEXES = "indexes"


def need_of(node: nodes.NodeNG) -> Need | None:
    """What a value that is read, or the variable that takes it, is needed for at once; None where it may be read later."""
    return _need_at(node) or next(filter(None, map(_need_at, _uses_of(node))), None)


def is_only_kept(node: nodes.NodeNG) -> bool:
    """Whether a value that is read, or the variable that takes it, is only shown, collected or summed up in its function."""
    statement = node.statement()
    if _is_kept(node) or not isinstance(statement, nodes.Assign):
        return _is_kept(node)
    if not all(isinstance(one, nodes.AssignName) for one in statement.targets):
        return True
    uses = list(_uses_of(node))
    return bool(uses) and all(map(_is_kept, uses))


def _is_kept(node: nodes.NodeNG) -> bool:
    """Whether a value is added to another, given to a call for its effect, or put into a dictionary or a text."""
    statement = node.statement()
    around = itertools.takewhile(lambda one: one is not statement, node.node_ancestors())
    return isinstance(statement, (nodes.AugAssign, nodes.Expr)) or any(isinstance(one, (nodes.Dict, nodes.JoinedStr)) for one in around)


def _uses_of(node: nodes.NodeNG) -> Iterator[nodes.Name]:
    """The uses, further down in the function, of the variable that takes a value or a number made of it."""
    statement = node.statement()
    if not isinstance(statement, nodes.Assign) or not _is_value_of(statement, node):
        return
    target = statement.targets[0]
    if isinstance(target, nodes.AssignName):
        names = nodes_of(function_of(node), nodes.Name)
        yield from (one for one in names if one.name == target.name and one.lineno >= node.lineno)


def _is_value_of(statement: nodes.Assign, node: nodes.NodeNG) -> bool:
    """Whether a statement assigns what is read, a number made of it or a list of such to one variable."""
    child = node
    while child.parent is not statement:
        before, child = child, child.parent
        chosen = isinstance(child, nodes.IfExp) and before is not child.test
        if not isinstance(child, (nodes.BinOp, nodes.UnaryOp, nodes.ListComp)) and not chosen and not _hands_on(child):
            return False
    return len(statement.targets) == 1


def _hands_on(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Call) and isinstance(node.func, nodes.Name) and node.func.name in _HANDS_ON


def _need_at(node: nodes.NodeNG) -> Need | None:
    """What the expression around a value needs it for."""
    child = node
    finite = _tests_finite(node)
    for parent in node.node_ancestors():
        if isinstance(parent, _TESTS) and child is parent.test:
            return Need.FINITE if finite else Need.DECIDES
        if isinstance(parent, nodes.Slice) or (isinstance(parent, nodes.Call) and child in parent.args and _takes_sizes(parent)):
            return Need.SIZES
        if isinstance(parent, nodes.Subscript):
            return Need.INDEXES if child is parent.slice else None
        finite = finite or _tests_finite(parent)
        if not isinstance(parent, (nodes.BinOp, nodes.UnaryOp, nodes.BoolOp, nodes.Compare, nodes.Tuple, nodes.IfExp)) and not (finite or _hands_on(parent)):
            return None
        child = parent
    return None


def _tests_finite(node: nodes.NodeNG) -> bool:
    """``torch.isnan(x)``, ``x.isnan().any()``."""
    calls = [node] if isinstance(node, nodes.Call) else []
    calls += nodes_of(node, nodes.Call) if calls else []
    return any(last_name(one.func) in _FINITE for one in calls)


def _takes_sizes(call: nodes.Call) -> bool:
    return last_name(call.func) in _MAKES_SIZES | _RANGES


def is_needed(call: nodes.Call) -> bool:
    """What an environment, a packed sequence, a split by sizes or the size of a tensor can take from the host only."""
    target = call.statement()
    names = {root_name(call), last_name(call.func.expr)}
    if isinstance(target, nodes.Assign):
        names |= {last_name(one) for one in target.targets}
    if call.func.attrname != "item" or isinstance(target, nodes.Return):
        if any(_NEEDED_ON_HOST.search(name) for name in names):
            return True
    elif any(map(_NUMBERS_ON_HOST.search, names)):
        return True
    outer = (one for one in call.node_ancestors() if isinstance(one, nodes.Call))
    return any(last_name(one.func) in _TAKES_HOST_VALUES for one in outer) or _is_used_on_host(call)


def _is_used_on_host(call: nodes.Call) -> bool:
    """Whether the variable that takes a read is what an assignment problem is solved for, or a size of other tensors.

    ``C = C.cpu()`` for ``linear_sum_assignment``, ``n = lengths.max().item()`` for ``torch.arange(n)`` and ``x[:, :n]``.
    """
    statement = call.statement()
    if not isinstance(statement, nodes.Assign) or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, nodes.AssignName):
        return False
    owner = function_of(call)
    if target.name in remembered(owner, ("solved for",), lambda: _solved_for(owner)):
        return True
    return call.func.attrname == "item" and target.name in remembered(owner, ("sizes",), lambda: _sizes(owner))


def _solved_for(owner: nodes.NodeNG) -> frozenset[str]:
    """The variables around the calls of a function that take their values from the host."""
    calls = (one for one in nodes_of(owner, nodes.Call) if last_name(one.func) in _TAKES_HOST_VALUES)
    return frozenset(name for one in calls for name in _names_around(one))


def _names_around(call: nodes.Call) -> set[str]:
    """The variables of the statement of a call, and those that the loops around it go through."""
    loops = [one.iter for one in call.node_ancestors() if isinstance(one, nodes.For)]
    return {name.name for place in (call.statement(), *loops) for name in nodes_of(place, nodes.Name)}


def _sizes(owner: nodes.NodeNG) -> frozenset[str]:
    """The variables that tensors are made or cut with in a function."""
    return frozenset(one.name for one in _given_as_sizes(owner))


def _given_as_sizes(owner: nodes.NodeNG) -> Iterator[nodes.Name]:
    for call in nodes_of(owner, nodes.Call):
        if last_name(call.func) in _MAKES_SIZES:
            yield from (one for one in call.args if isinstance(one, nodes.Name))
            yield from (one for part in call.args if isinstance(part, (nodes.Tuple, nodes.List)) for one in part.elts if isinstance(one, nodes.Name))
    for cut in nodes_of(owner, nodes.Slice):
        yield from (one for one in (cut.lower, cut.upper) if isinstance(one, nodes.Name))


__all__ = ["Need", "is_needed", "is_only_kept", "need_of"]
