"""Edits of configurations: the data is what it should be afterwards, and everything else stays byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import yaml
from collected import for_every
from hypothesis import given, settings
from hypothesis import strategies as st
from test_config_documents import VALUES, data_of, toml_text

from ldlm_lint.configs import edits
from ldlm_lint.configs.document import Document, Entry, Shape
from ldlm_lint.configs.read import read
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.source import Kind, Source

Path = tuple[str | int, ...]
Y, J, T = Kind.YAML, Kind.JSON, Kind.TOML


def edited(text: str, kind: Kind, path: Path, edit: Callable[[Source, Document, Entry], edits.Edits | None]) -> str | None:
    source = Source.from_bytes("/p/file", text.encode(), kind)
    document = read(source)
    entry = document.get(*path)
    assert entry is not None
    changes = edit(source, document, entry)
    return None if changes is None else apply_edits(source.data, changes).decode()


def set_value(text: str, kind: Kind, path: Path, value: edits.Scalar) -> str | None:
    return edited(text, kind, path, lambda *given: edits.set_value(*given, value))


def rename(text: str, kind: Kind, path: Path, name: str) -> str | None:
    return edited(text, kind, path, lambda *given: edits.rename_key(*given, name))


def remove(text: str, kind: Kind, path: Path) -> str | None:
    return edited(text, kind, path, edits.remove)


def insert(text: str, kind: Kind, path: Path, name: str, value: edits.Scalar) -> str | None:
    return edited(text, kind, path, lambda *given: edits.insert_beside(*given, name, value))


@for_every(
    "text, kind, path, value, after",
    [
        pytest.param("a:  1  # c\n", Y, ("a",), 8, "a:  8  # c\n", id="number"),
        pytest.param("a: False\n", Y, ("a",), True, "a: True\n", id="title-case"),
        pytest.param("a: false\nb: 1\n", Y, ("b",), True, "a: false\nb: true\n", id="as-the-neighbours"),
        pytest.param("a: False\nb: 1\n", Y, ("b",), True, "a: False\nb: True\n", id="as-the-neighbours-in-title-case"),
        pytest.param("a: no\n", Y, ("a",), True, "a: yes\n", id="yes-and-no"),
        pytest.param("a: OFF\n", Y, ("a",), True, "a: ON\n", id="on-and-off"),
        pytest.param("a: 'x'\n", Y, ("a",), "it's", "a: 'it''s'\n", id="single-quotes-kept"),
        pytest.param('a: "x"\n', Y, ("a",), "y", 'a: "y"\n', id="double-quotes-kept"),
        pytest.param("a: x\n", Y, ("a",), "yes", 'a: "yes"\n', id="quotes-where-needed"),
        pytest.param("a: x\n", Y, ("a",), "adamw_torch_fused", "a: adamw_torch_fused\n", id="plain-text"),
        pytest.param("a: x\n", Y, ("a",), "a: b # c", 'a: "a: b # c"\n', id="signs"),
        pytest.param("a: 1\n", Y, ("a",), 1e-05, "a: 1.0e-05\n", id="a-float-for-pyyaml"),
        pytest.param("a:\nb: 1\n", Y, ("a",), 4, "a: 4\nb: 1\n", id="nothing-there"),
        pytest.param("a:   # c\n", Y, ("a",), 4, "a: 4   # c\n", id="nothing-but-a-comment"),
        pytest.param("- \n- 1\n", Y, (0,), 4, "- 4 \n- 1\n", id="empty-item"),
        pytest.param("a: {b: 1, c: [2, 3]}\n", Y, ("a", "c", 1), 9, "a: {b: 1, c: [2, 9]}\n", id="flow"),
        pytest.param("a: &x 1\nb: *x\n", Y, ("a",), 2, "a: &x 2\nb: *x\n", id="anchored"),
        pytest.param("a: &x 1\nb: *x\n", Y, ("b",), 2, None, id="alias"),
        pytest.param("a: !!int 1\n", Y, ("a",), 2, None, id="tagged"),
        pytest.param("a: |\n  x\n", Y, ("a",), "y", None, id="block"),
        pytest.param("a: x\n  y\n", Y, ("a",), "y", None, id="several-lines"),
        pytest.param("a: [1]\n", Y, ("a",), 1, None, id="container"),
        pytest.param("a: 1\n", Y, ("a",), float("inf"), None, id="infinite"),
        pytest.param("é: 'ü'\r\nb: 1\r\n", Y, ("b",), None, "é: 'ü'\r\nb: null\r\n", id="wide"),
        pytest.param('{"a": "auto" }', J, ("a",), 8, '{"a": 8 }', id="json"),
        pytest.param('{"a": 1}', J, ("a",), None, '{"a": null}', id="json-null"),
        pytest.param('{"a": true}', J, ("a",), "é\n", '{"a": "é\\n"}', id="json-text"),
        pytest.param("a = 1 # c\n", T, ("a",), True, "a = true # c\n", id="toml"),
        pytest.param("a = 'x'\n", T, ("a",), "y", "a = 'y'\n", id="toml-literal"),
        pytest.param("a = 1\n", T, ("a",), None, None, id="toml-has-no-null"),
    ],
)
def test_set_value(text: str, kind: Kind, path: Path, value: edits.Scalar, after: str | None) -> None:
    assert set_value(text, kind, path, value) == after


@for_every(
    "text, kind, path, name, after",
    [
        pytest.param("a: 1\n", Y, ("a",), "b", "b: 1\n", id="yaml"),
        pytest.param("'a': 1\n", Y, ("a",), "b", "'b': 1\n", id="quoted"),
        pytest.param("a: 1\n", Y, ("a",), "on", '"on": 1\n', id="a-word-of-yaml"),
        pytest.param("a: 1\nb: 2\n", Y, ("a",), "b", None, id="taken"),
        pytest.param("- a\n", Y, (0,), "b", None, id="item"),
        pytest.param("a: {x: 1}\n", Y, ("a",), "b", "b: {x: 1}\n", id="mapping"),
        pytest.param('{"a":1}', J, ("a",), "b", '{"b":1}', id="json"),
        pytest.param('{"\\u0061":1}', J, ("a",), "b", None, id="json-escaped"),
        pytest.param("[t]\na.b = 1\n", T, ("t", "a", "b"), "c", "[t]\na.c = 1\n", id="toml-dotted"),
        pytest.param("[t]\na = 1\n", T, ("t",), "u", None, id="toml-table"),
    ],
)
def test_rename_key(text: str, kind: Kind, path: Path, name: str, after: str | None) -> None:
    assert rename(text, kind, path, name) == after


@for_every(
    "text, kind, path, after",
    [
        pytest.param("a: 1\nb: 2  # c\n# d\nc: 3\n", Y, ("b",), "a: 1\n# d\nc: 3\n", id="line"),
        pytest.param("a: 1\nb:\n  - 2\n  - 3\nc: 3\n", Y, ("b",), "a: 1\nc: 3\n", id="block"),
        pytest.param("a: 1\r\nb: 2", Y, ("b",), "a: 1", id="last-without-line-end"),
        pytest.param("\ufeffa: 1\nb: 2\n", Y, ("a",), "\ufeffb: 2\n", id="behind-the-mark"),
        pytest.param("a:\n  b: 1\nc: 2\n", Y, ("a", "b"), None, id="last-child"),
        pytest.param("a:\n- b: 1\n  c: 2\n", Y, ("a", 0, "b"), "a:\n- c: 2\n", id="first-key-of-an-item"),
        pytest.param("a:\n- b: 1\n  # of c\n  c: 2\n", Y, ("a", 0, "b"), None, id="comment-of-the-next"),
        pytest.param("a:\n- b: 1\n  c: 2\n", Y, ("a", 0, "c"), "a:\n- b: 1\n", id="last-key-of-an-item"),
        pytest.param("a:\n- b: 1\n  c: 2\n- d: 1\n", Y, ("a", 0), "a:\n- d: 1\n", id="item"),
        pytest.param("a: |\n  x\n\n  y\nb: 1\n", Y, ("a",), "b: 1\n", id="text"),
        pytest.param("--- {a: 1, b: 2}\n", Y, ("a",), "--- {b: 2}\n", id="first-in-flow"),
        pytest.param("{a: 1, b: 2}\n", Y, ("b",), "{a: 1}\n", id="last-in-flow"),
        pytest.param("{a: 1, b: [x, y], c: 3}\n", Y, ("b",), "{a: 1, c: 3}\n", id="middle-in-flow"),
        pytest.param("a: &x 1\nb: *x\n", Y, ("a",), None, id="anchor"),
        pytest.param("a: &x 1\nb: *x\n", Y, ("b",), None, id="alias"),
        pytest.param('{\n  "a": 1,\n  "b": 2\n}\n', J, ("b",), '{\n  "a": 1\n}\n', id="json-last"),
        pytest.param('{\n  "a": 1,\n  "b": {\n    "c": 1\n  },\n  "d": 2\n}\n', J, ("b",), '{\n  "a": 1,\n  "d": 2\n}\n', id="json-block"),
        pytest.param('{"a": 1,"b": 2}', J, ("a",), '{"b": 2}', id="json-first"),
        pytest.param('{\n "a": 1, // c\n "b": 2,\n}', J, ("a",), '{\n "b": 2,\n}', id="json-comment"),
        pytest.param('{\n "a": 1,\n "b": 2,\n}', J, ("b",), '{\n "a": 1,\n}', id="json-comma-behind"),
        pytest.param('{"a": [1, 2, 3]}', J, ("a", 2), '{"a": [1, 2]}', id="json-item"),
        pytest.param('{"a": {"b": 1}}', J, ("a", "b"), None, id="json-last-child"),
        pytest.param("[t]\na = 1\nb.c = [1,\n 2] # d\n[u]\nx = 1\n", T, ("t", "a"), "[t]\nb.c = [1,\n 2] # d\n[u]\nx = 1\n", id="toml"),
        pytest.param("[t]\na = 1\n[u]\nx = 1\n", T, ("t",), None, id="toml-table"),
        pytest.param("a = {x = 1, y = 2}\n", T, ("a", "x"), "a = {y = 2}\n", id="toml-inline"),
    ],
)
def test_remove(text: str, kind: Kind, path: Path, after: str | None) -> None:
    assert remove(text, kind, path) == after


@for_every(
    "text, kind, path, value, after",
    [
        pytest.param("t:\n  a: 1  # c\n  b: 2\n", Y, ("t", "a"), True, "t:\n  a: 1  # c\n  new: true\n  b: 2\n", id="line"),
        pytest.param("a: 1", Y, ("a",), 5, "a: 1\nnew: 5", id="last"),
        pytest.param("a: 1\r\nb: 2\r\n", Y, ("a",), 5, "a: 1\r\nnew: 5\r\nb: 2\r\n", id="carriage-return"),
        pytest.param("- a: 1\n- b\n", Y, (0, "a"), 5, "- a: 1\n  new: 5\n- b\n", id="in-an-item"),
        pytest.param("a:\n  b: 1\n# c\nd: 1\n", Y, ("a",), 5, "a:\n  b: 1\nnew: 5\n# c\nd: 1\n", id="behind-a-block"),
        pytest.param("a: |\n  x\n\nb: 1\n", Y, ("a",), 5, "a: |\n  x\nnew: 5\n\nb: 1\n", id="behind-text"),
        pytest.param("a: |+\n  x\n\n", Y, ("a",), 5, None, id="text-that-keeps-its-end"),
        pytest.param("{a: 1}\n", Y, ("a",), 5, "{a: 1, new: 5}\n", id="flow"),
        pytest.param("a: 1\nnew: 2\n", Y, ("a",), 5, None, id="taken"),
        pytest.param('{\n  "a": 1\n}', J, ("a",), 5, '{\n  "a": 1,\n  "new": 5\n}', id="json-last"),
        pytest.param('{\n\t"a" : 1,\n\t"b" : 2\n}', J, ("a",), 5, '{\n\t"a" : 1,\n\t"new" : 5,\n\t"b" : 2\n}', id="json-middle"),
        pytest.param('{"a":1}', J, ("a",), 5, '{"a":1, "new":5}', id="json-line"),
        pytest.param('{\n "a": 1, // c\n "b": 2 # d\n}', J, ("a",), 5, '{\n "a": 1, // c\n "new": 5,\n "b": 2 # d\n}', id="json-comment"),
        pytest.param('{\n "b": 2 # d\n}', J, ("b",), 5, '{\n "b": 2, # d\n "new": 5\n}', id="json-last-comment"),
        pytest.param("[t]\na = 1 # c\nb = 2\n", T, ("t", "a"), "x", '[t]\na = 1 # c\nnew = "x"\nb = 2\n', id="toml"),
        pytest.param("[t]\na.b = 1\n", T, ("t", "a", "b"), 2, "[t]\na.b = 1\na.new = 2\n", id="toml-dotted"),
        pytest.param("a = {x = 1}\n", T, ("a", "x"), 2, "a = {x = 1, new = 2}\n", id="toml-inline"),
        pytest.param("[t]\na = 1\n", T, ("t",), 2, None, id="toml-table"),
    ],
)
def test_insert_beside(text: str, kind: Kind, path: Path, value: edits.Scalar, after: str | None) -> None:
    assert insert(text, kind, path, "new", value) == after


def texts(value: object) -> list[tuple[str, Kind]]:
    """One value in all the layouts that our formats have for it."""
    found = [(json.dumps(value, indent=indent), J) for indent in (None, 2)]
    for flow in (False, True, None):
        found += [(yaml.safe_dump(value, default_flow_style=flow, sort_keys=False, width=width), Y) for width in (20, 1000)]
    return found + [(text.replace("\n", "\r\n"), kind) for text, kind in found]


@settings(max_examples=120, deadline=None)
@given(st.dictionaries(st.text("abcé", min_size=1, max_size=3), VALUES, min_size=1, max_size=4), st.data())
def test_the_data_differs_where_it_should_alone(value: dict[str, object], draw: st.DataObject) -> None:
    new = draw.draw(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("ab: #'\"é\n", max_size=5))
    for text, kind in texts(value):
        source = Source.from_bytes("/p/file", text.encode(), kind)
        document = read(source)
        for entry in document.entries[:12]:
            check_all(source, document, entry, new)


def check_all(source: Source, document: Document, entry: Entry, new: edits.Scalar) -> None:
    before = data_of(document)
    if entry.shape is Shape.SCALAR:
        check(source, edits.set_value(source, document, entry, new), replaced(before, entry.path, lambda holder, key: holder.__setitem__(key, new)))
    if entry.path:
        check(source, edits.remove(source, document, entry), replaced(before, entry.path, lambda holder, key: holder.__delitem__(key)))
    if entry.name:
        added = edits.insert_beside(source, document, entry, "new key", new)
        check(source, added, replaced(before, entry.path, lambda holder, key: holder.__setitem__("new key", new)))
        renamed = edits.rename_key(source, document, entry, "new")
        check(source, renamed, replaced(before, entry.path, lambda holder, key: holder.__setitem__("new", holder.pop(key))))


def check(source: Source, changes: edits.Edits | None, expected: object) -> None:
    if changes is not None:
        after = apply_edits(source.data, changes)
        assert data_of(read(Source.from_bytes(source.path, after, source.kind))) == expected
        if b"\r\n" in source.data:
            assert b"\n" not in after.replace(b"\r\n", b"")


def replaced(data: object, path: Path, change: Callable[..., object]) -> object:
    copy = json.loads(json.dumps(data))
    holder = {"": copy}
    key: str | int = ""
    inner = holder
    for step in path:
        inner, key = inner[key], step  # type: ignore[index,assignment]
    change(inner, key)
    return holder[""]


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.sampled_from("abcd"), st.recursive(st.integers(0, 9) | st.booleans(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3), max_leaves=6), min_size=1))
def test_toml_differs_where_it_should_alone(value: dict[str, object]) -> None:
    source = Source.from_bytes("/p/file", toml_text(value).encode(), T)
    document = read(source)
    for entry in document.entries[:12]:
        check_all(source, document, entry, 7)
