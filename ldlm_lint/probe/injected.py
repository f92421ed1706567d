"""The watcher of a process of ``ldlm-lint probe run``: started after ``import torch``, it ends the program after the
last step and leaves one evidence file however the process ends."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ldlm_lint.evidence.files import write
from ldlm_lint.evidence.model import Run, Status
from ldlm_lint.probe.exits import Exits, codes_in, failure_of, tell
from ldlm_lint.probe.footprint import Footprint
from ldlm_lint.probe.recording import identity_of, recorded
from ldlm_lint.probe.settings import IDLE, Settings
from ldlm_lint.probe.silence import first
from ldlm_lint.probe.snapshots import Snapshots
from ldlm_lint.probe.termination import Termination
from ldlm_lint.probe.watcher import Watcher

# A program that catches the exit continues; after this many times the process exits immediately.
MOST_SWALLOWED = 3
MOST_TEXT = 2000
# Seconds for a program's final work (a last checkpoint), and for the exit of a training thread to reach the main
# thread; then the process exits.
GRACE, THREAD_GRACE = 300.0, 10.0
# torch.compile's warning about module hooks; the watcher's hooks are removed after the first steps and compile to
# nothing.
_GLOBAL_HOOKS = r"Using `torch\.compile\(module\)` when there are global hooks"


class ProbeStop(SystemExit):
    """Ends the program after the last watched step; without a code, which torchelastic's ``record`` passes on."""


def start(torch: Any) -> None:
    """Watch this process with the launcher's settings; called once, right after torch was imported."""
    process = Process(torch, Settings.from_environment())
    process.start()


