"""From the nodes of a YAML stream to entries: paths, bytes, aliases and merge keys followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.configs.document import DataError, DocumentError, Entry, Path, Shape, spans
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from ldlm_lint.configs.yaml_reader import Node

MAX_ENTRIES = 50_000
MAX_DEPTH = 60
TOO_DEEP = "contains too deeply nested values"
_MERGE = "<<"


class Entries:
    """The entries of all documents of a stream, in ``found``."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._span = spans(source)
        self._bases: dict[int, dict[str, tuple[Node, Node]]] = {}
        self.found: list[Entry] = []

    def add_root(self, root: Node, document: int) -> None:
        """Add the contents of a document; raises DataError for data, DocumentError if aliases expand beyond limits."""
        self._add(root, (), None, document, shared=False)

    def _add(self, node: Node, path: Path, key: Node | None, document: int, *, shared: bool) -> None:
        if node.alias is not None:
            node, shared = node.alias, True
        if len(self.found) >= MAX_ENTRIES or len(path) > MAX_DEPTH:
            raise self._too_much(node, shared=shared, deep=len(path) > MAX_DEPTH)
        key_span = self._span(key.start, key.end) if key is not None else None
        span = self._span(node.start, node.end)
        self.found.append(Entry(path, node.shape, node.value, node.text, span, key_span, document, shared, node.tag))
        if node.shape is Shape.SEQUENCE:
            for index, item in enumerate(node.parts):
                self._add(item, (*path, index), None, document, shared=shared)
        elif node.shape is Shape.MAPPING:
            for name, value in self._merged(node).values():
                self._add(value, (*path, name.text), name, document, shared=True)
            for name, value in zip(node.parts[::2], node.parts[1::2], strict=True):
                if name.shape is Shape.SCALAR and not _merges(name):
                    self._add(value, (*path, name.text), name, document, shared=shared)

    def _merged(self, node: Node) -> dict[str, tuple[Node, Node]]:
        """The entries that a mapping gets from merge keys and does not set itself."""
        names = node.parts[::2]
        if not any(_merges(name) for name in names):
            return {}
        own = {name.text for name in names if not _merges(name)}
        return {text: pair for text, pair in self._inherited(node).items() if text not in own}

    def _inherited(self, node: Node) -> dict[str, tuple[Node, Node]]:
        """The pairs after the merge keys of a mapping; of the bases in a list the first one wins
        (https://yaml.org/type/merge.html)."""
        if id(node) in self._bases:
            return self._bases[id(node)]
        # A mapping that merges itself is empty here.
        found = self._bases[id(node)] = {}
        for name, value in zip(node.parts[::2], node.parts[1::2], strict=True):
            if _merges(name):
                target = value.alias or value
                for base in reversed(target.parts) if target.shape is Shape.SEQUENCE else (target,):
                    found.update(self._all_of(base.alias or base))
        return found

    def _all_of(self, base: Node) -> dict[str, tuple[Node, Node]]:
        if base.shape is not Shape.MAPPING:
            return {}
        pairs = zip(base.parts[::2], base.parts[1::2], strict=True)
        own = {name.text: (name, value) for name, value in pairs if name.shape is Shape.SCALAR and not _merges(name)}
        return {**self._inherited(base), **own}

    def _too_much(self, node: Node, *, shared: bool, deep: bool) -> DocumentError:
        line = self._source.position(self._span(node.start, node.start).start)[0]
        if shared:
            return DocumentError("contains aliases that multiply its values without limit", line)
        return DocumentError(TOO_DEEP, line) if deep else DataError("contains data, not settings", line)


def _merges(key: Node) -> bool:
    return key.plain and key.text == _MERGE
