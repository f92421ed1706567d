"""``ldlm-lint rules``: the table of rules."""

from __future__ import annotations

import argparse
import sys

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import OK


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``rules``."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="names, codes, families (72) or ALL (default: ALL)")


def run(arguments: argparse.Namespace) -> int:
    """Print the rules that the arguments name and return the exit code."""
    from ldlm_lint.report.page import table
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import EVERYTHING, SelectorError, named

    try:
        symbols = frozenset().union(*(named(ALL, name) for name in arguments.names or [EVERYTHING]))
    except SelectorError as error:
        raise UsageError(str(error)) from error
    sys.stdout.write(table(rule for rule in ALL if rule.symbol in symbols))
    return OK
