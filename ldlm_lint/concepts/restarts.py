"""Branches that reset a value that their own test compares, such as the count or the clock time of the last report.

    if time.time() - shown > 10:  # this code runs occasionally
        shown = time.time()

The next steps compare with the new value, so the branch runs in few steps, like one under the remainder of a count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard
from ldlm_lint.program.spots import Event, Spot

# A chain of comparisons has no single operation.
_ORDERED = frozenset({"Lt", "LtE", "Gt", "GtE", ""})
_BINDS = frozenset({"bind", "add"})


class Restarts(Concept):
    """The guards of such branches."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[Guard, bool] = {}
        self._bound: dict[Function, dict[Expr, list[Spot]]] = {}

    def is_one(self, guard: Guard, function: Function) -> bool:
        """Whether a comparison in the test of a guard reads a value that its own branch sets for the next iteration of a
        loop."""
        known = self._known.get(guard)
        if known is None:
            carried = {one for compared in _compared(guard.test) for one in _carried(compared)}
            bound = self._bound_in(function) if carried else {}
            known = self._known[guard] = any(spot.is_under(guard) for one in carried for spot in bound.get(one, ()))
        return known

    def _bound_in(self, function: Function) -> dict[Expr, list[Spot]]:
        """Where the values of a function's names are bound."""
        if function not in self._bound:
            found = self._bound[function] = defaultdict(list)
            for event in function.events_of(*_BINDS):
                found[event.expr].append(event.spot)
        return self._bound[function]

    def is_deadline(self, guard: Guard, function: Function) -> bool:
        """Whether a count or a clock is compared with its value at the last time: ``seen >= reported + every``.

        Also for attributes that their branch resets: ``if self.seen >= self.every: self.seen = 0``.
        """
        compared = {one for one in _compared(guard.test) if one.kind != "const"}
        if any(one.kind == "phi" and not compared.isdisjoint(_carried(one)) for one in compared):
            return True
        names = {one.name for one in compared if one.kind == "attr"}
        return bool(names) and any(event.name in names and event.expr.kind == "const" for event in _set_behind(guard, function))

    def is_set_once(self, guard: Guard, function: Function) -> bool:
        """Whether a branch runs as long as a value is missing, and creates it: ``if first is None: first =
        loss.item()``."""
        asked = _missing(guard.test, guard.holds)
        if asked is None:
            return guard.holds is True and guard.test.kind == "phi" and _is_bound_under(guard.test, guard, function, turned=True)
        if asked.kind in ("attr", "const"):
            name = asked.name or asked.constant
            return any(event.name == name for event in _set_behind(guard, function))
        return _is_bound_under(asked, guard, function)

    def settles(self, part: Expr, spot: Spot) -> bool:
        """Whether a part of a test is evaluated only until its own branch sets the flag before it: ``if full or not
        queue.all(): full = True``."""
        return any(_sets(flag, test, spot.function) for test, flags in _flags_before(part) for flag in flags)


def _set_behind(guard: Guard, function: Function) -> Iterator[Event]:
    """The attributes that are set behind the beginning of a branch."""
    return (event for event in function.events if event.kind == "write" and event.spot.place > guard.begin)


def _is_bound_under(asked: Expr, guard: Guard, function: Function, turned: bool = False) -> bool:
    """Whether a branch sets what its test misses (``turned``: removes what it finds), and no other code in the loop
    undoes that."""
    carried = _carried(asked)
    events = [event for event in function.events_of(*_BINDS) if event.expr in carried]
    inside = [event for event in events if event.spot.is_under(guard)]
    loops = {event.spot.loop for event in inside}
    others = [event for event in events if event.spot.loop in loops and not event.spot.is_under(guard)]
    makes = any(_is_missing(event.expr) is turned for event in inside)
    return makes and all(_is_missing(event.expr) is turned for event in others)


def _is_missing(value: Expr) -> bool:
    return value.constant is None or value.constant is False


def _flags_before(part: Expr) -> Iterator[tuple[Expr, list[Expr]]]:
    """The tests by ``or`` that a part, or its opposite, is in, with the parts before it."""
    for one in (part, *(user for user in part.users if user.kind == "not")):
        for test in one.users:
            if test.operator == "Or":
                yield test, test.operands[: test.operands.index(one)]


def _sets(flag: Expr, test: Expr, function: Function) -> bool:
    """Whether the branch of a test sets a flag to True."""
    carried = _carried(flag)
    for event in function.events:
        is_flag = event.name == flag.name if event.kind == "write" and flag.kind == "attr" else event.kind in _BINDS and event.expr in carried
        if is_flag and event.expr.constant is True and any(one.test == test and one.holds is True for one in event.spot.guards):
            return True
    return False


def _missing(test: Expr, holds: bool | None) -> Expr | None:
    """The value that a test finds missing, as a name, an attribute or (for ``hasattr``) a text: it is None, false or
    absent."""
    if test.kind == "not":
        return _missing(test.operands[0], None if holds is None else not holds)
    if test.operator == "And" and holds:
        return next((found for one in test.operands if (found := _missing(one, True)) is not None), None)
    if test.operator in ("Is", "IsNot") and test.operands[1].constant is None:
        return test.operands[0] if (test.operator == "Is") is holds else None
    if isinstance(test, Call):
        return test.positional[1] if test.called_name == "hasattr" and len(test.positional) > 1 and holds is False else None
    return test if test.kind in ("attr", "phi") and holds is False else None


def _compared(test: Expr) -> set[Expr]:
    """The operands of a test's ordering comparisons, through ``and``, ``or``, ``not`` and arithmetic."""
    found: set[Expr] = set()
    todo = [one for part in _asked(test) if part.kind == "cmp" and part.operator in _ORDERED for one in part.operands]
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo += one.operands if one.kind == "op" else []
    return found


def _asked(test: Expr) -> Iterator[Expr]:
    """The parts of a test, by ``and``, ``or`` and ``not``."""
    todo, seen = [test], {test}
    while todo:
        one = todo.pop()
        yield one
        fresh = [part for part in one.operands if part not in seen] if one.kind in ("bool", "not", "copy") else []
        seen.update(fresh)
        todo += fresh


def _carried(name: Expr) -> set[Expr]:
    """The values that a name may keep from an earlier iteration, including through other branches."""
    found: set[Expr] = set()
    todo = [name]
    while todo:
        at = todo.pop()
        fresh = [one for one in at.ways if one not in found] if at.kind in ("phi", "copy") else []
        found.update(fresh)
        todo += fresh
    return found


__all__ = ["Restarts"]
