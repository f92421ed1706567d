"""JSON through tree-sitter: places of all values, also in a file that has comments."""

from __future__ import annotations

import json
from collections.abc import Iterator

import tree_sitter_json
from tree_sitter import Language, Node, Parser

from ldlm_lint.configs.document import Document, DocumentError, Entry, Path, Shape
from ldlm_lint.source import Source

_LANGUAGE = Language(tree_sitter_json.language())
_SHAPES = {"object": Shape.MAPPING, "array": Shape.SEQUENCE}
_CONSTANTS = {"true": True, "false": False, "null": None}
MAX_DEPTH = 60


def read(source: Source) -> Document:
    """The document of a JSON file, comments allowed; raises DocumentError with the line of the first error."""
    data = source.data[source.bom :]
    root = Parser(_LANGUAGE).parse(data).root_node
    values = [child for child in root.named_children if child.type != "comment"]
    if root.has_error or len(values) != 1:
        raise _error(source, root)
    return Document(source.path, source.kind, tuple(_entries(source, data, values[0], (), None)))


def _error(source: Source, root: Node) -> DocumentError:
    try:
        json.loads(source.text)
    except json.JSONDecodeError as error:
        return DocumentError(f"not JSON: {error.msg}", error.lineno)
    except RecursionError:
        return DocumentError("not JSON that can be read: too deeply nested", 1)
    return DocumentError("not JSON", root.start_point[0] + 1)


def _entries(source: Source, data: bytes, node: Node, path: Path, key: Node | None) -> Iterator[Entry]:
    if len(path) > MAX_DEPTH:
        raise DocumentError("holds too deeply nested values", node.start_point[0] + 1)
    shape = _SHAPES.get(node.type, Shape.SCALAR)
    text = data[node.start_byte : node.end_byte].decode()
    value = _scalar(node.type, text) if shape is Shape.SCALAR else None
    plain = value if isinstance(value, str) else text if shape is Shape.SCALAR else ""
    bom = source.bom
    key_span = source.span(key.start_byte + bom, key.end_byte + bom) if key is not None else None
    yield Entry(path, shape, value, plain, source.span(node.start_byte + bom, node.end_byte + bom), key_span)
    if node.type == "object":
        for pair in node.named_children:
            name, held = pair.child_by_field_name("key"), pair.child_by_field_name("value")
            if pair.type == "pair" and name is not None and held is not None:
                written = _scalar(name.type, data[name.start_byte : name.end_byte].decode())
                yield from _entries(source, data, held, (*path, str(written)), name)
    elif node.type == "array":
        items = [child for child in node.named_children if child.type != "comment"]
        for index, item in enumerate(items):
            yield from _entries(source, data, item, (*path, index), None)


def _scalar(kind: str, text: str) -> object:
    if kind in _CONSTANTS:
        return _CONSTANTS[kind]
    try:
        return json.loads(text)
    except ValueError:
        return text
