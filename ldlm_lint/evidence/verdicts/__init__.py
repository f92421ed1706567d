"""What evidence says of the rules: pure decisions over the observations of all ranks of a watched run.

Each room judges one topic: ``judge(run: WatchedRun) -> Iterable[Judgement]``. One whose observations are missing says
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.evidence.model import Evidence, Judgement
from ldlm_lint.evidence.watched import WatchedRun

# The rooms, in the order of the report. Each is a module of this folder with a function `judge`.
ROOMS: tuple[str, ...] = ()


def judge(evidence: Sequence[Evidence], target: str = "") -> list[Judgement]:
    """The judgements of evidence files: the experiments' own, and those about watched runs, each run by itself.

    ``target`` is ``cpu`` or ``cuda`` where the user named the device that the verdicts are about.
    """
    from importlib import import_module

    judged = [judgement for one in evidence for judgement in one.judgements]
    runs: dict[str, list[Evidence]] = {}
    for one in evidence:
        if one.run.kind == "watch" and one.observations:
            runs.setdefault(one.run.run_id, []).append(one)
    rooms = [import_module(f"{__name__}.{room}") for room in ROOMS]
    for ranks in runs.values():
        run = WatchedRun(tuple(ranks), target)
        judged.extend(judgement for room in rooms for judgement in room.judge(run))
    return judged
