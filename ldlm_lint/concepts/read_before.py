"""Whether something runs before a place in a program, in the same function, in a called one, or in a caller."""

from __future__ import annotations

from collections.abc import Callable

from ldlm_lint.program.handles import Call, Expr, Function, Guard
from ldlm_lint.program.spots import Spot


class Earlier:
    """Answers for the calls that ``is_one`` selects; ``ends`` selects calls after which nothing is known, such as a new
    process."""

    def __init__(self, is_one: Callable[[Call], bool], ends: Callable[[Call], bool]) -> None:
        self._is_one = is_one
        self._ends = ends
        self._surely: dict[Function, Call | None] = {}
        self._may_end: dict[Function, bool] = {}

    def before(self, spot: Spot) -> Call | None:
        """The call that surely ran before a place is reached, on every path; None if there is none, or a later one may
        count.

        A function that several places call may have been called before, so it is inconclusive.
        """
        found, seen = None, {spot.function}
        while not self._ends_behind(spot):
            found = found or self._in_function(spot)
            callers = spot.function.callers
            if len(callers) != 1 or spot.function.is_module or spot.function.is_class or callers[0].function in seen:
                return found
            spot = callers[0].spot
            seen.add(spot.function)
        return None

    def _in_function(self, spot: Spot) -> Call | None:
        before = (call for call in spot.function.calls if call.end <= spot.place and call.spot.leads_to(spot))
        return next((found for call in before if (found := self.run_by(call)) is not None), None)

    def _ends_behind(self, spot: Spot) -> bool:
        return any(self.may_end(call) for call in spot.function.calls if call.place > spot.place)

    def run_by(self, call: Call) -> Call | None:
        """The call itself if it is selected, or one that surely runs in the called function."""
        if self._is_one(call):
            return call
        targets = call.targets
        return self._surely_in(targets[0]) if len(targets) == 1 and not call.is_of_process else None

    def _surely_in(self, function: Function) -> Call | None:
        """A call that runs whenever a function does, independently of its arguments."""
        if function not in self._surely:
            self._surely[function] = None
            sure = (call for call in ([] if function.is_generator else function.calls) if all(map(_is_sure, call.guards)))
            self._surely[function] = next((found for call in sure if (found := self.run_by(call)) is not None), None)
        return self._surely[function]

    def may_end(self, call: Call) -> bool:
        """Whether a call may be, or lead to, one after which nothing is known."""
        return self._ends(call) or any(map(self._may_end_in, call.targets))

    def _may_end_in(self, function: Function) -> bool:
        if function not in self._may_end:
            todo, seen = [function], {function}
            while todo:
                calls = todo.pop().calls
                targets = {one for call in calls for one in call.targets}
                if any(map(self._ends, calls)) or any(self._may_end.get(one) for one in targets):
                    self._may_end[function] = True
                    return True
                todo += (new := [one for one in targets if one not in seen and one not in self._may_end])
                seen.update(new)
            self._may_end.update(dict.fromkeys(seen, False))
        return self._may_end[function]


def _is_sure(guard: Guard) -> bool:
    """Whether a guard is independent of the function's arguments."""
    return guard.kind not in ("except", "case") and (guard.kind not in ("if", "rest") or _asks_library(guard.test))


def _asks_library(test: Expr) -> bool:
    """Whether a test is only a library query, such as ``torch.cuda.is_available()``, or several."""
    if test.kind in ("not", "bool"):
        return all(map(_asks_library, test.operands))
    return isinstance(test, Call) and not test.arguments and test.called_name.startswith("is_")


__all__ = ["Earlier"]
