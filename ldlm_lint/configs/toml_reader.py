"""TOML through tree-sitter: positions of all values; the standard library decides whether it is TOML at all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from ldlm_lint.configs.document import Document, DocumentError, Entry, Key, Path, Shape
from ldlm_lint.configs.templates import bare_placeholder, marked_placeholders, rendered
from ldlm_lint.model import Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source
from ldlm_lint.untrusted_toml import TooDeepError, loads

MAX_DEPTH = 60
_LANGUAGE = Language(tree_sitter_toml.language())
_SHAPES = {"inline_table": Shape.MAPPING, "array": Shape.SEQUENCE}
_KEYS = ("bare_key", "quoted_key", "dotted_key")
_PLACE = lazily(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def read(source: Source) -> Document:
    """The document of a TOML file; raises DocumentError with the line of the first error."""
    try:
        data = loads(source.text)
    except TooDeepError as error:
        raise DocumentError(str(error), source.text.count("\n", 0, error.position) + 1) from error
    except ValueError as error:
        raise _error(source, str(error)) from error
    root = Parser(_LANGUAGE).parse(source.data[source.bom :]).root_node
    return Document(source.path, source.kind, tuple(_Reader(source, data).entries(root)))


def _error(source: Source, problem: str) -> DocumentError:
    match = _PLACE.search(problem)
    line = len(source.text.rstrip().splitlines()) or 1
    if match and match[1]:
        line = int(match[1])
        content = source.text.split("\n")[line - 1]
        placeholder = bare_placeholder(content, min(int(match[2]) - 1, len(content)))
        if placeholder is not None:
            return placeholder.error(line)
    marked = marked_placeholders(source.text)
    if marked and _loads(rendered(source.text)):
        return marked[0].error(source.text.count("\n", 0, marked[0].start) + 1)
    return DocumentError(f"not TOML: {_PLACE.sub('', problem)}", line)


def _loads(text: str) -> bool:
    try:
        loads(text)
    except ValueError:
        return False
    return True


class _Reader:
    """Walks the tables and pairs of a file; values are looked up in the result of the standard library."""

    def __init__(self, source: Source, data: dict[str, object]) -> None:
        self._source = source
        self._data = data
        self._arrays: dict[Path, int] = {}
        self._known_tables: set[Path] = {()}

    def entries(self, root: Node) -> Iterator[Entry]:
        """The root, then every table with its pairs."""
        yield self._entry((), root, None, Shape.MAPPING)
        for node in root.named_children:
            if node.type == "pair":
                yield from self._pair(node, ())
            elif node.type in ("table", "table_array_element"):
                yield from self._table(node)

    def _table(self, table: Node) -> Iterator[Entry]:
        key = next((child for child in table.named_children if child.type in _KEYS), None)
        if key is None:
            return
        parts = self._parts(key)
        path: Path = ()
        for index, (name, part) in enumerate(parts):
            path = (*path, name)
            last = index == len(parts) - 1
            if last and table.type == "table_array_element":
                if path not in self._arrays:
                    yield self._entry(path, table, part, Shape.SEQUENCE)
                self._arrays[path] = self._arrays.get(path, -1) + 1
                path = (*path, self._arrays[path])
                yield self._entry(path, table, None, Shape.MAPPING)
            elif path not in self._known_tables and path not in self._arrays:
                yield self._entry(path, table, part, Shape.MAPPING)
            if not last and path in self._arrays:
                path = (*path, self._arrays[path])
            self._known_tables.add(path)
        for node in table.named_children:
            if node.type == "pair":
                yield from self._pair(node, path)

    def _pair(self, pair: Node, above: Path) -> Iterator[Entry]:
        key, *rest = (child for child in pair.named_children if child.type != "comment")
        parts = self._parts(key)
        path = above
        for name, part in parts[:-1]:
            path = (*path, name)
            if path not in self._known_tables:
                self._known_tables.add(path)
                yield self._entry(path, pair, part, Shape.MAPPING)
        if parts and rest:
            name, part = parts[-1]
            yield from self._value((*path, name), rest[0], part)

    def _value(self, path: Path, node: Node, key: Node | None) -> Iterator[Entry]:
        if len(path) > MAX_DEPTH:
            raise DocumentError("contains too deeply nested values", node.start_point[0] + 1)
        yield self._entry(path, node, key, _SHAPES.get(node.type, Shape.SCALAR))
        if node.type == "inline_table":
            for child in node.named_children:
                if child.type == "pair":
                    yield from self._pair(child, path)
        elif node.type == "array":
            items = [child for child in node.named_children if child.type != "comment"]
            for index, item in enumerate(items):
                yield from self._value((*path, index), item, None)

    def _parts(self, key: Node) -> list[tuple[Key, Node]]:
        """The names of a key with their places."""
        if key.type == "dotted_key":
            return [part for child in key.named_children if child.type in _KEYS for part in self._parts(child)]
        text = self._text(key)
        return [(_name(text) if text[:1] in ("'", '"') else text, key)]

    def _entry(self, path: Path, node: Node, key: Node | None, shape: Shape) -> Entry:
        value, text = (self._scalar(path, node)) if shape is Shape.SCALAR else (None, "")
        return Entry(path, shape, value, text, self._span(node), None if key is None else self._span(key))

    def _scalar(self, path: Path, node: Node) -> tuple[object, str]:
        """A value as data, dates as text; None if the two readers disagree."""
        written = self._text(node)
        found: object = self._data
        for key in path:
            known = key in found if isinstance(found, dict) else isinstance(found, list) and isinstance(key, int) and key < len(found)
            if not known:
                return None, written
            found = found[key]  # type: ignore[index]
        if isinstance(found, str):
            return found, found
        return (found if isinstance(found, (bool, int, float)) else written), written

    def _text(self, node: Node) -> str:
        bom = self._source.bom
        return self._source.data[node.start_byte + bom : node.end_byte + bom].decode()

    def _span(self, node: Node) -> Span:
        bom = self._source.bom
        # The node of a table includes the blank lines and comments after it.
        text = self._source.data[node.start_byte + bom : node.end_byte + bom]
        return self._source.span(node.start_byte + bom, node.start_byte + bom + len(text.rstrip()))


@cache
def _name(quoted: str) -> str:
    """The value of a quoted key; the standard library resolves escapes."""
    return next(iter(loads(f"{quoted} = 0")))
