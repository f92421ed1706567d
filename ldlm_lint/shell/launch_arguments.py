"""What a launch command is given: its options and overrides, with those in variables, and their possible values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ldlm_lint.model import Span
from ldlm_lint.rules.settings import Origin
from ldlm_lint.shell import words
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.script import Assignment, Launch, Word
from ldlm_lint.shell.text import byte_offset

_WHOLE = re.compile(r"\$(?:\{(\w+)(?:\[[@*]\])?\}|(\w+))")
_DEFAULT = re.compile(r"\$\{(\w+):?[-=]([^${}]*)\}")
_NAME = re.compile(r"\$\{?#?([A-Za-z_]\w*|\d)")
_ASSIGNED = re.compile(r"([+~]{0,2}[A-Za-z_][\w./@-]*)=(.*)", re.S)
_TOKEN = re.compile(r"(?:[^\s'\"\\]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+")
_WIDTH = 2
# Bytes between an option and its value; farther apart they come from different variables.
_NEAR = 100


@dataclass(frozen=True, slots=True)
class Argument:
    """An option or override: ``name`` with its dashes or dots, ``value`` without quotes, ``span`` of both.

    ``value_span`` is the value alone, None where its quotes or escapes make that uncertain.
    """

    name: str
    value: str
    span: Span
    value_span: Span | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """A value that an argument may have; ``span`` is the argument, or the ``assignment`` of the variable it names."""

    text: str
    span: Span
    origin: Origin
    assignment: Assignment | None = None
    value_span: Span | None = None


def arguments(script: Code, launch: Launch) -> Iterator[Argument]:
    """The arguments of a launch that have a value: ``--name value``, ``--name=value``, ``group.name=value``.

    ``script`` is the whole script, which sets the variables, also where the launch stands in a string of it.
    """
    written = list(written_words(script, launch))
    for index, word in enumerate(written):
        if match := _ASSIGNED.fullmatch(word.text.lstrip("-")):
            name = word.text[: len(word.text) - len(match[0])] + match[1]
            length = len(match[2].encode())
            plain = word.span.end - word.span.start == len(word.text.encode())
            value = Span(word.span.path, word.span.end - length, word.span.end, word.span.cell) if plain else None
            yield Argument(name, match[2], word.span, value)
        elif re.fullmatch(r"--?[A-Za-z][\w.-]*", word.text) and index + 1 < len(written):
            following = written[index + 1]
            if not re.match(r"-[A-Za-z-]", following.text):
                span = Span(word.span.path, word.span.start, following.span.end, word.span.cell)
                apart = not 0 < following.span.start - word.span.end < _NEAR
                yield Argument(word.text, following.text, word.span if apart else span, following.span)


def written_words(script: Code, launch: Launch) -> Iterator[Word]:
    """The words of a launch; one that is a variable full of arguments is replaced by them."""
    for word in launch.words:
        match = _WHOLE.fullmatch(word.text)
        held = list(_held(script, match[1] or match[2])) if match else []
        if any(len(one) >= _WIDTH or (one and one[0].text.startswith("-")) for one in held):
            yield from (inner for one in held for inner in one)
        else:
            yield word


def _held(script: Code, name: str) -> Iterator[list[Word]]:
    """The words in each value that a variable is given."""
    for assignment in script.assigned(name):
        raw = script.source.slice(assignment.value_span)
        quoted = len(raw) > 1 and (raw[0], raw[-1]) in (("(", ")"), ('"', '"'), ("'", "'"))
        shift, body = (1, raw[1:-1]) if quoted else (0, raw)
        yield [_word(assignment, raw, shift + match.start(), shift + match.end()) for match in _TOKEN.finditer(body)]


def _word(assignment: Assignment, raw: str, start: int, end: int) -> Word:
    place = assignment.value_span
    span = Span(
        place.path, place.start + byte_offset(raw, start), place.start + byte_offset(raw, end), place.cell
    )
    return Word(words.read_word(raw[start:end]), span, "$" not in raw[start:end])


def values(script: Code, argument: Argument) -> tuple[Known, ...] | None:
    """Every value that an argument may have, each at the place where it is written; None where one is unknown."""
    if match := _DEFAULT.fullmatch(argument.value):
        return None if script.assigned(match[1]) else (Known(match[2], argument.span, Origin.DEFAULT),)
    if match := _WHOLE.fullmatch(argument.value):
        assigned = script.assigned(match[1] or match[2])
        if not assigned or any(one.values is None or one.append for one in assigned):
            return None
        return tuple(Known(value.text, one.span, value.origin, one) for one in assigned for value in one.values or ())
    if "$" in argument.value or "`" in argument.value:
        return None
    return (Known(argument.value, argument.span, Origin.LITERAL, None, argument.value_span),)


def names_in(text: str) -> tuple[str, ...]:
    """The variables that a text expands; a digit is a positional parameter."""
    return tuple(_NAME.findall(text))
