"""Changes of many files that happen all or not at all, even if the process is killed, and recovery of interrupted ones.

All new bytes are on the disk next to their files before the first of these is replaced, so that a full disk, a folder
or an owner causes an error before anything has changed.
"""

from __future__ import annotations

import enum
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ldlm_lint.autofix.journal import LARGEST_FILE, Journal, JournalError, State
from ldlm_lint.autofix.runs import Entry, Run, digest, is_inside
from ldlm_lint.autofix.write import FileChangedError, WriteError, expect, real_file, refusal, stage, swap
from ldlm_lint.files import disk


class TransactionError(WriteError):
    """Changes of which none was made; ``path`` is the file that caused the error."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(reason)
        self.path = path


class HalfWayError(TransactionError):
    """Changes of which some were made and could not be reverted; the next run or an undo does that."""


class Content(enum.Enum):
    """The current content of a file of a run."""

    OLD = "old"
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"


class Recovered(NamedTuple):
    """How an interrupted run was finished.

    ``completed`` says that all its changes were made and stay; else ``restored`` are the files that have their old
    bytes again, and ``left`` those that were changed since and are unchanged, with the place of their old bytes.
    """

    run: Run
    completed: bool
    restored: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()


class _Step(NamedTuple):
    """One file of a run on its way."""

    real: Path
    temporary: Path
    before: bytes
    after: bytes


def commit(
    journal: Journal,
    changes: Mapping[Path, tuple[bytes, bytes]],
    options: Sequence[str] = (),
    rules: Mapping[str, int] | None = None,
    undoes: str = "",
) -> Run:
    """Change all files from their old bytes to new ones, or none; the lock of the journal must be held.

    Raises TransactionError if a file changed, is outside of the journal's root or cannot be written, JournalError if
    the journal cannot be written or an interrupted run exists: then no file is changed.
    """
    if unfinished(journal):
        raise JournalError(f"an interrupted run must be finished first: {journal.runs}; try again")
    listed = sorted((_relative(journal, path, before), before, after) for path, (before, after) in changes.items())
    try:
        run = journal.begin(listed, options, rules or {}, undoes)
    except OSError as error:
        raise JournalError(f"cannot write the journal in {journal.folder}: {error.strerror or error}") from error
    try:
        _carry_out([_step(journal, run, number, before, after) for number, (_, before, after) in enumerate(listed)])
        journal.set_applied(run.id)
    except BaseException as error:
        _take_back(journal, run, error)
        if isinstance(error, OSError):
            raise TransactionError(journal.root, f"cannot be written: {error.strerror or error}") from error
        raise
    return run


def unfinished(journal: Journal) -> list[str]:
    """The runs that were interrupted, the newest first, or are under way; raises JournalError."""
    return [name for name, state in reversed(journal.states().items()) if state is State.PREPARED]


def recover(journal: Journal) -> list[Recovered]:
    """Bring interrupted runs to an end; the lock must be held. Raises JournalError if that cannot be."""
    done = [_recovered(journal, journal.read(name)) for name in unfinished(journal)]
    for name, state in journal.states().items():
        if state is State.APPLIED and (run := journal.read(name)).undoes:
            finish_undo(journal, run)
    return done


def finish_undo(journal: Journal, run: Run) -> None:
    """Mark the run undone that an applied undo reverted, and delete the undo; raises JournalError."""
    try:
        if run.undoes in journal.states():
            journal.set_undone(run.undoes)
        journal.discard(run.id)
    except OSError as error:
        raise JournalError(f"{journal.runs / run.id}: {error.strerror or error}") from error


def content(journal: Journal, entry: Entry) -> tuple[Content, bytes]:
    """The current content of a file of a run, and its bytes if they are the new ones.

    A link instead of a file counts as a change, and so does a file that cannot have been fixed. Raises JournalError for
    an existing file that cannot be read.
    """
    real = journal.root / entry.path
    try:
        data = _own_bytes(real, entry.path)
    except (FileNotFoundError, NotADirectoryError):
        return Content.GONE, b""
    except OSError as error:
        raise JournalError(f"{real} cannot be read: {error.strerror or error}") from error
    found = "" if data is None else digest(data)
    if data is not None and found == entry.after:
        return Content.NEW, data
    return Content.OLD if found == entry.before else Content.CHANGED, b""


def _own_bytes(real: Path, relative: str) -> bytes | None:
    """The bytes of a project's own file; None if it cannot have been fixed."""
    from ldlm_lint.discover import kind_of

    status = os.lstat(real)
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_FILE:
        return None
    if not is_inside(relative) or os.path.realpath(real) != str(real) or kind_of(real) is None:
        return None
    return disk.read(real, LARGEST_FILE)


