"""Shows a report in its format, on stdout or in a file; prints what the format cannot contain on stderr."""

from __future__ import annotations

import argparse
import functools
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import (
    FAILURE,
    STDOUT,
    exit_code,
    fail,
    print_bare_noqa,
    print_evidence,
    print_notes,
    print_problems,
    print_stale,
    write_file,
)
from ldlm_lint.report.formats import DEFAULT, FOR_PEOPLE, FORMATS

if TYPE_CHECKING:
    from ldlm_lint.config import Config, Configured
    from ldlm_lint.graph import Graph
    from ldlm_lint.model import Report
    from ldlm_lint.report.formats import Format
    from ldlm_lint.report.view import Fixed, View

CHOOSING = {
    **dict.fromkeys(("select", "extend_select", "ignore", "exclude", "extend_exclude", "level", "config", "since", "baseline")),
    **dict.fromkeys(("pedantic", "isolated", "no_baseline", "show_unreached"), False),
    "min_confidence": "low",
}
"""The options that choose what a run looks at, and their values if they are not given."""
_MOST_PATHS = 3


def show(arguments: argparse.Namespace, report: Report, base: Path, configured: Configured, fixed: Fixed | None = None) -> int:
    """Show a report as the arguments request and return its exit code."""
    from ldlm_lint.report.console import wants_colour
    from ldlm_lint.report.view import View
    from ldlm_lint.rules import by_symbol

    form = chosen(arguments, configured.run)
    code = exit_code(report, configured, exit_zero=arguments.exit_zero)
    to_file = arguments.output not in (None, STDOUT)
    written = io.StringIO() if to_file else None
    stream = sys.stdout if written is None else written
    view = View(
        report,
        _root_of_paths(form, base),
        by_symbol,
        sort=arguments.sort or "",
        group_by=arguments.group_by or "",
        since=arguments.since or "",
        again=again(arguments),
        unreached=arguments.show_unreached,
        launches=_launches(arguments, configured, base) if form.launches else None,
        exit_code=code,
        unsafe=arguments.unsafe_fixes,
        quiet=arguments.quiet,
        statistics=arguments.statistics,
        colour=wants_colour(stream, arguments.color),
        fixed=fixed,
    )
    print_notes(report.warnings, base)
    form.write(view, stream)
    if written is not None:
        try:
            write_file(arguments.output, written.getvalue().encode("utf-8", "backslashreplace"))
        except BrokenPipeError:
            raise
        except OSError as error:
            return fail(FAILURE, f"--output {arguments.output}: {error.strerror or error}")
    _say_the_rest(arguments, view, base, form, to_file)
    if report.excluded and not arguments.quiet:
        from ldlm_lint.commands.skipped import print_skipped

        sys.stdout.flush()
        print_skipped([Path(os.path.abspath(base / path)) for path in arguments.paths], configured, base, report.files)
    return code


def _launches(arguments: argparse.Namespace, configured: Configured, base: Path) -> Callable[[], Graph] | None:
    """A function that reads the launches below the paths of a run; None for stdin."""
    if arguments.stdin_filename is not None:
        return None
    from ldlm_lint.graph import build

    return functools.partial(build, [Path(os.path.abspath(base / path)) for path in arguments.paths], configured, base)


def chosen(arguments: argparse.Namespace, config: Config) -> Format:
    """The format of the command line, else of the configuration; raises UsageError for what the format cannot show."""
    form = FORMATS[arguments.format or config.output_format or DEFAULT]
    _check_place(form, "--statistics", arguments.statistics, lambda one: one.counts)
    _check_place(form, "--sort", arguments.sort, lambda one: one.sorts)
    _check_place(form, "--group-by", arguments.group_by, lambda one: one.groups)
    return form


def _check_place(form: Format, option: str, value: object, takes: Callable[[Format], bool]) -> None:
    """Raise UsageError for an option with a value that a format does not follow."""
    if value and not takes(form):
        able = ", ".join(one.name for one in FORMATS.values() if takes(one))
        raise UsageError(f"{option} does not apply to the format {form.name}, only to {able}")


def again(arguments: argparse.Namespace) -> tuple[str, ...] | None:
    """The arguments that selected files and rules, for the commands that the report proposes; None for stdin."""
    if arguments.stdin_filename is not None:
        return None
    import shlex

    words: list[str] = []
    for name, usual in CHOOSING.items():
        value = getattr(arguments, name)
        if value is not usual and value != usual:
            words.append(f"--{name.replace('_', '-')}")
            words += [] if value is True else [shlex.quote(",".join(map(str, value)) if isinstance(value, list) else str(value))]
    for place in arguments.evidence or ():
        words += ["--evidence", shlex.quote(str(place))]
    paths = [str(path) for path in arguments.paths]
    if paths != ["."]:
        # A command that leaves paths out could not be run: for many of them, as pre-commit names them, it takes their folder.
        words += [shlex.quote(path) for path in (paths if len(paths) <= _MOST_PATHS else [_around(paths)])]
    return tuple(words)


def _around(paths: list[str]) -> str:
    """The deepest folder that contains all paths, as short as the first of them is written."""
    found = os.path.commonpath([os.path.abspath(path) for path in paths])
    return found if os.path.isabs(paths[0]) else os.path.relpath(found)


def _root_of_paths(form: Format, base: Path) -> Path:
    """The directory that paths are relative to: where the command runs, or the checkout that a CI system names."""
    named = os.environ.get(form.workspace, "") if form.workspace else ""
    return Path(named) if named and base.is_relative_to(named) else base


def _say_the_rest(arguments: argparse.Namespace, view: View, base: Path, form: Format, to_file: bool) -> None:
    """Print on stderr what stdout does not contain: problems and, for a report in a file, a summary."""
    report = view.report
    if form.complete and not to_file:
        return
    sys.stdout.flush()
    print_problems(report, base)
    print_evidence(report, base)
    if not arguments.quiet:
        print_bare_noqa(report)
    if not arguments.quiet and form.name in FOR_PEOPLE:
        print_stale(report, base)
    if to_file and not arguments.quiet:
        from ldlm_lint.report.summary import found

        print(f"{found(view)} Written to {arguments.output}.", file=sys.stderr)
