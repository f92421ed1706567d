"""``ldlm-lint check``: findings, fixes, fixes as a patch, ignore comments."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint import arguments as arguments_of
from ldlm_lint.arguments import UsageError
from ldlm_lint.commands import stdin
from ldlm_lint.commands.output import (
    FAILURE,
    FINDINGS,
    OK,
    STDOUT,
    check_writable,
    exit_code,
    fail,
    print_deprecated,
    print_evidence,
    print_notes,
    print_problems,
    write_file,
)
from ldlm_lint.commands.progress import watched
from ldlm_lint.commands.remembering import remembered
from ldlm_lint.commands.render import chosen, show
from ldlm_lint.options import configure_check
from ldlm_lint.report.formats import FOR_PEOPLE

if TYPE_CHECKING:
    from ldlm_lint.cache.session import Session
    from ldlm_lint.config import Configured
    from ldlm_lint.evidence.dossier import Dossier
    from ldlm_lint.gate import Gate
    from ldlm_lint.model import Finding, Report

configure = configure_check


def run(arguments: argparse.Namespace) -> int:
    """Lint, fix or silence the named files, print it, and return the exit code."""
    if stdin.is_meant(arguments):
        return stdin.run(arguments)
    if arguments.watch:
        from ldlm_lint.commands import watching

        return watching.run(arguments, run)
    _reject_conflicts(arguments)
    base = Path.cwd()
    return remembered(arguments, base, functools.partial(_run, arguments, base))


def _run(arguments: argparse.Namespace, base: Path, session: Session | None) -> int:
    evidence = arguments_of.evidence(arguments, base)
    paths, configured = arguments_of.configuration(arguments, base, None if session is None else session.note)
    if arguments.show_files or arguments.show_settings:
        from ldlm_lint.commands import questions

        return questions.answer(arguments, paths, configured, base)
    form = chosen(arguments, configured.run)
    print_deprecated(configured.run)
    if session is not None:
        # Files that only the launch graph reads are not among the look-ups that validate a recorded run.
        session.lasting = session.lasting and not form.launches
        for place in arguments_of.baselines(arguments, configured.run, base):
            session.note("file", place.as_posix())
    gate = arguments_of.gate(arguments, paths, configured.run, base)
    if arguments.diff or not (arguments.fix or arguments.add_ignores):
        _warn_of_interrupted(paths, base)
    if arguments.fix or arguments.diff:
        return _fixed(arguments, paths, configured, gate, base, evidence)
    if arguments.add_ignores:
        return _ignored(arguments, paths, configured, gate, base)
    lint = watched(quiet=arguments.quiet)
    report = lint(paths, configured, base=base, gate=gate, evidence=evidence, session=session, jobs=arguments.jobs)
    return show(arguments, report, base, configured)


def _reject_conflicts(arguments: argparse.Namespace) -> None:
    """Raise UsageError for arguments that contradict each other, or name a file that cannot be written."""
    other_format = arguments.format not in (None, *FOR_PEOPLE)
    if arguments.diff and (other_format or arguments.statistics):
        raise UsageError("--diff prints a patch and cannot be combined with --format or --statistics")
    if arguments.add_ignores and (arguments.fix or arguments.diff):
        raise UsageError("--add-ignores cannot be combined with --fix or --diff; fix first, then ignore what remains")
    if arguments.interactive and (not arguments.fix or arguments.diff or other_format or arguments.output):
        raise UsageError(
            "--interactive asks about each fix of --fix; it cannot be combined with --diff, --format or --output"
        )
    if arguments.add_ignores and arguments.evidence:
        raise UsageError("--add-ignores cannot be combined with --evidence: a comment would outlive the evidence")
    if arguments.output not in (None, STDOUT):
        check_writable("--output", arguments.output, arguments.paths)
        _reject_code(arguments.output)


def _reject_code(place: str) -> None:
    """Raise UsageError where a report would overwrite a program, which is an input of some check."""
    from ldlm_lint.discover import kind_of_name
    from ldlm_lint.source import Kind

    if kind_of_name(place) in (Kind.PYTHON, Kind.SHELL) and Path(place).is_file():
        raise UsageError(f"--output {place}: the report would overwrite code")


def _fixed(
    arguments: argparse.Namespace,
    paths: Sequence[Path],
    configured: Configured,
    gate: Gate,
    base: Path,
    evidence: Dossier | None,
) -> int:
    from ldlm_lint.fixing import apply_fixes
    from ldlm_lint.model import Applicability
    from ldlm_lint.report.view import Fixed

    limit = Applicability.UNSAFE if arguments.unsafe_fixes else Applicability.SAFE
    choose = _asking(base) if arguments.interactive else None
    outcome = apply_fixes(
        *(paths, configured, base, limit),
        write=not arguments.diff,
        gate=gate,
        choose=choose,
        evidence=evidence,
        lint=watched(quiet=arguments.quiet),
        unreached=arguments.show_unreached,
    )
    print_notes(outcome.notes, base)
    if not arguments.diff:
        fixed = Fixed(outcome.applied, len(outcome.files), places=outcome.places, found=outcome.found)
        return show(arguments, outcome.report, base, configured, fixed)
    code = exit_code(outcome.report, configured, exit_zero=arguments.exit_zero)
    try:
        _write_patch(outcome.diff, arguments.output)
    except OSError as error:
        if arguments.output in (None, STDOUT) or isinstance(error, BrokenPipeError):
            raise
        return fail(FAILURE, f"--output {arguments.output}: {error.strerror or error}")
    print_notes(outcome.report.warnings, base)
    print_problems(outcome.report, base)
    print_evidence(outcome.report, base)
    return FINDINGS if outcome.diff and code == OK and not arguments.exit_zero else code


def _write_patch(patch: bytes, place: str | None) -> None:
    """Write a patch to a file or, byte by byte, to stdout."""
    if place not in (None, STDOUT):
        write_file(place, patch)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(patch)
    sys.stdout.buffer.flush()


def _asking(base: Path) -> Callable[[Report], Iterable[Finding]]:
    from ldlm_lint.commands.interactive import asking
    from ldlm_lint.rules import by_symbol

    return asking(base, by_symbol).accepted


def _warn_of_interrupted(paths: Sequence[Path], base: Path) -> None:
    from ldlm_lint.autofix.root import journal_root, runs_of

    root = journal_root(paths, base)
    if os.path.lexists(runs_of(root)):
        from ldlm_lint.autofix.journal import Journal
        from ldlm_lint.writing import interrupted_note

        print_notes(interrupted_note(Journal(root)), base)


def _ignored(arguments: argparse.Namespace, paths: Sequence[Path], configured: Configured, gate: Gate, base: Path) -> int:
    from ldlm_lint.fixing import ignore_all
    from ldlm_lint.report.view import Fixed

    outcome = ignore_all(paths, configured, base, gate, lint=watched(quiet=arguments.quiet), unreached=arguments.show_unreached)
    print_notes(outcome.notes, base)
    return show(arguments, outcome.report, base, configured, Fixed(outcome.applied, len(outcome.files), "Silenced"))
