"""TOML through tree-sitter: places of all values; whether it is TOML at all, the standard library decides."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from ldlm_lint.configs.document import Document, DocumentError, Entry, Key, Path, Shape
from ldlm_lint.model import Span
from ldlm_lint.source import Source

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LANGUAGE = Language(tree_sitter_toml.language())
_SHAPES = {"inline_table": Shape.MAPPING, "array": Shape.SEQUENCE}
_KEYS = ("bare_key", "quoted_key", "dotted_key")
_LINE = re.compile(r"at line (\d+)")


def read(source: Source) -> Document:
    """The document of a TOML file; raises DocumentError with the line of the first error."""
    try:
        data = tomllib.loads(source.text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        match = _LINE.search(str(error))
        message = re.sub(r" \(at .*\)$", "", str(error))
        raise DocumentError(f"not TOML: {message}", int(match[1]) if match else 1) from error
    root = Parser(_LANGUAGE).parse(source.data[source.bom :]).root_node
    return Document(source.path, source.kind, tuple(_Reader(source, data).entries(root)))


class _Reader:
    """Walks the tables and pairs of a file; values are looked up in what the standard library has read."""

    def __init__(self, source: Source, data: dict[str, object]) -> None:
        self._source = source
        self._data = data
        self._arrays: dict[Path, int] = {}

    def entries(self, root: Node) -> Iterator[Entry]:
        """The root, then every table with its pairs."""
        yield self._entry((), root, None, Shape.MAPPING)
        for node in root.named_children:
            if node.type == "pair":
                yield from self._pair(node, ())
            elif node.type in ("table", "table_array_element"):
                yield from self._table(node)

    def _table(self, table: Node) -> Iterator[Entry]:
        key = next(child for child in table.named_children if child.type in _KEYS)
        path = self._resolved(self._names(key))
        if table.type == "table_array_element":
            index = self._arrays[path] = self._arrays.get(path, -1) + 1
            path = (*path, index)
        yield self._entry(path, table, key, Shape.MAPPING)
        for node in table.named_children:
            if node.type == "pair":
                yield from self._pair(node, path)

    def _resolved(self, names: Path) -> Path:
        """The path of a table, through the last element of every array of tables on the way."""
        path: Path = ()
        for index, name in enumerate(names):
            path = (*path, name)
            if path in self._arrays and index < len(names) - 1:
                path = (*path, self._arrays[path])
        return path

    def _pair(self, pair: Node, above: Path) -> Iterator[Entry]:
        key, value = pair.named_children[0], pair.named_children[-1]
        yield from self._value((*above, *self._names(key)), value, key)

    def _value(self, path: Path, node: Node, key: Node | None) -> Iterator[Entry]:
        shape = _SHAPES.get(node.type, Shape.SCALAR)
        yield self._entry(path, node, key, shape)
        if node.type == "inline_table":
            for child in node.named_children:
                if child.type == "pair":
                    yield from self._pair(child, path)
        elif node.type == "array":
            items = [child for child in node.named_children if child.type != "comment"]
            for index, item in enumerate(items):
                yield from self._value((*path, index), item, None)

    def _names(self, key: Node) -> Path:
        parts = key.named_children if key.type == "dotted_key" else [key]
        names: list[Key] = []
        for part in parts:
            names += self._names(part) if part.type == "dotted_key" else [self._text(part).strip("\"'")]
        return tuple(names)

    def _entry(self, path: Path, node: Node, key: Node | None, shape: Shape) -> Entry:
        value = self._known(path) if shape is Shape.SCALAR else None
        text = value if isinstance(value, str) else self._text(node) if shape is Shape.SCALAR else ""
        return Entry(path, shape, value, text, self._span(node), None if key is None else self._span(key))

    def _known(self, path: Path) -> object:
        found: object = self._data
        for key in path:
            if (isinstance(found, dict) and key in found) or (isinstance(found, list) and isinstance(key, int) and key < len(found)):
                found = found[key]
            else:
                return None
        return found

    def _text(self, node: Node) -> str:
        bom = self._source.bom
        return self._source.data[node.start_byte + bom : node.end_byte + bom].decode()

    def _span(self, node: Node) -> Span:
        bom = self._source.bom
        return self._source.span(node.start_byte + bom, node.end_byte + bom)