def _relative(journal: Journal, path: Path, before: bytes) -> str:
    try:
        real = real_file(path, journal.root)
        # Before anything is recorded: the same change by another run must not count as this run's work and be undone
        # with it.
        expect(real, before)
    except FileChangedError as error:
        raise TransactionError(path, "changed since it was read") from error
    except WriteError as error:
        raise TransactionError(path, str(error)) from error
    except OSError as error:
        raise TransactionError(path, f"cannot be read: {error.strerror or error}") from error
    fault = refusal(real)
    relative = real.relative_to(journal.root).as_posix()
    if fault or not is_inside(relative):
        raise TransactionError(path, fault or "is in a folder of another tool")
    return relative


def _step(journal: Journal, run: Run, number: int, before: bytes, after: bytes) -> _Step:
    real = journal.root / run.files[number].path
    return _Step(real, _temporary(real, run, number), before, after)


def _temporary(real: Path, run: Run, number: int) -> Path:
    """A name that can be derived from the journal, and short, since the file's own name may have the maximum length."""
    return real.with_name(f".ldlm-lint-{run.id}-{number}.tmp")


def _carry_out(steps: Sequence[_Step]) -> None:
    """Replace all files; raises TransactionError for the first that cannot be, some may have been replaced then."""
    for act in (_stage, _swap):
        for step in steps:
            try:
                act(step)
            except FileChangedError as error:
                raise TransactionError(step.real, "changed since it was read") from error
            except OSError as error:
                raise TransactionError(step.real, f"cannot be written: {error.strerror or error}") from error


def _stage(step: _Step) -> None:
    expect(step.real, step.before)
    disk.remove(step.temporary)
    stage(step.temporary, step.real, step.after)


def _swap(step: _Step) -> None:
    swap(step.temporary, step.real, step.before)


def _take_back(journal: Journal, run: Run, cause: BaseException) -> None:
    """After a failure, restore the old bytes of files and delete the run; raises HalfWayError if that fails too."""
    try:
        recovered = _recovered(journal, run, keep_complete=False)
        if not recovered.restored and run.id in journal.states():
            journal.discard(run.id)
    except (JournalError, OSError) as error:
        path = cause.path if isinstance(cause, TransactionError) else journal.root
        told = "some files may be changed already; the next --fix or undo restores them"
        raise HalfWayError(path, f"{cause or 'interrupted'}, and then {error}: {told}") from cause


def _recovered(journal: Journal, run: Run, keep_complete: bool = True) -> Recovered:
    """Finish one run; raises JournalError without any change if its old bytes are missing."""
    found = [content(journal, entry) for entry in run.files]
    try:
        if keep_complete and all(one is Content.NEW for one, _ in found):
            _remove_temporaries(journal, run)
            journal.set_applied(run.id)
            return Recovered(run, True)
        steps = [
            _step(journal, run, number, data, journal.old_bytes(run, number))
            for number, (one, data) in enumerate(found)
            if one is Content.NEW
        ]
        _remove_temporaries(journal, run)
        _carry_out(steps)
        left = [number for number, (one, _) in enumerate(found) if one in (Content.CHANGED, Content.GONE)]
        if left and not run.undoes:
            journal.set_undone(run.id)
        else:
            journal.discard(run.id)
    except (OSError, TransactionError) as error:
        where = f"{error.path} " if isinstance(error, TransactionError) else ""
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise JournalError(f"run {run.id} cannot be finished: {where}{reason}") from error
    restored = tuple(entry.path for entry, (one, _) in zip(run.files, found, strict=True) if one is Content.NEW)
    return Recovered(run, False, restored, tuple((run.files[n].path, str(journal.kept(run, n))) for n in left))


def _remove_temporaries(journal: Journal, run: Run) -> None:
    for number, entry in enumerate(run.files):
        real = journal.root / entry.path
        if os.path.realpath(real.parent) == str(real.parent):
            disk.remove(_temporary(real, run, number))
