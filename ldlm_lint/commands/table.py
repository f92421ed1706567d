"""All subcommands: their names, help and examples, and the parser of the command line."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Collection
from types import ModuleType
from typing import NamedTuple

from ldlm_lint import __version__
from ldlm_lint.commands.output import PROGRAM
from ldlm_lint.parsing import Example, Parser, with_examples


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
