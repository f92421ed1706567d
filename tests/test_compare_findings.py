"""The script that compares two versions of the linter: what it pairs, what it lists, and where its reports come from."""

from __future__ import annotations

import copy
import importlib.util
import json
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest
from collected import for_every

SCRIPT = Path(__file__).parent.parent / "scripts" / "compare_findings.py"
LINTER = """
import json, os, sys
from pathlib import Path
assert sys.argv[1:6] == ["check", "--format", "json", "--no-cache", "."]
print(Path({report!r}).read_text() if "broken" not in os.getcwd() else "no report")
sys.exit(1 if "broken" not in os.getcwd() else 2)
"""


def finding(line: int, rule: str = "optimizer-not-fused", **others: object) -> dict[str, object]:
    """A finding as the report has it."""
    plain = {
        "rule": rule,
        "code": "R7301",
        "consequence": "speed",
        "severity": "refactor",
        "confidence": "high",
        "path": "train.py",
        "line": line,
        "column": 5,
        "end_line": line,
        "end_column": 9,
        "message": "AdamW is not fused",
        "related": [],
        "fix": {"applicability": "unsafe", "title": "set fused=True", "edits": [{"start": 1, "end": 1, "text": "x"}]},
        "cell": None,
        "fingerprint": f"{rule}-{line}",
        "url": "https://example.org",
    }
    return plain | others


