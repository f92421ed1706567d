"""Findings in code that counts little: at level info in every format, counted by folder where people read, no reason to fail."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from calling import Enter, Run
from jsonschema import Draft4Validator, Draft202012Validator

from ldlm_lint import engine
from ldlm_lint.config import Config
from ldlm_lint.evidence.model import Judgement, Scope, Verdict
from ldlm_lint.evidence.support import Level, Support
from ldlm_lint.model import Finding, Severity, Span
from ldlm_lint.reach import Reach, Standing
from ldlm_lint.rules import by_symbol
from ldlm_lint.server.diagnosis import UNNECESSARY, diagnosis

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((ROOT / "docs" / "findings.schema.json").read_text(encoding="utf-8"))
SARIF = json.loads((ROOT / "tests" / "schemas" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
LOAD = "import torch\n\n\ndef load(path):\n    return torch.load(path)\n"
AMP = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"
COPIED = "third_party/parser/load.py"
SELECT = ("--select", "checkpoint-load-unspecified,deprecated-amp-api", "--no-cache")


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": "", COPIED: LOAD, "third_party/parser/amp.py": AMP, "train.py": "x = 1\n"})


def test_text_counts_them_and_the_run_passes(project: Path, run: Run) -> None:
    code, text, _ = run(*SELECT)
    assert code == 0
    assert text == "No findings.\n2 findings in third_party/parser/, copied from parser\n--show-unreached shows them in full.\n3 files read.\n"


def test_text_shows_them_in_full_when_asked(project: Path, run: Run) -> None:
    code, text, _ = run(*SELECT, "--show-unreached")
    assert code == 0
    assert " --> third_party/parser/load.py:5:12\n" in text and "note: copied from parser\n" in text
    assert "Found 2 findings: 2 info." in text and "in third_party/parser/, copied" not in text


def test_others_come_first_and_count_alone(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LOAD)
    code, text, _ = run(*SELECT)
    assert code == 1
    assert text.startswith("security: checkpoint-load-unspecified (W7604), 1 place\n")
    assert "Found 1 finding: 1 security." in text and "2 more in third_party/parser/, copied from parser\n" in text


def test_the_page_has_a_section_of_its_own_for_information(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LOAD)
    page = run(*SELECT, "--format", "html", "--show-unreached")[1]
    assert page.index('id="consequence-security"') < page.index('id="consequence-info"')
    assert 'id="consequence-deprecated"' not in page and "Level info: copied from parser." in page


OWN = "import torch\n\ndef keep():\n    net = torch.nn.Linear(2, 2)\n    torch.save(net.state_dict(), 'own_weights.pt')\n    net.load_state_dict(torch.load('own_weights.pt'))\n"


def test_own_files_come_below_the_others_in_one_line(project: Path, run: Run) -> None:
    (project / "train.py").write_text(LOAD)
    (project / "keep.py").write_text(OWN)
    code, text, _ = run(*SELECT)
    assert code == 1
    line = "  1 checkpoint-load-unspecified (W7604), the project writes the file itself, with tensors only: keep.py:6:25\n"
    assert f"\n\nAt level info, in full with --format full:\n{line}\nFound 2 findings: 1 security, 1 info.\n" in text
    (project / "train.py").unlink()
    code, text, _ = run(*SELECT)
    assert code == 0
    assert text.startswith("info: checkpoint-load-unspecified (W7604), 1 place\n") and "Found 1 finding: 1 info.\n" in text


@pytest.mark.parametrize(("form", "place"), [("json", '"severity_reason": "the project writes the file itself, with tensors only"'), ("sarif", '"severityReason": "the project writes')])
def test_formats_for_programs_have_the_reason(project: Path, run: Run, form: str, place: str) -> None:
    (project / "keep.py").write_text(OWN)
    assert place in run(*SELECT, "--format", form)[1]


@pytest.mark.parametrize("form", ["concise", "gitlab", "markdown", "full", "html"])
def test_formats_of_one_line_name_the_reason(project: Path, run: Run, form: str) -> None:
    (project / "keep.py").write_text(OWN)
    assert "evel info: the project writes the file itself, with tensors only" in run(*SELECT, "--format", form)[1]


@pytest.mark.parametrize("form", ["full", "concise"])
def test_formats_for_people_leave_them_out(project: Path, run: Run, form: str) -> None:
    assert "load.py" not in run(*SELECT, "--format", form)[1]
    assert "load.py:5:12" in run(*SELECT, "--format", form, "--show-unreached")[1]


def test_json_keeps_each_at_level_info(project: Path, run: Run) -> None:
    code, text, _ = run(*SELECT, "--format", "json")
    document = json.loads(text)
    Draft202012Validator(SCHEMA).validate(document)
    assert code == 0 and document["summary"]["infos"] == 2
    assert [(one["severity"], one["reach"], one["copied_from"]) for one in document["findings"]] == [("info", "copied", "parser")] * 2


def test_the_fingerprint_does_not_depend_on_it(project: Path, run: Run) -> None:
    before = {one["fingerprint"] for one in json.loads(run(*SELECT, "--format", "json")[1])["findings"]}
    (project / "third_party").rename(project / "parts")
    moved = json.loads(run(*SELECT, "--format", "json")[1])["findings"]
    assert not any("reach" in one for one in moved) and len(moved) == 2
    (project / "parts").rename(project / "third_party")
    assert {one["fingerprint"] for one in json.loads(run(*SELECT, "--format", "json")[1])["findings"]} == before


def test_a_baseline_knows_them(project: Path, run: Run) -> None:
    assert run("baseline", *SELECT[:2])[0] == 0
    document = json.loads(run(*SELECT, "--format", "json")[1])
    assert document["findings"] == [] and document["summary"]["baselined"] == 2


def test_sarif_says_note_and_why(project: Path, run: Run) -> None:
    document = json.loads(run(*SELECT, "--format", "sarif")[1])
    Draft4Validator(SARIF).validate(document)
    results = document["runs"][0]["results"]
    assert {(one["level"], one["properties"]["reach"], one["properties"]["copiedFrom"]) for one in results} == {("note", "copied", "parser")}


def test_junit_skips_what_fails_nothing(project: Path, run: Run) -> None:
    root = ElementTree.fromstring(run(*SELECT, "--format", "junit")[1])
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("2", "0", "2")
    assert [one.get("message", "").partition(":")[0] for one in root.iter("skipped")] == ["copied from parser"] * 2


def test_github_gets_one_notice_and_gitlab_info(project: Path, run: Run) -> None:
    (line,) = run(*SELECT, "--format", "github")[1].splitlines()
    assert line.startswith("::notice title=ldlm-lint::2 findings in third_party/parser/, copied from parser")
    assert {one["severity"] for one in json.loads(run(*SELECT, "--format", "gitlab")[1])} == {"info"}


def test_markdown_counts_them(project: Path, run: Run) -> None:
    page = run(*SELECT, "--format", "markdown")[1]
    assert page.startswith("## ldlm-lint: no findings\n") and "copied from parser" in page


def test_a_level_above_info_hides_them(project: Path, run: Run) -> None:
    document = json.loads(run(*SELECT, "--format", "json", "--level", "refactor")[1])
    assert document["findings"] == []
    assert run(*SELECT, "--fail-level", "info")[0] == 1


def test_fixes_leave_what_is_not_shown(project: Path, run: Run) -> None:
    path = project / "third_party/parser/amp.py"
    run(*SELECT, "--fix", "--unsafe-fixes")
    assert path.read_text() == AMP
    assert run(*SELECT, "--diff", "--unsafe-fixes", "--show-unreached")[1]
    run(*SELECT, "--add-ignores")
    assert "ignore" not in (project / COPIED).read_text()
    run(*SELECT, "--fix", "--unsafe-fixes", "--show-unreached")
    assert path.read_text() != AMP


def test_the_cache_remembers_them(project: Path, run: Run) -> None:
    words = ("--select", SELECT[1], "--format", "json")
    first, second = run(*words)[1], run(*words)[1]
    assert first == second == run(*SELECT, "--format", "json")[1]
    (project / "third_party").rename(project / "parts")
    assert "reach" not in run(*words)[1]


def test_a_licence_that_appears_changes_a_remembered_answer(enter: Enter, run: Run) -> None:
    root = enter({"pyproject.toml": "", "LICENSE": "Copyright (c) 2024 Example\n", "rmsd/load.py": LOAD, "train.py": "from rmsd.load import load\nload(1)\n"})
    words = ("--select", SELECT[1], "--format", "json")
    assert "copied" not in run(*words)[1]
    (root / "rmsd/LICENSE").write_text("Copyright (c) 2020 Jo Doe\n")
    assert json.loads(run(*words)[1])["findings"][0]["copied_from"] == "Jo Doe"


def test_an_editor_shows_a_hint_that_says_why(enter: Enter) -> None:
    tools = LOAD + "\n\ndef used():\n    return 1\n"
    root = enter({"pyproject.toml": "", COPIED: LOAD, "tools.py": tools, "main.py": "from tools import used\n\nused()\n"})
    report = engine.run([root / COPIED, root / "tools.py"], Config(root=root.as_posix()), base=root)
    found = [
        one
        for path in (COPIED, "tools.py")
        for one in diagnosis(report, (root / path).as_posix(), by_symbol, "utf-16", report.sources.get)["diagnostics"]
    ]
    assert [one["severity"] for one in found] == [4, 4]
    assert [one["tags"] for one in found] == [[], [UNNECESSARY]]
    assert found[0]["message"].endswith(" (copied from parser)")
    assert found[1]["message"].endswith(" (in code that no program reaches)")


def test_evidence_that_was_seen_reaches_its_code() -> None:
    seen = Finding("r", "W7604", Span("/a.py", 0, 1), standing=Standing(Reach.UNREACHED, "/a.py"))
    judgement = Judgement("r", "claim", Verdict.VERIFIED, "seen", Scope("cpu"))
    support = Support(Verdict.VERIFIED, "seen", Level.PLACE, (judgement,))
    assert engine._seen(seen._replace(evidence=support)).standing is None
    assert engine._seen(seen).standing is not None
    assert seen.severity is Severity.INFO and seen.weight is Severity.INFO
