"""Intervals: tests that hold in some steps only, by the remainder of a count: ``step % every == 0``."""

from __future__ import annotations

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function

_ASKS = frozenset({"op", "cmp", "bool", "not", "copy", "un", "phi"})


class Intervals(Concept):
    """Answers for the tests of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._periodic: dict[Expr, bool] = {}

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


def _returned(call: Call) -> list[Expr]:
    return [one for target in call.targets for one in target.returned]


def _counts_rounds(test: Expr) -> bool:
    """``seen // every != (seen - 1) // every``: a counter has wrapped around."""
    sides = [one.plain for one in test.operands] if test.operator == "NotEq" else []
    return bool(sides) and all(one.operator == "FloorDiv" for one in sides) and sides[0].operands[1] == sides[-1].operands[1]
