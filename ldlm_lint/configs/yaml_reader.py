"""YAML through libyaml's events: they carry marks, cost a tenth of a round-trip loader, and cannot recurse.

Nothing is constructed: tags of Python objects are plain text here, and an alias is followed at most `MAX_ENTRIES` deep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import yaml

from ldlm_lint.configs.document import Document, DocumentError, Entry, Path, Shape
from ldlm_lint.model import Span
from ldlm_lint.source import Source

MAX_ENTRIES = 50_000
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER = yaml.resolver.Resolver()
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
# YAML 1.1 as PyYAML reads it takes `1e-4` for text; OmegaConf and YAML 1.2 take it for a number, and so do people.
_FLOAT = re.compile(r"[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?")
_INT = "tag:yaml.org,2002:int"


@dataclass(slots=True)
class _Node:
    """A node of the stream; ``pairs`` for a mapping, ``items`` for a sequence."""

    shape: Shape
    start: int
    end: int
    text: str = ""
    value: object = None
    pairs: list[tuple[_Node, _Node, bool]] = field(default_factory=list)
    items: list[tuple[_Node, bool]] = field(default_factory=list)


def read(source: Source) -> Document:
    """The document of a YAML stream; raises DocumentError with the line of the first error."""
    text = source.text
    try:
        roots = list(_roots(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise DocumentError(f"not YAML: {problem}", mark.line + 1 if mark else 1) from error
    entries = _Entries(source)
    for number, root in enumerate(roots):
        entries.add(root, (), None, number, shared=False)
    return Document(source.path, source.kind, tuple(entries.found))


def _roots(text: str) -> Iterator[_Node]:
    """The root node of each document."""
    anchors: dict[str, _Node] = {}
    stack: list[tuple[_Node, list[tuple[_Node, bool]]]] = []
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.DocumentStartEvent):
            anchors = {}
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            shape = Shape.MAPPING if isinstance(event, yaml.MappingStartEvent) else Shape.SEQUENCE
            node = _Node(shape, event.start_mark.index, event.end_mark.index)
            if event.anchor:
                anchors[event.anchor] = node
            stack.append((node, []))
        else:
            done = _finished(event, stack, anchors, text)
            if done is None:
                continue
            if not stack:
                yield done[0]
            else:
                stack[-1][1].append(done)


def _finished(
    event: yaml.Event, stack: list[tuple[_Node, list[tuple[_Node, bool]]]], anchors: dict[str, _Node], text: str
) -> tuple[_Node, bool] | None:
    """The node that an event completes, and whether it is an alias."""
    if isinstance(event, yaml.ScalarEvent):
        node = _Node(Shape.SCALAR, event.start_mark.index, event.end_mark.index, event.value, _scalar(event))
        if event.style in ("|", ">"):
            node.end = node.start + len(text[node.start : node.end].rstrip())
        if event.anchor:
            anchors[event.anchor] = node
        return node, False
    if isinstance(event, yaml.AliasEvent):
        if event.anchor not in anchors:
            raise yaml.composer.ComposerError(None, None, f"found undefined alias {event.anchor!r}", event.start_mark)
        return anchors[event.anchor], True
    if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
        node, parts = stack.pop()
        if node.shape is Shape.MAPPING:
            keys, values = parts[::2], parts[1::2]
            node.pairs = [(key, value, alias) for (key, _), (value, alias) in zip(keys, values, strict=True)]
        else:
            node.items = parts
        # libyaml lets a block end where the next token begins.
        node.end = node.start + len(text[node.start : event.end_mark.index].rstrip())
        return node, False
    return None


def _scalar(event: yaml.ScalarEvent) -> object:
    """The data of a scalar: plain ones by YAML's rules, quoted ones as text."""
    text = event.value
    if event.tag is not None or not event.implicit[0]:
        return text
    kind = _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)).rpartition(":")[2]
    if kind == "bool":
        return text.lower() in _TRUE
    if kind == "null":
        return None
    if kind == "int" and re.fullmatch(r"[-+]?(?:0|[1-9][\d_]*)", text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text) and any(letter.isdigit() for letter in text):
        return float(text.replace("_", ""))
    return text


class _Entries:
    """Makes entries of nodes: paths, spans in bytes, aliases and merge keys followed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._offsets = _offsets(source)
        self.found: list[Entry] = []

    def add(self, node: _Node, path: Path, key: _Node | None, document: int, *, shared: bool) -> None:
        """Add a node and what it holds; raises DocumentError where aliases multiply it beyond all bounds."""
        if len(self.found) >= MAX_ENTRIES or len(path) > 60:
            line = self._source.text.count("\n", 0, node.start) + 1
            raise DocumentError("holds more than can be read: too many or too deeply nested values", line)
        key_span = self._span(key) if key is not None else None
        self.found.append(Entry(path, node.shape, node.value, node.text, self._span(node), key_span, document, shared))
        for index, (item, alias) in enumerate(node.items):
            self.add(item, (*path, index), None, document, shared=shared or alias)
        merged = [(value, True) for name, value, _ in node.pairs if name.text == "<<"]
        for base, _ in merged:
            bases = [item for item, _ in base.items] if base.shape is Shape.SEQUENCE else [base]
            own = {name.text for name, _, _ in node.pairs}
            for one in reversed(bases):
                for name, value, _ in one.pairs:
                    if name.text not in own:
                        self.add(value, (*path, name.text), name, document, shared=True)
        for name, value, alias in node.pairs:
            if name.text != "<<" and name.shape is Shape.SCALAR:
                self.add(value, (*path, name.text), name, document, shared=shared or alias)

    def _span(self, node: _Node) -> Span:
        return self._source.span(self._offsets(node.start), self._offsets(node.end))


def _offsets(source: Source) -> Callable[[int], int]:
    """From characters of the text to bytes of the file."""
    text = source.text
    if text.isascii():
        return lambda index: source.bom + index
    table = [source.bom]
    for letter in text:
        table.append(table[-1] + len(letter.encode()))
    return table.__getitem__
