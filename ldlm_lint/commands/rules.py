"""``ldlm-lint rules``: the table of rules."""

from __future__ import annotations

import argparse
import sys

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import OK


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``rules``."""
    parser.epilog = "exit codes: 0 listed; 2 wrong usage, or a name that no rule has"
    parser.add_argument("names", nargs="*", metavar="NAME", help="names, codes, families (72), consequences (hang) or ALL (default: ALL)")
    configure_format(parser)


def configure_format(parser: argparse.ArgumentParser) -> None:
    """Add the choice between text and JSON."""
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", metavar="FORMAT", help="text or json (default: text)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the rules that the arguments name and return the exit code."""
    from ldlm_lint.report.page import document, table
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import EVERYTHING, SelectorError, named

    try:
        symbols = frozenset().union(*(named(ALL, name) for name in arguments.names or [EVERYTHING]))
    except SelectorError as error:
        raise UsageError(str(error)) from error
    rules = [rule for rule in ALL if rule.symbol in symbols]
    sys.stdout.write(document(rules) if arguments.format == "json" else table(rules))
    return OK
