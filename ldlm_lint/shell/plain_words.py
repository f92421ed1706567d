"""Simple commands that need no grammar: words of letters, plain quotes and plain expansions.

Most commands and values are like that, and bashlex builds its parser's tables again in each process, which takes longer
than reading the scripts of a small repository. Their places are the same as from bashlex, which handles everything else.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.shell.quotes import unquoted

# The alternatives must be unambiguous, or a long non-matching word would be tried in all ways.
_BARE = r"[\w./:,@%+=^-]"
_NAME = r"\$(?:[0-9@*?#]|[A-Za-z_]\w*(?!\w)|\{\w+(?:\[[\w$@*]+\])?(?::\w+)?\})"
# Between double quotes no quote of another kind, since bashlex treats some of these as ends of strings.
_SOFT = rf'"(?:[^"\\`$\n\'<>~]|{_NAME})*"'
_INNER = rf"(?:{_BARE}|{_NAME}|{_SOFT}|'[^'\"\\\n]*')+"
# A command with plain words, or several in a row; deeper nesting is not handled here.
_SUBSTITUTION = rf"\$\({_INNER}(?: (?:\| )?{_INNER})*\)"
_DEFAULT = rf'\$\{{\w+:?[-=](?:{_BARE}|"[^"\'\\`$}}\n]*")*\}}'
_KEPT = rf"{_SUBSTITUTION}|{_DEFAULT}"
_PIECE = rf"~?{_BARE}|{_NAME}|{_KEPT}|\"(?:[^\"\\`$\n'<>~]|{_NAME}|{_SUBSTITUTION})*\""
# Single quotes lose their meaning after a double quote at the beginning of the word.
_MIXED = rf"(?=\")(?:{_PIECE})+|(?![~\"'])(?:{_PIECE}|'[^'\"\\`$~<>\n]*')+"
_TILDE = rf"~[\w.-]*(?:/(?:{_BARE}|{_NAME})*)?"
# A default ends at the first brace, with any content.
_QUOTED_DEFAULT = r'\$\{\w+:?[-=](?:[^"\\`$}\n]|\$(?!\{))*\}'
_WHOLE = rf'"(?:[^"\\`$\n]|\\[^\n]|{_NAME}|{_QUOTED_DEFAULT})*"'
_WORD = lazily(
    rf"(?:(?P<hard>'[^'\n]*')|(?P<blank>\\ )|(?P<whole>{_WHOLE})|(?P<mixed>{_MIXED}|{_TILDE}))(?=[ \t)<>]|\Z)", re.ASCII
)
# A blank comes first: without one bashlex adds the continued line's end to the word.
_GAP = lazily(r"[ \t](?:[ \t]|\\\n)*")
# A redirection in front of its target; digits before it would be a part of it.
_REDIRECTION = lazily(r"(?<!\d)[<>](?![<>&|(])(?:[ \t](?:[ \t]|\\\n)*)?")
_LETTERS = lazily("[a-z]+")
_ASSIGNMENT = lazily(r"[A-Za-z_]\w*\+?=", re.ASCII)
_EXPANDED = lazily(r"(?<!\\)(?:\\\\)*\$")
# Words with a special meaning in a command, and builtins whose arguments are assignments.
_RESERVED = frozenset(
    (
        *("if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done", "in"),
        *("function", "time", "coproc", "export", "declare", "typeset", "local", "readonly", "alias", "eval", "let"),
    )
)


class PlainWord(NamedTuple):
    """A word: its place, its text without quotes, whether it has no expansions, whether it is an assignment."""

    start: int
    end: int
    text: str
    literal: bool
    assigns: bool


def plain_words(text: str) -> tuple[PlainWord, ...] | None:
    """The words of a simple command, without redirections, empty if it is not a command; None if bashlex must
    decide.
    """
    found: list[PlainWord] = []
    position = 0
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None or _is_reserved(match.group()):
            return None
        assigns = (not found or found[-1].assigns) and _ASSIGNMENT.match(match.group()) is not None
        found.append(PlainWord(match.start(), match.end(), unquoted(match.group()) or "", _is_literal(match), assigns))
        position = _behind(text, match.end())
        while text[position : position + 1] in ("<", ">"):
            target = _redirected(text, position) if not found[-1].assigns else None
            if target is None:
                return None
            position = _behind(text, target)
        if text[position : position + 1] == ")":
            return ()
    # bashlex expects a word after a continued line.
    return tuple(found) if found and not text.endswith("\n") else None


def _behind(text: str, end: int) -> int:
    """The beginning of the text after a word."""
    gap = _GAP.match(text, end)
    return gap.end() if gap is not None else end


def _redirected(text: str, position: int) -> int | None:
    """The end of a redirection into or out of a plain word; None if it is of another kind."""
    redirection = _REDIRECTION.match(text, position)
    target = _WORD.match(text, redirection.end()) if redirection is not None else None
    return target.end() if target is not None and not _is_reserved(target.group()) else None


def _is_reserved(raw: str) -> bool:
    return raw in _RESERVED or ("$(" in raw and not _RESERVED.isdisjoint(_LETTERS.findall(raw)))


def _is_literal(word: re.Match[str]) -> bool:
    raw = word.group()
    return word.lastgroup == "hard" or (raw[0] != "~" and _EXPANDED.search(raw) is None)
