"""What evidence says of the rules: pure decisions over the observations of all ranks of a watched run.

Each room judges one topic: ``judge(run: WatchedRun) -> Iterable[Judgement]``. One whose observations are missing says
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldlm_lint.evidence.model import Evidence, Judgement
from ldlm_lint.evidence.watched import WatchedRun, on_its_device

# The rooms, in the order of the report. Each is a module of this folder with a function `judge`.
ROOMS: tuple[str, ...] = (
    "optimizers",
    "schedules",
    "gradients",
    "switches",
    "attention",
    "compilation",
    "evaluation",
    "graphs",
    "host_time",
    "activation_checkpointing",
    "parameters",
    "ddp",
    "process_groups",
    "loaders",
    "loader_waits",
    "worker_restarts",
    "checkpoint_files",
)


@dataclass(frozen=True, slots=True)
class Assessed:
    """The judgements of evidence files, and what could not be judged, for people."""

    judgements: tuple[Judgement, ...]
    notes: tuple[str, ...]


def judge(evidence: Sequence[Evidence], target: str = "") -> list[Judgement]:
    """The judgements of `assess` alone."""
    return list(assess(evidence, target).judgements)


def assess(evidence: Sequence[Evidence], target: str = "") -> Assessed:
    """The judgements of evidence files: the experiments' own, and those about watched runs, each run by itself.

    ``target`` is ``cpu`` or ``cuda`` where the user named the device that the verdicts are about; what was seen on
    another one settles no rule that is bound to it, whoever judged. Evidence comes from elsewhere: observations of a
    shape that a room does not expect end that room with a note.
    """
    from importlib import import_module

    judged = [
        on_its_device(judgement, target, experiment=one.run.kind != "watch")
        for one in evidence
        for judgement in one.judgements
    ]
    notes: list[str] = []
    runs: dict[str, list[Evidence]] = {}
    for one in evidence:
        if one.run.kind == "watch" and one.observations:
            runs.setdefault(one.run.run_id, []).append(one)
    rooms = [import_module(f"{__name__}.{room}") for room in ROOMS]
    for ranks in runs.values():
        run = WatchedRun(tuple(ranks), target)
        for room in rooms:
            try:
                judged.extend([on_its_device(judgement, target) for judgement in room.judge(run)])
            except (TypeError, ValueError, KeyError, AttributeError, IndexError, ArithmeticError) as error:
                topic = room.__name__.rpartition(".")[2].replace("_", " ")
                notes.append(f"{topic}: observations that cannot be judged ({type(error).__name__}: {error})")
    return Assessed(tuple(judged), tuple(notes))
