"""What was not checked is never called free of findings, and named paths that are left out are named with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import Enter, Run

from ldlm_lint.configs.detect import MAX_BYTES

CONFIG = '[tool.ldlm-lint]\nexclude = ["generated/", "old_*.py"]\n'


@pytest.fixture
def files(enter: Enter) -> Path:
    """A project with files that are left out for several reasons."""
    code = ("generated/code.py", "old_train.py", "fine.py")
    texts = {"pyproject.toml": CONFIG, "notes.txt": "x\n", "data.json": b" " * (MAX_BYTES + 1)}
    return enter({**texts, **dict.fromkeys(code, "x = 1\n")})


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("generated", '"generated/" of `exclude` in pyproject.toml matches it'),
        ("old_train.py", '"old_*.py" of `exclude` in pyproject.toml matches it'),
        ("pyproject.toml", "it is a file of another tool"),
        ("data.json", "it is larger than 1 MB, so it holds data"),
        (".ldlm-lint/old.py", "it belongs to the journal of `ldlm-lint undo`"),
    ],
)
def test_a_named_path_that_is_left_out_is_named_with_the_reason(path, reason, files: Path, run: Run) -> None:
    (files / ".ldlm-lint").mkdir()
    (files / ".ldlm-lint" / "old.py").write_text("x = 1\n")
    code, out, err = run(path)
    assert (code, out.splitlines()[0]) == (0, "Nothing was checked: all given paths are excluded.")
    assert err == f"note: {path}: not checked: {reason}\n"
    code, out, err = run(path, "fine.py")
    assert (code, out.splitlines()[0]) == (0, "No findings.")
    assert f"note: {path}: not checked: {reason}\n" in err
    assert run(path, "--quiet")[2] == ""


def test_a_pattern_of_the_command_line_and_one_above_a_nested_project_are_named(files: Path, run: Run) -> None:
    err = run("--extend-exclude", "fine*", "fine.py")[2]
    assert err == 'note: fine.py: not checked: "fine*" of the command line matches it\n'
    (files / "generated" / "ldlm-lint.toml").write_text('exclude = ["other.py"]\n')
    (files / "generated" / "other.py").write_text("x = 1\n")
    err = run("generated/other.py", "generated/code.py")[2]
    assert '"other.py" of `exclude` in generated/ldlm-lint.toml matches it' in err
    assert 'generated/code.py: not checked: "generated/" of `exclude` in pyproject.toml matches it' in err


def test_a_folder_all_of_which_is_excluded_is_left_out_like_a_file(files: Path, run: Run) -> None:
    for words in (("--extend-exclude", "fine.py", "."), ("--exclude", "*.py", ".")):
        code, out, err = run(*words)
        assert (code, out.splitlines()[0]) == (0, "Nothing was checked: all given paths are excluded.")
        assert err == "note: .: not checked: all files in it are excluded\n"
    (files / "empty").mkdir()
    assert run("empty")[0] == 3


def test_the_same_is_said_when_the_run_is_shown_again(files: Path, run: Run) -> None:
    assert run("generated", "fine.py") == run("generated", "fine.py")


def test_of_many_paths_the_first_are_named(files: Path, run: Run) -> None:
    names = [f"old_{number}.py" for number in range(14)]
    for name in names:
        (files / name).write_text("x = 1\n")
    err = run(*names)[2]
    assert err.count("note: old_") == 10
    assert err.endswith("note: and 4 more\n")


@pytest.mark.parametrize("form", ["text", "concise"])
@pytest.mark.parametrize(
    ("paths", "first"),
    [
        (["nosuchpath"], "Nothing was checked."),
        (["notes.txt"], "Nothing was checked."),
        (["notes.txt", "generated"], "Nothing was checked."),
        (["fine.py", "nosuchpath"], "No findings in 1 file, but not everything could be checked."),
        (["fine.py", "broken.py"], "No findings in 1 file, but not everything could be checked."),
    ],
)
def test_where_something_failed_it_is_not_called_free_of_findings(paths, first, form, files: Path, run: Run) -> None:
    if "broken.py" in paths:
        (files / "broken.py").symlink_to("nowhere.py")
    code, out, err = run("--format", form, *paths)
    assert code == 3
    assert out.splitlines()[0] == first
    assert err.startswith("error: ") or "\nerror: " in err
    assert "No findings.\n" not in out


def test_fixing_what_is_not_there_finds_nothing_to_remain(files: Path, run: Run) -> None:
    code, out, _ = run("--fix", "nosuchpath")
    assert code == 3
    assert "No findings" not in out


def test_a_markdown_summary_says_it_too(files: Path, run: Run) -> None:
    assert run("--format", "markdown", "nosuchpath")[1].startswith("## ldlm-lint: nothing was checked, 1 problem\n")
    assert run("--format", "markdown", "fine.py")[1].startswith("## ldlm-lint: no findings\n")


def test_the_count_stays_in_the_json_document(files: Path, run: Run) -> None:
    code, out, err = run("--format", "json", "generated", "fine.py")
    assert code == 0
    assert json.loads(out)["summary"]["excluded"] == 1
    assert "note: generated: not checked" in err
