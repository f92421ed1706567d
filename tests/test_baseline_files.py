"""The file of a baseline: how it is written, where it may be, and what is none."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from baselines import BEAT, FILE, MODULE, SETTINGS, entries
from calling import Enter, Run

from ldlm_lint import baseline
from ldlm_lint.model import Identity
from ldlm_lint.tomlfile import ConfigError


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": SETTINGS, "train.py": MODULE, "run.sh": BEAT})


def test_the_file_is_sorted_has_a_line_for_each_entry_and_names_no_machine(project: Path, run: Run) -> None:
    (project / "src").mkdir()
    (project / "src" / "träin.py").write_text(MODULE.replace("main", "Träiner"), encoding="utf-8")
    run("baseline", "src", "train.py", "run.sh")
    text = (project / FILE).read_bytes()
    assert text.isascii() and text.endswith(b"]\n}\n") and b"\r" not in text
    assert str(project).encode() not in text
    assert text.splitlines()[:4] == [
        b"{",
        b'  "schema": "ldlm-lint-baseline/1",',
        b'  "findings": [',
        b'    {"path": "run.sh", "rule": "excessive-heartbeat-timeout", "symbol": "", '
        b'"code": "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000", "count": 1},',
    ]
    assert [one["path"] for one in entries(project / FILE)] == ["run.sh", "src/träin.py", "train.py"]
    assert run("baseline")[1] == f"{FILE} is up to date: 3 known findings.\n"
    assert (project / FILE).read_bytes() == text


@pytest.mark.parametrize("where", ["configured", "named"])
def test_another_place(project: Path, run: Run, where: str) -> None:
    (project / "ci").mkdir()
    options = ()
    if where == "configured":
        (project / "pyproject.toml").write_text(f'{SETTINGS}baseline = "ci/known.json"\n')
    else:
        options = ("--baseline", "ci/known.json")
    code, _, err = run("check", *options)
    assert code == 2
    assert err == (
        f"ldlm-lint: error: {project.as_posix()}/ci/known.json: does not exist; ldlm-lint baseline writes it\n"
    )
    assert run("baseline", *options)[0] == 0
    assert not (project / FILE).exists()
    assert entries(project / "ci" / "known.json")[0]["path"] == "run.sh"
    assert run("check", *options)[0] == 0
    assert run("check", "--no-baseline")[0] == 1


def test_the_nearest_baseline_of_the_repository_holds_for_a_nested_project(enter: Enter, run: Run) -> None:
    root = enter({"a/ldlm-lint.toml": "", "a/run.sh": BEAT, "run.sh": BEAT})
    (root / ".git").mkdir()
    assert run("baseline")[0] == 0
    for _ in range(2):
        assert [run(*paths)[0] for paths in ((), ("a",), ("a/run.sh",), ("run.sh", "a/run.sh"))] == [0, 0, 0, 0]
    assert run("a", "--no-baseline")[0] == run("a", "--isolated")[0] == 1
    (root / "a" / "new.sh").write_text(BEAT)
    assert run("a")[0] == run("a/new.sh")[0] == 1
    # The own one of the nested project stands before it, and without a repository nothing above is looked at.
    (root / "a" / "new.sh").unlink()
    assert run("baseline", "a/run.sh")[0] == 0 and (root / "a" / FILE).is_file()
    (root / FILE).unlink()
    assert run("a")[0] == 0
    (root / "a" / FILE).rename(root / FILE)
    (root / ".git").rmdir()
    assert run("a")[0] == 1


@pytest.mark.parametrize("value", ["/etc/known.json", "../known.json", "a/../../b", "", "."])
def test_the_configuration_may_not_name_a_file_outside_of_the_project(project: Path, run: Run, value: str) -> None:
    (project / "pyproject.toml").write_text(f'[tool.ldlm-lint]\nbaseline = "{value}"\n')
    code, _, err = run("baseline")
    assert code == 2
    assert f'pyproject.toml:2: baseline: must be a path inside the project, not "{value}"' in err


def test_a_link_that_leads_out_of_the_project_is_not_followed(
    project: Path, run: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    victim = tmp_path_factory.mktemp("elsewhere") / "known.json"
    victim.write_text(baseline.render({}))
    (project / FILE).symlink_to(victim)
    code, _, err = run("baseline")
    assert (code, victim.read_text()) == (3, baseline.render({}))
    assert "leads out of" in err


def entry(**changes: object) -> dict[str, object]:
    return {"path": "a.py", "rule": "r", "symbol": "", "code": "x", "count": 1, **changes}


def of(*found: object) -> str:
    listed = ",\n".join(json.dumps(one) for one in found)
    return f'{{"schema": "{baseline.SCHEMA}",\n"findings": [\n{listed}\n]}}'


@pytest.mark.parametrize(
    "text, line, words",
    [
        pytest.param("", 1, "is not valid JSON: Expecting value", id="empty"),
        pytest.param(of(entry())[:-4], 3, "is not valid JSON", id="cut-off"),
        pytest.param(of(entry()).replace("\n]", "\n=======\n]"), 4, "is not valid JSON", id="merge-conflict"),
        pytest.param("[]", 1, 'must be an object with "schema" and "findings"', id="list"),
        pytest.param("[" * 100_000, 1, "is not a baseline", id="deep"),
        pytest.param(of().replace("/1", "/2"), 1, 'schema: must be "ldlm-lint-baseline/1"', id="schema"),
        pytest.param(of().replace("[\n\n]", "7"), 2, "findings: must be a list", id="no-list"),
        pytest.param(of(entry(), 7), 4, "an entry must be an object with path, rule, symbol, code and count", id="7"),
        pytest.param(of(entry(), entry(line=1)), 4, "an entry must be an object with", id="another-field"),
        pytest.param(of(entry(), {"path": "a.py"}), 4, "an entry must be an object with", id="missing-field"),
        pytest.param(of(entry(), entry(), entry(symbol=None)), 5, "symbol must be a string", id="type"),
        pytest.param(of(entry(count=0)), 3, "count must be at least 1", id="zero"),
        pytest.param(of(entry(count=True)), 3, "count must be at least 1", id="true"),
        pytest.param(of(entry()) + "\n\udcff", 5, "is not valid UTF-8", id="encoding"),
    ],
)
def test_a_file_that_is_no_baseline(project: Path, run: Run, text: str, line: int, words: str) -> None:
    path = project / FILE
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = path.read_bytes()
    for command in ("check", "baseline"):
        code, out, err = run(command)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"ldlm-lint: error: {path.as_posix()}:{line}: ")
        assert words in err
    assert path.read_bytes() == before
    assert run("check", "--no-baseline")[0] == 1


def test_a_directory_and_an_unreadable_file_are_no_baseline(project: Path, run: Run) -> None:
    (project / FILE).mkdir()
    assert run("check")[2].endswith(f"{FILE}: is not a file\n")
    (project / FILE).rmdir()
    (project / FILE).symlink_to("nowhere")
    assert run("check")[0] == 2


def test_equal_entries_of_a_merge_are_one(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(of(entry(count=2), entry(count=3), entry()))
    assert baseline.read(tmp_path / "x") == {Identity("a.py", "r", "", "x"): 3}


def test_nothing_to_check_writes_nothing(project: Path, run: Run) -> None:
    (project / "empty").mkdir()
    code, out, err = run("baseline", "empty")
    assert (code, out) == (3, "")
    assert err == "error: empty: no Python file, shell script or configuration file to check here\n"
    assert not (project / FILE).exists()


def test_a_directory_that_may_not_be_written(project: Path, run: Run) -> None:
    code, _, err = run("baseline", "--baseline", "missing/known.json")
    assert code == 3
    assert err.startswith("ldlm-lint: error: cannot write ")
    assert sorted(os.listdir(project)) == ["pyproject.toml", "run.sh", "train.py"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        baseline.read(tmp_path / "none.json")
