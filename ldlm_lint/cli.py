"""The command: arguments to configuration, engine, report and exit code; the only place that prints.

Exit codes: 0 nothing at or above the fail level, or every named path excluded; 1 findings; 2 wrong usage,
configuration or baseline; 3 nothing to check, unreadable input or an internal error (findings are printed all the
same).
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ldlm_lint import __version__
from ldlm_lint import arguments as arguments_of
from ldlm_lint.arguments import UsageError

if TYPE_CHECKING:
    from ldlm_lint.config import Config
    from ldlm_lint.gate import Gate
    from ldlm_lint.model import Problem, Report, Severity
    from ldlm_lint.report.text import Fixed

# Syntax trees are many small objects that point at each other; the collector's own pace costs a third of a run.
_COLLECTOR = (100_000, 20, 50)
OK, FINDINGS, USAGE, FAILURE = 0, 1, 2, 3
INTERRUPTED, PIPE_CLOSED = 130, 141
PROGRAM = "ldlm-lint"
MOST_STALE = 10


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name, one line of help, what adds its arguments, and what runs it (returns the exit code)."""

    name: str
    help: str
    configure: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and an exception, so that `main` decides how a run ends."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; ``argv`` are the arguments without the program's name."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A legacy Windows code page cannot encode source text, and no encoding a broken file name.
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        gc.set_threshold(*_COLLECTOR)
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _fail(USAGE, str(error))
    except BrokenPipeError:
        # Whoever read the output has left; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "interrupted")
    except SystemExit as error:
        # argparse leaves this way after --help and --version.
        return error.code if isinstance(error.code, int) else OK


def _dispatch(arguments: list[str]) -> int:
    names = [command.name for command in COMMANDS]
    if not arguments or arguments[0] not in (*names, "-h", "--help", "--version"):
        # Without a subcommand it is a check; a directory that is called like one is written ./name.
        arguments = ["check", *arguments]
    parsed = _parser().parse_args(arguments)
    try:
        return parsed.command.run(parsed)
    except (UsageError, BrokenPipeError):
        raise
    except Exception as error:
        if _is_usage(error):
            raise UsageError(str(error)) from error
        import traceback

        traceback.print_exc()
        return _fail(FAILURE, f"internal error ({type(error).__name__}: {error}); please report this")


def _is_usage(error: Exception) -> bool:
    """Whether the fault lies in what the user wrote: a configuration or baseline, the name of a rule or a revision."""
    from ldlm_lint.gitdiff import GitError
    from ldlm_lint.select import SelectorError
    from ldlm_lint.tomlfile import ConfigError

    return isinstance(error, (ConfigError, SelectorError, GitError))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Finds what costs a training repository time, memory and hung jobs, in its Python, its launch "
        "scripts and its configuration files, and fixes what can be fixed.",
        epilog=f"{PROGRAM} PATH... is short for {PROGRAM} check PATH...; a directory that is called like a command is "
        "written ./name.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for command in COMMANDS:
        sub = subparsers.add_parser(command.name, help=command.help, description=command.help, allow_abbrev=False)
        command.configure(sub)
        sub.set_defaults(command=command)
    return parser


def _fail(code: int, message: str) -> int:
    print(f"{PROGRAM}: error: {message}", file=sys.stderr)
    return code


def _check(arguments: argparse.Namespace) -> int:
    from ldlm_lint import engine

    if arguments.diff and arguments.format != "text":
        raise UsageError("--diff prints a patch and cannot be combined with --format")
    if arguments.add_ignores and (arguments.fix or arguments.diff):
        raise UsageError("--add-ignores cannot be combined with --fix or --diff; fix first, then ignore what remains")
    base = Path.cwd()
    paths, config = arguments_of.configuration(arguments, base)
    gate = arguments_of.gate(arguments, paths, config, base)
    if arguments.fix or arguments.diff:
        return _fixed(arguments, paths, config, gate, base)
    if arguments.add_ignores:
        return _ignored(arguments, paths, config, gate, base)
    report = engine.run(paths, config, base=base, gate=gate)
    _show(arguments, report, base)
    return exit_code(report, config.fail_level, exit_zero=arguments.exit_zero)


def _fixed(arguments: argparse.Namespace, paths: Sequence[Path], config: Config, gate: Gate, base: Path) -> int:
    from ldlm_lint.fixing import apply_fixes
    from ldlm_lint.model import Applicability
    from ldlm_lint.report.text import Fixed

    limit = Applicability.UNSAFE if arguments.unsafe_fixes else Applicability.SAFE
    outcome = apply_fixes(paths, config, base, limit, write=not arguments.diff, gate=gate)
    for note in outcome.notes:
        print(f"warning: {_place(note, base)}{note.message}", file=sys.stderr)
    fixed = Fixed(outcome.applied, len(outcome.files))
    code = exit_code(outcome.report, config.fail_level, exit_zero=arguments.exit_zero)
    if not arguments.diff:
        _show(arguments, outcome.report, base, fixed)
        return code
    sys.stdout.flush()
    sys.stdout.buffer.write(outcome.diff)
    sys.stdout.buffer.flush()
    _print_problems(outcome.report, base)
    return FINDINGS if outcome.diff and code == OK and not arguments.exit_zero else code


