"""Verdicts about rules: pure decisions over the observations of all ranks of a watched run.

Each module judges one topic: ``judge(run: WatchedRun) -> Iterable[Judgement]``. A module without observations returns
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ldlm_lint.evidence.model import Evidence, Judgement
from ldlm_lint.evidence.watched import WatchedRun, on_its_device

# The modules, in the order of the report. Each has a function `judge`.
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
    """The judgements of evidence files, and notes on what could not be judged."""

    judgements: tuple[Judgement, ...]
    notes: tuple[str, ...]


def judge(evidence: Sequence[Evidence], target: str = "") -> list[Judgement]:
    """The judgements of `assess` alone."""
    return list(assess(evidence, target).judgements)


def assess(evidence: Sequence[Evidence], target: str = "") -> Assessed:
    """The judgements of evidence files: the experiments' own, and those about watched runs, each run by itself.

    ``target`` is ``cpu`` or ``cuda`` if the user named the device that the verdicts are about; observations on another
    one decide no rule that is bound to it. Evidence is untrusted: observations of an unexpected shape end their module
    with a note.
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
