"""The iterables of loops, and the outer loops that repeat them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.python.places import function_of, loops_around, scope_name
from ldlm_lint.python.slots import ANY_ELEMENT, Slot, gone_through, is_call_of, slots_of, taken
from ldlm_lint.python.walks import nodes_of

_BOUND = "_ldlm_bound"
_MADE = ("new", "out")


class Iteration(NamedTuple):
    """A loop over a slot; ``loops`` are the outer loops that repeat it, ``line`` is the loop's own line.

    One that ``goes_on`` takes the next element of a pass that has begun (``next(it)``), no matter how often it runs;
    one that is ``held`` begins a pass from which others may take elements (``it = iter(loader)``).
    """

    slot: Slot
    scope: str
    line: int
    loops: tuple[int, ...]
    goes_on: bool = False
    held: bool = False


def iterations_of(node: nodes.NodeNG) -> Iterator[Iteration]:
    """The loops over values of a ``for``, a comprehension, ``yield from``, ``iter()`` or ``next()``."""
    if isinstance(node, nodes.For):
        yield from _iterated(node.iter, node.iter.lineno or 0)
    elif isinstance(node, nodes.Comprehension):
        yield from _iterated(node.iter, 0)
    elif isinstance(node, nodes.YieldFrom):
        yield from _iterated(node.value, node.lineno or 0)
    elif node.args:
        found = _iterated(node.args[0], _loop_line(node))
        goes_on = is_call_of(node, "next")
        yield from (one._replace(goes_on=goes_on, held=not goes_on) for one in found)


def _iterated(iterable: nodes.NodeNG, line: int) -> Iterator[Iteration]:
    scope = scope_name(function_of(iterable))
    for slot in slots_of(iterable):
        yield Iteration(slot, scope, line, repeating(iterable, slot, loops_around(iterable)))


def repeating(node: nodes.NodeNG, slot: Slot, loops: Collection[nodes.NodeNG]) -> tuple[int, ...]:
    """The lines of the loops around a node in which the slot is neither rebound nor a new element each time."""
    if not loops:
        return ()
    keys: set[str] = set()
    if slot.index == ANY_ELEMENT:
        subscripts = nodes_of(node, nodes.Subscript)
        keys = {name.name for part in subscripts for name in nodes_of(part.slice, nodes.Name)}
    return tuple(loop.lineno or 0 for loop in loops if not _binds(loop, slot) and not _steps_through(loop, keys))


def _steps_through(loop: nodes.NodeNG, names: set[str]) -> bool:
    """Whether the loop's own variable is one of the names."""
    target = getattr(loop, "target", None)
    return bool(names) and target is not None and any(one.name in names for one in nodes_of(target, nodes.AssignName))


def _binds(loop: nodes.NodeNG, slot: Slot) -> bool:
    if slot.kind in _MADE:
        return True
    # Needed for every argument of every call in the loop; cached on the loop's node.
    bound: set[tuple[str, str]] | None = loop.__dict__.get(_BOUND)
    if bound is None:
        every = [one for one in nodes_of(loop, (nodes.AssignName, nodes.AssignAttr)) if not _rewinds(one)]
        again = {one: value for one in every if (value := gone_through(_value_of(one))) is not None}
        targets = [one for one in every if one not in again]
        origins = {one: _origins_of(one, loop) for one in targets}
        bound = {_named(one) for one in targets if not origins[one]}
        # ``for loader in loaders`` inside the loop uses the same loaders again, unless they are created again there.
        bound |= {
            _named(one)
            for one in targets
            if any(slot.kind in _MADE or (slot.kind, slot.name) in bound for slot in origins[one])
        }
        # ``bar = tqdm(loader)`` iterates over the same loader again, unless that is created again there.
        bound |= {_named(one) for one, value in again.items() if _is_anew(value, bound)}
        loop.__dict__[_BOUND] = bound
    return (slot.kind, slot.name) in bound


def _is_anew(value: nodes.NodeNG, bound: set[tuple[str, str]]) -> bool:
    found = slots_of(value)
    return not found or any(one.kind in _MADE or (one.kind, one.name) in bound for one in found)


def _value_of(target: nodes.AssignName | nodes.AssignAttr) -> nodes.NodeNG | None:
    """The value assigned to a target, or opened as it."""
    if isinstance(target.parent, nodes.With):
        return next((context for context, one in target.parent.items if one is target), None)
    return target.parent.value if isinstance(target.parent, nodes.Assign) else None


def _named(target: nodes.AssignName | nodes.AssignAttr) -> tuple[str, str]:
    return ("var", target.name) if isinstance(target, nodes.AssignName) else ("attr", target.attrname)


def _origins_of(target: nodes.NodeNG, loop: nodes.NodeNG) -> list[Slot]:
    """The places from which a loop inside ``loop`` binds its elements to a target; empty for other targets."""
    taker = target.parent.parent if isinstance(target.parent, nodes.Tuple) else target.parent
    if taker is loop or not isinstance(taker, (nodes.For, nodes.Comprehension)):
        return []
    return [source for source, _ in taken(taker.iter, taker.target)]


def _rewinds(target: nodes.AssignName | nodes.AssignAttr) -> bool:
    """``it = iter(loader)`` inside a loop binds a new iterator over the same loader."""
    value = getattr(target.parent, "value", None)
    return isinstance(value, nodes.Call) and isinstance(value.func, nodes.Name) and value.func.name == "iter"


def _loop_line(node: nodes.NodeNG) -> int:
    around = loops_around(node)
    return around[0].lineno or 0 if around else 0


__all__ = ["Iteration", "iterations_of", "repeating"]