class Process:
    """This process: its watcher, and the ways it may end."""

    def __init__(self, torch: Any, settings: Settings) -> None:
        self.settings = settings
        self.watcher = Watcher(
            torch,
            settings.root,
            settings.steps if settings.stop else sys.maxsize,
            observers=[Footprint()] if settings.timing else None,
            on_done=self._stop,
            on_step=None if settings.timing else self._keep,
            timing=settings.timing,
        )
        self._torch = torch
        self._lock = threading.RLock()
        self._written = False
        self._raised = 0
        self._failure = ""
        self._exits = Exits()
        self._forked_at = -1
        self._termination = Termination(self._at_termination)
        self._pid = os.getpid()
        self._started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._snapshots = Snapshots(self.watcher, lambda: self._run(Status.RUNNING), Path(settings.out))
        self.watcher.session.after_save = self._keep_save

    def start(self) -> None:
        """Install everything, invisible to the program."""
        first(("ignore", re.compile(_GLOBAL_HOOKS), Warning, None, 0))
        self.watcher.start()
        atexit.register(self._at_exit)
        self._wrap_exit()
        os.register_at_fork(after_in_child=self._forked)
        self._watch_children()
        self._exits.install(self.watcher.session)
        self._termination.install()
        if self.settings.deadline:
            self._wait_for_deadline()

    def write(self, status: Status) -> None:
        """Write the evidence, once; later events in this process are not part of it."""
        with self._lock:
            if self._written:
                return
            self._written = True
            if self._forked_at != self._worked():
                self._write(status)

    def _keep(self) -> None:
        """Write the evidence so far: the process may be killed at any time."""
        with self._lock:
            if not self._written and self._forked_at != self._worked():
                self._snapshots.after_step()

    def _keep_save(self) -> None:
        with self._lock:
            if not self._written:
                self._snapshots.after_save()

    def _worked(self) -> int:
        return self.watcher.session.step + self.watcher.session.backwards

    def _write(self, status: Status) -> None:
        observations = self.watcher.finish()
        evidence = recorded(self.watcher, self._run(status), observations)
        out = Path(self.settings.out)
        try:
            self._snapshots.end(write(evidence, out if self._worked() else out / IDLE))
        except (OSError, TypeError, ValueError) as error:
            print(f"ldlm-lint probe: evidence of process {self._pid} could not be written: {error}", file=sys.stderr)

    def _run(self, status: Status) -> Run:
        """The facts of this process about its run."""
        settings = self.settings
        return Run(
            kind="watch",
            run_id=identity_of(settings.run_id, self.watcher.session.world_size, os.environ),
            command=settings.command,
            root=(settings.shown_root or settings.root).replace(os.sep, "/"),
            pid=self._pid,
            status=status,
            started=self._started,
            exception=self._failure,
        )

    def _stop(self) -> None:
        """After the last step: write, then end the program, repeatedly if it does not listen."""
        self.write(Status.STOPPED)
        self._raised += 1
        if self._raised > MOST_SWALLOWED:
            os._exit(0)
        if self._raised == 1:
            in_thread = threading.current_thread() is not threading.main_thread()
            timer = threading.Timer(THREAD_GRACE if in_thread else GRACE, os._exit, (0,))
            timer.daemon = True
            timer.start()
        raise ProbeStop

    def _at_exit(self) -> None:
        """The interpreter ends: normally, or with the exception that Python has just reported."""
        error = getattr(sys, "last_value", None)
        tell(Path(self.settings.out), codes_in(error))
        self._failure = self._failure or self._exits.failure
        self.write(self._ending(error))

    def _at_termination(self) -> None:
        self._failure = self._failure or "SIGTERM"
        self.write(Status.TIMEOUT if self._late() else Status.INTERRUPTED)

    def _ending(self, error: BaseException | None) -> Status:
        if error is not None and not isinstance(error, SystemExit):
            self._failure = self._failure or described(error)
        if self._late():
            return Status.TIMEOUT
        if isinstance(error, KeyboardInterrupt):
            return Status.INTERRUPTED
        return Status.CRASHED if self._failure else Status.FINISHED

    def _late(self) -> bool:
        return bool(self.settings.deadline) and time.time() >= self.settings.deadline

    def _wrap_exit(self) -> None:
        """Children of multiprocessing that were forked, and programs in a hurry, leave without running exit hooks."""
        original = os._exit

        def leave(status: int) -> NoReturn:
            if status and not self._failure:
                self._failure = f"exit code {status}"
            self.write(self._ending(None))
            original(status)

        os._exit = leave

    def _forked(self) -> None:
        """In a forked child: it has its own evidence if it trains itself (a loader's worker does not)."""
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._written = False
        self._raised = 0
        self._failure = self._exits.failure = ""
        self._forked_at = self._worked()
        self.watcher.forked()
        self._snapshots.forked()
        self._termination.forked()

    def _watch_children(self) -> None:
        """An exception in a child process is caught by multiprocessing: note it on its way."""
        import multiprocessing.process

        session = self.watcher.session
        session.patch(multiprocessing.process.BaseProcess, "run", self._noting, "child processes")
        spawn = getattr(self._torch.multiprocessing, "spawn", None)
        module = sys.modules.get("torch.multiprocessing.spawn", spawn)
        session.patch(module, "_wrap", self._noting_in_wrap, "child processes")

    def _noting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*arguments: Any, **options: Any) -> Any:
            try:
                return original(*arguments, **options)
            except SystemExit as error:
                # multiprocessing catches it, too, and exits with its code.
                self._failure = failure_of(error.code)
                raise
            except Exception as error:
                self._failure = described(error)
                raise

        return noting

    def _noting_in_wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def wrap(function: Callable[..., Any], *arguments: Any) -> Any:
            return original(self._noting(function), *arguments)

        return wrap

    def _wait_for_deadline(self) -> None:
        thread = threading.Thread(target=self._at_deadline, name="ldlm-probe-deadline", daemon=True)
        thread.start()

    def _at_deadline(self) -> None:
        time.sleep(max(0.0, self.settings.deadline - time.time()))
        with contextlib.suppress(OSError), open(Path(self.settings.out, f"stacks-{self._pid}.txt"), "w") as file:
            faulthandler.dump_traceback(file)
        self.write(Status.TIMEOUT)


def described(error: BaseException) -> str:
    """``ValueError: the first line of its text``, of bounded length."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}"[:MOST_TEXT] if lines else type(error).__name__
