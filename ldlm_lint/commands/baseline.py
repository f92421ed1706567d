"""``ldlm-lint baseline``: the file of known defects, created or updated."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from ldlm_lint import arguments as arguments_of
from ldlm_lint.commands.output import FAILURE, exit_code, fail, print_notes, print_problems
from ldlm_lint.commands.progress import watched
from ldlm_lint.options import configure_baseline

configure = configure_baseline


def run(arguments: argparse.Namespace) -> int:
    """Write the baseline, print the changes, and return the exit code."""
    from ldlm_lint import baseline
    from ldlm_lint.autofix.write import WriteError
    from ldlm_lint.gate import Gate
    from ldlm_lint.report.common import shown_path

    base = Path.cwd()
    paths, configured = arguments_of.configuration(arguments, base)
    place, root = arguments_of.baseline_file(arguments, configured.run, base)
    # Always read it: a file that is not a baseline must not be overwritten.
    before = baseline.read(place) if os.path.lexists(place) else {}
    lint = watched(quiet=False)
    report = lint(paths, configured, base=base, gate=Gate(before if arguments.update else {}))
    print_notes(report.warnings, base)
    print_problems(report, base, everything=True)
    code = exit_code(report, configured, exit_zero=True)
    if not report.files:
        return code
    after = baseline.updated(before if arguments.update else {}, report)
    try:
        written = baseline.write(place, after, root)
    except WriteError as error:
        return fail(FAILURE, str(error))
    print(baseline.summary(shown_path(place.as_posix(), base), before, after, written))
    return code
