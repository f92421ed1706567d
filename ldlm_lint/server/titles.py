"""Titles of actions in an editor's menu: at most `LONGEST` characters, of whole words and whole names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ldlm_lint.report.cells import clean

LONGEST = 80
_LEVELS = {"safe": " (safe fix)", "unsafe": " (unsafe fix)", "display": ""}
_ELLIPSIS = " …"


def fix_title(fix: Mapping[str, Any], rules: Sequence[str]) -> str:
    """The effect of a fix and its safety, with the rule if it fits; its reason is in the details."""
    level = " (unsafe fix, a trade)" if fix["trade"] else _LEVELS[fix["level"]]
    title = clean(fix["title"])
    named = f"{', '.join(rules)}: {title}{level}"
    return named if len(named) <= LONGEST else _shortened(title, LONGEST - len(level)) + level


def ignore_title(rule: str) -> str:
    """The title of the action that writes an ignore comment."""
    return f"ignore {rule} here, with a comment"


def _shortened(title: str, most: int) -> str:
    """A title of at most ``most`` characters: its first changes and how many more there are, else its first words."""
    if len(title) <= most:
        return title
    parts = title.split("; ")
    for kept in range(len(parts) - 1, 0, -1):
        text = f"{'; '.join(parts[:kept])}; {len(parts) - kept} more"
        if len(text) <= most:
            return text
    return _first_words(title, most - len(_ELLIPSIS)) + _ELLIPSIS


def _first_words(text: str, most: int) -> str:
    """The words that fit; of a single long word its beginning."""
    words = text[: most + 1].rpartition(" ")[0]
    return words.rstrip(" ;,:") or text[:most]


__all__ = ["LONGEST", "fix_title", "ignore_title"]
