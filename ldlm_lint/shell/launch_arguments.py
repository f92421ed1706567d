"""The arguments of a launch command: its options and overrides, including those in variables, with their possible
values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.settings import Origin, Value
from ldlm_lint.shell import templates, words
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.reaching import Change, Step
from ldlm_lint.shell.script import Assignment, Launch, Word
from ldlm_lint.shell.text import byte_offset

_WHOLE = lazily(r"\$(?:\{(\w+)(?:\[[@*]\])?\}|(\w+))")
_NAME = lazily(r"\$\{?#?([A-Za-z_]\w*|\d)")
_ASSIGNED = lazily(r"([+~]{0,2}[A-Za-z_][\w./@-]*)=(.*)", re.S)
# A substitution is one word, including blanks.
_TOKEN = re.compile(r"(?:\$\((?:[^()]|\([^()]*\))*\)|[^\s'\"\\]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+")
# An element of an array; a comment in it is one as well.
_ELEMENT = re.compile(r"#[^\n]*|" + _TOKEN.pattern)
_NUMBER = lazily(r"\"?\$\(\(.*\)\)\"?", re.S)
_WIDTH = 2
_DEPTH = 5
# Bytes between an option and its value; with more bytes they come from different variables.
_NEAR = 100
_OPTION = lazily(r"--?[A-Za-z][\w.-]*")
_NO_VALUE = lazily(r"-[A-Za-z-]")
T = TypeVar("T")


class Argument(NamedTuple):
    """An option or override: ``name`` with its dashes or dots, ``value`` without quotes, ``span`` of both.

    ``value_span`` is the value alone, None if its quotes or escapes make that uncertain.
    """

    name: str
    value: str
    span: Span
    value_span: Span | None = None


class Known(NamedTuple):
    """A possible value of an argument; ``span`` is the argument, or the ``assignment`` of the variable it names.

    ``value_span`` is the text of the value alone, None if it is not one stretch.
    """

    text: str
    span: Span
    origin: Origin
    assignment: Assignment | None = None
    value_span: Span | None = None


def arguments(script: Code, launch: Launch) -> tuple[Argument, ...]:
    """The arguments of a launch with a value: ``--name value``, ``--name=value``, ``group.name=value``.

    ``script`` is the whole script, which sets the variables, also where the launch is in a string of it.
    """
    return _once(script, launch, _arguments)


def written_words(script: Code, launch: Launch) -> tuple[Word, ...]:
    """The words of a launch; a variable with arguments is replaced by them."""
    return _once(script, launch, _written_words)


def _once(script: Code, launch: Launch, find: Callable[[Code, Launch], Iterator[T]]) -> tuple[T, ...]:
    """Facts about a launch, cached for all rules."""
    key = find.__name__, id(launch.words)
    known = script.told.get(key)
    if known is None or known[0] is not launch.words:
        known = script.told[key] = launch.words, tuple(find(script, launch))
    return known[1]


def _arguments(script: Code, launch: Launch) -> Iterator[Argument]:
    written = written_words(script, launch)
    for index, word in enumerate(written):
        if match := _ASSIGNED.fullmatch(word.text.lstrip("-")):
            name = word.text[: len(word.text) - len(match[0])] + match[1]
            length = len(match[2].encode())
            plain = word.span.end - word.span.start == len(word.text.encode())
            value = Span(word.span.path, word.span.end - length, word.span.end, word.span.cell) if plain else None
            yield Argument(name, match[2], word.span, value)
        elif _OPTION.fullmatch(word.text) and index + 1 < len(written):
            following = written[index + 1]
            if not _NO_VALUE.match(following.text):
                span = Span(word.span.path, word.span.start, following.span.end, word.span.cell)
                apart = not 0 < following.span.start - word.span.end < _NEAR
                yield Argument(word.text, following.text, word.span if apart else span, following.span)


def _written_words(script: Code, launch: Launch) -> Iterator[Word]:
    for word in launch.words:
        yield from _spread(script, word, 0)


def _spread(script: Code, word: Word, depth: int) -> Iterator[Word]:
    match = _WHOLE.fullmatch(word.text) if "$" in word.text else None
    held = list(_held(script, match[1] or match[2], word.span.start)) if match and depth < _DEPTH else []
    if any(len(one) >= _WIDTH or (one and one[0].text.startswith("-")) for one in held):
        for inner in (inner for one in held for inner in one):
            yield from _spread(script, inner, depth + 1)
    else:
        yield word


def _held(script: Code, name: str, place: int) -> Iterator[list[Word]]:
    """The words in each possible value of a variable at a place, including appended ones."""
    if name.isdigit():
        return
    spans = {script.script.variables.home(step) for step in _with_earlier(script, name, place)}
    for assignment in script.assigned(name):
        if assignment.span not in spans:
            continue
        raw = script.source.slice(assignment.value_span)
        array = len(raw) > 1 and (raw[0], raw[-1]) == ("(", ")")
        quoted = array or (len(raw) > 1 and raw[0] in "\"'" and raw[0] == raw[-1])
        if not array and ("$(" in raw.replace("$((", "") or "`" in raw or _NUMBER.fullmatch(raw)):
            # The words of a command substitution do not belong to the launch, nor those of an arithmetic expansion.
            continue
        shift, body = (1, raw[1:-1]) if quoted else (0, raw)
        found = (_ELEMENT if array else _TOKEN).finditer(body)
        kept = (one for one in found if not (array and one[0][0] == "#"))
        yield [_word(assignment, raw, shift + one.start(), shift + one.end()) for one in kept]


def _with_earlier(script: Code, name: str, place: int) -> set[Step]:
    """The changes of a variable that reach a place, with the earlier values for those that only append."""
    variables = script.script.variables
    found: set[Step] = set()
    waiting = list(variables.steps_at(name, place))
    while waiting:
        step = waiting.pop()
        if step in found:
            continue
        found.add(step)
        if step.change is Change.APPEND:
            waiting += variables.steps_at(name, variables.home(step).start)
    return found


def _word(assignment: Assignment, raw: str, start: int, end: int) -> Word:
    place = assignment.value_span
    span = Span(
        place.path, place.start + byte_offset(raw, start), place.start + byte_offset(raw, end), place.cell
    )
    return Word(words.read_word(raw[start:end]), span, "$" not in raw[start:end])


def values(script: Code, argument: Argument) -> tuple[Known, ...] | None:
    """Every possible value of an argument, each with its place; None if one is unknown.

    ``assignment`` is the one with the literal value, also if other variables pass it on.
    """
    text = argument.value
    if "$" not in text and "`" not in text:
        return (Known(text, argument.span, Origin.LITERAL, None, argument.value_span),)
    variables = script.script.variables
    place = (argument.value_span or argument.span).start
    if (match := _WHOLE.fullmatch(text)) and "[" not in text:
        found = variables.at(match[1] or match[2], place)
        return tuple(_known(script, argument, value) for value in found) if found else None
    texts = templates.expand(text, lambda name: _texts(variables.at(name, place)))
    return tuple(Known(one.text, argument.span, one.origin) for one in texts) if texts else None


def _known(script: Code, argument: Argument, value: Value) -> Known:
    """A value of a variable at the assignment that spells it."""
    home = value.home or argument.span
    assignment = next((one for one in script.script.assignments if one.span == home), None)
    return Known(value.text, home, value.origin, assignment, value.home_value)


def _texts(found: Sequence[Value] | None) -> tuple[templates.Text, ...] | None:
    return None if found is None else tuple(templates.Text(one.text, one.origin) for one in found)


def names_in(text: str) -> tuple[str, ...]:
    """The variables that a text expands; a digit is a positional parameter."""
    return tuple(_NAME.findall(text))
