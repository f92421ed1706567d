"""Runs experiments, each in a separate process, within a budget of seconds; a crash, hang or memory exhaustion ends
only that one."""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ldlm_lint
from ldlm_lint.evidence.model import Environment, Evidence, Judgement, Run, Scope, Status, Verdict, judgement_of
from ldlm_lint.probe import machine
from ldlm_lint.probe.micro import child
from ldlm_lint.probe.micro.experiment import Experiment

_LONGEST_REASON = 300


class ProbeError(Exception):
    """Nothing can be measured here; the text says why. ``usage`` is True if another command line would work."""

    def __init__(self, message: str, *, usage: bool) -> None:
        super().__init__(message)
        self.usage = usage


@dataclass(frozen=True, slots=True)
class Options:
    """The requested options: ``end`` is the moment of `time.monotonic` by which all must be over.

    ``device`` empty is the best available, ``target`` empty an accelerator; ``rules`` empty reports all.
    """

    end: float
    budget: float
    device: str = ""
    target: str = ""
    seed: int = 0
    rules: frozenset[str] = frozenset()
    same: bool = False

    @property
    def left(self) -> float:
        """Seconds for experiments: the interpreter's start, ending processes and the report take part of the budget."""
        return self.end - min(self.budget / 4, 1.5 + self.budget / 30) - time.monotonic()


@dataclass
class Results:
    """The results so far."""

    judgements: list[Judgement] = field(default_factory=list)
    observations: dict[str, Any] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    environment: Environment | None = None
    interrupted: bool = False
    failed: int = 0
    finished: int = 0


Progress = Callable[[str, str], None]


def has_torch() -> bool:
    """Whether torch is installed; it is not imported here, so that a broken one fails in a child process."""
    return importlib.util.find_spec("torch") is not None


def run(experiments: Sequence[Experiment], options: Options, progress: Progress) -> tuple[Evidence, Results]:
    """Run the experiments and return the evidence; ``progress`` is called with each name and its status.

    Raises ProbeError if torch or the requested device is not available.
    """
    began, started = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
    results = Results()
    with tempfile.TemporaryDirectory(prefix="ldlm-probe-", ignore_cleanup_errors=True) as scratch:
        for number, experiment in enumerate(experiments):
            if results.interrupted:
                _explain(results, experiment, options, "not run: interrupted")
                continue
            if options.left < experiment.least:
                progress(experiment.name, "not run: budget")
                _explain(results, experiment, options, f"not run: budget ({options.budget:g} s)")
                continue
            progress(experiment.name, experiment.title)
            at, folder = time.monotonic(), Path(scratch, str(number))
            folder.mkdir()
            try:
                why = _run_one(experiment, options, folder, results)
            except KeyboardInterrupt:
                # Measured results are kept.
                results.interrupted, why = True, "interrupted"
            progress(experiment.name, why or f"done in {time.monotonic() - at:.0f} s")
            _explain(results, experiment, options, why)
    return _evidence(results, began, started, options), results


def _run_one(experiment: Experiment, options: Options, folder: Path, results: Results) -> str:
    """Run one experiment, collect its results, and return why it did not finish (empty if it did)."""
    request, lines, log = folder / "request.json", folder / "results.jsonl", folder / "log.txt"
    work = folder / "work"
    work.mkdir()
    lines.touch()
    left = options.left
    values = {
        "experiment": experiment.name,
        "device": options.device,
        "target": options.target,
        "seed": options.seed,
        "parent": os.getpid(),
        "same": options.same,
        "end": time.time() + left,
        "results": str(lines),
        "scratch": str(work),
    }
    request.write_text(json.dumps(values), encoding="utf-8")
    try:
        code = _wait(request, work, log, left)
    finally:
        _take_in(lines, results, experiment, options)
    said = log.read_text(encoding="utf-8", errors="replace")
    return _judge_end(code, said, results, options)


