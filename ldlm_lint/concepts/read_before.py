"""Whether something runs before a place in a program, in the same function, in a called one, or in a caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import guards_above
from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_LEVELS = 8
"""Functions above a place that are looked at."""
_MOST = 400
"""Functions below a call that are looked at."""
_ROWS = 30
"""Rows of a test that are looked at."""


class Point(NamedTuple):
    """A place in a function (key; the module itself is scope 0), the guard that it is under, and where it begins."""

    function: int
    guard: int
    place: int


class Earlier:
    """Answers for the calls that ``is_one`` selects; ``ends`` selects calls after which nothing is known, such as a new
    process."""

    def __init__(self, program: Program, is_one: Callable[[int], bool], ends: Callable[[int], bool]) -> None:
        self._program = program
        self._is_one = is_one
        self._ends = ends
        self._surely: dict[int, int | None] = {}
        self._may_end: dict[int, bool] = {}

    def before(self, point: Point) -> int | None:
        """The call that surely ran before a point is reached, on every path; None if there is none, or a later one may
        count.

        A function that several places call may have been called before, so it is inconclusive.
        """
        found = None
        for _ in range(_LEVELS):
            if self._ends_behind(point):
                return None
            found = found or self._in_function(point)
            module = self._program.module_of(point.function)
            edges = self._program.callers(point.function) if point.function & MASK else []
            if len(edges) != 1 or module.scopes[point.function & MASK].kind != "def":
                break
            point = self.point_of(edges[0].call)
        return found

    def point_of(self, call: int) -> Point:
        """The point of a call."""
        module = self._program.module_of(call)
        site = module.table.sites[call & MASK]
        return Point(module.base | site.scope, site.guard, site.place)

    def _in_function(self, point: Point) -> int | None:
        module = self._program.module_of(point.function)
        for call in module.scopes[point.function & MASK].calls:
            site = module.table.sites[call]
            if site.end <= point.place and self._leads_to(module, site.guard, point.guard):
                found = self.run_by(module.base | call)
                if found is not None:
                    return found
        return None

    def _ends_behind(self, point: Point) -> bool:
        module = self._program.module_of(point.function)
        behind = (call for call in module.scopes[point.function & MASK].calls if module.table.sites[call].place > point.place)
        return any(self.may_end(module.base | call) for call in behind)

    def run_by(self, call: int) -> int | None:
        """The call itself if it is selected, or one that surely runs in the called function."""
        if self._is_one(call):
            return call
        targets = self._program.targets_of.get(call, ())
        if len(targets) != 1 or call in self._program.starts:
            return None
        return self._surely_in(next(iter(targets)))

    def _surely_in(self, function: int) -> int | None:
        """A call that runs whenever a function does, independently of its arguments."""
        if function in self._surely:
            return self._surely[function]
        self._surely[function] = None
        if len(self._surely) > _MOST:
            return None
        module = self._program.module_of(function)
        scope = module.scopes[function & MASK]
        for call in () if scope.yields else scope.calls:
            site = module.table.sites[call]
            if site.scope == function & MASK and self._is_sure(module, site.guard):
                found = self.run_by(module.base | call)
                if found is not None:
                    self._surely[function] = found
                    break
        return self._surely[function]

    def may_end(self, call: int) -> bool:
        """Whether a call may be, or lead to, one after which nothing is known."""
        if self._ends(call):
            return True
        return any(map(self._may_end_in, self._program.targets_of.get(call, ())))

    def _may_end_in(self, function: int) -> bool:
        if function not in self._may_end:
            # Deep library code is unknown: the function may count.
            self._may_end[function] = len(self._may_end) > _MOST
            if not self._may_end[function]:
                module = self._program.module_of(function)
                calls = module.scopes[function & MASK].calls
                self._may_end[function] = any(self.may_end(module.base | call) for call in calls)
        return self._may_end[function]

    @staticmethod
    def _leads_to(module: Module, one: int, other: int) -> bool:
        """Whether control flows from code under a guard to code under another, further down in the same function."""
        below = dict.fromkeys(guards_above(module.table.guards, other))
        for guard in guards_above(module.table.guards, one):
            if guard in below:
                return True
            held = module.table.guards[guard]
            opposite = any(module.table.guards[two].test == held.test and module.table.guards[two].holds is (not held.holds) for two in below)
            if held.ends in ("raise", "return", "break", "continue") or (held.kind in ("if", "rest") and opposite) or held.kind in ("except", "case"):
                return False
        return True

    def _is_sure(self, module: Module, guard: int) -> bool:
        """Whether a guard is independent of the function's arguments."""
        for one in guards_above(module.table.guards, guard):
            held = module.table.guards[one]
            if held.kind in ("except", "case") or (held.kind in ("if", "rest") and self._rests_on_given(module, held.test)):
                return False
        return True

    @staticmethod
    def _rests_on_given(module: Module, test: int) -> bool:
        """Whether a test is more than a library query, such as ``torch.cuda.is_available()``."""
        todo, seen = [test], 0
        while todo and seen < _ROWS:
            row = module.nodes[todo.pop()]
            seen += 1
            if row[0] == "not":
                todo.append(row[1])
            elif row[0] == "bool":
                todo += row[2]
            elif row[0] != "call" or row[2] or row[3] or not str(module.last_name(row[1])).startswith("is_"):
                return True
        return bool(todo)


__all__ = ["Earlier", "Point"]
