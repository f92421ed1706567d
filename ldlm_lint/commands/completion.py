"""``ldlm-lint completion SHELL``: the completion script of a shell, generated from the parser."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from ldlm_lint.commands.output import OK
from ldlm_lint.commands.table import COMMANDS, parser_of

SHELLS = ("bash", "zsh", "fish")
EPILOG = """\
where to save it:
  bash  ~/.local/share/bash-completion/completions/ldlm-lint
  zsh   _ldlm-lint in a folder of $fpath
  fish  ~/.config/fish/completions/ldlm-lint.fish

exit codes: 0 printed; 2 invalid usage"""
# Options that take names of rules, and the positional arguments that do.
_RULES = frozenset(("--select", "--extend-select", "--ignore", "--only"))
# A path is allowed where a command is: other words are left to the shell.
_LAST = {"bash": "complete -o bashdefault -o default -F _shtab_ldlm_lint ldlm-lint\n"}
_FILES = frozenset(("--config", "--baseline", "--output", "--json", "--evidence", "--out", "--copy"))


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``completion``."""
    parser.epilog = EPILOG
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def run(arguments: argparse.Namespace) -> int:
    """Print the script and return the exit code."""
    import shtab

    script = shtab.complete(described(), arguments.shell, root_prefix="ldlm_lint")
    sys.stdout.write(f"{script}\n{_LAST.get(arguments.shell, '')}")
    return OK


def described() -> argparse.ArgumentParser:
    """The whole parser, with the values of each argument; the program itself accepts the arguments of ``check``."""
    import shtab

    from ldlm_lint.options import configure_options
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import CONSEQUENCES

    names = [*(rule.symbol for rule in ALL), *CONSEQUENCES]
    parser = parser_of([command.name for command in COMMANDS])
    configure_options(parser)
    for one in _all(parser):
        for action in one._actions:
            if _RULES.intersection(action.option_strings) or (action.metavar == "NAME" and action.choices is None):
                action.choices = names
            elif _FILES.intersection(action.option_strings) or action.metavar in ("PATH", "LOG"):
                action.complete = shtab.FILE  # type: ignore[attr-defined]  # the mark that shtab looks for
    return parser


def _all(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _all(sub)
