"""The command: its parser, and how a run ends in every case. `ldlm_lint.commands` has a module per subcommand.

Exit codes: 0 nothing at or above the fail level, or every named path excluded; 1 findings; 2 wrong usage, configuration
or baseline; 3 nothing to check, unreadable input, a file that could not be fixed or an internal error (findings are
still printed). docs/exit-codes.md has the codes of every command.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import os
import sys
from collections.abc import Collection, Sequence
from types import ModuleType
from typing import NamedTuple

from ldlm_lint import __version__
from ldlm_lint.arguments import UsageError
from ldlm_lint.cache.replay import replayed
from ldlm_lint.commands.output import FAILURE, INTERRUPTED, OK, PROGRAM, USAGE, fail
from ldlm_lint.disk_errors import refuses, unwritten
from ldlm_lint.garbage_collection import PACE
from ldlm_lint.parsing import Example, Parser, did_you_mean, parsed, with_examples


class Command(NamedTuple):
    """A subcommand: its name, one line of help and how it is used.

    Its module in `ldlm_lint.commands` is imported only when it runs: ``configure`` adds its arguments to a parser,
    ``run`` takes the parsed arguments and returns the exit code.
    """

    name: str
    help: str
    examples: tuple[Example, ...]

    @property
    def room(self) -> ModuleType:
        """The module of the command."""
        return importlib.import_module(f"ldlm_lint.commands.{self.name}")


class _Root(Parser):
    """The parser of the program, whose help fits a screen of 24 lines."""

    def format_help(self) -> str:
        """The usage, the commands and two examples."""
        width = max(len(command.name) for command in COMMANDS)
        commands = "".join(f"  {command.name:<{width}}  {command.help}\n" for command in COMMANDS)
        return HELP.format(commands=commands)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; ``argv`` are the arguments without the program's name."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A legacy Windows code page cannot encode source text, and no encoding a broken file name.
                stream.reconfigure(encoding="utf-8", errors="backslashreplace")
        gc.set_threshold(*PACE)
        code = _ended(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except UsageError as error:
        return fail(USAGE, str(error))
    except OSError as error:
        if not refuses(error):
            raise
        return unwritten(error)
    except KeyboardInterrupt:
        return fail(INTERRUPTED, "interrupted")


def _ended(arguments: list[str]) -> int:
    try:
        return _dispatch(arguments)
    except SystemExit as error:
        # argparse leaves this way after --help and --version.
        return error.code if isinstance(error.code, int) else OK


def _dispatch(arguments: list[str]) -> int:
    words = tuple(arguments)
    names = [command.name for command in COMMANDS]
    if not arguments or arguments[0] not in (*names, "-h", "--help", "-V", "--version"):
        # Without a subcommand `check` runs; a directory with the name of a subcommand is written ./name.
        _reject_misspelt(arguments[:1], names)
        arguments = ["check", *arguments]
    if arguments[0] == "probe":
        from ldlm_lint.commands import probe

        arguments = ["probe", *probe.spelt_out(arguments[1:])]
    code = replayed(words) if arguments[0] == "check" else None
    if code is not None:
        return code
    found = parsed(parser_of(arguments[:1]), arguments, f"{PROGRAM} {arguments[0]}")
    found.argv = words
    try:
        return found.command.room.run(found)
    except UsageError:
        raise
    except Exception as error:
        if _is_usage(error):
            raise UsageError(str(error)) from error
        if isinstance(error, OSError) and refuses(error):
            raise
        if isinstance(error, MemoryError):
            return fail(FAILURE, "there is not enough memory")
        import traceback

        traceback.print_exc()
        return fail(FAILURE, f"internal error ({type(error).__name__}: {error}); please report this")


def _reject_misspelt(first: Sequence[str], names: Sequence[str]) -> None:
    """Raise UsageError for a word that is not a path but almost a command."""
    for word in first:
        meant = did_you_mean(word, names, closeness=0.75) if word.isalpha() and not os.path.lexists(word) else ""
        if meant:
            raise UsageError(f'no command, file or directory is called "{word}"{meant} (see {PROGRAM} --help)')


def _is_usage(error: Exception) -> bool:
    """Whether an error is the user's: a configuration or baseline, the name of a rule or a revision."""
    from ldlm_lint.gitdiff import GitError
    from ldlm_lint.select import SelectorError
    from ldlm_lint.tomlfile import ConfigError

    return isinstance(error, (ConfigError, SelectorError, GitError))


