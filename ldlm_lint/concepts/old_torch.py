"""Code for a torch that is no longer used for training: the side of a test of its version that only such a torch takes.

    if parse(torch.__version__) < parse("1.11"): …             if check_version(torch.__version__, "1.11.0"): … else: …
"""

from __future__ import annotations

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.walks import Through
from ldlm_lint.vocabulary.past import NUMBERS, PAST, VERSION_NAMES

_BELOW = {"Lt": True, "LtE": True, "Gt": False, "GtE": False}
"""The outcome of a comparison of torch's version with a number for an older torch."""
_TAKEN_FROM = Through.NAMES | Through.PARTS | Through.CONTENTS | Through.OUTSIDE


class OldTorch(Concept):
    """Answers for the calls of a program."""

    def is_needed_at(self, call: Call) -> bool:
        """Whether only an old torch comes to a call."""
        return any(guard.is_test and self._outcome(guard.test, frozenset()) is guard.holds for guard in call.guards)

    def _outcome(self, test: Expr, above: frozenset[Expr]) -> bool | None:
        """The outcome of a test that only an old torch gives; None if there is none."""
        test = test.unnamed
        if test in above:
            return None
        above |= {test}
        if test.operator == "Not":
            inner = self._outcome(test.operands[0], above)
            return inner if inner is None else not inner
        if test.kind == "free":
            bound = test.bound_outside
            return self._outcome(bound[0], above) if len(bound) == 1 else None
        if test.kind == "bool":
            # All parts of an ``and`` hold, none of an ``or`` does.
            wanted = test.operator == "And"
            return wanted if any(self._outcome(one, above) is wanted for one in test.operands) else None
        if isinstance(test, Call):
            return _of_call(test)
        return _of_comparison(test) if test.operator in _BELOW else None


def _of_comparison(test: Expr) -> bool | None:
    left, right = test.operands
    below = _BELOW[test.operator]
    if _is_version(left) and _is_past(right):
        return below
    return not below if _is_version(right) and _is_past(left) else None


def _of_call(call: Call) -> bool | None:
    """A function of the project that compares its first argument, torch's version, with its second one."""
    given = call.positional
    if len(given) < 2 or not _is_version(given[0]) or not _is_past(given[1]):
        return None
    outcomes = {_returned(target) for target in call.targets}
    return outcomes.pop() if len(outcomes) == 1 else None


def _returned(function: Function) -> bool | None:
    """The outcome for an older version of the comparison of order that a function returns."""
    values = (one for returned in function.returned for one in returned.origins(Through.NAMES | Through.CHOICES))
    found = {_BELOW[one.operator] for one in values if one.operator in _BELOW}
    return found.pop() if len(found) == 1 else None


def _is_version(expr: Expr) -> bool:
    """Whether an expression is torch's version: parsed, split, or cut."""
    todo, seen = [expr], {expr}
    for one in todo:
        for origin in one.origins(_TAKEN_FROM):
            if origin.outside_names & frozenset(VERSION_NAMES):
                return True
            inner = [*origin.positional, *([origin.receiver] if origin.receiver else [])] if isinstance(origin, Call) else []
            todo += (fresh := [other for other in inner if other not in seen])
            seen.update(fresh)
    return False


def _is_past(expr: Expr) -> bool:
    """Whether an expression is the number of an old version: ``"1.8"``, ``parse("1.8.0")``, ``(1, 8)``."""
    expr = expr.unnamed
    while isinstance(expr, Call) and len(expr.positional) == 1:
        expr = expr.positional[0].unnamed
    if expr.kind == "seq":
        parts = [one.constant for one in expr.operands]
        return bool(parts) and all(one.__class__ is int for one in parts) and tuple(parts[:2]) < PAST
    told = NUMBERS.search(str(expr.constant)) if isinstance(expr.constant, (str, float)) else None
    return told is not None and (int(told[1]), int(told[2] or 0)) < PAST
