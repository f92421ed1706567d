"""The names that a Python text calls, without parsing it."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.patterns import lazily

# In the reversed text a call begins with its parenthesis, which is found ten times as fast as a name.
_BACKWARDS = lazily(rb"\([ \t]*\w+(?!\w)(?! fed(?!\w))(?! ssalc(?!\w))\.?")
_DIGITS = "0123456789"
_WORD = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Called(NamedTuple):
    """The last names of calls in a text.

    ``members`` are those after a dot somewhere, ``spaced`` those with a blank before a parenthesis.
    """

    names: frozenset[str]
    members: frozenset[str]
    spaced: frozenset[str]


_NOTHING = Called(frozenset(), frozenset(), frozenset())


def called_in(code: bytes) -> Called:
    """The names that a text without comments calls."""
    found = b"\n".join(set(_BACKWARDS.findall(code[::-1])))
    if not found:
        return _NOTHING
    # Reversed back all together: a large file calls hundreds of names.
    forms = found[::-1].decode().replace("(", "").split("\n")
    spaced = [one for one in forms if one[-1] in " \t"] if b" " in found or b"\t" in found else []
    # The same names are called in most files of a project.
    members = {sys.intern(one[1:].rstrip(" \t")) for one in forms if one[0] == "." and one[1] not in _DIGITS}
    names = {sys.intern(one.rstrip(" \t")) for one in forms if one[0] != "." and one[0] not in _DIGITS}
    return Called(
        frozenset(names | members),
        frozenset(members),
        frozenset(name for one in spaced if not keyword.iskeyword(name := sys.intern(one.strip(". \t")))),
    )


def calls_of(data: bytes, name: str, spaced: bool) -> Iterator[int]:
    """The possible calls of a last name in a text, including its definitions.

    ``spaced``: whether a blank may be before the parenthesis.
    """
    word = name.encode()
    for form in (word + b"(", word + b" ", word + b"\t") if spaced else (word + b"(",):
        at = data.find(form)
        while at >= 0:
            end = at + len(word)
            if (not at or data[at - 1] not in _WORD) and (not spaced or data[end : end + 100].lstrip(b" \t").startswith(b"(")):
                yield at
            at = data.find(form, end)