def parser_of(named: Collection[str]) -> argparse.ArgumentParser:
    """The parser of the command line with the named commands and their arguments; without names all commands, by name
    only.
    """
    parser = _Root(prog=PROGRAM)
    parser.add_argument("-V", "--version", action="version", version=f"{PROGRAM} {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser, prog=PROGRAM)
    known = [command for command in COMMANDS if command.name in named]
    for command in known or COMMANDS:
        said = f"{command.help[0].upper()}{command.help[1:]}."
        sub = subparsers.add_parser(command.name, help=command.help, description=said)
        if known:
            command.room.configure(sub)
            sub.epilog = with_examples(command.examples, sub.epilog, PROGRAM)
        sub.set_defaults(command=command)
    return parser


HELP = """\
usage: ldlm-lint [check] [OPTIONS] [PATH ...]
       ldlm-lint COMMAND [--help] ...  |  --version  |  --help

Find and fix lines that waste GPU time and memory, hang jobs or corrupt results.
commands:
{commands}
examples:
  ldlm-lint                       check everything in this directory
  ldlm-lint --fix src train.py    apply safe fixes, show what remains
exit codes: 0 no failing findings, 1 findings, 2 invalid usage, 3 failure
"""
COMMANDS = (
    Command(
        "check",
        "find and fix expensive lines (the default command)",
        (
            ("check", "check everything in this directory"),
            ("--fix train.py", "apply safe fixes"),
            ("--diff --unsafe-fixes src", "print all fixes as a patch"),
            ("--pedantic --statistics", "count findings, also of opt-in rules"),
            ("--format sarif --output ldlm.sarif", "write a report for code scanning"),
        ),
    ),
    Command(
        "baseline",
        "accept today's findings; later checks show only new ones",
        (("baseline --update", "add new findings, remove fixed ones"),),
    ),
    Command("undo", "undo the last run of --fix or --add-ignores", (("undo --list", "list the runs that can be undone"),)),
    Command(
        "graph",
        "show what launch scripts run, and with which settings",
        (("graph scripts/train.sh", "what this script runs, with which values"),),
    ),
    Command(
        "probe",
        "confirm or refute findings by measuring or by watching a run",
        (
            ("probe run -- torchrun train.py", "watch the first steps of a training"),
            ("probe memory models.gpt:build --fits 80GB", "does the model fit?"),
        ),
    ),
    Command(
        "bench",
        "compare a command with and without the fixes",
        (("bench --unsafe-fixes --steps 50 -- python train.py", ""),),
    ),
    Command(
        "monitor",
        "read training logs and report what is wrong with the run",
        (
            ("monitor --follow train.log", "until Ctrl-C"),
            ("monitor --serve --open train.log", "in the browser"),
            ("monitor --compare old.log new.log", ""),
        ),
    ),
    Command(
        "server",
        "run the language server for editors",
        (("server", "on stdin and stdout, as editors start it"), ("server --tcp 127.0.0.1:2087", "")),
    ),
    Command("init", "write a configuration file with all keys, commented out", (("init --stdout", "print it only"),)),
    Command("doctor", "print the settings of a run and any problems with them", (("doctor", "add this to bug reports"),)),
    Command("clean", "remove the cache", (("clean", "prints what it removed"),)),
    Command(
        "rules",
        "list the rules",
        (("rules 72", "the rules about distributed training"), ("rules crash", "by consequence"), ("rules dataloader", "by name")),
    ),
    Command(
        "explain",
        "explain a rule on one screen, with an example",
        (("explain optimizer-not-fused", ""), ("explain 7201", ""), ("explain W7201 --full", "all texts and examples")),
    ),
    Command(
        "completion",
        "print the completion script for a shell",
        (("completion bash > ~/.local/share/bash-completion/completions/ldlm-lint", ""),),
    ),
)
