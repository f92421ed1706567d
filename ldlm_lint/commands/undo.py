"""``ldlm-lint undo``: takes back the last run of fixes."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.commands.output import FAILURE, FINDINGS, OK, fail, print_notes

if TYPE_CHECKING:
    from ldlm_lint.autofix.journal import Journal, State
    from ldlm_lint.autofix.runs import Run
    from ldlm_lint.autofix.undo import Undone

NOTHING = FINDINGS
EPILOG = (
    "exit codes: 0 undone, or listed; 1 nothing to undo; 2 invalid usage; 3 refused because a file changed, or "
    "failed; nothing was undone"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``undo``."""
    parser.epilog = EPILOG
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="any path in the project (default: .)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list the runs that can be undone")
    what.add_argument("--partial", action="store_true", help="skip files that changed since, undo the others")


def run(arguments: argparse.Namespace) -> int:
    """Take the last run back or list the runs, print it, and return the exit code."""
    from ldlm_lint.autofix.journal import JournalError
    from ldlm_lint.autofix.transaction import TransactionError
    from ldlm_lint.autofix.undo import history, nearest_journal, undo

    base = Path.cwd()
    path = Path(os.path.abspath(base / arguments.path))
    if not path.exists():
        return fail(FAILURE, f"{arguments.path}: no such file or directory")
    journal = nearest_journal(path, base)
    try:
        if arguments.list:
            return _listed(history(journal))
        return _told(journal, undo(journal, arguments.partial), base)
    except TransactionError as error:
        return fail(FAILURE, f"nothing undone: {_shown([error.path.as_posix()], base)[0]}: {error}")
    except JournalError as error:
        return fail(FAILURE, f"nothing undone: {error}")


def _listed(runs: list[tuple[Run, State]]) -> int:
    for one, state in runs:
        print(f"{one.id}  {one.time}  {state.value:8}  {_count(len(one.files), 'file')}  {_about(one)}")
    if not runs:
        print("No runs to undo here.")
    return OK


def _told(journal: Journal, done: Undone, base: Path) -> int:
    from ldlm_lint.writing import recovery_notes

    print_notes(tuple(note for one in done.recovered for note in recovery_notes(journal, one)), base)
    if done.run is None:
        if any(not one.completed for one in done.recovered):
            return OK
        print("Nothing to undo.")
        return NOTHING
    changed, gone = _paths(journal, done.changed, base), _paths(journal, done.gone, base)
    level = "error" if done.refused else "warning"
    for one, reason in (*((one, "changed after") for one in changed), *((one, "was deleted after") for one in gone)):
        print(f"{level}: {one} {reason} the run of {done.run.time}, so it is not restored", file=sys.stderr)
    if done.refused:
        return fail(FAILURE, "nothing was undone; --partial undoes the other files")
    for one in _paths(journal, done.restored, base):
        print(f"restored {one}")
    for one in _paths(journal, done.already, base):
        print(f"{one} already has its old content")
    print(f"Undone: the run of {done.run.time}, {_count(len(done.restored), 'file')} restored ({_about(done.run)}).")
    return OK


def _about(run: Run) -> str:
    return ", ".join([" ".join(run.options), *_fixes(run.rules)])


def _fixes(rules: Mapping[str, int]) -> Iterable[str]:
    return (f"{name} {count}" for name, count in sorted(rules.items()))


def _paths(journal: Journal, relative: Iterable[str], base: Path) -> list[str]:
    return _shown([(journal.root / one).as_posix() for one in relative], base)


def _shown(paths: Iterable[str], base: Path) -> list[str]:
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.common import shown_path

    return [clean(shown_path(path, base)) for path in paths]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
