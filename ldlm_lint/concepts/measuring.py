"""Measured code: stretches of a step between two reads of a clock whose difference is taken."""

from __future__ import annotations

from ldlm_lint.program.atoms import MAY_BE_ON_DEVICE
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function, Loop
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.walks import reached

CLOCKS = frozenset(
    f"time.{name}" for name in ("time", "perf_counter", "monotonic", "process_time", "perf_counter_ns", "monotonic_ns", "time_ns")
) | frozenset({"timeit.default_timer"})
_EVENTS = frozenset({"torch.cuda.Event", "torch.xpu.Event", "torch.npu.Event", "torch.mps.Event"})
_TIMES = frozenset({"record", "elapsed_time"})
_WAITS = frozenset({"item", "tolist", "cpu"})


class Measuring(Concept):
    """The clocks of a program."""

    @staticmethod
    def reads_clock(call: Call) -> bool:
        """Whether a call reads a clock."""
        return not CLOCKS.isdisjoint(call.callee.outside_names)

    def measures(self, spot: Spot) -> bool:
        """Whether code is in a measured section of its function."""
        return any(earlier.spot.place < spot.place < later.spot.place for earlier, later in self.sections(spot.function))

    def sections(self, function: Function) -> list[tuple[Call, Call]]:
        """The stretches between two reads of a clock in a function whose difference is taken: the reads, in order."""
        found = []
        for later in filter(self.reads_clock, function.calls):
            for at in reached([later], lambda one: [user for user in one.users if user.kind == "copy"]):
                subtracted = [user.operands[1] for user in at.users if user.operator == "Sub" and user.operands[0] == at]
                earlier = (self._read(one, next(iter(later.loops), None)) for one in subtracted)
                found += [(one, later) for one in earlier if one is not None and one.function == function]
        return found

    def _read(self, expr: Expr, loop: Loop | None) -> Call | None:
        """The clock call that a value comes from. A read in the previous iteration of a loop counts."""
        at = expr.unnamed
        if isinstance(at, Call):
            return at if self.reads_clock(at) else None
        ways = at.ways if at.kind == "phi" and loop is not None else []
        reads = (read for one in ways if one.unnamed.kind != "phi" and (read := self._read(one, None)) is not None)
        return next((read for read in reads if read.loops[:1] == [loop]), None)

    def is_measured(self, call: Call) -> bool:
        """Whether a wait is in a measured section of its step, and nothing between it and the second read waits as
        well.

        Without the wait the figure would be that of launching kernels.
        """
        for earlier, later in self.sections(call.function):
            if earlier.loops != later.loops or (call.loops and not set(earlier.loops[:1]) <= set(call.loops)):
                continue
            # A clock that is read after the other one was read in the round before.
            if call.precedes(later) and (earlier.precedes(call) or not earlier.precedes(later)):
                return not _waits_between(call, later)
            if call.precedes(earlier) and not _between(call, earlier):
                # The work before the wait is not part of the measurement.
                return True
        return any(map(_times_events, call.function.calls))


def _between(one: Call, other: Call) -> list[Call]:
    return [call for call in one.function.calls if one.precedes(call) and call.precedes(other)]


def _waits_between(call: Call, later: Call) -> bool:
    """Whether a value of the device is read after a wait and before the clock: it waits by itself."""
    reads = (one.receiver for one in _between(call, later) if one.callee.name in _WAITS)
    return any(receiver is not None and receiver.value & MAY_BE_ON_DEVICE for receiver in reads)


def _times_events(call: Call) -> bool:
    """Whether a call records or compares events of the device: a wait makes their difference right."""
    return call.callee.name in _TIMES and call.receiver is not None and not _EVENTS.isdisjoint(call.receiver.made_by)


__all__ = ["CLOCKS", "Measuring"]
