"""``ldlm-lint explain``: the page of one rule."""

from __future__ import annotations

import argparse
import sys

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import OK


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``explain``."""
    parser.add_argument("name", metavar="NAME", help="the name or code of a rule")


def run(arguments: argparse.Namespace) -> int:
    """Print the page of a rule and return the exit code."""
    from ldlm_lint.report.page import page
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import SelectorError, find

    try:
        rule = find(ALL, arguments.name)
    except SelectorError as error:
        raise UsageError(str(error)) from error
    sys.stdout.write(page(rule))
    return OK
