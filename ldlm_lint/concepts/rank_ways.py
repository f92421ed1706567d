"""How the ranks of a training come to a call: from where they start, through which calls, and who is let through on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.concepts.rank_tests import RankTests, Who
from ldlm_lint.notebooks import is_notebook
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Function

_ENTRIES = frozenset({"main", "cli_main"})


class Way(NamedTuple):
    """Where ranks start, and the calls on the way, the last one first."""

    start: Function
    calls: tuple[Call, ...]

    @property
    def shown(self) -> Call | None:
        """The call that shows the way: the last one, or the first that may go to several functions, since all ranks come there."""
        undecided = (one for one in reversed(self.calls) if len(one.targets) > 1)
        return next(undecided, self.calls[0] if self.calls else None)


class RankWays(Concept):
    """The ways of a program's ranks."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._tests = code[RankTests]
        self._joining: dict[Function, bool] = {}

    def to(self, call: Call, *, of_nodes: bool = False) -> Iterator[Way]:
        """The ways by which every rank comes to the function of a call, or the first of each node, and what they pass on may
        lead to the call."""
        return (way for way in self._up(call.function, (call,), {call.function}, of_nodes) if self._joins(way.start))

    def _up(self, function: Function, below: tuple[Call, ...], seen: set[Function], of_nodes: bool) -> Iterator[Way]:
        if function.is_module:
            # The cells of a notebook run in one process.
            if not is_notebook(self.code.path(function.module)):
                yield Way(function, below[1:])
            return
        for call in function.callers:
            is_way = call.function not in seen and self._lets(call, of_nodes) and not self._may_test_rank(call, function)
            if is_way and self.code.may_lead([*below, call]):
                seen.add(call.function)
                yield from self._up(call.function, (*below, call), seen, of_nodes)
        is_entry = not function.callers and function.owner is None and function.name in _ENTRIES
        if is_entry or any(self._lets(call, of_nodes) and _hands_on(call, function) for call in function.callers):
            yield Way(function, below[1:])

    def _lets(self, call: Call, of_nodes: bool) -> bool:
        who = self._tests.reach(call).who
        return who in (Who.EVERY, Who.OTHERS) or (of_nodes and who is Who.NODES)

    def _may_test_rank(self, call: Call, function: Function) -> bool:
        """Whether a call may go to the method of another class that makes one of its calls on one rank: which class the ranks
        use is not known."""
        others = [one for one in call.targets if one != function and one.name == function.name]
        own = {one.called_name for one in function.calls}
        return any(self._tests.reach(one).who is Who.ONE for other in others for one in other.calls if one.called_name in own or "save" in one.called_name)

    def _joins(self, start: Function) -> bool:
        """Whether what runs from a function on trains, and joins a process group."""
        if start not in self._joining:
            scope = ".".join(reversed([one.name for one in start.enclosing]))
            self._joining[start] = self.code.trainings.start_ranks_at(self.code.path(start.module), scope)
        return self._joining[start]


def _hands_on(call: Call, function: Function) -> bool:
    """Whether a call gives a function to what starts processes with it, or to code that is not seen: ``spawn(work)``."""
    return function not in call.callee.targets_if_called or any(one.is_of_process and one.place == call.place for one in call.function.calls)


__all__ = ["RankWays", "Way"]
