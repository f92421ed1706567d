"""Comments that speak to the linter, and what a finding is known by, in configuration files."""

from __future__ import annotations

from pathlib import Path

import pytest
from collected import for_every
from test_add_ignores import NOTE, RULES, commented

from ldlm_lint.cli import main
from ldlm_lint.identity import Identifier
from ldlm_lint.model import Finding, Span
from ldlm_lint.source import Kind, Source
from ldlm_lint.suppress import suppressions

LONG = "x" * 90


@for_every(
    "before, after, kind",
    [
        pytest.param("a: 1\nb: A=1\n", f"a: 1\nb: A=1  {NOTE}\n", Kind.YAML, id="yaml"),
        pytest.param("a:\n  - A=1\n", f"a:\n  - A=1  {NOTE}\n", Kind.YAML, id="item"),
        pytest.param("a: 'A=1\n  b'\nc: 1\n", f"{NOTE}\na: 'A=1\n  b'\nc: 1\n", Kind.YAML, id="text-over-lines"),
        pytest.param("t:\n  a: |\n    x\n    A=1\n  c: 1\n", f"t:\n  {NOTE}\n  a: |\n    x\n    A=1\n  c: 1\n", Kind.YAML, id="block"),
        pytest.param("a: [x, A=1,\n  y]\n", f"a: [x, A=1,  {NOTE}\n  y]\n", Kind.YAML, id="list"),
        pytest.param(f"a: A=1{LONG}\r\n", f"{NOTE}\r\na: A=1{LONG}\r\n", Kind.YAML, id="too-long"),
        pytest.param('a = "A=1"  # c\n', f'a = "A=1"  # c  {NOTE}\n', Kind.TOML, id="toml"),
        pytest.param("a = '''\nA=1\n'''\n", f"{NOTE}\na = '''\nA=1\n'''\n", Kind.TOML, id="toml-text"),
        pytest.param("X=0\nA=1\n", f"X=0\n{NOTE}\nA=1\n", Kind.DOTENV, id="env"),
        pytest.param("\ufeffA=1\r\n", f"\ufeff{NOTE}\r\nA=1\r\n", Kind.DOTENV, id="env-mark"),
        pytest.param("FROM x\nENV A=1\n", f"FROM x\n{NOTE}\nENV A=1\n", Kind.DOCKERFILE, id="image"),
        pytest.param("FROM x\nENV B=0 \\\n    A=1\n", f"FROM x\n{NOTE}\nENV B=0 \\\n    A=1\n", Kind.DOCKERFILE, id="image-continued"),
    ],
)
def test_add_ignores(before: str, after: str, kind: Kind) -> None:
    got = commented(before, "A=1", kind)
    assert got == after
    assert commented(got, "A=1", kind) == got


def test_json_has_no_comments() -> None:
    with pytest.raises(LookupError, match="JSON has no comments: silence eval-used here with `per-file-ignores`"):
        commented('{"a": "A=1"}', "A=1", Kind.JSON)


