"""Variables that a configuration file sets, as settings for the rules of launch scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_watchdog import HEARTBEAT
from ldlm_lint.rules.roles import speaks_of_debugging
from ldlm_lint.rules.settings import Origin, Setting, Surroundings, Twin, Value
from ldlm_lint.source import Source

_COMMENT = lazily(rb"(?:^|(?<=\s))#[^\n]*", re.M)
# `${X:-INFO}` of a shell, Compose or python-dotenv, `${oc.env:X,INFO}` of OmegaConf: the default is a value.
_DEFAULT = lazily(r"\$\{\w+:?-([^${}]*)\}|\$\{oc\.env:\w+,[ ]*([^${}]*)\}")
_EXPANDED = ("$", "{{", "{%", "<%", "`")


@dataclass(frozen=True, slots=True)
class Written:
    """A variable as written: name and value without their quotes.

    ``text`` is None if the value comes from elsewhere; ``inner`` is its place without quotes, None if it cannot be
    edited. ``span`` is the whole ``NAME=value``, ``raw`` the value with its quotes.
    """

    name: str
    span: Span
    key: Span | None
    text: str | None
    inner: Span | None = None
    raw: str = ""
    outer: Span | None = None
    twin: Twin | None = None
    literal: bool = False
    place: Surroundings = field(default_factory=Surroundings)

    @property
    def values(self) -> tuple[Value, ...] | None:
        """The value that the variable has, or has by default; None if unknown."""
        if self.text is None:
            return None
        if self.literal or not any(mark in self.text for mark in _EXPANDED):
            return (Value(self.text, self.inner),)
        match = _DEFAULT.fullmatch(self.text)
        if match is None:
            return None
        start, end = match.span(1 if match[1] is not None else 2)
        text = self.text[start:end]
        if self.inner is None or text.strip("\"'") != text:
            return (Value(text.strip("\"'"), None, Origin.DEFAULT),)
        shift = self.inner.start + len(self.text[:start].encode())
        place = Span(self.inner.path, shift, shift + len(text.encode()), self.inner.cell)
        return (Value(text, place, Origin.DEFAULT),)


def settings_of(
    source: Source, found: Iterable[Written], values: dict[Span, tuple[Value, ...] | None] | None = None
) -> dict[Span, Setting]:
    """The settings of the variables by their spans; ``values`` replaces the values of some of them."""
    found, values = list(found), values or {}
    data = without_comments(source)
    own: dict[str, list[Span]] = {}
    for one in found:
        own.setdefault(one.name, []).append(one.span)
    uses = {name: _uses(data, name, spans) for name, spans in own.items()}
    settings = {}
    for one in found:
        expanded, used = uses[one.name]
        settings[one.span] = Setting(
            name=one.name,
            values=values.get(one.span, one.values),
            span=one.span,
            expanded=expanded,
            used=used,
            key=None if one.key is None else Value(one.name, one.key),
            written=Value(one.raw, one.outer if one.inner is not None else None),
            twin=one.twin,
            place=one.place,
        )
    return settings


def elsewhere(source: Source, settings: Iterable[Setting]) -> tuple[Setting, ...]:
    """A setting of unknown value for a heartbeat timeout that the file sets in its code, which its other settings meet."""
    own = [one.span for one in settings if one.name == HEARTBEAT]
    found = re.finditer(HEARTBEAT.encode() + rb"(?!\w)", without_comments(source))
    places = (Span(source.path, *match.span()) for match in found if not _inside(match.start(), own))
    return tuple(Setting(HEARTBEAT, None, place) for place in places)


def without_comments(source: Source) -> bytes:
    """The bytes of a file with blanks for its comments."""
    return _COMMENT.sub(lambda match: b" " * len(match[0]), source.data)


def is_diagnostic_name(path: str) -> bool:
    """Whether a file debugs, tests or measures by its name, including endings such as in ``.env.test``."""
    return speaks_of_debugging(PurePosixPath(path).name)


def _uses(data: bytes, name: str, own: list[Span]) -> tuple[bool, bool]:
    """Whether a file mentions a variable outside of the places that set it, and whether it uses its value there."""
    word = re.escape(name.encode())
    mentioned = any(not _inside(match.start(), own) for match in re.finditer(rb"(?<!\w)" + word + rb"(?!\w)", data))
    if not mentioned:
        return False, False
    reads = re.compile(rb"\$[$({]*" + word + rb"(?!\w)|(?:environ|getenv|oc\.env)\b[^\n]{0,20}" + word + rb"(?!\w)")
    return True, any(not _inside(match.start(), own) for match in reads.finditer(data))


def _inside(offset: int, spans: Iterable[Span]) -> bool:
    return any(span.start <= offset < span.end for span in spans)
