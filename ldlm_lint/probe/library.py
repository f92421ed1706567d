"""The watcher inside of the user's own code: ``with ldlm_lint.probe.watch(steps=20, out="evidence") as watched: ...``

It never ends the program and prints nothing; after the last step it only stops observing. Importing it imports no
torch.
"""

from __future__ import annotations

import atexit
import os
import re
import socket
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ldlm_lint.evidence.model import Evidence, Judgement, Run, Status
from ldlm_lint.extras import install
from ldlm_lint.probe.exits import failure_of
from ldlm_lint.probe.settings import VARIABLE
from ldlm_lint.probe.silence import drop, first

if TYPE_CHECKING:
    from ldlm_lint.probe.session import Session
    from ldlm_lint.probe.snapshots import Snapshots
    from ldlm_lint.probe.watcher import Watcher

LATE = (
    "watching began inside the program: optimizers, loaders, process groups and DDP that were created earlier have no known "
    "place, and calls of names that were imported from torch earlier are not seen"
)
INSTALL = f"ldlm_lint.probe.watch needs torch: {install('probe')}"
_GLOBAL_HOOKS = r"Using `torch\.compile\(module\)` when there are global hooks"
_active: Watched | None = None
_uses = 0


class Watched:
    """Watches the optimizer steps of this process between `start` and `finish`, or inside of a ``with`` block.

    ``evidence`` is set once ``steps`` are over or watching has ended, None before, and None if no step was seen;
    ``path`` is its file. ``inactive`` says why nothing is watched: another watch or ``ldlm-lint probe run`` does it.
    Each object watches once.
    """

    def __init__(
        self, steps: int = 20, out: str | os.PathLike[str] | None = "evidence", root: str | None = None
    ) -> None:
        if steps < 1:
            raise ValueError(f"steps={steps}: at least one step is needed")
        self.steps = steps
        self.out = Path(out).absolute() if out is not None else None
        self.root = os.path.abspath(root or os.getcwd())
        self.evidence: Evidence | None = None
        self.path: Path | None = None
        self.inactive = ""
        self._watcher: Watcher | None = None
        self._snapshots: Snapshots | None = None
        self._known = (0, "")
        self._pid = 0
        self._use = 0
        self._started = ""
        self._filter: Any = None
        self._quiet = False

    @property
    def done(self) -> bool:
        """Whether all steps were seen."""
        return self.evidence is not None and self.evidence.run.status is Status.STOPPED

    def judgements(self, target: str = "") -> list[Judgement]:
        """The judgements about the rules from this evidence; ``target`` (``cpu``, ``cuda``) as for ``ldlm-lint probe
        judge``.

        This is the view of one process: claims about all ranks are inconclusive here, and are judged by ``ldlm-lint
        probe judge DIR`` from the files of all of them.
        """
        if self.evidence is None:
            return []
        from ldlm_lint.evidence.verdicts import judge

        return judge([self.evidence], target)

    def start(self) -> Watched:
        """Begin to watch. Raises ImportError without torch, RuntimeError where this object has watched before."""
        global _active, _uses
        if self._pid:
            raise RuntimeError("a watch can be used only once; create a new one")
        self._pid = os.getpid()
        self.inactive = _occupied()
        if self.inactive:
            return self
        try:
            import torch
        except ImportError as error:
            raise ImportError(INSTALL) from error
        from ldlm_lint.probe.watcher import Watcher

        _active, _uses = self, _uses + 1
        self._use = _uses
        self._started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._filter = _ignored(_GLOBAL_HOOKS)
        # Read when the profiler is first used; without it libkineto writes to stderr.
        self._quiet = "KINETO_LOG_LEVEL" not in os.environ
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        self._watcher = Watcher(torch, self.root, self.steps, on_done=self._all_seen, on_step=self._step_seen)
        self._snapshots = self._made_snapshots(self._watcher)
        self._watcher.session.notes.append(LATE)
        atexit.register(self._at_exit)
        self._watcher.start()
        return self

    def finish(self, error: BaseException | None = None) -> None:
        """End watching and remove all hooks; ``error`` is the exception that ended the training. Further calls do
        nothing."""
        global _active
        watcher, self._watcher = self._watcher, None
        # A forked child has its own copy of this object, and no evidence.
        if watcher is None or os.getpid() != self._pid:
            return
        try:
            self._keep(watcher, _status(error), _described(error))
        finally:
            watcher.release()
            if self._quiet:
                os.environ.pop("KINETO_LOG_LEVEL", None)
            drop(self._filter)
            atexit.unregister(self._at_exit)
            _active = None if _active is self else _active

    def _made_snapshots(self, watcher: Watcher) -> Snapshots | None:
        """The snapshots that keep the evidence of a killed process; without a folder there are none."""
        from ldlm_lint.probe.snapshots import Snapshots

        if self.out is None:
            return None
        made = Snapshots(watcher, lambda: self._run(watcher, Status.RUNNING, ""), self.out, self._named)
        watcher.session.after_save = lambda: self._if_mine(made.after_save)
        return made

    def _step_seen(self) -> None:
        if self._snapshots is not None:
            self._if_mine(self._snapshots.after_step)

    def _if_mine(self, work: Callable[[], None]) -> None:
        # A forked child is not watched, and complete evidence is not overwritten.
        if os.getpid() == self._pid and self.evidence is None:
            work()

    def _all_seen(self) -> None:
        # Called from inside an optimizer's step, where its hooks cannot be removed; `finish` does that.
        if self._watcher is not None and os.getpid() == self._pid and self.evidence is None:
            self._keep(self._watcher, Status.STOPPED, "")

    def _keep(self, watcher: Watcher, status: Status, failure: str) -> None:
        """Create the evidence, once, and write its file; a write error becomes a warning, not an exception."""
        if self.evidence is not None:
            return
        _loosen(watcher)
        found = watcher.finish()
        session = watcher.session
        if not session.step and not session.backwards:
            return
        from ldlm_lint.evidence.files import name_of, write
        from ldlm_lint.probe.recording import recorded

        self.evidence = recorded(watcher, self._run(watcher, status, failure), found)
        if self.out is None:
            return
        try:
            self.path = write(self.evidence, self.out, self._named(name_of(self.evidence)))
            if self._snapshots is not None:
                self._snapshots.end(self.path)
        except (OSError, TypeError, ValueError) as error:
            warnings.warn(f"ldlm-lint: the evidence could not be written to {self.out}: {error}", stacklevel=2)

    def _run(self, watcher: Watcher, status: Status, failure: str) -> Run:
        """Facts about the run besides those of the watcher."""
        return Run(
            kind="watch",
            run_id=self._identity(watcher.session),
            command=tuple(sys.orig_argv),
            root=self.root.replace(os.sep, "/"),
            pid=self._pid,
            status=status,
            started=self._started,
            exception=failure,
        )

    def _identity(self, session: Session) -> str:
        """The run's id; the same at each call, unless the process group was created in between."""
        if self._known[0] != session.world_size:
            self._known = session.world_size, _run_id(session, self._use)
        return self._known[1]

    def _named(self, name: str) -> str:
        return name if self._use == 1 else name.replace(".json", f"-{self._use}.json")

    def _at_exit(self) -> None:
        self.finish(getattr(sys, "last_value", None))

    def __enter__(self) -> Watched:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(error)


