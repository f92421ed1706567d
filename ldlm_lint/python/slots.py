"""The places of a value, and the moves from one to another.

A *slot* is such a place: ``Slot("var", scope, name)`` a variable of a function (scope is the dotted name of the
function inside its module, empty for the module), ``"attr"`` an attribute by name, ``"new"`` the result of the call at
a position ``line:column``, ``"out"`` the result of any other call at such a position, ``"ret"`` what a function
returns. ``index`` is the element of a tuple, list or dictionary, empty for the whole and `ANY_ELEMENT` for an unknown
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings, last_name, qualified, scope_of
from ldlm_lint.python.places import function_of, position_of, scope_name
from ldlm_lint.python.scopes import enclosing
from ldlm_lint.python.values import constant

LOADERS = frozenset({"torch.utils.data.DataLoader", "torchdata.stateful_dataloader.StatefulDataLoader"})
_PASS_ON = {
    "iter",
    "enumerate",
    "zip",
    "tqdm",
    "trange",
    "chain",
    "cycle",
    "islice",
    "reversed",
    "track",
    "progress_bar",
}
_NO_FLOW = {
    "len",
    "range",
    "print",
    "isinstance",
    "type",
    "id",
    "str",
    "int",
    "float",
    "hasattr",
    "getattr",
    "repr",
    "bool",
}
ANY_ELEMENT = "?"


class Slot(NamedTuple):
    """A place of a value; see the module docstring."""

    kind: str
    scope: str
    name: str
    index: str = ""  # type: ignore[assignment]  # nobody asks a slot for the index of a value

    def at(self, index: str) -> Slot:
        """The place of one of its elements."""
        return Slot(self.kind, self.scope, self.name, index)


def slots_of(node: nodes.NodeNG) -> list[Slot]:
    """The slots behind an expression."""
    if isinstance(node, nodes.Name):
        slot = variable(node)
        return [slot] if slot else []
    if isinstance(node, nodes.Attribute):
        return [Slot("attr", "", node.attrname)]
    if isinstance(node, nodes.Call):
        return _result_of(node)
    if isinstance(node, nodes.Subscript):
        return [slot.at(_index(node.slice)) for slot in slots_of(node.value)]
    if isinstance(node, nodes.IfExp):
        return slots_of(node.body) + slots_of(node.orelse)
    if isinstance(node, nodes.BoolOp):
        return [slot for value in node.values for slot in slots_of(value)]
    if isinstance(node, (nodes.Await, nodes.NamedExpr, nodes.Starred)):
        return slots_of(node.value)
    return []


def _result_of(call: nodes.Call) -> list[Slot]:
    if qualified(call.func) <= LOADERS:
        return [Slot("new", "", position_of(call))]
    last = call.func.attrname if isinstance(call.func, nodes.Attribute) else getattr(call.func, "name", "")
    if last in _NO_FLOW:
        return []
    if last in _PASS_ON and call.args:
        return [slot for argument in call.args for slot in slots_of(argument)]
    return [Slot("out", "", position_of(call))]


def variable(node: nodes.Name) -> Slot | None:
    """The slot of a name, None if it is an import, a function or a class."""
    return remembered(enclosing(node), ("slot", node.name), lambda: _variable(node))


def _variable(node: nodes.Name) -> Slot | None:
    scope = scope_of(node)
    if scope is None or not all(
        isinstance(one, (nodes.AssignName, nodes.Arguments, nodes.Nonlocal)) for one in bindings(node)
    ):
        return None
    return Slot("var", scope_name(scope), node.name)


def assigned(node: nodes.Assign | nodes.AnnAssign) -> Iterator[tuple[Slot, Slot]]:
    """The moves of an assignment, element by element if a tuple is unpacked."""
    if node.value is None:
        return
    for target in node.targets if isinstance(node, nodes.Assign) else [node.target]:
        yield from _moved(node.value, target)


def _moved(value: nodes.NodeNG, target: nodes.NodeNG) -> Iterator[tuple[Slot, Slot]]:
    if isinstance(target, (nodes.Tuple, nodes.List)):
        if isinstance(value, (nodes.Tuple, nodes.List)) and len(value.elts) == len(target.elts):
            for part, place in zip(value.elts, target.elts, strict=True):
                yield from _moved(part, place)
            return
        for index, place in enumerate(target.elts):
            for source in slots_of(value):
                yield from ((source.at(str(index)), slot) for slot in _target(place))
        return
    if not isinstance(value, nodes.Const):
        for place in _target(target):
            yield from _stored(value, place)


def _target(node: nodes.NodeNG) -> list[Slot]:
    if isinstance(node, nodes.AssignName):
        return [Slot("var", scope_name(enclosing(node)), node.name)]
    if isinstance(node, nodes.AssignAttr):
        return [Slot("attr", "", node.attrname)]
    if isinstance(node, nodes.Subscript):
        return [slot.at(_index(node.slice)) for slot in slots_of(node.value)]
    return []


def returned(node: nodes.Return) -> Iterator[tuple[Slot, Slot]]:
    """The moves into the result of a function."""
    if node.value is not None:
        yield from _stored(node.value, Slot("ret", scope_name(function_of(node)), ""))


def gone_through(node: nodes.NodeNG | None) -> nodes.NodeNG | None:
    """The iterable of a progress bar or similar wrapper: ``tqdm(loader)``; None for other values."""
    return node.args[0] if isinstance(node, nodes.Call) and node.args and last_name(node.func) in _PASS_ON else None


def opened(node: nodes.With) -> Iterator[tuple[Slot, Slot]]:
    """The moves of ``with tqdm(loader) as bar``."""
    for context, target in node.items:
        if target is not None and gone_through(context) is not None:
            yield from _moved(context, target)


def appended(call: nodes.Call) -> Iterator[tuple[Slot, Slot]]:
    """``loaders.append(loader)``: the list contains it as one of its elements."""
    if isinstance(call.func, nodes.Attribute) and call.func.attrname == "append" and len(call.args) == 1:
        for source in slots_of(call.args[0]):
            yield from ((source, slot.at(ANY_ELEMENT)) for slot in slots_of(call.func.expr))


def _stored(value: nodes.NodeNG, place: Slot) -> Iterator[tuple[Slot, Slot]]:
    """The moves that put a value into a place, its elements one by one for a literal."""
    parts = _elements(value)
    for index, part in parts:
        yield from ((source, place.at(index)) for source in slots_of(part))
    if not parts:
        yield from ((source, place) for source in slots_of(value))


def _elements(value: nodes.NodeNG) -> list[tuple[str, nodes.NodeNG]]:
    if isinstance(value, (nodes.Tuple, nodes.List)):
        return [(str(index), part) for index, part in enumerate(value.elts)]
    if isinstance(value, nodes.Dict):
        return [(_index(key), part) for key, part in value.items]
    if isinstance(value, nodes.DictComp):
        return [(ANY_ELEMENT, value.value)]
    if isinstance(value, nodes.ListComp):
        return [(ANY_ELEMENT, value.elt)]
    if isinstance(value, nodes.Call) and is_call_of(value, "dict"):
        return [(keyword.arg, keyword.value) for keyword in value.keywords if keyword.arg]
    return []


def _index(node: nodes.NodeNG) -> str:
    index = constant(node)
    known = isinstance(index, str) or (isinstance(index, int) and index >= 0)
    return str(index) if known else ANY_ELEMENT


def taken(iterable: nodes.NodeNG, target: nodes.NodeNG) -> Iterator[tuple[Slot, Slot]]:
    """The moves of ``for loader in loaders``, ``….values()``, ``….items()``, ``enumerate(…)`` into the loop's variable."""
    if isinstance(iterable, (nodes.Tuple, nodes.List)):
        for part in iterable.elts:
            yield from _moved(part, target)
        return
    if isinstance(iterable, nodes.Call):
        method = iterable.func.attrname if isinstance(iterable.func, nodes.Attribute) else ""
        if method in ("items", "values"):
            iterable = iterable.func.expr
        elif is_call_of(iterable, "enumerate") and iterable.args:
            iterable = iterable.args[0]
        else:
            return
        if method != "values":
            target = target.elts[1] if isinstance(target, nodes.Tuple) and len(target.elts) == 2 else None
    for source in slots_of(iterable):
        if source.index == "":
            yield from ((source.at(ANY_ELEMENT), place) for place in _target(target))


def is_call_of(node: nodes.Call, *names: str) -> bool:
    """Whether a call is one of these plain names."""
    return isinstance(node.func, nodes.Name) and node.func.name in names
