"""Run a request in a child process, and always end that child. It needs no torch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from ldlm_lint.evidence.model import Evidence, from_json
from ldlm_lint.probe.memory.request import Request, RequestError, to_plain


class MeasureError(Exception):
    """The measurement failed; the text says where and why."""


def measured(request: Request, folder: Path, most_seconds: float) -> Evidence:
    """The evidence of a request, measured by a Python process that runs in ``folder``.

    Output of the user's code goes to stderr. Raises RequestError for an unusable request and MeasureError for
    everything else: an exception of the user's code, a crash, more than ``most_seconds``.
    """
    with tempfile.TemporaryDirectory(prefix="ldlm-memory-") as scratch:
        result = Path(scratch, "result.json")
        status = _run(request, folder, result, most_seconds)
        if not result.is_file():
            raise MeasureError(_ended(status))
        values = json.loads(result.read_text(encoding="utf-8"))
    if "error" not in values:
        return from_json(values)
    raise (RequestError if values["kind"] == "usage" else MeasureError)(values["error"])


def _run(request: Request, folder: Path, result: Path, most_seconds: float) -> int:
    command = [sys.executable, "-m", "ldlm_lint.probe.memory", str(result)]
    # Our stdout is for the report; the descriptor, since sys.stderr may not be a file.
    child = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=2, text=True, start_new_session=True, env=_environment()
    )
    try:
        child.communicate(json.dumps(to_plain(request)), timeout=most_seconds)
    except subprocess.TimeoutExpired as error:
        raise MeasureError(f"no result after {most_seconds:g} s (--max-seconds); the process was ended") from error
    finally:
        _end(child)
    return child.returncode


def _environment() -> dict[str, str]:
    """This environment; with this process's path, so that the package is found."""
    package = str(Path(__file__).resolve().parents[3])
    paths = [os.environ.get("PYTHONPATH", ""), package]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}


def _end(child: subprocess.Popen[str]) -> None:
    """End the child and its processes."""
    if hasattr(os, "killpg"):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
    elif child.poll() is None:
        child.kill()
    child.wait()


def _ended(status: int) -> str:
    if status == -9:
        return "the process was killed (signal 9), most likely because the machine ran out of memory"
    if status < 0:
        return f"the process ended by signal {-status} ({signal.Signals(-status).name})"
    return f"the process ended with exit code {status} and left no result"
