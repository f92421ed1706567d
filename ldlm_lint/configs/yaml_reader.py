"""YAML through libyaml's events: they have positions, take a tenth of the time of a round-trip loader, and cannot
recurse.

Nothing is constructed: tags (``!!python/object``, ``!ref``, ``!include``) are kept as text, and alias expansion is
bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from ldlm_lint.configs.document import ChartError, DataError, Document, DocumentError, Shape
from ldlm_lint.configs.scalars import yaml_scalar
from ldlm_lint.configs.templates import Placeholder, bare_placeholder, chart_error, marked_placeholders, rendered
from ldlm_lint.configs.yaml_entries import MAX_DEPTH, MAX_ENTRIES, TOO_DEEP, Entries
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

# A hundred times slower than libyaml.
_LONGEST_SECOND_READING = 100_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Python's escapes of characters that do not exist are plain ValueErrors in the reader that is written in Python.
_ERRORS = (yaml.YAMLError, ValueError, OverflowError)
_CORE = "tag:yaml.org,2002:"
_BY_CONTENT = frozenset(_CORE + name for name in ("int", "float", "bool", "null"))
_PROPERTIES = lazily(r"(?:[&!][^\s,\[\]{}]*(?:\s+(?:#[^\r\n]*)?)*)+")


@dataclass(slots=True)
class Node:
    """A node of the stream, between two characters of its text.

    The parts of a mapping are its keys and values, alternating. ``alias`` is the target of an alias.
    """

    shape: Shape
    start: int
    end: int
    text: str = ""
    value: object = None
    tag: str = ""
    plain: bool = False
    alias: Node | None = None
    parts: list[Node] = field(default_factory=list)


class _TemplateError(Exception):
    """A placeholder that YAML reads as a mapping."""

    def __init__(self, placeholder: Placeholder) -> None:
        super().__init__(placeholder.text)
        self.placeholder = placeholder


def read(source: Source) -> Document:
    """The document of a YAML stream; raises DocumentError with the line of the first error, DataError for data."""
    if source.text.count("\n") > MAX_ENTRIES:
        raise DataError("contains data, not settings", 1)
    entries = Entries(source)
    for number, root in enumerate(_read_roots(source)):
        entries.add_root(root, number)
    return Document(source.path, source.kind, tuple(entries.found))


def _read_roots(source: Source) -> list[Node]:
    """The root node of each document; raises DocumentError."""
    try:
        return list(_Stream(source.text, _LOADER).roots())
    except _TemplateError as error:
        line = _line(source, error.placeholder.start)
        raise chart_error(source.text, line) or error.placeholder.error(line) from error
    except _ERRORS as error:
        problem = _error(source, error)
        if isinstance(problem, ChartError) or len(source.text) > _LONGEST_SECOND_READING:
            raise problem from error
    # libyaml rejects text that the Python reader of `yaml.safe_load` and OmegaConf accepts: a tab at the head of a
    # block of text.
    try:
        return list(_Stream(source.text, yaml.SafeLoader).roots())
    except _TemplateError as error:
        raise error.placeholder.error(_line(source, error.placeholder.start)) from error
    except _ERRORS:
        raise problem from None


class _Stream:
    """Makes nodes of events."""

    def __init__(self, text: str, loader: type) -> None:
        self._text = text
        self._loader = loader
        self._anchors: dict[str, Node] = {}
        self._stack: list[Node] = []
        self._end = 0

    def roots(self) -> Iterator[Node]:
        """The root node of each document."""
        # Classes are compared by identity, and events of a text have marks: the stubs describe neither.
        event: Any
        for event in yaml.parse(self._text, Loader=self._loader):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                node = self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._stack.append(self._container(event, Shape.MAPPING if kind is yaml.MappingStartEvent else Shape.SEQUENCE))
                if len(self._stack) > MAX_DEPTH + 1:
                    raise DocumentError(TOO_DEEP, event.start_mark.line + 1)
                continue
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                node = self._closed(event)
            elif kind is yaml.AliasEvent:
                node = self._alias(event)
            else:
                self._anchors = {}
                continue
            if self._stack:
                self._stack[-1].parts.append(node)
            else:
                yield node

    def _scalar(self, event: Any) -> Node:
        start, end, text = event.start_mark.index, event.end_mark.index, event.value
        if event.anchor or event.tag:
            start = min(self._behind_properties(start), end)
        tag = event.tag or ""
        by_content = tag in _BY_CONTENT or (not tag and event.implicit[0])
        value = yaml_scalar(text) if by_content else text
        if event.style in ("|", ">"):
            end = start + len(self._text[start:end].rstrip())
        self._end = end
        node = Node(Shape.SCALAR, start, end, text, value, _shown(tag), plain=not tag and bool(event.implicit[0]))
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _container(self, event: Any, shape: Shape) -> Node:
        start = event.start_mark.index
        if event.anchor or event.tag:
            start = self._behind_properties(start)
        node = Node(shape, start, start, tag=_shown(event.tag or ""))
        if event.anchor:
            self._anchors[event.anchor] = node
        above = self._stack[-1] if self._stack else None
        if shape is Shape.MAPPING and above is not None and not above.parts and self._text.startswith("{{", above.start):
            placeholder = bare_placeholder(self._text, above.start)
            if placeholder is not None:
                raise _TemplateError(placeholder)
        return node

    def _closed(self, event: Any) -> Node:
        node = self._stack.pop()
        if event.end_mark.index > event.start_mark.index:
            self._end = event.end_mark.index
        # libyaml lets a block end where the next token begins, after comments and blank lines.
        node.end = max(self._end, node.start)
        return node

    def _alias(self, event: Any) -> Node:
        known = self._anchors.get(event.anchor)
        if known is None:
            raise yaml.composer.ComposerError(None, None, f"found undefined alias {event.anchor!r}", event.start_mark)
        self._end = event.end_mark.index
        return Node(known.shape, event.start_mark.index, self._end, known.text, known.value, known.tag, alias=known)

    def _behind_properties(self, start: int) -> int:
        """Where the content of a node begins, after its anchor and tag."""
        match = _PROPERTIES.match(self._text, start)
        return match.end() if match else start


def _shown(tag: str) -> str:
    return "!!" + tag.removeprefix(_CORE) if tag.startswith(_CORE) else tag


def _line(source: Source, index: int) -> int:
    return source.position(source.offset_of_character(index))[0]


def _error(source: Source, error: Exception) -> DocumentError:
    """The error for a stream that libyaml rejects: a template, or the error."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    index = min(mark.index if mark else getattr(error, "position", 0), len(source.text))
    chart = chart_error(source.text, _line(source, index))
    if chart is not None:
        return chart
    placeholder = _placeholder(source.text, index)
    if placeholder is not None:
        return placeholder.error(_line(source, placeholder.start))
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    return DocumentError(f"not YAML: {problem}", _line(source, index))


def _placeholder(text: str, index: int) -> Placeholder | None:
    """The placeholder that makes a text unreadable: it loads once all are filled in, or its error is at one."""
    bare = bare_placeholder(text, index)
    if bare is not None:
        return bare
    marked = marked_placeholders(text)
    if not marked:
        return None
    try:
        for _ in yaml.parse(rendered(text), Loader=_LOADER):
            pass
    except _ERRORS:
        line = text.rfind("\n", 0, index) + 1
        return next((one for one in marked if line <= one.start <= index), None)
    return marked[0]
