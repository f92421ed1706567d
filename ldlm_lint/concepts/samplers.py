"""Distributed samplers that shuffle by an epoch which trainings never set: every epoch then has the same order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ldlm_lint.concepts.epochs import Epochs
from ldlm_lint.concepts.loader_passes import LoaderPasses, Pass
from ldlm_lint.concepts.loaders import Loaders, is_named_for_evaluation
from ldlm_lint.concepts.programs import Programs, Start
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Function
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.loaders import DISTRIBUTED_SAMPLERS

_TAKES_OVER = frozenset({"accelerate.Accelerator", "accelerate.accelerator.Accelerator", "torchdata.stateful_dataloader.StatefulDataLoader"})
_TAKES_OVER_BY_NAME = ("Accelerator", "setup_dataloaders", "prepare_dataloader", "StatefulDataLoader")
_PACKAGES = frozenset({"pytorch_lightning", "lightning", "composer", "colossalai"})
"""Frameworks that call ``set_epoch`` on the samplers of their loaders."""
_COUNTED = ("epoch", "pass", "round")


@dataclass(frozen=True)
class Neglect:
    """A sampler, by the call that makes it, and the training passes whose programs never set its epoch.

    ``everywhere`` is False if another training that uses the sampler does. ``is_sure``: it surely shuffles.
    """

    sampler: Call
    passes: tuple[Pass, ...]
    everywhere: bool
    is_sure: bool


class Samplers(Concept):
    """The distributed samplers of a codebase."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._loaders = code[Loaders]
        self._programs = code[Programs]

    @cached_property
    def neglected(self) -> list[Neglect]:
        """The shuffling samplers whose epoch a training does not set."""
        return [found for call in self.code.calls(DISTRIBUTED_SAMPLERS) if (found := self._neglect(call)) is not None]

    def _neglect(self, sampler: Call) -> Neglect | None:
        if any(map(_counts_epochs_itself, sampler.callee.classes)) or (sampler.callee.kind == "attr" and sampler.callee.name == "__init__"):
            return None
        shuffle = sampler.argument("shuffle", 3)
        values = shuffle.may_be() if shuffle.values else None
        is_off = shuffle.is_open or (values is not None and any(value is not True and value != 1 for value in values.constants))
        if is_off or is_named_for_evaluation(sampler, sampler.argument("dataset", 0).values):
            return None
        told, untold = False, list[Pass]()
        for one in self._training_passes(sampler):
            known = [self._is_told(start, sampler, one.function) for start in self._programs_of(one, sampler)]
            told |= any(known)
            untold += [one] if not all(known) else []
        is_sure = shuffle.is_absent or (values is not None and values.only is True)
        untold.sort(key=lambda one: (one.function.module.path, one.spot.place))
        return Neglect(sampler, tuple(untold), not told, is_sure) if untold else None

    def _training_passes(self, sampler: Call) -> Iterator[Pass]:
        """The passes that go through a loader with a sampler repeatedly, and train on it."""
        for loader in self._loaders.shown:
            given = [value for name in ("sampler", "batch_sampler") for value in self._loaders.option(loader, name).values]
            if any(sampler in self.code.iterated.made_by(one) for one in given):
                yield from self.code[LoaderPasses].trained_again(loader.call)

    def _programs_of(self, one: Pass, sampler: Call) -> Iterator[Start]:
        """The programs that come to a pass and to the call that makes a sampler, by the files that they start in."""
        functions = self.code[LoaderPasses].training_on(one) or [one.function]
        starts = {start for function in functions for start in self._programs.of(function)}
        for start in sorted(starts, key=lambda start: start.path if start is not None else ""):
            if self._may_come_to(sampler.function, start, one.function.module):
                yield start

    def _may_come_to(self, function: Function, start: Start, file: Module) -> bool:
        """Whether the program that begins in a script may run a function; for another one, whether the file of a pass is near."""
        if start is not None and start in self._programs.scripts:
            return self._programs.may_come_to(function, start)
        return function.module in self.code.modules_near(start or file)

    def _is_told(self, start: Start, sampler: Call, within: Function) -> bool:
        """Whether a program sets the epoch anywhere, or leaves it to a framework."""
        near = {start or within.module, sampler.module, within.module}
        if any(module in self._taking_over or _PACKAGES & _imported(module) for module in near):
            return True
        return any(self._may_come_to(one, start, within.module) for one in self._telling)

    @cached_property
    def _taking_over(self) -> set[Module]:
        return {call.module for call in (*self.code.calls(_TAKES_OVER), *self.code.calls_named(*_TAKES_OVER_BY_NAME))}

    @cached_property
    def _telling(self) -> set[Function]:
        """The functions that set the epoch of something: a wrapper's own method passes it on, and must still be called."""
        constant = self.code[Epochs].constant
        calls = {call for call in self.code.calls_named("set_epoch") if call.function.name != "set_epoch"}
        told = {call.function for call in calls if call not in constant and not _is_never_given(call)}
        got = (call for call in self.code.calls_named("getattr") if any(one.constant == "set_epoch" for one in call.positional))
        written = (one for one in self.code.sets_of("epoch") if "sampler" in one.base.plain.name.lower())
        return told | {call.function for call in got} | {one.base.function for one in written}


def _is_never_given(call: Call) -> bool:
    """Whether the receiver of a call is a parameter that is None by default, and that no known call gives."""
    receiver = call.receiver.plain if call.receiver is not None else None
    if receiver is None or receiver.kind != "param":
        return False
    function = receiver.function
    default = function.default(receiver.name)
    if default is None or default.constant is not None or not function.callers or function.has_unknown_callers:
        return False
    return all(caller.argument_for(function.parameters[receiver.name]).is_absent for caller in function.callers)


def _counts_epochs_itself(owner: Class) -> bool:
    """Whether a class of the project shuffles by no epoch of its caller: it has one pass, counts, or has its own order."""
    init = next(iter(owner.methods("__init__")), None)
    default = init.default("shuffle") if init is not None else None
    if owner.methods("set_epoch") or (default is not None and default.constant is False):
        return True
    own = [function for one in owner.bases for function in one.own_methods]
    if any(_counts(function) for function in own if function.name != "__init__"):
        return True
    iterates = [function for function in own if function.name == "__iter__"]
    reads = any("epoch" in one.name for one in owner.reads)
    return bool(iterates) and (any(map(_is_endless, iterates)) or not (reads or any(map(_asks_base, iterates))))


def _counts(function: Function) -> bool:
    return any(write.base.is_self and any(word in write.name for word in _COUNTED) for write in function.writes)


def _is_endless(function: Function) -> bool:
    return any(loop.kind == "while" and loop.value.kind == "const" for loop in function.loops)


def _asks_base(function: Function) -> bool:
    return any(call.called_name == "__iter__" and call.receiver is not None and call.receiver.last_name == "()super" for call in function.calls)


def _imported(module: Module) -> set[str]:
    return {name.partition(".")[0] for name, _, _, _ in module.shown.imports}


__all__ = ["Neglect", "Samplers"]
