"""How the command line is parsed: help that reads well in a terminal, and errors that name what was probably meant."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from ldlm_lint.arguments import UsageError
from ldlm_lint.patterns import lazily

Example = tuple[str, str]
"""A command line without the program's name, and what it does."""
WIDEST = 100
_HELP_COLUMN = 28
_NARROW = 80
_CLOSE = 0.65
_CHOICE = lazily(r"invalid choice: '(?P<word>.*?)' \(choose from (?P<words>.*)\)")


class Help(argparse.HelpFormatter):
    """Help at most `WIDEST` wide; in descriptions and epilogs a paragraph with an indented line is not reflowed."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_HELP_COLUMN, width=min(columns(), WIDEST) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        import textwrap

        return "\n\n".join(
            part if re.search(r"(?m)^ ", part) else textwrap.fill(part, width, break_long_words=False)
            for part in text.split("\n\n")
        )


def columns() -> int:
    """The width of the terminal, like `shutil.get_terminal_size`, whose module would load the archive formats."""
    with contextlib.suppress(ValueError):
        if (told := int(os.environ.get("COLUMNS", ""))) > 0:
            return told
    try:
        # Where there is no stream that is an AttributeError.
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or _NARROW  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return _NARROW


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and an exception, so that `main` decides how a run ends."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"formatter_class": Help, "allow_abbrev": False, **settings})

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{_with_choice(message)} (see {self.prog} --help)")


def parsed(parser: argparse.ArgumentParser, words: Sequence[str], prog: str) -> argparse.Namespace:
    """The parsed command line; raises UsageError, for an unknown option with the nearest known one."""
    found, unknown = parser.parse_known_args(words)
    if unknown:
        known = {option for one in parsers_of(parser, words) for option in one._option_string_actions}
        meant = _meant(unknown[0].partition("=")[0], known) if unknown[0].startswith("-") else ""
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}{meant} (see {prog} --help)")
    return found


def _meant(option: str, known: Collection[str]) -> str:
    """The meaning of an unknown option: its meaning in other linters, else the closest known option."""
    from ldlm_lint.habits import instead

    return instead(option, known) or did_you_mean(option, known)


def parsers_of(parser: argparse.ArgumentParser, words: Iterable[str]) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of the subcommands that the words name."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            named = next((word for word in words if word in action.choices), None)
            if named is not None:
                yield from parsers_of(action.choices[named], words)


def did_you_mean(word: str, words: Iterable[str], *, closeness: float = _CLOSE) -> str:
    """``, did you mean "X"?`` with the closest of the words, or nothing if none is close.

    >>> did_you_mean("--colour", ["--color", "--config"])
    ', did you mean "--color"?'
    >>> did_you_mean("--nope", ["--ignore"])
    ''
    """
    import difflib

    # The dashes of two options are no likeness.
    known = {one.lstrip("-"): one for one in words}
    close = difflib.get_close_matches(word.lstrip("-"), list(known), n=1, cutoff=closeness)
    return f', did you mean "{known[close[0]]}"?' if close else ""


def with_examples(examples: Sequence[Example], epilog: str | None, prog: str) -> str:
    """The end of a help text: a paragraph of examples, then the notes."""
    width = max((len(words) for words, _ in examples), default=0)
    lines = [f"  {prog} {words:<{width}}  # {text}" if text else f"  {prog} {words}" for words, text in examples]
    heading = "example:" if len(lines) == 1 else "examples:"
    parts = ["\n".join([heading, *lines])] if lines else []
    return "\n\n".join([*parts, *([epilog] if epilog else [])])


def _with_choice(message: str) -> str:
    """An error of argparse about a choice, with the nearest of the choices."""
    match = _CHOICE.search(message)
    if match is None:
        return message
    words = [word.strip().strip("'") for word in match["words"].split(",")]
    return message + did_you_mean(match["word"], words)