def _ignored(arguments: argparse.Namespace, paths: Sequence[Path], config: Config, gate: Gate, base: Path) -> int:
    from ldlm_lint.fixing import ignore_all
    from ldlm_lint.report.text import Fixed

    outcome = ignore_all(paths, config, base, gate)
    for note in outcome.notes:
        print(f"warning: {_place(note, base)}{note.message}", file=sys.stderr)
    _show(arguments, outcome.report, base, Fixed(outcome.applied, len(outcome.files), "Silenced"))
    return exit_code(outcome.report, config.fail_level, exit_zero=arguments.exit_zero)


def _baseline(arguments: argparse.Namespace) -> int:
    from ldlm_lint import baseline, engine
    from ldlm_lint.autofix.write import WriteError
    from ldlm_lint.gate import Gate
    from ldlm_lint.report.common import shown_path

    base = Path.cwd()
    paths, config = arguments_of.configuration(arguments, base)
    place, root = arguments_of.baseline_file(arguments, config, base)
    # Read in any case: what is no baseline must not be overwritten by one.
    before = baseline.read(place) if os.path.lexists(place) else {}
    report = engine.run(paths, config, base=base, gate=Gate(before if arguments.update else {}))
    _print_problems(report, base, everything=True)
    code = exit_code(report, config.fail_level, exit_zero=True)
    if not report.files:
        return code
    after = baseline.updated(before if arguments.update else {}, report)
    try:
        written = baseline.write(place, after, root)
    except WriteError as error:
        return _fail(FAILURE, str(error))
    print(baseline.summary(shown_path(place.as_posix(), base), before, after, written))
    return code


def exit_code(report: Report, fail_level: Severity, *, exit_zero: bool = False) -> int:
    """The exit code that a report stands for; ``exit_zero`` forgives findings, and nothing else."""
    if report.problems or (report.files == 0 and report.excluded < report.requested):
        return FAILURE
    if not exit_zero and any(finding.severity >= fail_level for finding in report.findings):
        return FINDINGS
    return OK


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
    _print_problems(report, base)
    if not arguments.quiet:
        _print_stale(report, base)


def _print_stale(report: Report, base: Path) -> None:
    """One line on stderr for each of the first known defects that are gone; the footer says how many there are."""
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.common import shown_path

    for identity, count in report.stale[:MOST_STALE]:
        path = shown_path(Path(report.root, identity.path).as_posix(), base)
        where = f" in {identity.symbol}" if identity.symbol else ""
        times = f" ({count} times)" if count > 1 else ""
        print(f"note: {clean(f'{path}: {identity.rule}{where}')}{times} is in the baseline, but gone", file=sys.stderr)
    if len(report.stale) > MOST_STALE:
        print(f"note: and {len(report.stale) - MOST_STALE} more", file=sys.stderr)


def _print_problems(report: Report, base: Path, *, everything: bool = False) -> None:
    """One line on stderr for each path that could not be checked; what is shown as a finding is not said twice.

    With ``everything`` no findings are shown.
    """
    from ldlm_lint.rules.linter import INTERNAL_ERROR, UNREADABLE_FILE

    shown = {(finding.span.path, finding.rule) for finding in report.findings if not everything}
    for problem in report.problems:
        if any((problem.path, rule.symbol) in shown for rule in (UNREADABLE_FILE, INTERNAL_ERROR)):
            continue
        print(f"error: {_place(problem, base)}{problem.message}", file=sys.stderr)


def _place(problem: Problem, base: Path) -> str:
    from ldlm_lint.report.cells import clean
    from ldlm_lint.report.common import shown_path

    if not problem.path:
        return ""
    path = clean(shown_path(problem.path, base))
    return f"{path}:{problem.line}: " if problem.line > 1 else f"{path}: "


def _graph(arguments: argparse.Namespace) -> int:
    from ldlm_lint import graph
    from ldlm_lint.report import graph as shown

    base = Path.cwd()
    paths, config = arguments_of.configuration(arguments, base)
    found = graph.build(paths, config, base)
    if arguments.format == "json":
        sys.stdout.write(shown.render(found, base=base))
    else:
        shown.write(found, sys.stdout, base=base)
        sys.stdout.flush()
        for problem in found.problems:
            print(f"error: {_place(problem, base)}{problem.message}", file=sys.stderr)
    return FAILURE if found.problems else OK


def _configure_rules(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="names, codes, families (72) or ALL (default: ALL)")


def _rules(arguments: argparse.Namespace) -> int:
    from ldlm_lint.report.page import table
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import EVERYTHING, SelectorError, named

    try:
        symbols = frozenset().union(*(named(ALL, name) for name in arguments.names or [EVERYTHING]))
    except SelectorError as error:
        raise UsageError(str(error)) from error
    sys.stdout.write(table(rule for rule in ALL if rule.symbol in symbols))
    return OK


def _configure_explain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the name or code of a rule")


def _explain(arguments: argparse.Namespace) -> int:
    from ldlm_lint.report.page import page
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import SelectorError, find

    try:
        rule = find(ALL, arguments.name)
    except SelectorError as error:
        raise UsageError(str(error)) from error
    sys.stdout.write(page(rule))
    return OK


COMMANDS = (
    Command(
        "check",
        "lint files and directories; the command that runs where none is named",
        arguments_of.configure_check,
        _check,
    ),
    Command(
        "baseline",
        "write the findings to the file of known defects, so that a check shows new ones only",
        arguments_of.configure_baseline,
        _baseline,
    ),
    Command(
        "graph",
        "show the launches of a project: script, entry file, configuration files, and the values that rules speak of",
        arguments_of.configure_graph,
        _graph,
    ),
    Command("rules", "list the rules", _configure_rules, _rules),
    Command("explain", "print everything about one rule", _configure_explain, _explain),
)
