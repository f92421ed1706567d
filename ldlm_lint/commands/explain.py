"""``ldlm-lint explain``: explains one rule, on a screen or in full."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ldlm_lint.arguments import UsageError
from ldlm_lint.commands.output import OK
from ldlm_lint.commands.rules import configure_format, terminal_width

if TYPE_CHECKING:
    from ldlm_lint.model import Rule


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``explain``."""
    parser.epilog = "exit codes: 0 printed; 2 invalid usage or an unknown rule"
    parser.add_argument("name", metavar="NAME", help="the name, an old name, the code or the number (7604) of a rule")
    parser.add_argument("--full", action="store_true", help="print all texts and examples of the rule, not only one screen")
    configure_format(parser, ("text", "markdown", "json"))


def run(arguments: argparse.Namespace) -> int:
    """Print the description of a rule and return the exit code."""
    from ldlm_lint.rules import ALL
    from ldlm_lint.select import SelectorError, find

    try:
        rule = find(ALL, arguments.name)
    except SelectorError as error:
        raise UsageError(str(error)) from error
    if arguments.format == "text" and not arguments.full:
        _show(rule, arguments.color)
    else:
        sys.stdout.write(_document(rule, arguments.format))
    return OK


def _show(rule: Rule, colour: str) -> None:
    from ldlm_lint.report.console import wants_colour
    from ldlm_lint.report.lines import write
    from ldlm_lint.report.rule_screen import WIDEST, screen

    write([screen(rule, terminal_width() or WIDEST)], sys.stdout, colour=wants_colour(sys.stdout, colour))


def _document(rule: Rule, form: str) -> str:
    from ldlm_lint.report.page import document, page
    from ldlm_lint.report.rule_markdown import markdown

    if form == "json":
        return document([rule])
    return markdown(rule) if form == "markdown" else page(rule)
