"""The environment variables for processes in a YAML, JSON or TOML file, and how each can be removed.

``environment:`` of Compose and ECS, ``env:`` of Kubernetes and VS Code, ``envs:`` of SkyPilot, ``env_vars:`` of Ray,
``variables:`` of conda, ``literals:`` of Kustomize: a mapping, a list of ``NAME=value`` or a list of ``name`` and
``value``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from ldlm_lint.configs.document import Document, Entry, Path, Shape
from ldlm_lint.configs.placement import Placement
from ldlm_lint.configs.removal import Place
from ldlm_lint.configs.roles import Roles
from ldlm_lint.configs.variables import Written
from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.environment_decisions import is_relevant
from ldlm_lint.rules.settings import Surroundings
from ldlm_lint.source import Source
from ldlm_lint.wording import remark_at

_NAMES = frozenset(
    (
        "env",
        "environment",
        "envs",
        "envvars",
        "environmentvariables",
        "envvariables",
        "extraenv",
        "extraenvvars",
        "sparkenvvars",
        "literals",
    )
)
_TAG = lazily(rb"![^\s\"']*[ \t]+\Z")
_PAIR = lazily(r"([A-Za-z_]\w*)=(.*)", re.S)


@dataclass(slots=True)
class _Found:
    """A variable, the entry that sets it at its own place (None: it cannot be edited), and the environments that get it."""

    written: Written
    own: Entry | None
    entry: Entry
    homes: list[Entry] = field(default_factory=list)


class Environments:
    """The environments of one document file; ``places`` says how the variables can be removed, by their spans."""

    def __init__(self, source: Source, document: Document) -> None:
        self._source = source
        self._document = document
        self._roles = Roles(document)
        self._placement = Placement(source, document)
        self._found: dict[Span, _Found] = {}
        self.places: dict[Span, Place] = {}

    def written(self) -> list[Written]:
        """Every relevant variable once, in the order of the file; shared aliases are at their anchor."""
        for entry in self._document.entries:
            if self._document.get(*entry.path, document=entry.document) is entry:
                self._look_at(entry)
        return [self._placed(self._found[span]) for span in sorted(self._found)]

    def beside(self, written: Written) -> frozenset[tuple[int, Path]]:
        """The containers or jobs that get a variable: document and path of the environment's parent."""
        return frozenset((one.document, one.path[:-1]) for one in self._found[written.span].homes)

    # What sets a variable

    def _look_at(self, entry: Entry) -> None:
        path = entry.path
        if not path or entry.shape is not Shape.SCALAR:
            return
        name = path[-1]
        if isinstance(name, int):
            match = _PAIR.fullmatch(entry.text)
            if match and is_relevant(match[1]) and self._is_environment(path[:-1], entry.document):
                self._add(self._of_pair(entry, match), entry)
        elif is_relevant(name) and self._is_environment(path[:-1], entry.document):
            self._add(self._of_member(entry), entry)
        elif name in ("name", "key", "Name") and len(path) > 2 and is_relevant(entry.text):
            item = self._document.get(*path[:-1], document=entry.document)
            if item is not None and isinstance(path[-2], int) and self._is_environment(path[:-2], entry.document):
                self._add(self._of_item(entry, item), item)

    def _is_environment(self, path: Path, document: int) -> bool:
        """Whether a mapping or list at a path is the environment of a process."""
        if not path:
            # `env_vars.json`, which contains nothing else.
            return _plain(PurePosixPath(self._source.path).stem) in _NAMES
        if not isinstance(path[-1], str):
            return False
        name = _plain(path[-1])
        if name in _NAMES:
            return True
        if name == "data":
            return len(path) == 1 and self._roles.kind(document) == "ConfigMap"
        return path == ("variables",) and self._document.get("dependencies", document=document) is not None

    def _add(self, written: Written | None, entry: Entry) -> None:
        if written is None:
            return
        own = self._placement.own(entry)
        found = self._found.setdefault(written.span, _Found(written, own, entry))
        home = self._document.get(*entry.path[:-1], document=entry.document)
        if home is not None and home not in found.homes:
            found.homes.append(home)

    def _of_member(self, entry: Entry) -> Written | None:
        """``NAME: value``; without a value it comes from outside."""
        if entry.key_span is None or entry.value is None:
            return None
        key, value = self._inner(entry.key_span, str(entry.path[-1])), self._inner(entry.span, entry.text)
        if entry.shared and entry.key_span.end > entry.span.start:
            # The value is an alias: it is at its anchor.
            return Written(str(entry.path[-1]), entry.key_span, key, entry.text)
        return self._make(
            str(entry.path[-1]),
            entry.whole if not entry.shared else _joined(entry.key_span, entry.span),
            key,
            entry,
            value,
        )

    def _of_item(self, name: Entry, item: Entry) -> Written | None:
        """``name: NAME`` with ``value:`` next to it; one with its value from elsewhere has none to check."""
        value = self._document.get(*item.path, "Value" if name.path[-1] == "Name" else "value", document=item.document)
        if name.key_span is None:
            return None
        key = self._inner(name.span, name.text)
        if value is None or value.key_span is None or value.shape is not Shape.SCALAR:
            return Written(name.text, _joined(name.key_span, name.span), key, None)
        spans = sorted((name.key_span, name.span, value.key_span, value.span))
        return self._make(
            name.text,
            Span(name.span.path, spans[0].start, spans[-1].end),
            key,
            value,
            self._inner(value.span, value.text),
        )

    def _of_pair(self, entry: Entry, match: re.Match[str]) -> Written | None:
        """``NAME=value`` as one text."""
        inner = self._inner(entry.span, entry.text)
        if inner is None:
            return Written(match[1], entry.span, None, match[2])
        middle = inner.start + len(match[1]) + 1
        value = Span(inner.path, middle, inner.end)
        return Written(match[1], inner, Span(inner.path, inner.start, middle - 1), match[2], value, match[2], value)

    def _make(self, name: str, span: Span, key: Span | None, value: Entry, inner: Span | None) -> Written:
        raw = self._source.slice(value.span)
        # `!Ref Level` of CloudFormation is not a literal.
        tagged = (
            raw.startswith("!")
            or _TAG.search(self._source.data, max(value.span.start - 80, 0), value.span.start) is not None
        )
        return Written(name, span, key, None if tagged else value.text, inner, raw, value.span)

    def _inner(self, span: Span, text: str) -> Span | None:
        """A scalar without its quotes; None if it is not plain: escapes, anchors, several lines."""
        raw = self._source.slice(span)
        if raw == text:
            return span
        if len(raw) > 1 and raw[0] in "\"'" and raw[-1] == raw[0] and raw[1:-1] == text:
            return Span(span.path, span.start + 1, span.end - 1, span.cell)
        return None

    # How it is there

    def _placed(self, found: _Found) -> Written:
        written, own = found.written, found.own
        # Shared variables are compared only with those next to them at their anchor.
        above = self._placement.above(own) if own is not None else None
        home = above if len(found.homes) > 1 and above is not None else (found.homes or [found.entry])[0]
        start = written.span.start
        remarks = (remark_at(self._source, start, start), remark_at(self._source, start, written.span.end))
        place = Surroundings(
            (found.entry.document, home.span.start),
            # A server's machine may lack what a training cluster has: its settings are a choice for that machine.
            conditional=self._roles.serves(found.entry),
            debugging=self._roles.debugs(found.entry),
            remark=" ".join(dict.fromkeys(remarks)),
        )
        where = self._placement.place(own) if own is not None else None
        if where is not None:
            self.places[written.span] = where
        return replace(written, place=place, twin=self._placement.twin(written, where) if where is not None else None)


def _plain(name: str) -> str:
    return re.sub(r"[-_]", "", name).lower()


def _joined(first: Span, last: Span) -> Span:
    return Span(first.path, min(first.start, last.start), max(first.end, last.end), first.cell)
