"""Measured code: stretches of a step between two reads of a clock whose difference is taken."""

from __future__ import annotations

from ldlm_lint.code.table import loops_above
from ldlm_lint.program.atoms import MAY_BE_ON_DEVICE
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot

CLOCKS = frozenset(
    f"time.{name}" for name in ("time", "perf_counter", "monotonic", "process_time", "perf_counter_ns", "monotonic_ns", "time_ns")
) | frozenset({"timeit.default_timer"})
_EVENTS = ("torch.cuda.Event", "torch.xpu.Event", "torch.npu.Event", "torch.mps.Event")
_TIMES = frozenset({"record", "elapsed_time"})
_WAITS = frozenset({"item", "tolist", "cpu"})


class Measuring(Concept):
    """The clocks of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)


    def measures(self, spot: Spot) -> bool:
        """Whether code is in a measured section of its function."""
        module, sites = spot.function.module, spot.function.module.table.sites
        sections = self.measured_sections(module, spot.function.key - module.base)
        return any(sites[earlier].place < spot.place < sites[later].place for earlier, later in sections)

    def measured_sections(self, module: Module, scope: int) -> list[tuple[int, int]]:
        """The stretches between two reads of a clock in a function whose difference is taken: the reads' rows, in order."""
        found = []
        for row in module.nodes:
            if row[0] == "op" and row[1] == "Sub":
                later = self._read(module, row[2])
                earlier = self._read(module, row[3], module.table.sites[later].loop if later else -1)
                if later and earlier and module.table.sites[later].scope == scope == module.table.sites[earlier].scope:
                    found.append((earlier, later))
        return found

    def _read(self, module: Module, number: int, loop: int = -1) -> int:
        """The clock call that a value comes from; 0 for anything else. A read in the previous iteration of a ``loop``
        counts."""
        for _ in range(8):
            row = module.nodes[number]
            if row[0] == "copy":
                number = row[1]
            elif row[0] == "phi" and loop >= 0:
                read = (found for one in row[1] if (found := self._read(module, one)) and module.table.sites[found].loop == loop)
                return next(read, 0)
            elif row[0] == "call" and self.reads_clock(module, number):
                return number
            else:
                break
        return 0

    def reads_clock(self, module: Module, call: int) -> bool:
        """Whether a call reads a clock."""
        functions = self.program.ask(module.base | module.nodes[call][1])
        return any(fields[1] in CLOCKS for fields in self.program.atoms.kinds(functions, "x"))

    def is_measured(self, module: Module, call: int) -> bool:
        """Whether a wait is in a measured section of its step, and nothing between it and the second read waits as
        well.

        Without the wait the figure would be that of launching kernels.
        """
        site = module.table.sites[call]
        for earlier, later in self.measured_sections(module, site.scope):
            first, second = module.table.sites[earlier], module.table.sites[later]
            if first.loop != second.loop or (site.loop >= 0 and first.loop not in (-1, *loops_above(module.table.loops, site.loop))):
                continue
            # A clock that is read after the other one was read in the round before.
            if call < later and (earlier < call or earlier >= later):
                return not self._waits_between(module, call, later)
            if self._wait_starts(module, call, earlier):
                return True
        return self._times_events(module, site.scope)

    def _waits_between(self, module: Module, call: int, later: int) -> bool:
        """Whether a value of the device is read after a wait and before the clock: it waits by itself."""
        between = [module.nodes[module.nodes[one][1]] for one in module.table.sites if call < one < later]
        reads = [function[1] for function in between if function[0] == "attr" and function[2] in _WAITS]
        return any(self.program.ask(module.base | one) & MAY_BE_ON_DEVICE for one in reads)

    @staticmethod
    def _wait_starts(module: Module, call: int, earlier: int) -> bool:
        """Whether a wait is right before a clock is read: the work before it is not part of the measurement."""
        between = [one for one in module.table.sites if call < one < earlier]
        return call < earlier and not between

    def _times_events(self, module: Module, scope: int) -> bool:
        """Whether a function records or compares events of the device: a wait makes their difference right."""
        for call in module.scopes[scope].calls:
            function = module.nodes[module.nodes[call][1]]
            if function[0] == "attr" and function[2] in _TIMES:
                receiver = self.program.ask(module.base | function[1])
                if any(fields[1] in _EVENTS for fields in self.program.atoms.kinds(receiver, "o")):
                    return True
        return False
