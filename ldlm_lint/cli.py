"""The command: its parser, and how a run ends whatever happens; a subcommand's own room is in `ldlm_lint.commands`.

Exit codes: 0 nothing at or above the fail level, or every named path excluded; 1 findings; 2 wrong usage,
configuration or baseline; 3 nothing to check, unreadable input, a file that could not be fixed or an internal error
(findings are printed all the same). `undo` has its own, see `ldlm_lint.commands.undo`.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NoReturn

from ldlm_lint import __version__
from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import FAILURE, INTERRUPTED, OK, PIPE_CLOSED, PROGRAM, USAGE, fail

# Syntax trees are many small objects that point at each other; the collector's own pace costs a third of a run.
_COLLECTOR = (100_000, 20, 50)


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand: its name and one line of help.

    The module of its name in `ldlm_lint.commands` is imported when it is the one to run: ``configure`` adds its
    arguments to a parser, ``run`` takes what was parsed and returns the exit code.
    """

    name: str
    help: str

    @property
    def room(self) -> ModuleType:
        """The module of the command."""
        return importlib.import_module(f"ldlm_lint.commands.{self.name}")


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
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except UsageError as error:
        return fail(USAGE, str(error))
    except BrokenPipeError:
        # Whoever read the output has left; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return fail(INTERRUPTED, "interrupted")
    except SystemExit as error:
        # argparse leaves this way after --help and --version.
        return error.code if isinstance(error.code, int) else OK


def _dispatch(arguments: list[str]) -> int:
    names = [command.name for command in COMMANDS]
    if not arguments or arguments[0] not in (*names, "-h", "--help", "--version"):
        # Without a subcommand it is a check; a directory that is called like one is written ./name.
        arguments = ["check", *arguments]
    if arguments[0] == "probe":
        from ldlm_lint.commands import probe

        arguments = ["probe", *probe.spelt_out(arguments[1:])]
    parsed = _parser(arguments[0]).parse_args(arguments)
    try:
        return parsed.command.room.run(parsed)
    except (UsageError, BrokenPipeError):
        raise
    except Exception as error:
        if _is_usage(error):
            raise UsageError(str(error)) from error
        import traceback

        traceback.print_exc()
        return fail(FAILURE, f"internal error ({type(error).__name__}: {error}); please report this")


def _is_usage(error: Exception) -> bool:
    """Whether the fault lies in what the user wrote: a configuration or baseline, the name of a rule or a revision."""
    from ldlm_lint.gitdiff import GitError
    from ldlm_lint.select import SelectorError
    from ldlm_lint.tomlfile import ConfigError

    return isinstance(error, (ConfigError, SelectorError, GitError))


def _parser(named: str) -> argparse.ArgumentParser:
    """The parser of the command line, with the arguments of the command that it names."""
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
        if command.name == named:
            command.room.configure(sub)
        sub.set_defaults(command=command)
    return parser


COMMANDS = (
    Command("check", "lint files and directories; the command that runs where none is named"),
    Command("baseline", "write the findings to the file of known defects, so that a check shows new ones only"),
    Command("undo", "take back the last run of --fix or --add-ignores, byte by byte, if its files have not changed since"),
    Command("graph", "show the launches of a project: script, entry file, configuration files, and the values that rules speak of"),
    Command("probe", "measure on this machine what the rules claim, or watch the first steps of a training program"),
    Command("bench", "run a command on the tree as it is and with the fixes applied, and compare: bench -- CMD..."),
    Command("monitor", "read training logs, live or afterwards, and say what is wrong with the run"),
    Command("rules", "list the rules"),
    Command("explain", "print everything about one rule"),
)
