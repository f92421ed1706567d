"""Exit codes: ``sys.exit(1)`` exits the normal way, without a reported exception.

If a process cannot see its exit code (``raise SystemExit(1)`` leaves no trace), its parent does: torchrun for its
ranks, the launcher for the command's own process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, Status
from ldlm_lint.probe.session import Session
from ldlm_lint.probe.settings import PROCESSES

EXIT = "exit"
MOST_TEXT = 200


class Exits:
    """The last ``sys.exit`` of the main thread; ``failure`` is empty for success."""

    def __init__(self) -> None:
        self.failure = ""

    def install(self, session: Session) -> None:
        """Watch ``sys.exit``."""
        session.patch(sys, "exit", self._wrap, "exit codes")

    def _wrap(self, original: Any) -> Any:
        def leave(status: Any = None, /) -> None:
            # Another thread only ends itself.
            if threading.current_thread() is threading.main_thread():
                self.failure = failure_of(status)
            original(status)

        return leave


def failure_of(status: Any) -> str:
    """The failure that an argument of ``sys.exit`` means; empty for success.

    >>> failure_of(None), failure_of(0), failure_of(False), failure_of(2), failure_of("no data")
    ('', '', '', 'exit code 2', 'SystemExit: no data')
    """
    if status is None or (isinstance(status, int) and not status):
        return ""
    if isinstance(status, int):
        return f"exit code {int(status)}"
    lines = str(status).strip().splitlines()
    return f"SystemExit: {lines[0]}"[:MOST_TEXT] if lines else "exit code 1"


def codes_in(error: BaseException | None) -> dict[int, int]:
    """The exit codes of the ranks by process in torchrun's exception."""
    failures = getattr(error, "failures", None)
    found = failures.values() if isinstance(failures, Mapping) else ()
    codes = ((getattr(one, "pid", None), getattr(one, "exitcode", None)) for one in found)
    return {pid: code for pid, code in codes if isinstance(pid, int) and isinstance(code, int) and code}


def tell(out: Path, codes: Mapping[int, int]) -> None:
    """Add exit codes by process to the run's list of processes, for the launcher to read."""
    if codes:
        lines = (json.dumps({"pid": pid, "event": EXIT, "text": str(code)}) + "\n" for pid, code in codes.items())
        with contextlib.suppress(OSError), open(out / PROCESSES, "a", encoding="utf-8") as file:
            file.write("".join(lines))


def settled(out: Path, found: Sequence[Evidence], codes: Mapping[int, int]) -> list[Evidence]:
    """The evidence with the known exit codes by process; changed files are written again into ``out``."""
    return list(_settled(out, found, codes))


def _settled(out: Path, found: Iterable[Evidence], codes: Mapping[int, int]) -> Iterator[Evidence]:
    for one in found:
        code, run = codes.get(one.run.pid), one.run
        # Not a signal: torchrun ends the other ranks while they wait at their ends.
        if code is not None and code > 0 and run.status is Status.FINISHED:
            run = dataclasses.replace(run, status=Status.CRASHED, exception=f"exit code {code}")
        elif code == 0 and run.status is Status.CRASHED and _by_exit(run.exception):
            # The program caught its own SystemExit and went on to its end.
            run = dataclasses.replace(run, status=Status.FINISHED, exception="")
        if run is one.run:
            yield one
            continue
        changed = dataclasses.replace(one, run=run)
        files.write(changed, out)
        yield changed


def _by_exit(text: str) -> bool:
    return text.startswith(("exit code", "SystemExit"))
