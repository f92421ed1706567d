"""The execution order of the waits of one training step, how often each runs, and which have nothing left to wait for
after an earlier one.

The order is that of evaluation: of rows in a function's table, and along the calls that lead from the step to a
function.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import loops_above
from ldlm_lint.concepts.launching import Launching
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import DEVICE, MASK, MAY_BE_ON_DEVICE, PARAMETERS
from ldlm_lint.program.handles import Call, Function
from ldlm_lint.program.modules import Module

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View

_ASKED_LATER = frozenset({"cmp", "op", "un"})


class Row(NamedTuple):
    """An expression of a function: its module, the function's key, the row, the innermost loop and guard around it (-1: none)."""

    module: Module
    function: int
    number: int
    loop: int
    guard: int


def _row_of(call: Call) -> Row:
    site = call.module.table.sites[call.key & MASK]
    return Row(call.module, call.function.key, call.key & MASK, site.loop, site.guard)


class WaitOrder:
    """Answers for the rows at which a project's steps wait."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._program = view.program
        self._launching = Launching(view.program)
        self._rows: dict[int, dict[int, int]] = {}
        self._events: dict[int, dict[int, tuple[int, int]]] = {}

    def row_at(self, path: str, offset: int) -> Row | None:
        """The outermost expression that begins at an offset of a file; None in a file outside of all trainings."""
        module = self._view.module(path)
        if module is None:
            return None
        place = self._view.place_at(module, offset)
        if module.index not in self._rows:
            self._rows[module.index] = {at: number for number, at in enumerate(module.table.places)}
        number = self._rows[module.index].get(place)
        if number is None:
            return None
        function = self._view.function_at(module, place)
        loop, guard = self._standing(module, function, number)
        return Row(module, function, number, loop, guard)

    def _standing(self, module: Module, function: int, number: int) -> tuple[int, int]:
        """The loop and the guard around a row: its own if it is a call or an event, else those of the previous call."""
        site = module.table.sites.get(number)
        if site is not None:
            return site.loop, site.guard
        if function not in self._events:
            self._events[function] = {event[1]: (event[2], event[3]) for event in module.scopes[function & MASK].events if event[0] != "write"}
        return self._events[function].get(number, (-1, -1))

    def path(self, row: Row) -> tuple[int, ...]:
        """The sort key for the waits of a step: the rows of the calls that lead from the step to a row, and the row."""
        return (*(one.number for one in self._way(row)), row.number)

    def _way(self, row: Row) -> list[Row]:
        """The calls that lead from a step to the function of a row, the one in the step first."""
        return [_row_of(call) for call in self._view[Reach].way_to(Function(self._view, row.function))]

    def step(self, row: Row) -> tuple[Module, int] | None:
        """The beginning of the step that a row runs in: its loop, or the function that is a step; None if no step is
        known."""
        top = next(iter(self._way(row)), row)
        steps = self._view[Steps].loops.get(top.function)
        if steps is None:
            return None
        loops = top.module.table.loops
        loop = next((one for one in loops_above(loops, top.loop) if one in steps), None)
        if loop is not None:
            return top.module, loops[loop].place
        return (top.module, top.module.scopes[top.function & MASK].place) if None in steps else None

    def frequency(self, row: Row) -> tuple[str, tuple[Module, int] | None]:
        """The unit per which a row runs once in a step, and the place of the loop that repeats it: the innermost one
        decides."""
        for one in (row, *reversed(self._way(row))):
            for loop in self._inner_loops(one):
                return self._kind(one.module, loop), (one.module, one.module.table.loops[loop].place)
        return "step", None

    def _inner_loops(self, row: Row) -> Iterator[int]:
        """The loops around a row that a step repeats, innermost first."""
        steps = self._view[Steps].loops.get(row.function, ())
        return takewhile(lambda loop: loop not in steps, loops_above(row.module.table.loops, row.loop))

    def _kind(self, module: Module, number: int) -> str:
        """The kind of a loop's iterable, by its values: the layers of a model, parameters, the samples of a tensor, or
        anything else."""
        loop, program = module.table.loops[number], self._program
        if not loop.value or loop.kind == "while":
            return "pass"
        iterated = program.ask(module.base | loop.value)
        if PARAMETERS in iterated:
            return "parameter"
        if DEVICE in iterated:
            return "sample"
        element = next((at for at, row in enumerate(module.nodes) if row[0] == "elem" and row[1] == loop.value), None)
        taken = program.ask(module.base | element) if element is not None else frozenset()
        owners = [fields[1] for kind in ("i", "self") for fields in program.atoms.kinds(taken, kind)]
        if owners and all(program.is_module(owner) for owner in owners):
            return "layer"
        return "sample" if self._counts_samples(module, loop.value) else "pass"

    def _counts_samples(self, module: Module, number: int) -> bool:
        """Whether a loop runs over ``range(len(tensor))``, ``range(x.shape[0])`` or ``range(x.size(0))``."""
        row = module.plain(number)
        if row[0] != "call" or module.plain(row[1])[-1] != "range" or len(row[2]) != 1:
            return False
        count = module.plain(row[2][0])
        if count[0] == "item" and module.plain(count[2]) == ("const", 0):
            shape = module.plain(count[1])
            return shape[0] == "attr" and shape[2] == "shape" and self._on_device(module, shape[1])
        if count[0] != "call" or (not count[2] and module.plain(count[1])[-1] != "size"):
            return False
        function = module.plain(count[1])
        if function == ("attr", function[1], "size") and count[2] and module.plain(count[2][0]) == ("const", 0):
            return self._on_device(module, function[1])
        return function[0] == "free" and function[2] == "len" and self._on_device(module, count[2][0])

    def _on_device(self, module: Module, number: int) -> bool:
        return bool(self._program.ask(module.base | number) & MAY_BE_ON_DEVICE)

    def follows(self, earlier: Row, later: Row) -> bool:
        """Whether Python has nothing left to wait for at ``later`` after waiting at ``earlier`` in the same iteration:
        both are in one function and loop, the earlier one runs whenever the later one does, and all that is launched between
        them reads its tensors once, ``losses["a"].mean().item()``: there is no work that Python had queued ahead."""
        if earlier.function != later.function or earlier.loop != later.loop or earlier.number >= later.number:
            return False
        if not self._stands_under(later, earlier.guard):
            return False
        # A comparison is launched before its truth value is read; the selection by a mask is copied after the wait.
        is_asked_later = later.module.nodes[earlier.number][0] in _ASKED_LATER
        first = earlier.number + 1 if is_asked_later else earlier.number
        launched = (at for at in range(first, later.number + 1) if self._launching.launches(later.module, at))
        return all(self._launching.is_small(later.module, at) for at in launched)

    @staticmethod
    def _stands_under(row: Row, guard: int) -> bool:
        current = row.guard
        while current != guard and current >= 0:
            current = row.module.table.guards[current].parent
        return current == guard


__all__ = ["Row", "WaitOrder"]