def _wait(request: Path, work: Path, log: Path, seconds: float) -> int | None:
    """The exit code of an experiment's process, None if it had to be killed; its whole group ends with it."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command(request),
            cwd=work,
            env=_environ(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Loader workers, ranks and compilers that still run are no longer needed.
            _end(process)


def command(request: Path) -> list[str]:
    """The command of an experiment's process."""
    return [sys.executable, "-m", child.__name__, str(request)]


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _environ() -> dict[str, str]:
    """The user's environment (the experiments are about it), with a quiet profiler and this package in reach."""
    package = str(Path(ldlm_lint.__file__).resolve().parent.parent)
    path = os.pathsep.join(one for one in (package, os.environ.get("PYTHONPATH", "")) if one)
    return {**os.environ, "PYTHONPATH": path, "KINETO_LOG_LEVEL": "99", "PYTHONUNBUFFERED": "1"}


def _judge_end(code: int | None, said: str, results: Results, options: Options) -> str:
    """The meaning of an exit code; empty for success. Raises ProbeError if no other experiment can do better."""
    last = next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "")[:_LONGEST_REASON]
    if code == child.NO_TORCH:
        raise ProbeError(last, usage=False)
    if code == child.NO_DEVICE:
        raise ProbeError(f"{last}; leave --device out to measure on the CPU", usage=True)
    if code == 0:
        results.finished += 1
        return ""
    if code is None:
        return f"cut off: budget ({options.budget:g} s)"
    results.failed += 1
    if code < 0:
        name = next((one.name for one in signal.Signals if one == -code), f"signal {-code}")
        killed = " (out of memory?)" if name == "SIGKILL" else ""
        return f"the experiment's process was ended by {name}{killed}{f': {last}' if last else ''}"
    return f"the experiment failed: {last or f'exit code {code}'}"


def _take_in(path: Path, results: Results, experiment: Experiment, options: Options) -> None:
    for kind, value in _lines(path):
        if kind == "judgement":
            judgement = judgement_of(value)
            if not options.rules or judgement.rule in options.rules or not judgement.rule:
                results.judgements.append(judgement)
        elif kind == "observation":
            results.observations.setdefault(experiment.name, {})[value["topic"]] = value["values"]
        elif kind == "environment" and results.environment is None:
            names = {"load": tuple(value["load"])}
            results.environment = Environment(**{**value, **names})
        elif kind == "note" and value not in results.notes:
            results.notes.append(value)


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        # The last line of a process that was killed may be half a line.
        with contextlib.suppress(ValueError):
            values = json.loads(line)
            yield values["kind"], values["value"]


def _explain(results: Results, experiment: Experiment, options: Options, why: str) -> None:
    """An inconclusive judgement for each rule of an experiment that was not judged, with the reason."""
    if why:
        results.unavailable[experiment.name] = why
    judged = {one.rule for one in results.judgements}
    if options.same and not why:
        return
    missing = [rule for rule in experiment.rules if rule not in judged and (not options.rules or rule in options.rules)]
    if why and not missing:
        # All rules were judged, but not all claims: one more line says so.
        missing = [""]
    device = results.environment.device if results.environment else options.device or "cpu"
    scope = Scope(device, options.target or device)
    results.judgements.extend(
        Judgement(rule, experiment.title, Verdict.INCONCLUSIVE, why or "the experiment did not report it", scope)
        for rule in missing
    )


def _evidence(results: Results, began: float, started: datetime.datetime, options: Options) -> Evidence:
    run = Run(
        kind="micro",
        run_id=f"micro-{started:%Y%m%dT%H%M%S}-{os.getpid()}",
        command=("ldlm-lint", *sys.argv[1:]),
        root=Path.cwd().as_posix(),
        pid=os.getpid(),
        host=platform.node(),
        status=Status.INTERRUPTED if results.interrupted else Status.FINISHED,
        seconds=round(time.monotonic() - began, 3),
        started=started.isoformat(timespec="seconds"),
    )
    environment = results.environment or machine.environment(device=options.device or "cpu")
    return Evidence(
        run,
        environment,
        results.observations,
        tuple(results.judgements),
        results.unavailable,
        tuple(results.notes),
    )