def report(*findings: dict[str, object], suppressed: int = 0, errors: object = ()) -> dict[str, object]:
    """A report with these findings."""
    summary = {"files": 1, "findings": len(findings), "refactors": len(findings), "suppressed": suppressed}
    return {"schema": "ldlm-lint/1", "findings": list(findings), "errors": list(errors), "summary": summary}


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("compare_findings", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["compare_findings"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout; the linters here do not look at it."""
    folder = tmp_path / "real"
    folder.mkdir()
    return folder


def difference(script: ModuleType, old: dict[str, object], new: dict[str, object]) -> object:
    """The comparison of two reports."""
    return script.compare("real", script.Result(old), script.Result(new))


def test_equal_reports_do_not_differ(script: ModuleType) -> None:
    one = report(finding(1), finding(2), suppressed=3)
    assert not difference(script, one, copy.deepcopy(one))


def test_what_is_gone_and_what_is_new(script: ModuleType) -> None:
    found = difference(script, report(finding(1), finding(2)), report(finding(2), finding(2), finding(4)))
    assert [one["line"] for one in found.gone] == [1]
    assert [one["line"] for one in found.new] == [2, 4]
    assert not found.changed
    assert found.counts == (2, 3)


@for_every(
    ("changed", "topics"),
    [
        ({"severity": "info"}, ["level"]),
        ({"message": "Adam is not fused"}, ["message"]),
        ({"related": [{"path": "a.py", "line": 1, "message": "made here"}]}, ["related places"]),
        ({"fingerprint": "other"}, ["fingerprint"]),
        ({"fix": None}, ["fix level", "fix"]),
        ({"fix": finding(7)["fix"] | {"applicability": "safe"}}, ["fix level"]),
        ({"fix": finding(7)["fix"] | {"title": "fuse it"}}, ["fix"]),
        ({"column": 1}, ["place"]),
        ({"url": "https://example.org/elsewhere"}, []),
    ],
)
def test_what_of_a_finding_changed(script: ModuleType, changed: dict[str, object], topics: list[str]) -> None:
    found = difference(script, report(finding(7)), report(finding(7) | changed))
    assert not found.gone
    assert not found.new
    assert [list(one.topics) for one in found.changed] == ([topics] if topics else [])


def test_a_finding_that_starts_elsewhere_is_paired_by_its_fingerprint(script: ModuleType) -> None:
    found = difference(script, report(finding(7)), report(finding(9, fingerprint=finding(7)["fingerprint"])))
    assert [list(one.topics) for one in found.changed] == [["place"]]


def test_a_field_that_only_one_version_knows_is_told_once(script: ModuleType) -> None:
    new = report(finding(1, reach="copied"), finding(2, reach="reached"))
    found = difference(script, report(finding(1), finding(2)), new)
    assert not found.changed
    assert found.summary == {"findings with reach": (0, 2)}


def test_suppressions_and_errors_count(script: ModuleType) -> None:
    error = {"path": "bad.py", "line": 3, "message": "invalid syntax"}
    found = difference(script, report(suppressed=2, errors=[error]), report(suppressed=1))
    assert found.summary == {"suppressed": (2, 1)}
    assert found.errors == ([error], [])


def saved(folder: Path, **reports: dict[str, object]) -> Path:
    """A folder of reports."""
    folder.mkdir()
    for name, one in reports.items():
        (folder / f"{name}.json").write_text(json.dumps(one), encoding="utf-8")
    return folder


def fake(tmp_path: Path, one: dict[str, object]) -> str:
    """The command of a linter that prints this report, except in a folder whose name says broken."""
    (tmp_path / "printed.json").write_text(json.dumps(one), encoding="utf-8")
    linter = tmp_path / "linter.py"
    linter.write_text(LINTER.format(report=str(tmp_path / "printed.json")), encoding="utf-8")
    return shlex.join([sys.executable, str(linter)])


def test_a_command_beside_a_saved_report(
    script: ModuleType, tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = saved(tmp_path / "before", real=report(finding(1), finding(3)))
    new = fake(tmp_path, report(finding(3, severity="info"), finding(5, message="a\n\tline")))
    assert script.main([str(old), new, str(checkout), "--save", str(tmp_path / "kept")]) == 1
    text = capsys.readouterr().out
    assert "real: 2 findings -> 2; 1 gone, 1 new, 1 changed; CPU saved -> 0." in text
    assert "  - train.py:1:5 refactor optimizer-not-fused\n" in text
    assert "  + train.py:5:5 refactor optimizer-not-fused\n      a line\n" in text
    assert "  ~ train.py:3:5 info optimizer-not-fused\n      level: " in text
    assert "optimizer-not-fused: 1 gone, 1 new, 1 changed" in text
    kept = tmp_path / "kept"
    assert script.main([str(kept / "new"), str(kept / "new" / "real.json"), str(checkout)]) == 0


def test_json_has_all_of_it(
    script: ModuleType, tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = saved(tmp_path / "before", real=report(finding(1), finding(3)))
    new = saved(tmp_path / "after", real=report(finding(3, severity="info")))
    assert script.main([str(old), str(new), str(checkout), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert [one["line"] for one in found["gone"]] == [1]
    assert found["changed"][0]["topics"] == {"level": [["refactor", "high"], ["info", "high"]]}


def test_a_report_that_is_missing_does_not_end_the_others(
    script: ModuleType, tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    old = saved(tmp_path / "before", real=report())
    assert script.main([str(old), fake(tmp_path, report()), str(broken), str(checkout)]) == 2
    shown = capsys.readouterr()
    assert "1 checkouts, 0 differ" in shown.out
    assert "broken.json" in shown.err


def test_what_a_side_runs(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = tmp_path / "venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin" / "python3").touch()
    monkeypatch.chdir(tmp_path)
    if sys.platform != "win32":
        assert script.command_of("venv") == [str(environment / "bin" / "python"), "-m", "ldlm_lint"]
    assert script.command_of("venv/bin/python3") == [str(environment / "bin" / "python3"), "-m", "ldlm_lint"]
    assert script.command_of("ldlm-lint --isolated") == ["ldlm-lint", "--isolated"]


def test_the_linter_itself_says_the_same_twice(script: ModuleType, checkout: Path) -> None:
    (checkout / "train.sh").write_text(
        "export NCCL_DEBUG=INFO\ntorchrun --nproc_per_node=8 train.py\n", encoding="utf-8"
    )
    assert script.main([sys.executable, f"{sys.executable} -m ldlm_lint", str(checkout)]) == 0


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 always looks in the current folder first")
def test_no_code_of_the_checkout_runs(script: ModuleType, checkout: Path) -> None:
    for name in ("platform.py", "yaml.py", "argparse.py"):
        (checkout / name).write_text("raise SystemExit('ran')\n", encoding="utf-8")
    assert script.main([sys.executable, f"{sys.executable} -m ldlm_lint", str(checkout)]) == 0
