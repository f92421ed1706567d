"""Evidence of a process that still trains, written after each step: a killed process leaves its observations so far."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ldlm_lint.evidence.files import name_of, write
from ldlm_lint.evidence.model import Environment, Run
from ldlm_lint.probe.machine import environment
from ldlm_lint.probe.recording import recorded
from ldlm_lint.probe.session import Phase
from ldlm_lint.probe.watcher import WRITING, Watcher

# This many are always written; later ones only while their share of the time stays below this.
FREE, MOST_SHARE = 100, 0.05


class Snapshots:
    """Writes the evidence of a watcher repeatedly into one file of a folder.

    ``run`` has the facts about the run. A write error ends it: the final write reports it.
    """

    def __init__(
        self, watcher: Watcher, run: Callable[[], Run], out: Path, named: Callable[[str], str] = lambda name: name
    ) -> None:
        self._watcher, self._run, self._out, self._named = watcher, run, out, named
        self._machine: tuple[str, Environment] | None = None
        self._path: Path | None = None
        self._thread = 0
        self._count = 0
        self._spent = self._last = 0.0
        self._over = False

    def after_step(self) -> None:
        """An iteration is over: write the observations, unless writing would take too much of the time."""
        self._thread = threading.get_ident()
        if not self._over and self._affordable():
            self._write()

    def after_save(self) -> None:
        """The program has saved a checkpoint, after an iteration: its observations must not be lost either."""
        session = self._watcher.session
        mine = self._thread == threading.get_ident()
        if mine and session.phase is not Phase.PROFILE and not self._over and self._affordable():
            session.guard(WRITING, self._write)

    def forked(self) -> None:
        """This is a forked child now; the file is its parent's."""
        self._path, self._count, self._spent, self._last = None, 0, 0.0, 0.0

    def end(self, kept: Path | None) -> None:
        """The final evidence is in ``kept``, or not written: a snapshot under another name (from before the rank was
        known) is deleted."""
        self._over = True
        if self._path is not None and kept is not None and self._path != kept:
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def _affordable(self) -> bool:
        if self._count < FREE:
            return True
        mean = self._spent / self._count
        return mean <= (time.perf_counter() - self._last) * MOST_SHARE

    def _write(self) -> None:
        began = time.perf_counter()
        watcher = self._watcher
        session = watcher.session
        if self._machine is None or self._machine[0] != session.device:
            # NVML and /proc are read once; their final values are in the last evidence.
            self._machine = session.device, environment(session.torch, session.device)
        found, unseen = watcher.glance()
        try:
            evidence = recorded(watcher, self._run(), found, machine=self._machine[1], unseen=unseen)
            path = write(evidence, self._out, self._named(name_of(evidence)), compact=True)
        except OSError:
            self._over = True
            return
        except (RuntimeError, TypeError, ValueError):
            # Another thread of the program changed the data during the write: the next step writes it.
            return
        if self._path is not None and self._path != path:
            with contextlib.suppress(OSError):
                os.unlink(self._path)
        self._path = path
        self._last = time.perf_counter()
        self._spent += self._last - began
        self._count += 1
