"""The journal of a project's runs, in ``.ldlm-lint/`` at its root, from which a run can be undone.

``runs/<id>/`` contains ``journal.json`` (see `ldlm_lint.autofix.runs`), the old bytes of each file as
``<number>.before`` and ``state``, which is written last: without it the run never touched a file. New bytes need no
copy, since finishing a run means restoring the old ones. State changes are atomic:

    prepared -> applied -> undone       a run of fixes
    prepared -> applied -> (removed)    an undo, once the run that it undoes is ``undone``

A ``prepared`` run without a process that holds the lock was interrupted.
"""

from __future__ import annotations

import contextlib
import datetime
import enum
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ldlm_lint.autofix.lock import PATIENCE, LockedError, locked
from ldlm_lint.autofix.runs import Entry, Run, RunError, digest, is_id, number_of, parse, render
from ldlm_lint.config import JOURNAL
from ldlm_lint.files import disk

MOST_RUNS = 20
MOST_BYTES = 200_000_000
LARGEST_FILE = 16_000_000
LARGEST_JOURNAL = 64_000_000
_JOURNAL, _STATE, _APPLIED = "journal.json", "state", "state.applied"


class JournalError(Exception):
    """A journal that cannot be written or used; nothing was written because of it. The text says why."""


class State(str, enum.Enum):
    """How far a run has come."""

    PREPARED = "prepared"
    APPLIED = "applied"
    UNDONE = "undone"


