"""Intervals: tests that hold in some steps only, by the remainder of a count or by a counter that starts again.

    if (step + 1) % every == 0:        if pending == every: pending = 0        if step - last >= every: last = step
"""

from __future__ import annotations

from dataclasses import dataclass

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard
from ldlm_lint.program.spots import Event
from ldlm_lint.program.walks import Through

_ASKS = frozenset({"op", "cmp", "bool", "not", "copy", "un", "phi"})
_DUE = {"Eq": True, "GtE": True, "Lt": False, "NotEq": False}
"""The outcome of a comparison of a counter with its limit that comes when the limit is reached."""


@dataclass(frozen=True)
class Interval:
    """A test that has one outcome, ``due``, once in so many rounds, and the other one in between."""

    rounds: Expr
    due: bool


class Intervals(Concept):
    """Answers for the tests of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[Expr, Interval | None] = {}
        self._periodic: dict[Expr, bool] = {}

    def at(self, guard: Guard, function: Function) -> Interval | None:
        """The interval of a condition in a function; the code under it may be what starts its counter again."""
        return (self.of(guard.test) or _of_counter(guard, function)) if guard.is_test else None

    def of(self, test: Expr) -> Interval | None:
        """The interval of a test by the remainder of a count, also as a part of the test."""
        if test not in self._known:
            # A flag that rests on itself says nothing more.
            self._known[test] = None
            self._known[test] = self._of(test.unnamed)
        return self._known[test]

    def _of(self, test: Expr) -> Interval | None:
        if test.operator == "Not":
            inner = self.of(test.operands[0])
            return Interval(inner.rounds, not inner.due) if inner is not None else None
        if test.kind == "bool":
            return next(filter(None, map(self.of, test.operands)), None)
        if test.kind == "phi":
            return self._of_flag(test)
        return _of_remainder(test)

    def _of_flag(self, flag: Expr) -> Interval | None:
        """``update = False``, and ``update = True`` under a condition that is an interval; or the interval by a name."""
        found: list[Interval | None] = []
        for value in _ways(flag):
            if value.constant is ...:
                found.append(self.of(value))
            elif value.constant is True:
                around = [one.spot.guard for one in value.events if one.kind == "bind"]
                found += [known for guard in around if guard is not None and guard.holds and (known := self.of(guard.test)) is not None and known.due]
        return found[0] if found and None not in found else None

    def is_periodic(self, test: Expr) -> bool:
        """Whether a test holds in some steps only: by the remainder of a count."""
        known = self._periodic.get(test)
        if known is None:
            self._periodic[test] = False
            known = self._periodic[test] = self._is_periodic(test)
        return known

    def _is_periodic(self, test: Expr) -> bool:
        if test.operator == "Mod" or _counts_rounds(test):
            return True
        if test.kind in _ASKS:
            return any(map(self.is_periodic, test.operands))
        if test.kind == "choice":
            return any(map(self.is_periodic, test.ways))
        if isinstance(test, Call):
            return any(map(self.is_periodic, _returned(test)))
        given = [one.value for one in test.passed if one.value is not None]
        return bool(given) and all(map(self.is_periodic, given))

    def rare_outcome(self, test: Expr) -> bool:
        """The outcome of a periodic test that occurs in few steps."""
        return self._rare_outcome(test, frozenset())

    def _rare_outcome(self, test: Expr, seen: frozenset[Function]) -> bool:
        if test.kind in ("not", "copy"):
            inner = self._rare_outcome(test.operands[0], seen)
            return inner if test.kind == "copy" else not inner
        if isinstance(test, Call):
            target = next(iter(test.targets), None)
            # A function that leads to itself says nothing more.
            return target is None or target in seen or self._rarely_returned(target, seen | {target})
        return not (test.kind == "op" or (test.operator == "NotEq" and not _counts_rounds(test)))

    def _rarely_returned(self, function: Function, seen: frozenset[Function]) -> bool:
        periodic = (one for one in function.returned if self.is_periodic(one))
        return next((self._rare_outcome(one, seen) for one in periodic), True)


def _ways(expr: Expr) -> list[Expr]:
    """What a name may hold that is bound on several ways."""
    return [one for one in expr.origins(Through.NAMES) if one.kind not in ("phi", "copy")]


def _of_remainder(test: Expr) -> Interval | None:
    """``(step + 1) % every == 0``, ``step % every``."""
    if test.operator == "Mod":
        return Interval(test.operands[1], due=False)
    sides = [one.unnamed for one in test.operands] if test.kind == "cmp" else []
    remainder = next((one for one in sides if one.operator == "Mod"), None)
    if remainder is None or test.operator not in ("Eq", "NotEq", "Gt"):
        return None
    is_zero = any(one.constant == 0 for one in sides)
    return Interval(remainder.operands[1], due=test.operator == "Eq") if test.operator == "Eq" or is_zero else None


def _of_counter(guard: Guard, function: Function) -> Interval | None:
    """A counter that the code under a condition sets to 0, or the distance from a step that it notes: ``step - last``."""
    test = guard.test.unnamed
    is_negated = test.operator == "Not"
    test = test.operands[0].unnamed if is_negated else test
    due = _DUE.get(test.operator)
    if due is None or guard.holds is not (due is not is_negated):
        return None
    counted, limit = (one.unnamed for one in test.operands)
    under = [one for one in _bindings(function) if one.spot.is_under(guard)]
    if counted.operator == "Sub":
        step, last = (one.unnamed for one in counted.operands)
        starts_again = any(one.expr.unnamed == step and one.name in _names(last, function) for one in under)
    else:
        starts_again = any(one.expr.constant == 0 and one.name in _names(counted, function) for one in under)
    return Interval(limit, due is not is_negated) if starts_again else None


def _names(value: Expr, function: Function) -> set[str]:
    """The names and attributes of a function that hold a value."""
    held = [value, *_ways(value)]
    return {one.name for one in _bindings(function) if one.expr.unnamed in held} | {one.last_name for one in held if one.last_name}


def _bindings(function: Function) -> list[Event]:
    """Where a function sets names and attributes."""
    return [one for one in function.events if one.kind in ("bind", "write")]


def _returned(call: Call) -> list[Expr]:
    return [one for target in call.targets for one in target.returned]


def _counts_rounds(test: Expr) -> bool:
    """``seen // every != (seen - 1) // every``: a counter has wrapped around."""
    sides = [one.plain for one in test.operands] if test.operator == "NotEq" else []
    return bool(sides) and all(one.operator == "FloorDiv" for one in sides) and sides[0].operands[1] == sides[-1].operands[1]
