"""Notes on the runs behind verdicts: how they ended, what was observed, what was not, and the probe's cost.

Evidence is untrusted: unreadable parts are reported, and no value can cause more than a sentence of output.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence

from ldlm_lint.evidence.amounts import duration
from ldlm_lint.evidence.model import Evidence, Status

MOST_RANKS = 8
_ENDS = {
    Status.STOPPED: "ended by the probe",
    Status.FINISHED: "ran to the end of the program",
    Status.CRASHED: "crashed",
    Status.INTERRUPTED: "was interrupted",
    Status.TIMEOUT: "ran out of time",
    Status.RUNNING: "was still running when the evidence was written",
    Status.KILLED: "was killed; the evidence up to its last step is kept",
    Status.NOT_INJECTED: "was not seen",
}


def account(ranks: Sequence[Evidence]) -> Iterator[str]:
    """Sentences about one run: the exceptions it ended with, and the probe's own notes."""
    by_text: dict[str, list[int]] = {}
    for one in ranks:
        if one.run.exception:
            by_text.setdefault(f"{one.run.status.value.replace('_', ' ')} with {one.run.exception}", []).append(
                one.run.rank
            )
    for text, which in by_text.items():
        yield f"rank {', '.join(map(str, sorted(which)))}: {text}" if len(ranks) > 1 else f"the program {text}"
    if ranks[0].run.kind != "watch":
        yield from dict.fromkeys(note for one in ranks for note in one.notes)
        topics = {topic: reason for one in ranks for topic, reason in one.unavailable.items()}
        yield from (
            f"not observed: {topic.replace('_', ' ')}: {reason}" for topic, reason in sorted(topics.items())
        )
        return
    try:
        yield from notes_of(ranks)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        yield f"the probe's own record cannot be read ({type(error).__name__}: {error})"


def notes_of(evidence: Sequence[Evidence]) -> Iterator[str]:
    """The account that the watcher gives of the processes of a run, with one sentence for facts that are the same in
    all of them."""
    yield from _grouped(evidence, _watched)
    yield from _grouped(evidence, _software)
    seen = {one.run.rank for one in evidence}
    ranks = range(max((one.run.world_size for one in evidence), default=0))
    # Evidence is untrusted: for any world size only the first missing ranks are listed.
    missing = list(itertools.islice((rank for rank in ranks if rank not in seen), MOST_RANKS + 1))
    if missing:
        shown = ", ".join(map(str, missing[:MOST_RANKS])) + (", ..." if len(missing) > MOST_RANKS else "")
        yield f"no evidence of rank {shown}: these processes ran on another machine, were not injected, or were killed"
    for topic in sorted({topic for one in evidence for topic in one.unavailable}):
        yield from _grouped(evidence, functools.partial(_unseen, topic=topic))
    yield from dict.fromkeys(note for one in evidence for note in one.notes)
    yield from _cost(evidence)


def _watched(one: Evidence) -> str:
    steps = one.observations.get("steps", {})
    unit = steps.get("unit", "optimizer step")
    plural = {"backward": "backward passes (no optimizer stepped)"}.get(unit, "optimizer steps")
    timed = steps.get("seconds", {}).get("time")
    pace = f", {duration(timed['median'])} a step (median of {timed['n']})" if timed else ""
    return f"watched {one.run.steps} {plural} on {one.environment.device}{pace}; {_ENDS[one.run.status]}"


def _software(one: Evidence) -> str:
    """The Python and the torch that ran: they may differ from those of the shell or the linter."""
    machine, root = one.environment, f"{one.run.root.rstrip('/')}/"
    if not machine.executable:
        return ""
    executable = machine.executable[len(root) :] if machine.executable.startswith(root) else machine.executable
    return f"ran under Python {machine.python} ({executable}){f', torch {machine.torch}' if machine.torch else ''}"


def _unseen(one: Evidence, topic: str) -> str:
    reason = one.unavailable.get(topic)
    return f"not observed: {topic.replace('_', ' ')}: {reason}" if reason else ""


def _grouped(evidence: Sequence[Evidence], text: Callable[[Evidence], str]) -> Iterator[str]:
    found: dict[str, list[Evidence]] = {}
    for one in evidence:
        found.setdefault(text(one), []).append(one)
    # A command that trains twice has two processes of rank 0.
    unclear = len({one.run.rank for one in evidence}) < len(evidence)
    for sentence, which in found.items():
        named = ", ".join(str(one.run.pid if unclear else one.run.rank) for one in which)
        if sentence:
            yield f"{'process' if unclear else 'rank'} {named}: {sentence}" if len(evidence) > 1 else sentence


def _cost(evidence: Sequence[Evidence]) -> Iterator[str]:
    if evidence:
        most = max(evidence, key=lambda one: one.overhead_seconds)
        share = most.overhead_seconds / most.run.seconds if most.run.seconds else 0.0
        yield f"the probe itself took {duration(most.overhead_seconds)}, {share:.1%} of the run"
