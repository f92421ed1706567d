"""``ldlm-lint explain``: the page of one rule."""

from __future__ import annotations

import argparse
import sys

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import OK
from ldlm_lint.commands.rules import configure_format


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``explain``."""
    parser.epilog = "exit codes: 0 printed; 2 wrong usage, or a name that no rule has"
    parser.add_argument("name", metavar="NAME", help="the name or code of a rule")
    configure_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the page of a rule and return the exit code."""
    from ldlm_lint.report.page import document, page
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import SelectorError, find

    try:
        rule = find(ALL, arguments.name)
    except SelectorError as error:
        raise UsageError(str(error)) from error
    sys.stdout.write(document([rule]) if arguments.format == "json" else page(rule))
    return OK