def watch(steps: int = 20, out: str | os.PathLike[str] | None = "evidence", root: str | None = None) -> Watched:
    """Watch the next ``steps`` optimizer steps of this process.

    ``out`` is the folder for the evidence file (None: no file), ``root`` the project that places are relative to (default:
    the working directory). Use it as ``with watch(...) as watched:``.
    """
    return Watched(steps, out, root)


def _occupied() -> str:
    if VARIABLE in os.environ:
        return "`ldlm-lint probe run` already watches this process"
    if _active is not None and _active._pid == os.getpid():
        return "another watch is running in this process"
    return ""


def _loosen(watcher: Watcher) -> None:
    """Prepare the hooks for their removal, maybe from inside an optimizer's step.

    The watcher's own patches are on top of the observers' and are removed first. Hooks of all optimizers, also the
    observers', stay until `Watcher.release`: torch may be iterating over them just now.
    """
    session, own = watcher.session, watcher._hooks
    held = [undo for undo in session._undo if _of_optimizers(undo)]
    session._undo[:] = [undo for undo in session._undo if not _of_optimizers(undo)]
    patches = [undo for undo in own._undo if not _of_optimizers(undo)]
    own._undo[:] = [undo for undo in own._undo if _of_optimizers(undo)] + held
    while patches:
        patches.pop()()


def _of_optimizers(undo: Any) -> bool:
    """Whether this is the ``remove`` of a hook that all optimizers have."""
    module = sys.modules.get("torch.optim.optimizer")
    kept = [getattr(module, f"_global_optimizer_{kind}_hooks", None) for kind in ("pre", "post")]
    reference = getattr(getattr(undo, "__self__", None), "hooks_dict_ref", None)
    return reference is not None and any(reference() is one for one in kept)


def _run_id(session: Any, use: int) -> str:
    """The same for all ranks of a training: derived from what its processes share, or from this process if it is
    alone.
    """
    if session.world_size < 2:
        return f"{socket.gethostname()}-{os.getpid()}-{use}-{time.time_ns()}"
    names = ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")
    # On one machine the ranks are children of one launcher, which distinguishes this run from the previous one.
    one_node = os.environ.get("LOCAL_WORLD_SIZE", os.environ.get("WORLD_SIZE")) == os.environ.get("WORLD_SIZE")
    parts = [os.environ.get(name, "") for name in names] + ([str(os.getppid())] if one_node else [])
    return "-".join(["ranks", *(part for part in parts if part), str(use)])


def _status(error: BaseException | None) -> Status:
    if isinstance(error, KeyboardInterrupt):
        return Status.INTERRUPTED
    return Status.CRASHED if _described(error) else Status.FINISHED


def _described(error: BaseException | None) -> str:
    if error is None or isinstance(error, SystemExit):
        return failure_of(error and error.code)
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}"[:2000] if lines else type(error).__name__


def _ignored(message: str) -> tuple[Any, ...]:
    """Put up a filter that ignores a warning, and return it for its removal."""
    entry = ("ignore", re.compile(message), Warning, None, 0)
    first(entry)
    return entry
