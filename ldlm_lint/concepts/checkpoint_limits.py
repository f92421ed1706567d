"""Writers of frameworks that number checkpoints themselves: which of them nothing limits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.concepts.lightning_rhythm import LightningRhythm
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.concepts.training_loops import TrainingLoops
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Argument, Call, Expr
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.walks import Through
from ldlm_lint.vocabulary.kept_checkpoints import HANDFUL

_PROJECTS = frozenset(f"accelerate.{module}ProjectConfiguration" for module in ("", "utils.", "utils.dataclasses."))
_ENGINE = "deepspeed.initialize"
_HELD = Through.NAMES | Through.PARAMETERS | Through.ATTRIBUTES | Through.OUTSIDE
_CALLBACKS = frozenset(
    f"{package}.callbacks.{module}ModelCheckpoint"
    for package in ("pytorch_lightning", "lightning", "lightning.pytorch")
    for module in ("", "model_checkpoint.")
)
_PERIODIC = frozenset(
    f"{module}.PeriodicCheckpointer"
    for module in ("fvcore.common.checkpoint", "detectron2.checkpoint", "detectron2.checkpoint.detection_checkpoint", "detectron2.engine.hooks")
)
KEEP_BEST = "save_top_k"
"""How many checkpoints Lightning's callback keeps: -1 is all."""


class Repeated(NamedTuple):
    """A save in a training loop, and where that is."""

    save: Call
    loop: Spot


class CheckpointLimits(Concept):
    """Answers for the calls of a program."""

    def numbered_by_step(self) -> Iterator[Repeated]:
        """The saves of DeepSpeed's engine, which names a checkpoint after the step if no tag is given."""
        for call in self.code.calls_named("save_checkpoint"):
            if call.arguments and call.argument("tag", 1).is_absent and call.receiver is not None and any(map(_is_engine, call.receiver.origins(_HELD))):
                yield from self._kept([call])

    def numbered_by_accelerate(self) -> Iterator[tuple[Call, Repeated]]:
        """The configurations by which Accelerate numbers checkpoints and keeps them all, each with a save."""
        for call in self.code.calls(_PROJECTS):
            if call.argument("automatic_checkpoint_naming").only is True and call.argument("total_limit").is_absent:
                bare = [one for one in self.code.calls_named("save_state") if not one.positional and {"output_dir", ""}.isdisjoint(dict(one.keywords))]
                yield from ((call, found) for found in self._kept(one for one in bare if call.may_run_with(one)))

    def _kept(self, saves: Iterator[Call] | list[Call]) -> Iterator[Repeated]:
        """The first of some saves that a training repeats, if no code in its programs deletes files."""
        looped = ((one, self.code[TrainingLoops].around(one)) for one in saves)
        found = next((Repeated(one, loop) for one, loop in looped if loop is not None), None)
        if found is not None and not self.code.trainings.may_delete_checkpoints(self.code.path(found.save.module)):
            yield found

    def keeping_by_number(self) -> Iterator[tuple[Call, Argument]]:
        """The callbacks of Lightning that are told how many to keep, and save more than once; also in the constructor of a
        class that is derived from it."""
        derived = (one for one in self.code.calls_named("__init__") if _goes_to_callback(one))
        for call in dict.fromkeys((*self.code.calls(_CALLBACKS), *derived)):
            given = call.argument(KEEP_BEST)
            is_one = self.code[Roles].belong_to_training(call.module) and given.is_given and bool(given.values)
            if is_one and not self.code[LightningRhythm].saves_once(call):
                yield call, given

    def periodic(self) -> Iterator[Call]:
        """fvcore's and detectron2's `PeriodicCheckpointer` without a limit, in runs that are long, or of unknown length."""
        for call in self.code.calls(_PERIODIC):
            limit, numbers = call.argument("max_to_keep", 3), [call.argument("period", 1).only, call.argument("max_iter", 2).only]
            known = [one for one in numbers if isinstance(one, int) and one > 0]
            is_short = len(known) == 2 and known[1] <= HANDFUL * known[0]
            if self.code[Roles].belong_to_training(call.module) and (limit.is_absent or limit.only is None) and not is_short:
                yield call


def _is_engine(obj: Expr) -> bool:
    """Whether an object is the first one that `deepspeed.initialize` gives."""
    index = obj.part if obj.kind == "part" else obj.index.constant if obj.kind == "item" and obj.index is not None else None
    source = obj.base.plain if obj.base is not None else obj
    return index == 0 and isinstance(source, Call) and _ENGINE in source.callee.outside_names


def _goes_to_callback(call: Call) -> bool:
    """``super().__init__(save_top_k=-1)``"""
    owner = call.function.owner
    is_super = call.receiver is not None and call.receiver.last_name == "()super"
    return is_super and owner is not None and not owner.outside_bases.isdisjoint(_CALLBACKS)


__all__ = ["KEEP_BEST", "CheckpointLimits", "Repeated"]
