"""Running the user's command under the watcher: its environment, its processes, its end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from ldlm_lint.probe.settings import VARIABLE, Settings

SITE = Path(__file__).parent / "site"
# Signals for a command that shall end, and the seconds that it has after each.
ESCALATION = ((signal.SIGINT, 8.0), (signal.SIGTERM, 4.0), (getattr(signal, "SIGKILL", signal.SIGTERM), 4.0))
# The processes write their evidence at the deadline; then they are terminated.
HEAD_START = 1.0
# Trackers and hubs that have a mode without a network.
OFFLINE = {
    "WANDB_MODE": "offline",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "COMET_START_ONLINE": "0",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
}


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: its exit code (negative for a signal) and why it was terminated, if it was; ``pid`` is the
    started process, which may be a launcher of others, 0 if unknown."""

    code: int
    timed_out: bool = False
    interrupted: bool = False
    seconds: float = 0.0
    pid: int = 0


class _Terminated(Exception):
    """The launcher itself was terminated."""


def environment_of(settings: Settings, environ: Mapping[str, str], *, offline: bool = False) -> dict[str, str]:
    """The environment of the command: the user's own, the injection first on the path, and how to watch."""
    path = os.pathsep.join([str(SITE), *([environ["PYTHONPATH"]] if environ.get("PYTHONPATH") else [])])
    # Otherwise 2.13 announces each profiler window on stderr.
    quiet = {} if "KINETO_LOG_LEVEL" in environ else {"KINETO_LOG_LEVEL": "99"}
    modes = OFFLINE if offline else {}
    return {**environ, **quiet, **modes, "PYTHONPATH": path, VARIABLE: settings.to_environment()}


def run(
    command: Sequence[str],
    cwd: Path,
    environ: Mapping[str, str],
    *,
    run_id: str,
    seconds: float | None = None,
    stdout: Any = None,
    stderr: Any = None,
) -> Ended:
    """Run a command to its end and return how it ended; its output goes to ours, or to ``stdout`` and ``stderr``.

    After ``seconds``, and when we are interrupted or terminated, all its processes are terminated, finally by force.
    Raises OSError if it cannot be started.
    """
    began = time.monotonic()
    with _terminable():
        process = subprocess.Popen(
            command, cwd=cwd, env=dict(environ), stdout=stdout, stderr=stderr, start_new_session=True
        )
        limit = None if seconds is None else max(0.0, seconds + HEAD_START)
        timed_out = interrupted = False
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            timed_out = True
        except (KeyboardInterrupt, _Terminated):
            interrupted = True
        if timed_out or interrupted:
            _end(process, run_id)
    return Ended(process.returncode, timed_out, interrupted, time.monotonic() - began, process.pid)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """While the command runs, SIGTERM and SIGHUP end it as an interrupt does."""

    def terminated(number: int, frame: FrameType | None) -> None:
        raise _Terminated(number)

    names = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    try:
        before = {name: signal.signal(name, terminated) for name in names}
    except ValueError:  # not in the main thread: then no signals arrive here either
        before = {}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _end(process: subprocess.Popen[bytes], run_id: str) -> None:
    """End all processes of the run: a launcher's workers may be in their own sessions, and outlive it."""
    for number, grace in ESCALATION:
        told = _tell(process, run_id, number)
        until = time.monotonic() + grace
        while told and time.monotonic() < until:
            try:
                process.wait(0.1)
                if not members(run_id):
                    break
                time.sleep(0.1)
            except subprocess.TimeoutExpired:
                continue
            except (KeyboardInterrupt, _Terminated):
                break
    process.wait()


def _tell(process: subprocess.Popen[bytes], run_id: str, number: int) -> bool:
    """Send a signal to all processes of the run, once to each; False if none is left."""
    found = members(run_id)
    for identity in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(identity, number)
    if process.poll() is None and process.pid not in found:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        return True
    return bool(found)


def members(run_id: str, processes: Path = Path("/proc")) -> list[int]:
    """The processes whose environment names the run; empty if the system does not show it."""
    mark = run_id.encode()
    found = []
    for folder in processes.glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return [identity for identity in found if identity != os.getpid()]


def output_of(asked_json: bool) -> Any:
    """Where the command's output goes: with JSON on stdout, to stderr; nowhere if stdout is closed."""
    if sys.stdout is None:
        return subprocess.DEVNULL
    return sys.stderr if asked_json else None
