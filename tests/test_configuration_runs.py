"""What of the configurations of nested projects reaches whoever runs the linter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import Enter, Run
from configured import BEAT, write

NESTED = {
    "pyproject.toml": "[tool.ldlm-lint]\n",
    "run.sh": BEAT,
    "a/ldlm-lint.toml": "heartbeat-limit = 4000\nlevels = 'info'\nworkers-limit = 0\n",
    "a/run.sh": BEAT,
    "a/deep/run.sh": BEAT,
    "b/pyproject.toml": "[tool.ldlm-lint]\nheartbeat-limit = 4000\n",
    "b/run.sh": BEAT,
    "c/pyproject.toml": "[tool\n",
    "c/README.md": "",
}


@pytest.mark.parametrize("words", [(".",), ("--no-cache", "--jobs", "2"), ("b", "a")])
def test_a_broken_configuration_of_a_nested_project_costs_its_own_files_alone(
    enter: Enter, run: Run, words: tuple[str, ...]
) -> None:
    enter(NESTED)
    for _ in range(2):
        code, out, err = run("--format", "concise", *words)
        assert code == 2
        assert [line.partition(":")[0] for line in out.splitlines()][:2] == ["b/run.sh", "Found 1 finding"]
        assert sorted(err.splitlines()) == [
            "error: a/ldlm-lint.toml: 2 files are not checked, because this configuration is invalid",
            'error: a/ldlm-lint.toml:2: levels: unknown key, did you mean "level"?',
            "error: a/ldlm-lint.toml:3: workers-limit: must be 2 or more, not 0",
        ]


def test_a_broken_configuration_matters_only_where_the_run_has_files_below(enter: Enter, run: Run) -> None:
    root = enter(NESTED)
    assert run("b", "c/README.md", "--no-cache")[2].count("c/pyproject.toml") == 0
    assert run("b/run.sh", "run.sh")[:1] == (1,)
    write(root, {"c/train.py": ""})
    code, _, err = run(".")
    assert code == 2
    assert "error: c/pyproject.toml:1: is not valid TOML" in err


def test_the_configuration_of_the_run_ends_it_with_all_of_its_errors(enter: Enter, run: Run) -> None:
    root = enter(NESTED)
    code, out, err = run("a/run.sh")
    assert (code, out) == (2, "")
    assert [line.partition("a/ldlm-lint.toml")[2].partition(": ")[0] for line in err.splitlines()] == [":2", ":3"]
    assert all(line.startswith("ldlm-lint: error: ") for line in err.splitlines())
    for words in (("graph", "a"), ("baseline", "a"), ("--fix", "a"), ("--show-settings", "a"), ("--show-files", "a")):
        assert run(*words)[0] == 2
    assert not (root / "a" / ".ldlm-lint-baseline.json").exists()


def test_a_broken_nested_configuration_is_above_other_failures_and_exit_zero(enter: Enter, run: Run) -> None:
    enter(NESTED)
    assert run(".", "gone", "--exit-zero")[0] == 2
    assert run(".", "--show-files")[0] == 2
    assert run("graph", ".")[0] == 2
    document = json.loads(run(".", "--format", "json")[1])
    assert {"path": "a/ldlm-lint.toml", "line": 3, "message": "workers-limit: must be 2 or more, not 0"}.items() <= next(
        one for one in document["errors"] if one["line"] == 3
    ).items()


def test_fixes_ignores_and_baseline_leave_the_files_of_a_broken_project_alone(enter: Enter, run: Run) -> None:
    root = enter(NESTED)
    assert run("--add-ignores", ".")[0] == 2
    assert "ldlm-lint: ignore" in (root / "b" / "run.sh").read_text()
    assert (root / "a" / "run.sh").read_text() == BEAT
    (root / "b" / "run.sh").write_text(BEAT)
    assert run("--fix", "--unsafe-fixes", ".")[0] == 2
    assert "SEC=1800" in (root / "b" / "run.sh").read_text()
    assert (root / "a" / "run.sh").read_text() == BEAT


def test_a_fix_takes_the_options_of_its_own_file(enter: Enter, run: Run) -> None:
    root = enter(
        {
            "ldlm-lint.toml": "heartbeat-limit = 4000\n",
            "run.sh": BEAT,
            "a/ldlm-lint.toml": "heartbeat-limit = 4000\nheartbeat-timeout = 900\n",
            "a/run.sh": BEAT,
            "b/ldlm-lint.toml": "heartbeat-limit = 1000\n",
            "b/run.sh": BEAT,
        }
    )
    run("--fix", "--unsafe-fixes", ".")
    lengths = [(root / name).read_text().splitlines()[0].rpartition("=")[2] for name in ("run.sh", "a/run.sh", "b/run.sh")]
    assert lengths == ["1800", "900", "1000"]


def test_a_finding_counts_by_the_fail_level_of_its_own_file(enter: Enter, run: Run) -> None:
    enter(
        {
            "ldlm-lint.toml": "heartbeat-limit = 4000\nfail-level = 'error'\n",
            "run.sh": BEAT,
            "a/ldlm-lint.toml": "heartbeat-limit = 4000\nfail-level = 'warning'\n",
            "a/run.sh": BEAT,
        }
    )
    assert run("run.sh")[0] == 0
    assert run("a")[0] == run(".")[0] == run("run.sh", "a/run.sh")[0] == 1
    assert run(".", "--fail-level", "error")[0] == 0


def test_format_and_baseline_are_those_of_the_run(enter: Enter, run: Run) -> None:
    root = enter(
        {
            "ldlm-lint.toml": "heartbeat-limit = 4000\noutput-format = 'concise'\n",
            "run.sh": BEAT,
            "a/ldlm-lint.toml": "heartbeat-limit = 4000\noutput-format = 'json'\nbaseline = 'known.json'\n",
            "a/run.sh": BEAT,
        }
    )
    assert run("a")[0] == 2
    assert run("baseline", ".")[0] == 0
    assert (root / ".ldlm-lint-baseline.json").exists() and not (root / "a" / "known.json").exists()
    code, out, _ = run(".")
    assert (code, out.splitlines()[0]) == (0, "No findings.")
    assert run("a", "--no-baseline")[1].startswith("{")


def test_a_stale_entry_of_the_baseline_is_told_where_its_own_file_applies_the_rule(enter: Enter, run: Run) -> None:
    root = enter(
        {
            "ldlm-lint.toml": "heartbeat-limit = 4000\n",
            "run.sh": BEAT,
            "a/ldlm-lint.toml": "heartbeat-limit = 4000\n",
            "a/run.sh": BEAT,
        }
    )
    run("baseline", ".")
    write(root, {"run.sh": "echo\n", "a/run.sh": "echo\n", "a/ldlm-lint.toml": "ignore = ['72']\n"})
    assert [line for line in run(".")[2].splitlines() if "is in the baseline" in line] == [
        "note: run.sh: excessive-heartbeat-timeout is in the baseline but no longer found"
    ]


def test_comments_that_silence_nothing_are_asked_for_by_each_project(enter: Enter, run: Run) -> None:
    idle = "x = 1  # ldlm-lint: ignore[W7604]\n"
    enter({"ldlm-lint.toml": "", "x.py": idle, "a/ldlm-lint.toml": "extend-select = ['unused-suppression']\n", "a/x.py": idle})
    found = [line for line in run("--format", "concise")[1].splitlines() if "unused-suppression" in line]
    assert [line.partition(":")[0] for line in found] == ["a/x.py"]


def test_the_cache_notices_every_change_of_a_configuration(enter: Enter, run: Run) -> None:
    root = enter({"pyproject.toml": "", "a/deep/run.sh": BEAT, "b/run.sh": BEAT})

    def found() -> list[str]:
        return [line.partition(":")[0] for line in run("--format", "concise", ".")[1].splitlines() if "W7201" in line]

    for name, text, files in (
        ("", "", []),
        ("a/ldlm-lint.toml", "heartbeat-limit = 4000\n", ["a/deep/run.sh"]),
        ("a/ldlm-lint.toml", "heartbeat-limit = 6000\n", []),
        ("ldlm-lint.toml", "heartbeat-limit = 4000\n", ["b/run.sh"]),
        ("a/deep/pyproject.toml", "[tool.ldlm-lint]\nheartbeat-limit = 4000\n", ["a/deep/run.sh", "b/run.sh"]),
        ("a/deep/.ldlm-lint.toml", "exclude = ['*']\n", ["b/run.sh"]),
        ("b/ldlm-lint.toml", "heartbeat-limit = 4000\nignore = ['W7201']\n", []),
    ):
        if name:
            write(root, {name: text})
        assert found() == found() == files, name
    (root / "b" / "ldlm-lint.toml").unlink()
    (root / "a" / "deep" / ".ldlm-lint.toml").unlink()
    assert found() == found() == ["a/deep/run.sh", "b/run.sh"]


def test_the_cache_notices_a_configuration_above_a_named_file(enter: Enter, run: Run) -> None:
    root = enter({"a/deep/run.sh": BEAT, "b/run.sh": BEAT})

    def found() -> int:
        return run("--format", "concise", "a/deep/run.sh", "b/run.sh")[1].count("W7201")

    assert found() == found() == 0
    for name in ("a/ldlm-lint.toml", "b/.ldlm-lint.toml"):
        write(root, {name: "heartbeat-limit = 4000\n"})
        assert found() == found()
    assert found() == 2
    write(root.parent, {"ldlm-lint.toml": "heartbeat-limit = 4000\n"})
    (root / "a" / "ldlm-lint.toml").unlink()
    assert found() == 2


def test_the_cache_keeps_apart_what_flags_change_in_a_nested_project_alone(enter: Enter, run: Run) -> None:
    enter({"ldlm-lint.toml": "heartbeat-limit = 4000\n", "run.sh": BEAT, "a/ldlm-lint.toml": "heartbeat-limit = 4000\nignore = ['72']\n", "a/run.sh": BEAT})
    counts = [run("--format", "concise", *words)[1].count("W7201") for words in ((), ("--extend-select", "W7201"), ())]
    assert counts == [1, 2, 1]


def test_exclude_on_the_command_line(enter: Enter, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    root = enter({"ldlm-lint.toml": "exclude = ['a/']\n", "a/x.py": "", "b/x.py": "", "b/gen/y.py": "", "c.py": ""})

    def files(*words: str) -> list[str]:
        document = json.loads(run("--show-files", "--format", "json", *words)[1])
        return [one["path"] for one in document["files"]]

    assert files() == ["b/gen/y.py", "b/x.py", "c.py"]
    assert files("--extend-exclude", "gen,c.py") == ["b/x.py"]
    assert files("--exclude", "gen/", "--exclude", "/c.py") == ["a/x.py", "b/x.py"]
    assert files("--exclude", "gen/", "--extend-exclude", "b/x.py") == ["a/x.py", "c.py"]
    assert files("--extend-exclude", "b/gen", "b/gen/y.py", "c.py") == ["c.py"]
    monkeypatch.chdir(root / "b")
    assert files("--extend-exclude", "/gen/") == ["x.py"]
    monkeypatch.chdir(root / "a")
    # What does not lie below where the command runs is matched from the root of its project.
    assert [Path(one).name for one in files("--exclude", "/c.py", "../b", "../c.py")] == ["y.py", "x.py"]
    for pattern in ("!", "[z-a]"):
        assert "not a gitignore pattern" in run("--exclude", pattern)[2]


def test_show_settings_tells_those_of_a_file_and_names_the_others(enter: Enter, run: Run) -> None:
    root = enter(
        {
            "pyproject.toml": "[tool.ldlm-lint]\nlevel = 'warning'\n",
            "x.py": "",
            "a/ldlm-lint.toml": "# Ours.\nlevel = 'error'\nexclude = ['gen/']\n",
            "a/x.py": "",
            "a/y.py": "",
        }
    )
    _, out, _ = run("--show-settings")
    assert f"# configuration: {root.as_posix()}/pyproject.toml\n# does not apply to the 2 files of {root.as_posix()}/a/ldlm-lint.toml\n" in out
    _, out, _ = run("--show-settings", "a/x.py", "--extend-exclude", "new/")
    assert f"# configuration: {root.as_posix()}/a/ldlm-lint.toml\nselect" in out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert 'level = "error" # ldlm-lint.toml:2' in rows
    assert 'exclude = ["gen/"] # ldlm-lint.toml:3' in rows and 'exclude = ["new/"] # command line' in rows
    document = json.loads(run("--show-settings", "--format", "json")[1])
    assert document["others"] == [{"file": f"{root.as_posix()}/a/ldlm-lint.toml", "files": 2}]
