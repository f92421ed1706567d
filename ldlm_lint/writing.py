"""Writes the files of a run through its journal, and reports problems and notes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ldlm_lint.autofix.journal import Journal, JournalError
from ldlm_lint.autofix.lock import LockedError, locked
from ldlm_lint.autofix.runs import is_inside
from ldlm_lint.autofix.transaction import Recovered, TransactionError, commit, recover, unfinished
from ldlm_lint.autofix.write import WriteError, real_file, refusal
from ldlm_lint.model import Problem
from ldlm_lint.notebooks.document import NotebookError
from ldlm_lint.notebooks.rewrite import as_stored

NOT_FIXED = "not fixed"


def blocked(paths: Iterable[str], journal: Journal) -> dict[str, str]:
    """The files that cannot be replaced, with reasons, so that no fix of several files starts if one of them cannot be
    written."""
    faults = ((path, _fault(Path(path), journal)) for path in paths)
    return {path: fault for path, fault in faults if fault}


def write_changed(
    journal: Journal,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    failure: str = NOT_FIXED,
    options: Sequence[str] = (),
    rules: Mapping[str, int] | None = None,
) -> tuple[Problem, ...]:
    """Write new contents of files, all or none; if none, a problem gives ``failure`` and the reason.

    ``options`` and ``rules``, the number of fixed findings by rule, go into the journal.
    """
    if not after:
        return ()
    try:
        before, after = as_stored(before, after)
        with journal.held():
            commit(journal, {Path(path): (before[path], after[path]) for path in after}, options, rules)
            # All is written; old runs that cannot be forgotten now are so by a later run.
            with contextlib.suppress(OSError, JournalError):
                journal.prune()
    except TransactionError as error:
        return (Problem(error.path.as_posix(), 1, f"{failure}, and no other file either: {error}"),)
    except (JournalError, NotebookError) as error:
        return (Problem("", 1, f"{failure}: {error}"),)
    return ()


def finish_interrupted(journal: Journal) -> tuple[Problem, ...]:
    """Finish an interrupted earlier run, and report what was done; raises JournalError."""
    if not unfinished(journal):
        return ()
    with journal.held():
        return tuple(note for one in recover(journal) for note in recovery_notes(journal, one))


def recovery_notes(journal: Journal, done: Recovered) -> Iterator[Problem]:
    """Notes about an interrupted run that was finished."""
    what = f"an interrupted {'undo' if done.run.undoes else 'run'} of {done.run.time}"
    if done.completed:
        yield Problem("", 1, f"{what} had written all its files and counts as done")
        return
    count = len(done.restored)
    yield Problem("", 1, f"{what} was undone: {count} file{'s' if count != 1 else ''} restored")
    for path, kept in done.left:
        reason = f"changed after {what} and is not restored; its old content is in {kept}"
        yield Problem((journal.root / path).as_posix(), 1, reason)


def interrupted_note(journal: Journal) -> tuple[Problem, ...]:
    """A warning if an interrupted run exists; a check changes nothing and only reports it."""
    waiting: list[str] = []
    try:
        waiting = unfinished(journal)
        if waiting:
            with locked(journal.folder / "lock", patience=0):
                waiting = unfinished(journal)
    except (LockedError, JournalError):
        # It is still running, or the journal is unusable, which --fix reports.
        return ()
    except OSError:
        # Where nothing can be written no lock can be taken either, and nothing is running.
        pass
    told = "an earlier --fix was interrupted and may have fixed only some files; the next --fix or undo restores them"
    return (Problem("", 1, told),) if waiting else ()


def _fault(path: Path, journal: Journal) -> str:
    try:
        real = real_file(path, journal.root)
    except WriteError as error:
        return str(error)
    if not is_inside(real.relative_to(journal.root).as_posix()):
        return "is in a folder of another tool"
    return refusal(real)
