"""`ldlm-lint init` writes a configuration of comments that holds what holds without it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from calling import Enter, Run

from ldlm_lint.rules import ALL
from ldlm_lint.settings import SETTINGS
from ldlm_lint.starter import HEADER, starter
from ldlm_lint.untrusted_toml import loads

KEY = re.compile(r"^# ([a-z-]+ = .*)$", re.M)
OPTIONS = {option.name: option for rule in ALL for option in rule.options}
PYPROJECT = '[project]\nname = "x"\n'


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"train.py": "x = 1\n"})


def uncommented(text: str) -> str:
    return KEY.sub(r"\1", text)


@pytest.mark.parametrize("header", [False, True], ids=["own", "pyproject"])
def test_every_key_stands_there_with_its_default_and_one_line_about_it(header: bool) -> None:
    text = starter(ALL, header=header)
    assert text.startswith(HEADER) is header
    lines = text.splitlines()
    for name in [one.name for one in SETTINGS] + list(OPTIONS):
        (at,) = [number for number, line in enumerate(lines) if re.match(rf"# (Not set by default, for example:  )?{name} = ", line)]
        assert re.match(r"# \S", lines[at - 1]) and not lines[at - 2].startswith("# ")
    assert all(line == HEADER or not line or line.startswith("# ") for line in lines)


def test_what_is_uncommented_is_valid_and_equal_to_the_defaults(project: Path, run: Run) -> None:
    def settings() -> tuple[dict[str, object], list[str]]:
        document = json.loads(run("--show-settings", "--format", "json")[1])
        return {one["key"]: one["value"] for one in document["settings"]}, document["rules"]

    (project / "pyproject.toml").write_text("")
    before = settings()
    (project / "pyproject.toml").write_text(uncommented(starter(ALL, header=True)))
    assert settings() == before
    document = json.loads(run("--show-settings", "--format", "json")[1])
    origins = {one["key"]: one["origin"] for one in document["settings"]}
    unset = {one.name for one in SETTINGS if one.example is not None}
    assert {key for key, origin in origins.items() if origin == "default"} == unset
    assert run()[0] == 0


def test_examples_of_keys_that_are_not_set_are_valid_too(project: Path, run: Run) -> None:
    text = re.sub(r"^# Not set by default, for example:  ", "", starter(ALL, header=True), flags=re.M)
    (project / "pyproject.toml").write_text(text)
    assert run("--show-settings")[0] == 0


def test_a_folder_without_pyproject_gets_a_file_of_ours(project: Path, run: Run) -> None:
    code, out, err = run("init")
    assert (code, err) == (0, "")
    assert out.startswith("Wrote ldlm-lint.toml: ")
    text = (project / "ldlm-lint.toml").read_text()
    assert text == starter(ALL, header=False) == run("init", "--stdout")[1]
    assert loads(text) == {}
    assert json.loads(run("--show-settings", "--format", "json")[1])["file"].endswith("/ldlm-lint.toml")
    assert loads(uncommented(text)).keys() == {one.name for one in SETTINGS if one.example is None} | OPTIONS.keys()


@pytest.mark.parametrize(
    ("before", "added"),
    [
        (PYPROJECT.encode(), b"\n[tool.ldlm-lint]\n"),
        (PYPROJECT.rstrip().encode(), b"\n\n[tool.ldlm-lint]\n"),
        (PYPROJECT.replace("\n", "\r\n").encode(), b"\r\n[tool.ldlm-lint]\r\n"),
        (b"[tool.other]\n\xc3\xa4 = 1\n".replace(b"\xc3\xa4", b'"\xc3\xa4"'), b"\n[tool.ldlm-lint]\n"),
        (b"", b"[tool.ldlm-lint]\n"),
    ],
    ids=["usual", "no-newline", "windows", "not-ascii", "empty"],
)
def test_a_pyproject_keeps_every_byte_and_gets_a_table(before: bytes, added: bytes, project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_bytes(before)
    code, out, _ = run("init")
    assert code == 0
    assert out.startswith("Added [tool.ldlm-lint] to pyproject.toml: ")
    after = (project / "pyproject.toml").read_bytes()
    assert after.startswith(before + added)
    assert after.count(b"\n") == after.count(b"\r\n") or b"\r" not in before
    assert loads(after.decode())["tool"]["ldlm-lint"] == {}  # type: ignore[index]
    assert run("--show-settings")[0] == 0


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"pyproject.toml": "[project]\n\n[tool.ldlm-lint]\n"}, "pyproject.toml:3 has [tool.ldlm-lint] already"),
        ({"pyproject.toml": 'tool = { ldlm-lint = { level = "error" } }\n'}, "has [tool.ldlm-lint] already"),
        ({"pyproject.toml": "tool = {}\n"}, "cannot append a table"),
        ({"pyproject.toml": "[broken\n"}, "pyproject.toml: invalid TOML"),
        ({"pyproject.toml": b"\xff"}, "is not valid UTF-8"),
        ({"ldlm-lint.toml": ""}, "ldlm-lint.toml exists already"),
        ({".ldlm-lint.toml": ""}, ".ldlm-lint.toml exists already"),
        ({"pyproject.toml": "", "ldlm-lint.toml": ""}, "ldlm-lint.toml exists already"),
    ],
)
def test_nothing_is_overwritten(files: dict[str, str | bytes], words: str, project: Path, enter: Enter, run: Run) -> None:
    enter(files)
    before = {path.name: path.read_bytes() for path in project.iterdir()}
    code, out, err = run("init")
    assert (code, out) == (2, "")
    assert words in err and err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in project.iterdir()} == before


def test_only_printing_needs_no_room(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    assert run("init", "--stdout") == (0, starter(ALL, header=True), "")


def test_another_folder_is_named(project: Path, run: Run) -> None:
    (project / "sub").mkdir()
    assert run("init", "sub")[1].startswith(f"Wrote {os.path.join('sub', 'ldlm-lint.toml')}")
    assert run("init", "nowhere")[0] == 2
    assert not (project / "ldlm-lint.toml").exists()


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_link_is_left_as_it_is(project: Path, run: Run) -> None:
    target = project.parent / "shared.toml"
    target.write_text(PYPROJECT)
    (project / "pyproject.toml").symlink_to(target)
    code, _, err = run("init")
    assert code == 2 and "is a symbolic link" in err
    assert target.read_text() == PYPROJECT


@pytest.mark.skipif(os.name == "nt" or (hasattr(os, "geteuid") and os.geteuid() == 0), reason="root may write anywhere")
def test_what_cannot_be_written_is_a_failure(project: Path, run: Run) -> None:
    project.chmod(0o555)
    try:
        assert run("init")[0] == 3
    finally:
        project.chmod(0o755)
