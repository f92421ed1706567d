"""The origins of values, from the assignment with the literal to the place of use."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.model import Span
from ldlm_lint.rules.settings import Origin, Value


def elsewhere(value: Value, home: Span) -> Value:
    """A value as seen through its variable."""
    return Value(value.text, value.span, value.origin, value.quote, home, value.span)


def through(value: Value, span: Span | None) -> Value:
    """A value passed on by another variable: ``span`` is the text to replace there."""
    origin = Origin.VARIABLE if value.origin is Origin.LITERAL else value.origin
    return Value(value.text, span, origin, "", value.home, value.home_value)


def weakened(value: Value) -> Value:
    """A value that the environment may override."""
    return Value(value.text, value.span, Origin.DEFAULT, value.quote, value.home, value.home_value)


def piece(value: Value, word: str) -> Value:
    """A word of a value; it can be edited only if it is the whole value."""
    return value if value.text == word else Value(word, None, Origin.VARIABLE, "", value.home)


def unique(values: Iterable[Value]) -> tuple[Value, ...]:
    """The values in their order, each once."""
    return tuple(dict.fromkeys(values))