@for_every(
    "text, kind, silent",
    [
        pytest.param("a: A=1  # ldlm-lint: ignore[eval-used]\n", Kind.YAML, True, id="behind"),
        pytest.param("# ldlm-lint: ignore\n\n# why\na: A=1\n", Kind.YAML, True, id="above"),
        pytest.param("# ldlm-lint: ignore\nb: 1\na: A=1\n", Kind.YAML, False, id="above-another"),
        pytest.param("a: A=1\n# ldlm-lint: ignore\n", Kind.YAML, False, id="below"),
        pytest.param("a: A=1\nb: 1\n# ldlm-lint: ignore-file[eval-used] why\n", Kind.YAML, True, id="file"),
        pytest.param("# ldlm-lint: ignore[other]\na: A=1\n", Kind.YAML, False, id="another-rule"),
        pytest.param("# ldlm-lint: ignore\na: |\n  b\n  A=1\n  c\n", Kind.YAML, True, id="bare-above-a-text"),
        pytest.param("# ldlm-lint: ignore[eval-used]\na: |\n  b\n  A=1\n", Kind.YAML, True, id="above-a-text"),
        pytest.param("a: |\n  b\n  A=1  # ldlm-lint: ignore[eval-used]\n", Kind.YAML, True, id="in-a-text"),
        pytest.param("# ldlm-lint: ignore[eval-used]\na = 'A=1'\n", Kind.TOML, True, id="toml"),
        pytest.param("# ldlm-lint: ignore[eval-used]\nA=1\n", Kind.DOTENV, True, id="env"),
        pytest.param("# ldlm-lint: ignore[eval-used]\nENV B=0 \\\n  A=1\n", Kind.DOCKERFILE, True, id="image"),
        pytest.param("ENV B=0 \\\n  # ldlm-lint: ignore[eval-used]\n  A=1\n", Kind.DOCKERFILE, True, id="image-inside"),
    ],
)
def test_suppression(text: str, kind: Kind, silent: bool) -> None:
    source = Source.from_bytes("/p/file", text.encode(), kind)
    start = text.index("A=1")
    finding = Finding("eval-used", "W0123", Span(source.path, start, start + 3))
    assert suppressions(source).covers(finding, RULES["eval-used"]) is silent


def identity(text: str, piece: str, kind: Kind) -> tuple[str, str]:
    source = Source.from_bytes("/p/file", text.encode(), kind)
    start = len(text[: text.index(piece)].encode())
    finding = Finding("eval-used", "W0123", Span(source.path, start, start + len(piece.encode())))
    found = Identifier({source.path: source}, "/p").of(finding)
    return found.symbol, found.code


@for_every(
    "kind, piece, symbol, texts",
    [
        (Kind.YAML, "num: 0", "data.num", ["data:\n  é: 1\n  num: 0\nx: 1\n", "# c\nx: 1\ndata:\n  num: 0  # c\n  é: 1\n"]),
        (Kind.YAML, "num: 0", "data.num", ["data: {num: 0}\n", "data:\n\n  num: 0\n"]),
        (Kind.YAML, "A=1", "env.HOST.value", ["env:\n- name: HOST\n  value: A=1\n", "env:\n- name: B\n- value: A=1\n  name: HOST\n"]),
        (Kind.JSON, '"z": 1', "a.b.z", ['{"a": {"b": {"z": 1}}}', '{"x": [],\n "a": {\n  "b": {"y": 2, "z": 1}}}']),
        (Kind.TOML, "z = 1", "a.b.z", ["[a.b]\nz = 1\n", "x = 1\n[a.b]\ny = 2\nz = 1 # c\n"]),
        (Kind.DOTENV, "A=1", "A", ["A=1\n", "B=2\nexport A=1\n"]),
        (Kind.DOCKERFILE, "A=1", "A", ["FROM x\nENV A=1\n", "FROM x\nRUN y\nENV B=1 \\\n  A=1\n"]),
        (Kind.DOCKERFILE, "A=1", "dev.A", ["FROM x AS dev\nENV A=1\n", "FROM y AS base\nFROM x as dev\nENV A=1\n"]),
    ],
)
def test_identity_survives_moved_lines(kind: Kind, piece: str, symbol: str, texts: list[str]) -> None:
    found = {identity(text, piece, kind) for text in texts}
    assert len(found) == 1
    assert found.pop()[0] == symbol


def test_an_unreadable_document_has_no_keys() -> None:
    assert identity("a: [1\nb: A=1\n", "A=1", Kind.YAML)[0] == ""


def test_a_template_is_said_once_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "run.yaml").write_text("env:\n  NCCL_DEBUG: {{ level }}\n")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "run.yaml"]) == 1
    out = capsys.readouterr().out
    assert out.count("E6802") == 1
    assert "run.yaml:2:3" in out
    assert "contains template placeholders (`{{ level }}`)" in out
    assert "nothing in this file is checked" in out
