"""``ldlm-lint rules``: lists rules."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import OK
from ldlm_lint.parsing import columns

if TYPE_CHECKING:
    from ldlm_lint.model import Rule

_SHORTEST_PART = 3


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``rules``."""
    parser.epilog = "exit codes: 0 listed; 2 invalid usage or an unknown rule"
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="names, codes, families (72), consequences (crash), ALL, or a part of a name (dataloader) (default: ALL)",
    )
    configure_format(parser, ("text", "json"))


def configure_format(parser: argparse.ArgumentParser, formats: Sequence[str]) -> None:
    """Add the choice of a format and of colour."""
    shown = f"{', '.join(formats[:-1])} or {formats[-1]}"
    parser.add_argument("--format", choices=formats, default="text", metavar="FORMAT", help=f"{shown} (default: text)")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        metavar="WHEN",
        help="auto, always or never (default: auto, on a terminal; NO_COLOR and FORCE_COLOR are respected)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the rules that the arguments name and return the exit code."""
    from ldlm_lint.report.console import wants_colour
    from ldlm_lint.report.lines import write
    from ldlm_lint.report.page import document
    from ldlm_lint.report.rule_list import listed

    rules = _chosen(arguments.names)
    if arguments.format == "json":
        sys.stdout.write(document(rules))
    else:
        write([listed(rules, terminal_width())], sys.stdout, colour=wants_colour(sys.stdout, arguments.color))
    return OK


def _chosen(names: Sequence[str]) -> list[Rule]:
    """The rules that selectors name, or whose name contains a word; raises UsageError if there is none."""
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import EVERYTHING, SelectorError, named

    symbols: set[str] = set()
    for name in names or [EVERYTHING]:
        try:
            symbols |= named(ALL, name)
        except SelectorError as error:
            holding = {rule.symbol for rule in ALL if name.lower() in rule.symbol}
            if not holding or len(name) < _SHORTEST_PART:
                raise UsageError(str(error)) from error
            symbols |= holding
    return [rule for rule in ALL if rule.symbol in symbols]


def terminal_width() -> int | None:
    """The width of the terminal that stdout is, or the one that ``COLUMNS`` gives; None for a pipe or file."""
    return columns() if os.environ.get("COLUMNS") or sys.stdout.isatty() else None
