"""``ldlm-lint check``: findings, fixes, the patch that the fixes would be, ignore comments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint import arguments as arguments_of
from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import FINDINGS, OK, exit_code, print_evidence, print_notes, print_problems, print_stale

if TYPE_CHECKING:
    from ldlm_lint.config import Config
    from ldlm_lint.evidence.dossier import Dossier
    from ldlm_lint.gate import Gate
    from ldlm_lint.model import Finding, Report
    from ldlm_lint.report.text import Fixed

configure = arguments_of.configure_check


def run(arguments: argparse.Namespace) -> int:
    """Lint, fix or silence what the arguments name, print it, and return the exit code."""
    from ldlm_lint import engine

    if arguments.diff and arguments.format != "text":
        raise UsageError("--diff prints a patch and cannot be combined with --format")
    if arguments.add_ignores and (arguments.fix or arguments.diff):
        raise UsageError("--add-ignores cannot be combined with --fix or --diff; fix first, then ignore what remains")
    if arguments.interactive and (not arguments.fix or arguments.diff or arguments.format != "text"):
        raise UsageError(
            "--interactive asks about each fix of --fix, and cannot be combined with --diff or --format json"
        )
    if arguments.add_ignores and arguments.evidence:
        raise UsageError("--add-ignores cannot be combined with --evidence; a comment would outlive what was seen")
    base = Path.cwd()
    evidence = arguments_of.evidence(arguments, base)
    paths, config = arguments_of.configuration(arguments, base)
    gate = arguments_of.gate(arguments, paths, config, base)
    if arguments.diff or not (arguments.fix or arguments.add_ignores):
        _warn_of_interrupted(paths, base)
    if arguments.fix or arguments.diff:
        return _fixed(arguments, paths, config, gate, base, evidence)
    if arguments.add_ignores:
        return _ignored(arguments, paths, config, gate, base)
    report = engine.run(paths, config, base=base, gate=gate, evidence=evidence)
    _show(arguments, report, base)
    return exit_code(report, config.fail_level, exit_zero=arguments.exit_zero)


def _fixed(
    arguments: argparse.Namespace,
    paths: Sequence[Path],
    config: Config,
    gate: Gate,
    base: Path,
    evidence: Dossier | None,
) -> int:
    from ldlm_lint.fixing import apply_fixes
    from ldlm_lint.model import Applicability
    from ldlm_lint.report.text import Fixed

    limit = Applicability.UNSAFE if arguments.unsafe_fixes else Applicability.SAFE
    choose = _asking(base) if arguments.interactive else None
    outcome = apply_fixes(
        paths, config, base, limit, write=not arguments.diff, gate=gate, choose=choose, evidence=evidence
    )
    print_notes(outcome.notes, base)
    code = exit_code(outcome.report, config.fail_level, exit_zero=arguments.exit_zero)
    if not arguments.diff:
        _show(arguments, outcome.report, base, Fixed(outcome.applied, len(outcome.files)))
        return code
    sys.stdout.flush()
    sys.stdout.buffer.write(outcome.diff)
    sys.stdout.buffer.flush()
    print_problems(outcome.report, base)
    print_evidence(outcome.report, base)
    return FINDINGS if outcome.diff and code == OK and not arguments.exit_zero else code


def _asking(base: Path) -> Callable[[Report], Iterable[Finding]]:
    from ldlm_lint.commands.interactive import asking
    from ldlm_lint.rules import by_symbol

    return asking(base, by_symbol).accepted


def _warn_of_interrupted(paths: Sequence[Path], base: Path) -> None:
    from ldlm_lint.autofix.undo import journal_for
    from ldlm_lint.writing import interrupted_note

    print_notes(interrupted_note(journal_for(paths, base)), base)


def _ignored(arguments: argparse.Namespace, paths: Sequence[Path], config: Config, gate: Gate, base: Path) -> int:
    from ldlm_lint.fixing import ignore_all
    from ldlm_lint.report.text import Fixed

    outcome = ignore_all(paths, config, base, gate)
    print_notes(outcome.notes, base)
    _show(arguments, outcome.report, base, Fixed(outcome.applied, len(outcome.files), "Silenced"))
    return exit_code(outcome.report, config.fail_level, exit_zero=arguments.exit_zero)


def _show(arguments: argparse.Namespace, report: Report, base: Path, fixed: Fixed | None = None) -> None:
    from ldlm_lint.rules import by_symbol

    if arguments.format == "json":
        from ldlm_lint.report import json

        sys.stdout.write(json.render(report, base=base, rules=by_symbol))
        return
    from ldlm_lint.report import text

    text.write(
        report,
        sys.stdout,
        base=base,
        rules=by_symbol,
        unsafe=arguments.unsafe_fixes,
        quiet=arguments.quiet,
        fixed=fixed,
    )
    sys.stdout.flush()
    print_problems(report, base)
    print_evidence(report, base)
    if not arguments.quiet:
        print_stale(report, base)