@dataclass(frozen=True, slots=True)
class Journal:
    """The journal of the project at ``root``, an absolute path without links."""

    root: Path

    @property
    def folder(self) -> Path:
        """The path of the journal, existing or not."""
        return self.root / JOURNAL

    @property
    def runs(self) -> Path:
        """The folder of the runs."""
        return self.folder / "runs"

    @contextlib.contextmanager
    def held(self, patience: float | None = None) -> Iterator[None]:
        """Create the journal if necessary and hold its lock; raises JournalError."""
        stack = contextlib.ExitStack()
        try:
            self._make()
            stack.enter_context(locked(self.folder / "lock", PATIENCE if patience is None else patience))
            self._tidy()
        except BaseException as error:
            stack.close()
            if isinstance(error, OSError):
                raise JournalError(f"cannot write the journal in {self.folder}: {error.strerror or error}") from error
            if isinstance(error, LockedError):
                raise JournalError(str(error)) from error
            raise
        with stack:
            yield

    def exists(self) -> bool:
        """Whether there may be runs; raises JournalError if the path is something else."""
        if not os.path.lexists(self.folder):
            return False
        _check_folder(self.folder, self.root)
        if not os.path.lexists(self.runs):
            return False
        _check_folder(self.runs, self.root)
        return True

    def states(self) -> dict[str, State]:
        """The states of all runs, the oldest first; raises JournalError."""
        try:
            if not self.exists():
                return {}
            names = sorted(filter(is_id, os.listdir(self.runs)), key=number_of)
            return {name: state for name in names if (state := self._state(name))}
        except OSError as error:
            raise JournalError(f"{self.runs} cannot be read: {error.strerror or error}") from error

    def read(self, identifier: str) -> Run:
        """The record of a run; raises JournalError."""
        path = self.runs / identifier / _JOURNAL
        try:
            return parse(disk.read(path, LARGEST_JOURNAL), identifier)
        except RunError as error:
            raise JournalError(f"{path} {error}; nothing was changed") from error
        except OSError as error:
            raise JournalError(f"{path} cannot be read: {error.strerror or error}") from error

    def old_bytes(self, run: Run, number: int) -> bytes:
        """The bytes that a file of a run had before; raises JournalError."""
        path = self.kept(run, number)
        try:
            data = disk.read(path, LARGEST_FILE)
        except OSError as error:
            raise JournalError(f"{path} cannot be read: {error.strerror or error}") from error
        if digest(data) != run.files[number].before:
            raise JournalError(f"{path} was changed by another program; no file was changed")
        return data

    def kept(self, run: Run, number: int) -> Path:
        """Where the old bytes of a file of a run are."""
        return self.runs / run.id / f"{number}.before"

    def begin(
        self,
        changes: Sequence[tuple[str, bytes, bytes]],
        options: Sequence[str],
        rules: Mapping[str, int],
        undoes: str = "",
    ) -> Run:
        """Record a run before it begins: relative paths with old and new bytes; raises OSError."""
        # A number and not the time, since clocks are set back.
        run = Run(
            f"{self._next():06d}-{secrets.token_hex(6)}",
            f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M:%S} UTC",
            tuple(options),
            dict(rules),
            tuple(Entry(path, digest(before), digest(after)) for path, before, after in changes),
            undoes,
        )
        folder = self.runs / run.id
        os.mkdir(folder, 0o700)
        try:
            for number, (_, before, _) in enumerate(changes):
                disk.create(self.kept(run, number), before)
            disk.create(folder / _JOURNAL, render(run))
            # Finishing a run must not need disk space, since otherwise all files would have to be restored.
            disk.create(folder / _APPLIED, State.APPLIED.value.encode())
            disk.sync_folder(self.runs)
            disk.put(folder / _STATE, State.PREPARED.value.encode())
        except BaseException:
            self.discard(run.id)
            raise
        return run

    def set_applied(self, identifier: str) -> None:
        """Write down that a run has written all its files; raises OSError."""
        folder = self.runs / identifier
        os.replace(folder / _APPLIED, folder / _STATE)
        disk.sync_folder(folder)

    def set_undone(self, identifier: str) -> None:
        """Write down that the files of a run are as they were; raises OSError."""
        disk.put(self.runs / identifier / _STATE, State.UNDONE.value.encode())

    def discard(self, identifier: str) -> None:
        """Forget a run; raises OSError."""
        folder = self.runs / identifier
        # First, so that a partial run counts as one that never began.
        disk.remove(folder / _STATE)
        for name in os.listdir(folder):
            disk.remove(folder / name)
        os.rmdir(folder)

    def prune(self) -> None:
        """Delete the oldest runs until the limits are met; the newest stays; raises OSError."""
        runs = [name for name, state in self.states().items() if state is not State.PREPARED]
        sizes = [sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(self.runs / n)) for n in runs]
        kept = total = 0
        for size in reversed(sizes):
            total += size
            if kept and (kept == MOST_RUNS or total > MOST_BYTES):
                break
            kept += 1
        for name in runs[: len(runs) - kept]:
            self.discard(name)

    def _state(self, identifier: str) -> State | None:
        """The state of a run; None for one that never began."""
        folder = self.runs / identifier
        path = folder / _STATE
        try:
            _check_folder(folder, self.root)
            return State(disk.read(path, 100).decode("ascii", errors="replace"))
        except FileNotFoundError:
            # The lock holder may be removing it.
            return None
        except ValueError as error:
            raise JournalError(f"{path} is not part of a run; remove {folder} if it is not yours") from error

    def _next(self) -> int:
        return max(map(number_of, filter(is_id, os.listdir(self.runs))), default=0) + 1

    def _make(self) -> None:
        for folder in (self.folder, self.runs):
            with contextlib.suppress(FileExistsError):
                # Private files stay private in the journal.
                os.mkdir(folder, 0o700)
                disk.sync_folder(folder.parent)
            _check_folder(folder, self.root)

    def _tidy(self) -> None:
        """Make git ignore it, and remove runs without a state; the lock must be held."""
        ignore = self.folder / ".gitignore"
        if not os.path.lexists(ignore):
            disk.put(ignore, b"*\n")
        for name in os.listdir(self.runs):
            if is_id(name) and self._state(name) is None:
                self.discard(name)


def _check_folder(folder: Path, root: Path) -> None:
    """Raise JournalError if it is not a folder, or belongs to a user who owns neither the project nor this process.

    Raises FileNotFoundError if it does not exist.
    """
    try:
        status, owner = os.lstat(folder), os.stat(root).st_uid
    except FileNotFoundError:
        raise
    except OSError as error:
        raise JournalError(f"{folder} cannot be read: {error.strerror or error}") from error
    if not stat.S_ISDIR(status.st_mode):
        raise JournalError(f"{folder} is not a folder, so the journal cannot be written")
    if hasattr(os, "geteuid") and status.st_uid not in (owner, os.geteuid()):
        raise JournalError(f"{folder} belongs to another user; remove it if it should not be there")
