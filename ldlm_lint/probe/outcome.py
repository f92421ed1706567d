"""The result of a watched command: its evidence, and notes on how the run went."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, EvidenceError, Status
from ldlm_lint.probe import exits, killed
from ldlm_lint.probe.launch import Ended
from ldlm_lint.probe.settings import IDLE, PROCESSES

OK, FAILURE, INTERRUPTED = 0, 3, 130
# Errors of the other ranks when one has failed: reported after the cause.
_CONSEQUENCES = ("SIGTERM", "Connection closed by peer", "Connection reset by peer", "ChildFailedError", "exit code")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The evidence of one run, and a sentence about why it is incomplete (empty if it is complete).

    ``code`` is the exit code of the run itself: 0 if its verdicts count.
    """

    evidence: tuple[Evidence, ...]
    code: int = OK
    problem: str = ""
    notes: tuple[str, ...] = ()


def outcome_of(out: Path, run_id: str, ended: Ended) -> Outcome:
    """The outcome of a run; relevant processes that never trained get their evidence into ``out``."""
    found, notes = gathered(out, run_id)
    found = killed.settled(out, found, run_id, ended)
    found = exits.settled(out, found, _codes(out, ended))
    idle, _ = gathered(out / IDLE, run_id)
    promoted = [one for one in idle if _matters(one, found)]
    for one in promoted:
        os.replace(out / IDLE / files.name_of(one), out / files.name_of(one))
    whole = tuple(sorted((*found, *promoted), key=lambda one: (one.run.rank, one.run.pid)))
    code, problem = judged(whole, ended, lambda: absence(out, idle))
    if ended.timed_out:
        notes += [f"where a process was at the limit: {path}" for path in sorted(out.glob("stacks-*.txt"))]
    _tidy(out)
    return Outcome(whole, code, problem, tuple(notes))


def _tidy(out: Path) -> None:
    """Leave evidence only."""
    shutil.rmtree(out / IDLE, ignore_errors=True)
    (out / PROCESSES).unlink(missing_ok=True)
    for part in out.glob(files.PARTS):
        # Of a process that was killed while it wrote.
        part.unlink(missing_ok=True)
    if not any(out.iterdir()):
        out.rmdir()


def gathered(folder: Path, run_id: str) -> tuple[list[Evidence], list[str]]:
    """The evidence of a run in a folder, and the unreadable files there."""
    found, notes = [], []
    for path in sorted(folder.glob(files.PATTERN)):
        try:
            found += [one for one in files.read(path) if one.run.run_id.startswith(run_id)]
        except EvidenceError as error:
            notes.append(str(error))
    return found, notes


def _matters(idle: Evidence, found: Sequence[Evidence]) -> bool:
    """A process that never trained: a failed rank of the group, or the only explanation of why no process trained."""
    if found:
        return bool(idle.run.exception) and idle.run.world_size > 1
    return bool(idle.run.exception) or idle.run.world_size > 1 or idle.run.status is Status.TIMEOUT


def judged(evidence: Sequence[Evidence], ended: Ended, why_absent: Any) -> tuple[int, str]:
    """The exit code for the run's end, and the sentence that explains it."""
    steps = max((one.run.steps for one in evidence), default=0)
    worked = any(one.run.steps or one.observations.get("steps", {}).get("backward_passes") for one in evidence)
    kept = f"; the evidence of {steps} steps is kept" if steps else ""
    if ended.interrupted:
        return INTERRUPTED, f"interrupted{kept}"
    stopped = bool(evidence) and all(one.run.status is Status.STOPPED for one in evidence)
    if ended.timed_out and not stopped:
        seen = kept or ("; no step was observed" if evidence else f"; no evidence: {why_absent()}")
        return FAILURE, f"still running at the limit, ended after {ended.seconds:.0f} s{seen}"
    forced = [one for one in evidence if one.run.status is Status.KILLED]
    crashed = [one for one in evidence if one.run.exception and one.run.status is Status.CRASHED]
    if forced and all(any(mark in one.run.exception for mark in _CONSEQUENCES) for one in crashed):
        others = f" ({_failures(crashed)})" if crashed else ""
        return FAILURE, f"{killed.sentence(forced)}{others}"
    if crashed:
        return (
            FAILURE,
            f"the program crashed {_when(crashed)}: {_failures(crashed)}{'; its evidence is kept' if steps else ''}",
        )
    if not worked:
        return FAILURE, f"no evidence: {why_absent()}{_exit(ended)}"
    if ended.code and not stopped:
        return FAILURE, f"the command ended{_exit(ended, ' ')}{kept}"
    return OK, ""


def _when(crashed: Sequence[Evidence]) -> str:
    steps = max(one.run.steps for one in crashed)
    return f"after {steps} steps" if steps else "before its first optimizer step"


def _failures(crashed: Iterable[Evidence]) -> str:
    by_text: dict[str, list[int]] = {}
    for one in crashed:
        by_text.setdefault(one.run.exception, []).append(one.run.rank)
    several = any(one.run.world_size > 1 for one in crashed)
    return "; ".join(
        f"{text} (rank {', '.join(map(str, sorted(ranks)))})" if several else text
        for text, ranks in sorted(by_text.items(), key=lambda one: any(mark in one[0] for mark in _CONSEQUENCES))
    )


def _exit(ended: Ended, before: str = "; the command ended ") -> str:
    if not ended.code:
        return ""
    return f"{before}with exit code {ended.code}" if ended.code > 0 else f"{before}by signal {-ended.code}"


def absence(out: Path, idle: Sequence[Evidence]) -> str:
    """Why no process left evidence of training."""
    lines = _processes(out)
    failed = [one["text"] for one in lines if one.get("event") == "failed"]
    if failed:
        return f"the watcher could not be started ({failed[0]})"
    if {one.get("pid") for one in lines if one.get("event") == "torch"} - {one.run.pid for one in idle}:
        return "a process that had imported torch was killed before it could write its evidence"
    if idle:
        return "torch was imported, but no optimizer stepped and no backward pass ran"
    if lines:
        return "Python ran, but it never imported torch"
    return (
        "the probe was not injected: no Python process of the command read PYTHONPATH "
        "(python -I, -E and -S ignore it, containers and remote shells start without it)"
    )


def _codes(out: Path, ended: Ended) -> dict[int, int]:
    """The exit codes of processes, as far as their parents reported them."""
    told = {one["pid"]: int(one["text"]) for one in _processes(out) if one.get("event") == exits.EXIT}
    return {**told, ended.pid: ended.code} if ended.pid else told


def _processes(out: Path) -> list[dict[str, Any]]:
    with contextlib.suppress(OSError, ValueError):
        lines = (out / PROCESSES).read_text(encoding="utf-8", errors="replace").splitlines()
        return [json.loads(line) for line in lines]
    return []
