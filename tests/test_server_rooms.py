"""The rooms of the language server by themselves: positions, edits, what is remembered between lints."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from collected import for_every
from editor import applied
from editor_project import AMP, DATA, PYPROJECT, SCRIPT, TRAIN
from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from ldlm_lint.cli import main
from ldlm_lint.server.analyst import Analyst, encoded, is_foreign
from ldlm_lint.server.convert import range_of
from ldlm_lint.server.edits import edits_between
from ldlm_lint.server.link import Link, LinkError
from ldlm_lint.server.positions import changed, position
from ldlm_lint.server.settings import Settings, merged
from ldlm_lint.source import Kind, Source

ENCODINGS = ("utf-8", "utf-16", "utf-32")
TEXTS = st.lists(st.sampled_from(["a", "é", "🙂", " ", "\n", "\r\n", "\r", "\f", "\u2028"]), max_size=12).map("".join)


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(ENCODINGS))
def test_edits_make_one_text_of_the_other(before: str, after: str, encoding: str) -> None:
    sources = [Source.from_bytes("/x.sh", text.encode(), Kind.SHELL) for text in (before, after)]
    edits = [types.TextEdit(range_of(one["range"]), one["newText"]) for one in edits_between(*sources, encoding)]
    assert applied(before, edits, encoding) == after


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.data(), st.sampled_from(ENCODINGS))
def test_a_range_is_where_the_editor_means_it(text: str, data: st.DataObject, encoding: str) -> None:
    # Nothing lies between the two signs of one line's end.
    places = [at for at in range(len(text) + 1) if text[at - 1 : at + 1] != "\r\n" or at == 0]
    start, end = sorted(data.draw(st.sampled_from(places)) for _ in range(2))
    source = Source.from_bytes("/x.sh", text.encode(), Kind.SHELL)
    first, last = (position(source, source.offset_of_character(at), encoding) for at in (start, end))
    assert changed(text, first, last, "new", encoding) == text[:start] + "new" + text[end:]


def test_what_is_remembered_is_what_a_new_process_would_say(tmp_path: Path) -> None:
    def write(name: str, text: str) -> None:
        # An old time, as that of a file that nobody has touched for long: its status alone tells of a change.
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (1e9 + len(text), 1e9 + len(text)))

    path = (tmp_path / "data.py").as_posix()
    known = Analyst()
    known.put(path, DATA)
    steps = [
        ("train.py", TRAIN),
        ("pyproject.toml", PYPROJECT),
        ("train.py", TRAIN.replace("for epoch in range(epochs)", "if epochs")),
        ("train.py", TRAIN),
        ("other.py", TRAIN),
        ("run.sh", SCRIPT),
        ("pyproject.toml", '[tool.ldlm-lint]\nexclude = ["train.py", "other.py"]\n'),
    ]
    said = set()
    for name, text in steps:
        write(name, text)
        new = Analyst()
        new.put(path, DATA)
        found = known.lint(path)
        assert found == new.lint(path), name
        said.add(tuple(one["message"] for one in found["diagnostics"]))
    (tmp_path / "train.py").unlink()
    assert known.lint(path) == new.lint(path)
    assert len(said) > 2


def test_a_buffer_is_saved_in_the_encoding_that_it_declares() -> None:
    assert encoded("# coding: latin-1\né", "/x.py") == b"# coding: latin-1\n\xe9"
    assert encoded("# coding: latin-1\né", "/x.sh") == "# coding: latin-1\né".encode()
    assert encoded("# coding: nonsense\né", "/x.py") == "# coding: nonsense\né".encode()
    assert encoded("'\ud83d'", "/x.py") == b"'?'"


def test_libraries_are_foreign_and_a_checkout_below_any_name_is_not(tmp_path: Path) -> None:
    project = tmp_path / "venv" / "project"
    project.mkdir(parents=True)
    (project / "pyproject.toml").touch()
    assert not is_foreign((project / "train.py").as_posix())
    assert is_foreign((project / ".venv" / "lib" / "x.py").as_posix())
    assert is_foreign("/usr/lib/python3/dist-packages/torch/amp.py")


@for_every(
    ("given", "told", "count"),
    [
        (None, Settings(), 0),
        ({}, Settings(), 0),
        ({"ldlm-lint": {"extendSelect": ["ALL"], "level": None}}, Settings(extend_select=("ALL",)), 0),
        ({"extend-select": ["ALL"], "isolated": True}, Settings(extend_select=("ALL",), isolated=True), 0),
        ([], Settings(), 1),
        ({"select": "ALL", "level": "loud", "config": "relative.toml", "nonsense": 1, "isolated": 1}, Settings(), 5),
    ],
)
def test_settings_of_an_editor(given: object, told: Settings, count: int) -> None:
    found, complaints = merged(Settings(), given)
    assert (found, len(complaints)) == (told, count)
    assert Settings.of_plain(found.plain) == found


def test_a_linting_process_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldlm_lint.server.link.LONGEST", 0.5)
    monkeypatch.setattr("ldlm_lint.server.link._PROGRAM", "import time; time.sleep(60)")

    async def asked() -> None:
        link = Link(lambda: [])
        with pytest.raises(LinkError, match="no answer"):
            await link.ask(do="lint", path="/x.py")
        link.close()
        with pytest.raises(LinkError, match="shutting down"):
            await link.ask(do="lint", path="/x.py")

    asyncio.run(asked())


def test_without_pygls_there_is_a_line_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("ldlm_lint.commands.server.importlib.util.find_spec", lambda name: None)
    assert main(["server"]) == 2
    assert 'python -m pip install ".[server]"' in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--tcp", "nowhere"], ["--tcp", "x:99999"], ["--level", "loud"], ["--config", "x", "--isolated"]]
)
def test_wrong_arguments_are_refused(arguments: list[str], capsys) -> None:
    assert main(["server", *arguments]) == 2
    assert capsys.readouterr().err.startswith("ldlm-lint: error: ")


def test_a_rule_that_raises_is_no_diagnostic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_args: object) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setattr("ldlm_lint.linting._lint", broken)
    path = (tmp_path / "amp.py").as_posix()
    analyst = Analyst()
    # A file is looked at by itself where it holds a word of a rule that does.
    analyst.put(path, f"{AMP}import os\nos.environ['CUDA_LAUNCH_BLOCKING'] = '1'\n")
    found = analyst.lint(path)
    assert found["diagnostics"] == [] and "on purpose" in found["problems"][0]
