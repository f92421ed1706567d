"""Settings of torch that hold for a whole process, where code makes them, and whether each training does.

    torch.backends.cudnn.deterministic = True       torch.use_deterministic_algorithms(True)

A setting under a condition is the choice of a user, unless the condition only asks for the hardware or for the process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.training_loops import TrainingLoops
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot

_OF_COURSE = frozenset(
    {
        *("torch.cuda.is_available", "torch.backends.cudnn.enabled", "torch.backends.cudnn.is_available"),
        *("torch.cuda.device_count", "torch.distributed.get_rank"),
    }
)
_TRAINS = frozenset({"fit", "train"})


class ProcessSetting(NamedTuple):
    """A place that sets something for the whole process: its dotted name, the value, and the call if it is one."""

    name: str
    value: Expr | None
    spot: Spot
    call: Call | None = None

    @property
    def module(self) -> Module:
        """The file that it is in."""
        return self.spot.function.module


class ProcessSettings(Concept):
    """The settings of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._always: dict[Function, bool] = {}

    def made(self, attributes: Collection[str], functions: Collection[str] = ()) -> list[ProcessSetting]:
        """Those of some attributes of torch's modules and by some of its functions, by dotted names, in order."""
        found = [*self._written(attributes), *self._called(functions)]
        return sorted(found, key=lambda one: (one.module.path, one.spot.place))

    def by_function(self, attributes: Collection[str], functions: Collection[str] = ()) -> list[list[ProcessSetting]]:
        """The same, those of each function together."""
        found: dict[Function, list[ProcessSetting]] = {}
        for one in self.made(attributes, functions):
            found.setdefault(one.spot.function, []).append(one)
        return list(found.values())

    def _written(self, attributes: Collection[str]) -> Iterator[ProcessSetting]:
        for name in sorted({one.rpartition(".")[2] for one in attributes}):
            for write in self.code.sets_of(name):
                owners = write.base.outside_names
                if len(owners) == 1 and f"{min(owners)}.{name}" in attributes:
                    yield ProcessSetting(f"{min(owners)}.{name}", write.value, write.spot)

    def _called(self, functions: Collection[str]) -> Iterator[ProcessSetting]:
        for call in self.code.calls(functions) if functions else ():
            if call.callee.count_of_values == 1:
                value = next(iter(call.arguments), None)
                yield ProcessSetting(min(call.callee.outside_names), value, call.spot, call)

    def are_always_made(self, spot: Spot) -> bool:
        """Whether each run of a training makes a setting: no choice of a user decides about the place, or about the calls
        that lead to it from what trains."""
        return not _is_chosen(spot.guards) and self._is_always_run(spot.function)

    def trains_by(self, call: Call) -> bool:
        """Whether a call trains: it leads to a training, or lets a framework do it."""
        return _hands_to_trainer(call) or any(map(self.code[TrainingLoops].are_below, call.targets))

    def _is_always_run(self, function: Function) -> bool:
        if function not in self._always:
            # What only leads to itself does not run.
            self._always[function] = False
            self._always[function] = self._trains(function) or any(
                not _is_chosen(call.guards) and self._is_always_run(call.function) for call in function.callers
            )
        return self._always[function]

    def _trains(self, function: Function) -> bool:
        """Whether a function leads to a training; a module also if one that trains imports it."""
        if function.is_module:
            return function.module in self._training_modules
        return self.code[TrainingLoops].are_below(function) or any(map(_hands_to_trainer, function.calls))

    @cached_property
    def _training_modules(self) -> frozenset[Module]:
        """The modules that train, and those that run when one of them is imported."""
        trainings = self.code.trainings
        training = [one for one in self.code.modules if trainings.start_in(self.code.path(one))]
        return frozenset(training).union(*map(self.code.imported_by, training))


def _is_chosen(guards: Iterable[Guard]) -> bool:
    """Whether a choice of a user decides about a place."""
    return any(guard.is_test and guard.ends != "after raise" and not _is_of_course(guard.test) for guard in guards)


def _is_of_course(test: Expr) -> bool:
    """Whether a test asks for the hardware, or for the program or process."""
    return any(one.outside_names & _OF_COURSE or one.name == "__name__" for one in test.within)


def _hands_to_trainer(call: Call) -> bool:
    """Whether a call lets the Trainer of a framework train."""
    makers = call.receiver.made_by if call.receiver is not None and call.called_name in _TRAINS else ()
    return any(one.endswith("Trainer") for one in makers)


__all__ = ["ProcessSetting", "ProcessSettings"]
