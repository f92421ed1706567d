"""The validators of YAML, JSON and TOML: what a fix may change, and what it may not."""

from __future__ import annotations

import pytest
from collected import for_every

from ldlm_lint.autofix.validate import VALIDATORS, kind_of
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Edit, Span
from ldlm_lint.source import Kind

YAML = "a: 1  # c\nb:\n  c: [1, 2]\n  d: x\ne: &e {f: 1}\ng: *e\n"


@for_every(
    "before, after, kind",
    [
        pytest.param(YAML, YAML.replace("a: 1", "a: 2"), Kind.YAML, id="value"),
        pytest.param(YAML, YAML.replace("b:", "h:"), Kind.YAML, id="key-of-a-block"),
        pytest.param(YAML, YAML.replace("a: 1  # c\n", ""), Kind.YAML, id="line-gone"),
        pytest.param(YAML, YAML.replace("  d: x\n", "  d: x\n  i: true\n"), Kind.YAML, id="line-added"),
        pytest.param("- a\n- b\n- c\n", "- b\n- c\n", Kind.YAML, id="item-gone"),
        pytest.param('{\n "a": 1,\n "b": 2\n}', '{\n "a": 1,\n "b": 2,\n "c": 3\n}', Kind.JSON, id="json"),
        pytest.param("[t]\na = 1\nb = 2\n", "[t]\nb = 2\n", Kind.TOML, id="toml"),
        pytest.param("a: [1\n", "a: [\n", Kind.YAML, id="broken-before"),
        pytest.param("a: 1\nb: 2\nc: 3\n", "a: 9\nb: 2\nc: 9\n", Kind.YAML, id="two-places"),
        pytest.param("\ufeffa: 1\r\nb: 2\r\n", "\ufeffa: 1\r\nb: 3\r\n", Kind.YAML, id="mark-and-carriage-return"),
        pytest.param("a: 1\nb:\n  c: 2\n", "a: 1\nb:\n  x:\n  c: 2\n", Kind.YAML, id="beside"),
        pytest.param("", "", Kind.YAML, id="empty"),
    ],
)
def test_sound(before: str, after: str, kind: Kind) -> None:
    assert VALIDATORS[kind](before.encode(), after.encode()) is None


@for_every(
    "before, after, kind, words",
    [
        pytest.param("a: 1\nb: 2\n", "a: 1\n b: 2\n", Kind.YAML, "no longer load", id="yaml"),
        pytest.param('{"a": 1}', '{"a": 1', Kind.JSON, "no longer load", id="json"),
        pytest.param("a = 1\n", "a = \n", Kind.TOML, "no longer load", id="toml"),
        pytest.param("a: 1\n", "a: 1\n---\n", Kind.YAML, "2 documents instead of 1", id="document-more"),
        pytest.param("a: 1\nb:\n  c: 2\n", "a: 1\nb: |\n  c: 2\n", Kind.YAML, "`b.c` would change", id="swallowed"),
        pytest.param(
            "a:\n  b: 1\nc:\n  d: 2\n", "a:\n  b: 1\n  d: 2\n", Kind.YAML, "`c.d` would change", id="key-gone-above"
        ),
        pytest.param(
            "a:\n  b:\n    c: 2\n",
            "a:\n  b:\n    z: 1\nq:\n    c: 2\n",
            Kind.YAML,
            "`a.b.c` would change",
            id="other-parent",
        ),
        pytest.param("a: 'x'\nb: 2\n", "a: 'x\nb: 2\n'\n", Kind.YAML, "would change", id="in-a-string"),
    ],
)
def test_unsound(before: str, after: str, kind: Kind, words: str) -> None:
    assert words in (VALIDATORS[kind](before.encode(), after.encode()) or "")


def judge(before: str, kind: Kind, *changes: tuple[str, str]) -> str | None:
    """The verdict on replacing texts, each the first of its kind."""
    data = before.encode()
    edits = [
        Edit(Span("", data.index(old.encode()), data.index(old.encode()) + len(old.encode())), new)
        for old, new in changes
    ]
    return VALIDATORS[kind](data, apply_edits(data, edits), edits)


@for_every(
    "before, kind, changes",
    [
        pytest.param(YAML, Kind.YAML, [("f: 1", "f: 2")], id="in-an-anchor"),
        pytest.param("a: {b: 1, c: 2}  # x\n", Kind.YAML, [("b: 1, ", "")], id="flow"),
        pytest.param("a:\nb: 1\n", Kind.YAML, [("a:", "a: 2")], id="filled"),
        pytest.param("a:\n  b: 1\nc: 2\n", Kind.YAML, [("a", "d")], id="renamed"),
        pytest.param('{"a": 1, "b": [1, 2]}', Kind.JSON, [(', "b": [1, 2]', "")], id="json"),
        pytest.param('a = 1\n[t]\nb = "x"\n', Kind.TOML, [("[t]\n", "[t]\nc = true\n")], id="toml"),
        pytest.param("a: x  # c\na: y\n", Kind.YAML, [("y", "z")], id="double-before"),
    ],
)
def test_sound_outside_of_the_edits(before: str, kind: Kind, changes: list[tuple[str, str]]) -> None:
    assert judge(before, kind, *changes) is None


@for_every(
    "before, kind, changes, words",
    [
        pytest.param(
            "a: {b: 1, c: 2}\n", Kind.YAML, [("{b: 1, c: 2}", "{b: 1, b: 2}")], "`a.b` would be set twice", id="double"
        ),
        pytest.param("a: 1\nb: 2\n", Kind.YAML, [("b", "a")], "twice", id="double-key"),
        pytest.param("a: &x {b: 1}\nc:\n  <<: *x\n", Kind.YAML, [("*", "")], "could not be built", id="merge"),
        pytest.param('{"a": 1, "b": 2}', Kind.JSON, [('{"a"', '{"b"')], "twice", id="json-double"),
        pytest.param(
            "a: {b: 1, c: 2}\n",
            Kind.YAML,
            [("b: 1,", "b: 1, d: {"), ("}", "}}")],
            "`a.c` would change",
            id="flow-nested",
        ),
        pytest.param(
            "a:\n  b: 1\n  c: 2\n", Kind.YAML, [("  b: 1\n", "  b: 1\nd:\n")], "`a.c` would change", id="other-parent"
        ),
    ],
)
def test_unsound_outside_of_the_edits(before: str, kind: Kind, changes: list[tuple[str, str]], words: str) -> None:
    assert words in (judge(before, kind, *changes) or "")


@for_every(
    "path, data, kind",
    [
        ("/p/a.yaml", b"", Kind.YAML),
        ("/p/a.YML", b"", Kind.YAML),
        ("/p/ds.json", b"#!/usr/bin/env python", Kind.JSON),
        ("/p/a.toml", b"", Kind.TOML),
        ("/p/.env", b"", Kind.DOTENV),
        ("/p/Dockerfile.gpu", b"", Kind.DOCKERFILE),
        ("/p/Dockerfile.sh", b"", Kind.SHELL),
        ("/p/train.sh", b"#!/usr/bin/env python\n", Kind.SHELL),
        ("/p/train", b"#!/usr/bin/env python\n", Kind.PYTHON),
        ("/p/train", b"#!/bin/bash\n", Kind.SHELL),
        ("/p/a.py", b"", Kind.PYTHON),
    ],
)
def test_kinds_by_name(path: str, data: bytes, kind: Kind) -> None:
    assert kind_of(path, data) is kind
