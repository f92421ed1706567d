"""Which repeats of a regular expression may split one text in more than one way: a failure behind them takes exponential time.

``(?:[^"]+|\\\\.)*"`` is the usual one: without the quote at the end, every split of the letters is tried. A repeat is ambiguous
where what an iteration may end with (a repeat of single characters) and what the next may begin with overlap. See
https://docs.python.org/3/library/re.html and https://owasp.org/www-community/attacks/Regular_expression_Denial_of_Service_-_ReDoS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

try:
    from re import _constants as constants
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_constants as constants
    import sre_parse as parser

_EVERYTHING = frozenset(range(256))
_MOST = 300
_REPEATS = {constants.MAX_REPEAT, constants.MIN_REPEAT}
_PLACES = {constants.AT, constants.ASSERT, constants.ASSERT_NOT}
_CATEGORIES = {
    constants.CATEGORY_DIGIT: r"\d",
    constants.CATEGORY_NOT_DIGIT: r"\D",
    constants.CATEGORY_SPACE: r"\s",
    constants.CATEGORY_NOT_SPACE: r"\S",
    constants.CATEGORY_WORD: r"\w",
    constants.CATEGORY_NOT_WORD: r"\W",
}
_Item = tuple[Any, Any]


def is_ambiguous(pattern: str | bytes, flags: int = 0) -> bool:
    """Whether a pattern holds an ambiguous repeat; characters above 255 are left out of account."""
    parsed = parser.parse(pattern, flags)
    return any(_ambiguous(parsed, parsed.state.flags))


def _ambiguous(items: Any, flags: int) -> Iterator[bool]:
    for operation, value in items:
        if operation in _REPEATS:
            yield value[1] is constants.MAXREPEAT and _overlaps(_sequences(value[2]), flags)
            yield from _ambiguous(value[2], flags)
        elif operation is constants.SUBPATTERN:
            yield from _ambiguous(value[3], flags)
        elif operation is constants.BRANCH:
            for branch in value[1]:
                yield from _ambiguous(branch, flags)
        elif operation in (constants.ASSERT, constants.ASSERT_NOT):
            yield from _ambiguous(value[1], flags)


def _overlaps(bodies: list[list[_Item]], flags: int) -> bool:
    begins = frozenset[int]().union(*(_begins(body, flags)[0] for body in bodies))
    return any(begins & end for body in bodies for end in _ends(body, flags))


def _sequences(items: Any) -> list[list[_Item]]:
    """The alternatives of an expression, its groups dissolved; none where they are too many."""
    found: list[list[_Item]] = [[]]
    for operation, value in items:
        if operation is constants.SUBPATTERN:
            inner = _sequences(value[3])
        elif operation is constants.BRANCH:
            inner = [one for branch in value[1] for one in _sequences(branch)]
        else:
            inner = [[(operation, value)]]
        if len(found) * len(inner) > _MOST:
            return []
        found = [[*before, *after] for before in found for after in inner]
    return found


def _begins(body: list[_Item], flags: int) -> tuple[frozenset[int], bool]:
    """The characters that a sequence may begin with, and whether it may be empty."""
    found: frozenset[int] = frozenset()
    for operation, value in body:
        if operation in _REPEATS:
            inner = [_begins(one, flags) for one in _sequences(value[2])]
            found = found.union(*(characters for characters, _ in inner))
            if value[0] and not any(empty for _, empty in inner):
                return found, False
        elif operation not in _PLACES:
            return found | _characters(operation, value, flags), False
    return found, True


def _ends(body: list[_Item], flags: int) -> Iterator[frozenset[int]]:
    """The characters of the endless repeats that a sequence may end with."""
    for operation, value in reversed(body):
        # What must stand in a certain place, or before certain characters, is taken to end in one place only.
        if operation not in _REPEATS:
            return
        inner = _sequences(value[2])
        if value[1] is constants.MAXREPEAT and len(inner) == 1 and len(inner[0]) == 1 and inner[0][0][0] not in _REPEATS:
            yield _characters(*inner[0][0], flags)
        else:
            for one in inner:
                yield from _ends(one, flags)
        if value[0] and not any(_begins(one, flags)[1] for one in inner):
            return


def _characters(operation: Any, value: Any, flags: int) -> frozenset[int]:
    """The characters that one item may be; all of them for what is no single character."""
    if operation is constants.LITERAL:
        found = frozenset({value}) & _EVERYTHING
    elif operation is constants.NOT_LITERAL:
        found = _EVERYTHING - {value}
    elif operation is constants.ANY:
        found = _EVERYTHING if flags & re.DOTALL else _EVERYTHING - {ord("\n")}
    elif operation is constants.IN:
        found = frozenset().union(*(_of_class(*one) for one in value))
        found = _EVERYTHING - found if value[0][0] is constants.NEGATE else found
    else:
        return _EVERYTHING
    return found | {ord(chr(one).swapcase()) for one in found if one < 128} if flags & re.IGNORECASE else found


def _of_class(operation: Any, value: Any) -> frozenset[int]:
    if operation is constants.LITERAL:
        return frozenset({value}) & _EVERYTHING
    if operation is constants.RANGE:
        return frozenset(range(value[0], min(value[1], 255) + 1))
    if operation is constants.CATEGORY:
        return frozenset(one for one in _EVERYTHING if re.match(_CATEGORIES[value], chr(one), re.ASCII))
    return frozenset()
