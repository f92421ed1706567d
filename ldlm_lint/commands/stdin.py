"""``ldlm-lint check - --stdin-filename PATH``: lints and fixes standard input as the file at PATH, which need not
exist."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint import arguments as arguments_of
from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import FINDINGS, OK, exit_code, print_notes, print_problems
from ldlm_lint.commands.render import chosen, show

if TYPE_CHECKING:
    from ldlm_lint.config import Configured
    from ldlm_lint.gate import Gate

STDIN = "-"
_WITHOUT = (
    ("add_ignores", "--add-ignores"),
    ("interactive", "--interactive"),
    ("since", "--since"),
    ("watch", "--watch"),
    ("show_files", "--show-files"),
    ("show_settings", "--show-settings"),
)


def is_meant(arguments: argparse.Namespace) -> bool:
    """Whether a check is to read stdin."""
    return arguments.stdin_filename is not None or STDIN in map(str, arguments.paths)


def run(arguments: argparse.Namespace) -> int:
    """Lint or fix the text from stdin, print it, and return the exit code.

    With ``--fix`` stdout gets the text, changed or not, and the findings go to stderr.
    """
    base = Path.cwd()
    _reject_conflicts(arguments)
    data = sys.stdin.buffer.read()
    arguments.stdin_filename = arguments.stdin_filename or _name_for(data)
    arguments.paths = [arguments.stdin_filename]
    paths, configured = arguments_of.configuration(arguments, base)
    chosen(arguments, configured.run)
    gate = arguments_of.gate(arguments, paths, configured.run, base)
    if arguments.fix or arguments.diff:
        return _fixed(arguments, paths[0].as_posix(), data, configured, gate, base)
    from ldlm_lint import engine

    evidence = arguments_of.evidence(arguments, base)
    report = engine.run(paths, configured, base=base, overlay={paths[0].as_posix(): data}, gate=gate, evidence=evidence)
    return show(arguments, report, base, configured)


def _reject_conflicts(arguments: argparse.Namespace) -> None:
    """Raise UsageError for options that make no sense with stdin."""
    others = [str(path) for path in arguments.paths if str(path) not in (STDIN, ".", str(arguments.stdin_filename))]
    if others:
        raise UsageError(f"stdin (-) cannot be combined with other paths ({others[0]})")
    if arguments.stdin_filename is not None and os.path.isdir(arguments.stdin_filename):
        raise UsageError(f"--stdin-filename must be a file, but {arguments.stdin_filename} is a directory")
    for name, flag in _WITHOUT:
        if getattr(arguments, name, None):
            raise UsageError(f"{flag} needs files on disk and cannot be combined with stdin")
    if arguments.evidence and (arguments.fix or arguments.diff):
        raise UsageError("--evidence needs files on disk and cannot be combined with fixes of stdin")


def _name_for(data: bytes) -> str:
    """A name for a text without one; it only has to show the file kind."""
    from ldlm_lint.shell.detect import is_shell

    return "stdin.sh" if is_shell(Path("stdin"), data[:256]) else "stdin.py"


def _fixed(arguments: argparse.Namespace, path: str, data: bytes, configured: Configured, gate: Gate, base: Path) -> int:
    from ldlm_lint.buffers import fix_buffer
    from ldlm_lint.model import Applicability
    from ldlm_lint.report.view import Fixed

    limit = Applicability.UNSAFE if arguments.unsafe_fixes else Applicability.SAFE
    after, outcome = fix_buffer(path, data, configured, base, limit, gate)
    print_notes(outcome.notes, base)
    if not arguments.diff:
        _write(after)
        # stdout contains only the text, whatever the report uses.
        with contextlib.redirect_stdout(sys.stderr):
            return show(arguments, outcome.report, base, configured, Fixed(outcome.applied, len(outcome.files), places=outcome.places))
    _write(outcome.diff)
    print_notes(outcome.report.warnings, base)
    print_problems(outcome.report, base)
    code = exit_code(outcome.report, configured, exit_zero=arguments.exit_zero)
    return FINDINGS if outcome.diff and code == OK and not arguments.exit_zero else code


def _write(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
