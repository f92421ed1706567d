"""Schedules of the learning rate: the calls that step them, the optimizers they change, and the calls that step
those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import loops_above
from ldlm_lint.concepts.read_before import Earlier
from ldlm_lint.concepts.updates import Updates
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module

_TORCH = "torch.optim.lr_scheduler."
_MAKERS = ("transformers.get_", "transformers.optimization.get_", "diffusers.optimization.get_")
_PLATEAU = "ReduceLROnPlateau"
_OPTIMIZERS = "torch.optim."
_LEVELS = 6
_MOST = 200
"""Functions below a call that are looked at."""
_ROWS = 30
_GROWS = frozenset({"Gt", "GtE", "Lt", "LtE", "NotEq"})
# For an unknown object only its name is known.
_OPTIMIZER = lazily(r"optim|(?:^|_)opt(?:_|\d|$)|scaler", re.I)


class EarlyStep(NamedTuple):
    """A schedule (``step``: the call) that is stepped, in each round of a loop, before the call that steps its optimizer."""

    step: int
    site: int
    optimizer: int


class Schedules(Concept):
    """The schedules of torch whose optimizers the program shows."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._ask = code.ask
        self._program = code.ask.program
        self._order = Earlier(lambda _: False, lambda call: self._may_step_optimizer(call.key))

    @cached_property
    def _updates(self) -> Updates:
        return Updates(self._program)

    def early(self) -> Iterator[EarlyStep]:
        """The steps of schedules that come too early."""
        for step in self._program.calls.get("step", ()):
            optimizers = self._optimizers_behind(step)
            if optimizers:
                found = self._in_loop_above(step, optimizers)
                if found is not None:
                    yield EarlyStep(step, *found)

    def stepping_below(self, call: int, *, optimizer: bool) -> int | None:
        """The call that steps an optimizer, or else a schedule, in a function that a call goes to, from the first
        iteration of its loop on."""
        return self._below(call, self._is_optimizer_step if optimizer else self._is_schedule_step, set())

    def _below(self, call: int, is_one: Callable[[int], bool], seen: set[int]) -> int | None:
        self._program.ask(call)
        for function in sorted(self._program.targets_of.get(call, ())):
            if function in seen or len(seen) >= _MOST:
                continue
            seen.add(function)
            module = self._program.module_of(function)
            inside = [module.base | one for one in module.scopes[function & MASK].calls]
            for one in inside:
                if is_one(one) and not self._waits(module, module.table.sites[one & MASK].guard):
                    return one
            for one in inside:
                found = self._below(one, is_one, seen)
                if found is not None:
                    return found
        return None

    def _is_optimizer_step(self, call: int) -> bool:
        module, receiver = self._stepped(call)
        if module is None:
            return False
        value = self._program.ask(module.base | receiver)
        made = [fields[1] for fields in self._program.atoms.kinds(value, "o")]
        owners = [fields[1] for kind in ("i", "self") for fields in self._program.atoms.kinds(value, kind)]
        if made or owners:
            outside = {name for owner in owners for name in self._program.outside_of(owner)}
            return any(map(_is_optimizer, {*made, *outside})) or any(name.endswith("GradScaler") for name in made)
        return _OPTIMIZER.search(module.last_name(receiver)) is not None

    def _is_schedule_step(self, call: int) -> bool:
        module, receiver = self._stepped(call)
        if module is None or module.nodes[call & MASK][2]:
            return False
        made = [fields[1] for fields in self._program.atoms.kinds(self._program.ask(module.base | receiver), "o")]
        return any(map(_is_schedule, made)) if made else "sched" in module.last_name(receiver).lower()

    def _stepped(self, call: int) -> tuple[Module | None, int]:
        """The module of a call of ``step`` with the row of its object; None for another call."""
        module = self._program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        return (module, function[1]) if function[0] == "attr" and function[2] == "step" else (None, 0)

    @staticmethod
    def _waits(module: Module, guard: int) -> bool:
        """Whether code is under a test for a later step or epoch: ``if iteration > 1``."""
        while guard >= 0:
            held = module.table.guards[guard]
            if held.kind in ("if", "rest") and any(_counts(module, row) for row in _rows_of(module, held.test)):
                return True
            guard = held.parent
        return False

    def _optimizers_behind(self, step: int) -> frozenset[int]:
        """The optimizers (the calls that make them) that a schedule changes; empty if a call steps no schedule of
        torch."""
        module = self._program.module_of(step)
        row = module.nodes[step & MASK]
        function = module.nodes[row[1]]
        if function[0] != "attr" or row[2] or row[3]:
            return frozenset()
        receiver = self._program.ask(module.base | function[1])
        made = self._program.atoms.kinds(receiver, "o")
        if not made or len(made) != len(receiver) or not all(_is_schedule(fields[1]) for fields in made):
            return frozenset()
        given = [one for fields in made if fields[2] for one in self._ask.argument(fields[2], "optimizer", 0).sources]
        return frozenset(one for source in given for one in self._optimizers(source))

    def _optimizers(self, key: int) -> set[int]:
        return {fields[2] for fields in self._program.atoms.kinds(self._program.ask(key), "o") if _is_optimizer(fields[1])}

    def _in_loop_above(self, step: int, optimizers: frozenset[int]) -> tuple[int, int] | None:
        """The call in the innermost loop around a step that leads to it, and the one that steps the optimizer after
        it.
        """
        call = step
        for _ in range(_LEVELS):
            module = self._program.module_of(call)
            site = module.table.sites[call & MASK]
            if not self._is_plain(module, site.guard, module.table.loops[site.loop].guard if site.loop >= 0 else -1):
                return None
            if site.loop >= 0:
                behind = self._behind(module, call & MASK, optimizers)
                return None if behind is None else (call, behind)
            edges = self._program.callers(module.base | site.scope) if site.scope else []
            if len(edges) != 1:
                return None
            call = edges[0].call
        return None

    @staticmethod
    def _is_plain(module: Module, guard: int, outer: int) -> bool:
        """Whether no condition exists between a guard and an outer one."""
        while guard >= 0 and guard != outer:
            if module.table.guards[guard].kind != "with":
                return False
            guard = module.table.guards[guard].parent
        return True

    def _behind(self, module: Module, call: int, optimizers: frozenset[int]) -> int | None:
        """The call that steps one of the optimizers after another call in a loop; None if one before it may."""
        site = module.table.sites[call]
        inside = [one for one in module.scopes[site.scope].calls if site.loop in (-1, *loops_above(module.table.loops, module.table.sites[one].loop))]
        before = (one for one in inside if module.table.sites[one].end <= site.place)
        if any(self._order.may_end(Call(self.code, module.base | one)) for one in before):
            return None
        stepping = Earlier(lambda one: self._steps(one.key, optimizers), lambda _: False)
        for one in inside:
            if module.table.sites[one].place >= site.end:
                found = stepping.run_by(Call(self.code, module.base | one))
                if found is not None:
                    return found.key
        return None

    def _steps(self, call: int, optimizers: frozenset[int]) -> bool:
        """Whether a call steps one of the optimizers, directly or through a scaler of gradients."""
        module = self._program.module_of(call)
        row = module.nodes[call & MASK]
        function = module.nodes[row[1]]
        if function[0] != "attr" or function[2] != "step":
            return False
        return any(not optimizers.isdisjoint(self._optimizers(module.base | one)) for one in (function[1], *row[2][:1]))

    def _may_step_optimizer(self, call: int) -> bool:
        module = self._program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        return function[0] == "attr" and function[2] == "step" and not self._updates.steps_schedule(call)


def _rows_of(module: Module, test: int) -> Iterator[Node]:
    todo, seen = [test], 0
    while todo and seen < _ROWS:
        row = module.nodes[todo.pop()]
        seen += 1
        yield row
        todo += row[2] if row[0] == "bool" else [row[2], *row[3]] if row[0] == "cmp" else [row[1]] if row[0] in ("not", "copy") else ()


def _counts(module: Module, row: Node) -> bool:
    """Whether a part of a test compares a number that grows, or takes a remainder."""
    if row[0] == "cmp":
        sides = [module.nodes[one] for one in (row[2], *row[3])]
        texts = any(side[0] == "const" and (side[1] is None or isinstance(side[1], str)) for side in sides)
        return not texts and not _GROWS.isdisjoint(row[1])
    return row[:2] == ("op", "Mod")


def _is_schedule(name: str) -> bool:
    return (name.startswith(_TORCH) and not name.endswith(_PLATEAU)) or (name.startswith(_MAKERS) and "schedule" in name)


def _is_optimizer(name: str) -> bool:
    return name.startswith(_OPTIMIZERS) and not name.startswith(_TORCH)


__all__ = ["EarlyStep", "Schedules"]
