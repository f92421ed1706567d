"""Words as text with holes: literal text, and the variables that fill the rest.

Only expansions whose result the script determines are holes: ``$X``, ``${X}``, ``${X:-word}`` and ``$((…))``. A word
with any other expansion is unknown as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.rules.settings import Origin
from ldlm_lint.shell import arithmetic, words

# More possibilities than these are as good as unknown.
MAX_VALUES = 16
_MAX_TEXT = 4_000
_DEPTH = 6
_PLAIN = lazily(r"[^'\"\\$`]+")
_NAME = lazily(r"\$(?:([A-Za-z_]\w*)|(\d))", re.ASCII)
_BRACED = lazily(r"\$\{([A-Za-z_]\w*|\d+)(?:(:?[-=])|\})", re.ASCII)
_ESCAPED_IN_QUOTES = '$`"\\'


class Hole(NamedTuple):
    """A variable in a word, and its replacement if it is unset (``empty``: or empty)."""

    name: str
    default: str | None = None
    empty: bool = False


class Sum(NamedTuple):
    """An arithmetic expansion."""

    expression: str


Part = str | Hole | Sum


class Text(NamedTuple):
    """A possible text of a word, and its origin."""

    text: str
    origin: Origin


Lookup = Callable[[str], Sequence[Text] | None]
"""What a variable may hold; None where that is unknown. A DEFAULT among them: it may as well come from outside."""


def parts(raw: str) -> tuple[Part, ...] | None:
    """The parts of a word; None if it contains an expansion with an unknown result."""
    if raw.startswith("(") or len(raw) > _MAX_TEXT:
        return None
    found: list[Part] = []
    position, quoted = 0, False
    while position < len(raw):
        character = raw[position]
        if character == '"':
            quoted, position = not quoted, position + 1
        elif character == "'" and not quoted:
            end = raw.find("'", position + 1)
            if end < 0:
                return None
            found.append(raw[position + 1 : end])
            position = end + 1
        elif character == "'":
            found.append("'")
            position += 1
        elif character == "\\":
            following = raw[position + 1 : position + 2]
            kept = quoted and following not in _ESCAPED_IN_QUOTES
            found.append(("\\" if kept else "") + following if following != "\n" else "")
            position += 2
        elif character in "$`":
            hole = _hole(raw, position)
            if hole is None:
                return None
            found.append(hole[0])
            position = hole[1]
        else:
            # Every character that it does not take has an arm above.
            plain: re.Match[str] = _PLAIN.match(raw, position)  # type: ignore[assignment]
            found.append(plain[0])
            position = plain.end()
    return None if quoted else tuple(found)


def _hole(raw: str, start: int) -> tuple[Part, int] | None:
    """The expansion at an offset and where it ends."""
    if raw.startswith("$((", start):
        end = words.closing(raw, start + 1)
        return (Sum(raw[start + 3 : end - 2]), end) if end > 0 and raw[end - 2 : end] == "))" else None
    if match := _NAME.match(raw, start):
        return Hole(match[1] or match[2]), match.end()
    if match := _BRACED.match(raw, start):
        if match[2] is None:
            return Hole(match[1]), match.end()
        end = _closing_brace(raw, match.end())
        return (Hole(match[1], raw[match.end() : end], ":" in match[2]), end + 1) if end >= 0 else None
    return None


def _closing_brace(raw: str, start: int) -> int:
    depth = 1
    for index in range(start, len(raw)):
        depth += {"{": 1, "}": -1}.get(raw[index], 0)
        if depth == 0:
            return index
    return -1


def expand(raw: str, lookup: Lookup, depth: int = 0) -> tuple[Text, ...] | None:
    """Every possible text of a word; None if one of them is unknown, or if there are too many."""
    found = parts(raw) if depth < _DEPTH else None
    if found is None:
        return None
    texts: tuple[Text, ...] = (Text("", Origin.LITERAL),)
    for part in found:
        choices = (Text(part, Origin.LITERAL),) if isinstance(part, str) else _filled(part, lookup, depth)
        if choices is None or len(texts) * len(choices) > MAX_VALUES:
            return None
        texts = tuple(Text(one.text + two.text, _weaker(one.origin, two.origin)) for one in texts for two in choices)
    return unique(texts) if all(len(one.text) <= _MAX_TEXT for one in texts) else None


def unique(texts: Iterable[Text]) -> tuple[Text, ...]:
    """The texts in their order, each once."""
    return tuple({(one.text, one.origin): one for one in texts}.values())


def _filled(part: Hole | Sum, lookup: Lookup, depth: int) -> tuple[Text, ...] | None:
    if isinstance(part, Sum):
        return _summed(part, lookup)
    known = lookup(part.name)
    if part.default is None:
        return None if known is None else tuple(Text(one.text, _weaker(one.origin, Origin.VARIABLE)) for one in known)
    held = [one for one in known or () if one.text or not part.empty]
    if known and len(held) == len(known) and all(one.origin is not Origin.DEFAULT for one in known):
        return tuple(Text(one.text, Origin.VARIABLE) for one in held)
    default = expand(part.default, lookup, depth + 1)
    if default is None:
        return None
    return unique(Text(one.text, Origin.DEFAULT) for one in (*held, *default))


def _summed(part: Sum, lookup: Lookup) -> tuple[Text, ...] | None:
    """The results for every choice of the variables; a name that occurs twice has one value at a time."""
    expression = arithmetic.bare(part.expression)
    names = sorted(set(re.findall(r"[A-Za-z_]\w*", expression)))
    results: list[Text] = []
    for numbers in _choices(names, lookup):
        value = None if numbers is None else _evaluated(expression, numbers)
        if value is None or len(results) >= MAX_VALUES:
            return None
        origin = Origin.LITERAL
        for _, one in (numbers or {}).values():
            origin = _weaker(_weaker(origin, one), Origin.VARIABLE)
        results.append(Text(str(value), origin))
    return unique(results)


def _evaluated(expression: str, numbers: Mapping[str, tuple[int, Origin]]) -> int | None:
    return arithmetic.evaluate(expression, lambda name: numbers[name][0])


def _choices(names: Sequence[str], lookup: Lookup) -> Iterator[dict[str, tuple[int, Origin]] | None]:
    """Every choice of numbers for some variables, None if one of them is not a number."""
    if not names:
        yield {}
        return
    known = lookup(names[0])
    if not known or not all(re.fullmatch(r"0|[1-9]\d{0,17}", one.text) for one in known):
        yield None
        return
    for rest in _choices(names[1:], lookup):
        for one in known:
            yield None if rest is None else {names[0]: (int(one.text), one.origin)} | rest


def _weaker(one: Origin, other: Origin) -> Origin:
    """The origin of a text composed of two."""
    order = (Origin.DEFAULT, Origin.VARIABLE, Origin.LITERAL)
    return order[min(order.index(one), order.index(other))]
