"""The runs: warm-up, then rounds in which every arm runs once, in an order that is shuffled each time."""

from __future__ import annotations

import math
import random
import secrets
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ldlm_lint.bench import samples
from ldlm_lint.bench.compare import FEWEST_ROUNDS
from ldlm_lint.bench.samples import Sample
from ldlm_lint.bench.trees import AFTER, AGAIN, BEFORE, BenchError, Trees
from ldlm_lint.evidence.model import Evidence, Status
from ldlm_lint.probe import launch
from ldlm_lint.probe.outcome import gathered
from ldlm_lint.probe.settings import Settings

_LAST_LINES = 12


@dataclass(frozen=True, slots=True)
class Job:
    """The run in each tree: the command, its folder, and its limits.

    ``steps`` (0: to the program's own end) is the number of optimizer steps after which it is ended, ``seconds`` the
    limit of one run.
    """

    command: tuple[str, ...]
    inside: Path
    environ: Mapping[str, str]
    steps: int = 0
    seconds: float | None = None
    offline: bool = False


def measured(
    job: Job,
    trees: Trees,
    scratch: Path,
    *,
    rounds: int,
    warmup: int,
    budget: float | None = None,
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
) -> list[Sample]:
    """Run the arms in interleaved rounds and return the samples of all complete rounds.

    A round starts only if it will probably end within ``budget`` seconds, and if enough rounds for a verdict remain
    possible with runs as short as the shortest so far. Raises BenchError as soon as a run fails, with the end of its
    output, and if the budget is too small for enough rounds from the start.
    """
    began = time.monotonic()
    seconds: list[float] = []
    for number in range(warmup):
        for arm in (BEFORE, AFTER):
            say(f"warm-up {number + 1} of {warmup}: {arm}")
            seconds.append(one_run(job, trees, scratch, arm, -1).seconds)
    found: list[Sample] = []
    for number, order in enumerate(orders(rounds, seed)):
        if budget is not None and seconds:
            short = too_small(budget, time.monotonic() - began, seconds, number)
            if short and not found:
                raise BenchError(short)
            if short or time.monotonic() - began + 3 * max(seconds) > budget:
                say(short or f"the budget of {budget:g} s does not allow another round")
                break
        for arm in order:
            say(f"round {number + 1} of {rounds}: {arm}")
            found.append(one_run(job, trees, scratch, arm, number))
            seconds.append(found[-1].seconds)
    return found


def too_small(budget: float, spent: float, seconds: Sequence[float], done: int) -> str:
    """Why the budget is too small for the needed rounds, given the runs so far; empty if it may suffice."""
    needed = spent + 3 * max(0, FEWEST_ROUNDS - done) * min(seconds)
    if needed <= budget:
        return ""
    enough = math.ceil(spent + 3 * (FEWEST_ROUNDS - done) * max(seconds))
    return (
        f"the budget of {budget:g} s is too small: {FEWEST_ROUNDS} rounds of three runs are needed, a run takes at least "
        f"{min(seconds):.1f} s, and {spent:.1f} s are spent; give it --budget {enough}, or make the runs shorter with "
        "--steps"
    )


def orders(rounds: int, seed: int) -> Iterator[Sequence[str]]:
    """The order of the arms in each round."""
    draw = random.Random(seed)
    for _ in range(rounds):
        yield draw.sample((BEFORE, AGAIN, AFTER), 3)


def one_run(job: Job, trees: Trees, scratch: Path, arm: str, number: int) -> Sample:
    """Run the command once in a fresh copy of an arm's tree; raises BenchError if it fails."""
    place = trees.fresh(arm)
    run_id = secrets.token_hex(8)
    out, log = scratch / f"evidence-{run_id}", scratch / f"{run_id}.log"
    out.mkdir()
    before = _cpu_seconds()
    ended = _launched(job, place, out, log, run_id)
    cpu = _cpu_seconds()
    if ended.interrupted:
        raise KeyboardInterrupt
    ranks, _ = gathered(out, run_id)
    if failed(ended, ranks):
        raise BenchError(_failure(arm, ended, log))
    peak, kind = samples.memory(ranks)
    return Sample(
        arm,
        number,
        ended.seconds,
        None if cpu is None or before is None else cpu - before,
        max((one.run.steps for one in ranks), default=0),
        samples.step_seconds(ranks),
        peak,
        kind,
        samples.logged(log),
        samples.cuda(ranks),
    )


def failed(ended: launch.Ended, ranks: Sequence[Evidence]) -> bool:
    """Whether a run is not a sample: it hung, or failed by itself. The exit codes of ranks that were ended after their
    steps do not count: gloo aborts some of them."""
    stopped = bool(ranks) and all(one.run.status is Status.STOPPED for one in ranks)
    return ended.timed_out or (ended.code != 0 and not stopped)


def _launched(job: Job, place: Path, out: Path, log: Path, run_id: str) -> launch.Ended:
    """Run the command with a watcher that only times, its output in ``log``; raises BenchError if it cannot be started."""
    inside = place / job.inside
    inside.mkdir(parents=True, exist_ok=True)
    settings = Settings(
        out=str(out),
        root=str(place),
        run_id=run_id,
        command=job.command,
        steps=job.steps or sys.maxsize,
        stop=bool(job.steps),
        timing=True,
    )
    environ = launch.environment_of(settings, job.environ, offline=job.offline)
    with log.open("wb") as file:
        try:
            return launch.run(
                job.command, inside, environ, run_id=run_id, seconds=job.seconds, stdout=file, stderr=file
            )
        except OSError as error:
            raise BenchError(f"{job.command[0]}: {error.strerror or error}") from error


def _failure(arm: str, ended: launch.Ended, log: Path) -> str:
    how = f"still ran after {ended.seconds:.0f} s" if ended.timed_out else f"ended with exit code {ended.code}"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 8192))
        lines = file.read().decode("utf-8", errors="replace").splitlines()[-_LAST_LINES:]
    tree = "the second tree" if arm == AFTER else "the first tree"
    return "\n".join([f"the command {how} in {tree} ({arm}); the end of its output:", *(f"  {one}" for one in lines)])


def _cpu_seconds() -> float | None:
    """The CPU time of all processes that were waited for, in seconds; None if the system does not provide it."""
    if sys.platform == "win32":
        return None
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
