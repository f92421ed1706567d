"""Undoes the last run: restores the old bytes of every file that still has the new ones."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ldlm_lint.autofix.journal import Journal, JournalError, State
from ldlm_lint.autofix.root import journal_root, runs_of
from ldlm_lint.autofix.runs import Run
from ldlm_lint.autofix.transaction import Content, Recovered, commit, content, finish_undo, recover


class Undone(NamedTuple):
    """What an undo did; paths are relative to the journal's root.

    ``run`` was undone (None: there was none, or an interrupted one was just finished): ``restored`` have their old
    bytes again, ``already`` had them, ``changed`` and ``gone`` were left alone. With ``refused`` nothing was changed.
    """

    recovered: tuple[Recovered, ...]
    run: Run | None = None
    restored: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    refused: bool = False


def journal_for(paths: Sequence[Path], base: Path) -> Journal:
    """The journal of a run over absolute paths, at the root of the project around them all."""
    return Journal(journal_root(paths, base))


def nearest_journal(path: Path, base: Path) -> Journal:
    """The journal for a path (absolute): the nearest one upwards, not beyond its repository or project."""
    start = path if path.is_dir() else path.parent
    here = journal_for([start], base)
    chain = (start.resolve(), *start.resolve().parents)
    top = next((one for one in chain if (one / ".git").exists()), here.root)
    for directory in chain:
        if os.path.lexists(runs_of(directory)):
            return Journal(directory)
        if directory == top:
            break
    return here


def history(journal: Journal) -> list[tuple[Run, State]]:
    """All runs of fixes, the newest first; raises JournalError."""
    runs = [(journal.read(name), state) for name, state in reversed(journal.states().items())]
    return [(run, state) for run, state in runs if not run.undoes]


def undo(journal: Journal, partial: bool = False) -> Undone:
    """Undo the last run that was applied and not undone.

    An interrupted run is finished first; if that undid a run of fixes, nothing else is done. With ``partial``, files
    changed since are skipped; otherwise they prevent any change. Raises JournalError and TransactionError; then nothing
    was undone.
    """
    if not journal.exists():
        return Undone(())
    with journal.held():
        recovered = tuple(recover(journal))
        if any(not one.completed and not one.run.undoes for one in recovered):
            return Undone(recovered)
        last = next((name for name, state in reversed(journal.states().items()) if state is State.APPLIED), None)
        run = journal.read(last) if last else None
        return Undone(recovered) if run is None else _undone(journal, run, recovered, partial)


def _undone(journal: Journal, run: Run, recovered: tuple[Recovered, ...], partial: bool) -> Undone:
    found = [content(journal, entry) for entry in run.files]
    paths = {
        kind: tuple(entry.path for entry, (one, _) in zip(run.files, found, strict=True) if one is kind)
        for kind in Content
    }
    changed, gone = paths[Content.CHANGED], paths[Content.GONE]
    refused = bool(changed or gone) and not partial
    if not refused:
        changes = {
            journal.root / entry.path: (data, journal.old_bytes(run, number))
            for number, (entry, (one, data)) in enumerate(zip(run.files, found, strict=True))
            if one is Content.NEW
        }
        done = commit(journal, changes, ("undo",), {}, undoes=run.id)
        # All files have their old bytes; the next run or undo completes the journal.
        with contextlib.suppress(JournalError):
            finish_undo(journal, done)
    return Undone(recovered, run, paths[Content.NEW], paths[Content.OLD], changed, gone, refused)
