"""Every format carries the same findings, whatever the filters, and is valid where a schema or a grammar says what is."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from calling import Run, entered
from collected import for_every
from jsonschema import Draft4Validator, Draft202012Validator
from pages import checked

from ldlm_lint.model import Applicability, Consequence, Edit, Finding, Fix, Problem, Reference, Report, Rule, Span
from ldlm_lint.report.consequences import LEADS_TO
from ldlm_lint.report.formats import FORMATS
from ldlm_lint.report.markdown import MOST_BYTES
from ldlm_lint.report.view import View
from ldlm_lint.source import Kind, Source

ROOT = Path(__file__).resolve().parent.parent
SARIF = json.loads((ROOT / "tests" / "schemas" / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
FINDINGS = json.loads((ROOT / "docs" / "findings.schema.json").read_text(encoding="utf-8"))
SCRIPT = """\
#!/bin/bash
export TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=12000000
export NCCL_TIMEOUT=7200
export NCCL_TIMEOUT=7200  # ldlm-lint: ignore[ineffective-environment-variable] an example
torchrun train.py
"""
TRAIN = """\
import torch
from torch.utils.data import DataLoader

# Ünïcode before the span: columns count characters.
ü, model = "ü", torch.nn.Linear(1, 1).cuda()
ß, optimizer = "😀", torch.optim.AdamW(model.parameters())


def train(dataset, epochs):
    loader = DataLoader(dataset, num_workers=4, pin_memory=True)
    for epoch in range(epochs):
        for batch in loader:
            model(batch).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
"""
Found = set[tuple[str, int, int, str]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {"pyproject.toml": "", "sub dir/100%, [a]|b:c.sh": SCRIPT, "train.py": TRAIN}
    return entered(tmp_path / "a project", files, monkeypatch)


def of_text(out: str) -> Found:
    found = re.findall(r"^[a-z-]+: [\w-]+ \(([EWRI]\d{4})\), \d+ places?(?: \[[*-]\])?\n.*\n +--> (.*):(\d+):(\d+)$", out, re.M)
    found += re.findall(r"^  1 [\w-]+ \(([EWRI]\d{4})\): (.*):(\d+):(\d+)$", out, re.M)
    return {(path, int(line), int(column), code) for code, path, line, column in found}


def of_full(out: str) -> Found:
    found = re.findall(r"^[a-z-]+ ([EWRI]\d{4})(?:\[\*\])? [\w-]+: .*\n +--> (.*):(\d+):(\d+)$", out, re.M)
    return {(path, int(line), int(column), code) for code, path, line, column in found}


def of_concise(out: str) -> Found:
    found = re.findall(r"^(.*):(\d+):(\d+): [a-z-]+ ([EWRI]\d{4}) [\w-]+: .", out, re.M)
    return {(path, int(line), int(column), code) for path, line, column, code in found}


def of_json(out: str) -> Found:
    document = json.loads(out)
    Draft202012Validator(FINDINGS).validate(document)
    return {(one["path"], one["line"], one["column"], one["code"]) for one in document["findings"]}


def of_sarif(out: str) -> Found:
    document = json.loads(out)
    Draft4Validator(SARIF).validate(document)
    return {
        (unquote(place["artifactLocation"]["uri"]), region["startLine"], region["startColumn"], one["ruleId"])
        for one in document["runs"][0]["results"]
        for place in [one["locations"][0]["physicalLocation"]]
        for region in [place["region"]]
    }


def of_github(out: str) -> Found:
    found = set()
    for properties in re.findall(r"^::(?:error|warning|notice) ([^\n]*?)::", out, re.M):
        pairs = dict(pair.split("=", 1) for pair in properties.split(","))
        path = re.sub("%(25|0D|0A|3A|2C)", lambda match: chr(int(match[1], 16)), pairs["file"])
        code = re.search(r"[EWRI]\d{4}", pairs["title"])
        if code:
            found.add((path, int(pairs["line"]), int(pairs["col"]), code[0]))
    return found


def of_gitlab(out: str) -> Found:
    issues = json.loads(out)
    assert len({one["fingerprint"] for one in issues}) == len(issues)
    assert {one["severity"] for one in issues} <= {"info", "minor", "major", "critical", "blocker"}
    return {
        (one["location"]["path"], begin["line"], begin["column"], one["description"].split()[1])
        for one in issues
        for begin in [one["location"]["positions"]["begin"]]
        if one["location"]["lines"]["begin"] == begin["line"]
    }


def of_junit(out: str) -> Found:
    root = ElementTree.fromstring(out)
    cases = root.findall("testsuite/testcase[failure]")
    assert int(root.attrib["failures"]) == len(cases)
    return {found for case in cases for found in of_concise(case.find("failure").text)}


def of_markdown(out: str) -> Found:
    found = set()
    for place, code in re.findall(r"^\| (.*?:\d+:\d+) \| [a-z-]+ ([EWRI]\d{4}) \[", out, re.M):
        path, line, column = re.sub(r"\\(.)", r"\1", place).rsplit(":", 2)
        found.add((path, int(line), int(column), code))
    return found


def of_html(out: str) -> Found:
    found = set()
    for one in checked(out).all("details", kind="finding"):
        path, line, column = next(one.all("span", kind="place")).text.rsplit(":", 2)
        found.add((path, int(line), int(column), one.attributes["data-code"]))
    return found


READERS = {
    "text": of_text,
    "full": of_full,
    "concise": of_concise,
    "json": of_json,
    "sarif": of_sarif,
    "github": of_github,
    "gitlab": of_gitlab,
    "junit": of_junit,
    "markdown": of_markdown,
    "html": of_html,
}
SCRIPT_PATH = "sub dir/100%, [a]|b:c.sh"
EVERYTHING = {
    (SCRIPT_PATH, 2, 8, "W7201"),
    (SCRIPT_PATH, 3, 8, "W7204"),
    ("train.py", 6, 21, "R7301"),
    ("train.py", 10, 14, "I7102"),
    ("train.py", 10, 14, "R7101"),
}
FILTERS = {
    "everything": ((), 1, EVERYTHING),
    "level": (("--level", "warning"), 1, {one for one in EVERYTHING if one[3][0] in "WE"}),
    "select": (("--select", "R7301"), 1, {("train.py", 6, 21, "R7301")}),
    "information": (("--select", "I7102"), 0, {("train.py", 10, 14, "I7102")}),
    "fail-level": (("--fail-level", "error"), 0, EVERYTHING),
    "exit-zero": (("--exit-zero",), 0, EVERYTHING),
    "nothing": (("--select", "W7601"), 0, set()),
}


def test_every_format_is_read_here() -> None:
    assert READERS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", FILTERS)
def test_filters_act_the_same_on_every_format_and_on_the_exit_code(project: Path, run: Run, name: str) -> None:
    arguments, expected_code, expected = FILTERS[name]
    for form, read in READERS.items():
        code, out, err = run(*arguments, "--format", form)
        assert (code, read(out), err) == (expected_code, expected, ""), form


def test_baseline_and_configuration_act_on_every_format(project: Path, run: Run) -> None:
    run("baseline")
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\nignore = ["I7102"]\n')
    (project / "train.py").write_text(
        TRAIN + "\n\nother = torch.optim.SGD(model.parameters())\nother.step()\n", encoding="utf-8"
    )
    for form, read in READERS.items():
        code, out, _ = run("--format", form)
        assert (code, read(out)) == (1, {("train.py", 18, 9, "R7301")}), form


@pytest.mark.parametrize("form", FORMATS)
def test_problems_are_said_once_in_the_report_or_on_stderr(project: Path, run: Run, form: str) -> None:
    (project / "zero.py").write_bytes(b"import torch\0\n")
    code, out, err = run("--format", form, ".", "gone")
    assert code == 3
    said = out if FORMATS[form].complete else err
    assert said.count("no such file or directory") == 1
    assert "NUL bytes" in out
    assert (err == "") is FORMATS[form].complete


def hostile_view(path: str = "/p/a\n::error::x%,:|<b>\x1b[31m\udcff.sh") -> View:
    source = Source(path, b"x=1\n", Kind.SHELL)
    texts = dict.fromkeys(("summary", "rationale", "cost", "exceptions", "versions", "verification"), "Some text.")
    rule = Rule(
        code="W7201",
        symbol="heart-beat",
        consequence=Consequence.HANG,
        message="%(what)s",
        references=(Reference("NCCL", "https://example.org"),),
        reads=("sh",),
        triggers=(),
        **texts,
    )
    args = (("what", "a|b`c`<script>\x1b[2J\n::set-output name=x::y\r\u202e]]>&amp;\x00 $x$"),)
    findings = tuple(Finding("heart-beat", "W7201", Span(path, start, 3), args) for start in (0, 0))
    report = Report(findings, (Problem("/p/gone\n.py", 1, "no such\nfile"),), 1, sources={path: source}, root="/p")
    return View(report, Path("/p"), {"heart-beat": rule}, exit_code=3)


def written(form: str, view: View) -> str:
    stream = io.StringIO()
    FORMATS[form].write(view, stream)
    return stream.getvalue()


@for_every("form", FORMATS)
def test_hostile_names_and_messages_stay_text(form: str) -> None:
    got = written(form, hostile_view())
    assert not set("\x1b\x00\u202e\r") & set(got)
    assert not re.search(r"(?m)^::(error|set-output)::|^::set-output", got)
    if form in ("json", "sarif", "gitlab"):
        assert got.isascii()
        json.loads(got)


def test_hostile_text_in_the_structure_of_each_format() -> None:
    github = written("github", hostile_view()).splitlines()
    assert [line.split(" ")[0] for line in github] == ["::error", "::warning", "::warning"]
    assert "file=a%0A%3A%3Aerror%3A%3Ax%25%2C%3A|<b>" in github[1]
    junit = ElementTree.fromstring(written("junit", hostile_view()).encode("utf-8", "replace"))
    assert len(junit.findall("testsuite/testcase/failure")) == 2
    assert len(junit.findall("testsuite/testcase/error")) == 1
    Draft4Validator(SARIF).validate(json.loads(written("sarif", hostile_view())))
    markdown = written("markdown", hostile_view())
    assert len(re.findall(r"(?m)^\| a", markdown)) == 2
    assert "<script>" not in re.sub(r"\\.", "", markdown)
    assert len(written("concise", hostile_view()).splitlines()[:2][0].split(": hang W7201 heart-beat: ")) == 2


def test_equal_defects_have_fingerprints_of_their_own() -> None:
    gitlab = json.loads(written("gitlab", hostile_view()))
    sarif = json.loads(written("sarif", hostile_view()))["runs"][0]["results"]
    prints = [one["fingerprint"] for one in gitlab]
    assert len(set(prints)) == 2
    assert [one["partialFingerprints"]["ldlmLintIdentity/v1"] for one in sarif] == prints
    assert json.loads(written("json", hostile_view()))["findings"][0]["fingerprint"] == prints[0]


def sarif_of(project: Path, run: Run, *arguments: str) -> dict[str, Any]:
    (only,) = json.loads(run("--format", "sarif", *arguments)[1])["runs"]
    return only


def test_sarif_tells_rules_fixes_and_how_the_run_ended(project: Path, run: Run) -> None:
    found = sarif_of(project, run)
    driver, results = found["tool"]["driver"], found["results"]
    assert (driver["name"], found["columnKind"]) == ("ldlm-lint", "unicodeCodePoints")
    assert found["invocations"][0]["exitCode"] == 1 and found["invocations"][0]["executionSuccessful"]
    assert unquote(found["originalUriBaseIds"]["%SRCROOT%"]["uri"]) == f"{project.as_uri()}/".replace("%20", " ")
    for one in results:
        rule = driver["rules"][one["ruleIndex"]]
        assert rule["id"] == one["ruleId"]
        assert rule["helpUri"].endswith(f"/rules/{rule['name']}.md")
        assert rule["help"]["text"] and rule["properties"]["problem.severity"] in ("error", "warning", "recommendation")
    by_code = {rule["id"]: rule["properties"] for rule in driver["rules"]}
    assert by_code["W7201"]["tags"][0] == by_code["W7201"]["consequence"] == "hang"
    assert {one["ruleId"]: one["properties"]["consequence"] for one in results}["R7301"] == "slow"
    assert not any("security-severity" in one or "security" in one["tags"] for one in by_code.values())
    loader = next(one for one in results if one["ruleId"] == "R7101")
    assert loader["relatedLocations"][0]["message"]["text"]
    (fix,) = loader["fixes"]
    assert fix["properties"]["applicability"] == "unsafe" and fix["properties"]["reason"]


def test_sarif_grades_what_a_loaded_file_can_run(project: Path, run: Run) -> None:
    (project / "load.py").write_text('import torch\n\nstate = torch.load("model.pt")\n')
    (rule,) = sarif_of(project, run, "load.py")["tool"]["driver"]["rules"]
    assert "security" in rule["properties"]["tags"]
    # GitHub: above 4.0 medium, from 7.0 high.
    assert 4.0 <= float(rule["properties"]["security-severity"]) < 7.0


def test_fixes_of_sarif_are_those_of_fix(project: Path, run: Run) -> None:
    """Applied by lines and columns, as a viewer does, they give what ``--fix`` writes."""
    results = sarif_of(project, run, "--select", "R7301,R7101", "train.py")["results"]
    lines = TRAIN.splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    edits = {
        (
            starts[region["startLine"] - 1] + region["startColumn"] - 1,
            starts[region["endLine"] - 1] + region["endColumn"] - 1,
            replacement["insertedContent"]["text"],
        )
        for one in results
        for change in one["fixes"][0]["artifactChanges"]
        for replacement in change["replacements"]
        for region in [replacement["deletedRegion"]]
    }
    text = TRAIN
    for start, end, inserted in sorted(edits, reverse=True):
        text = text[:start] + inserted + text[end:]
    run("--fix", "--unsafe-fixes", "--select", "R7301,R7101", "train.py")
    assert (project / "train.py").read_text(encoding="utf-8") == text != TRAIN


def test_problems_are_notifications_of_sarif(project: Path, run: Run) -> None:
    (invocation,) = sarif_of(project, run, ".", "gone")["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
    (said,) = invocation["toolExecutionNotifications"]
    assert said["message"]["text"] == "no such file or directory"


def test_of_a_file_that_cannot_be_read_sarif_names_the_line_alone(project: Path, run: Run) -> None:
    (project / "late.py").write_bytes(b"x = 1\n\ny = '\xe9'\n")
    (result,) = sarif_of(project, run, "late.py")["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}


def test_a_notebook_s_cell_is_part_of_every_place() -> None:
    path = "/p/train.ipynb"
    view = hostile_view()
    span = Span(path, 0, 1, cell=3)
    fix = Fix("set y", (Edit(span, "y"),), Applicability.SAFE)
    finding = Finding("heart-beat", "W7201", span, (("what", "slow"),), fix=fix)
    view = View(Report((finding,), sources={path: Source(path, b"x=1\n", Kind.PYTHON)}), view.base, view.rules)
    assert written("concise", view).startswith("train.ipynb:cell 3:1:1: hang W7201 heart-beat: slow [*]\n")
    result = json.loads(written("sarif", view))["runs"][0]["results"][0]
    (cell,) = result["locations"][0]["logicalLocations"]
    assert cell == {"name": "cell 3", "fullyQualifiedName": "cell 3:1:1", "kind": "notebookCell"}
    # There is no file, so that nothing is said of its lines.
    assert "fixes" not in result
    assert "region" not in result["locations"][0]["physicalLocation"]
    assert "line=" not in written("github", view)
    assert "cell 3" in written("junit", view) and "cell 3" in written("markdown", view)
    assert json.loads(written("gitlab", view))[0]["description"].startswith("cell 3:1: ")


def test_paths_are_relative_to_the_checkout_that_a_ci_system_names(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.parent))
    monkeypatch.setenv("CI_PROJECT_DIR", str(project.parent))
    for form in ("github", "gitlab", "sarif"):
        paths = {one[0] for one in READERS[form](run("--format", form, "train.py")[1])}
        assert paths == {"a project/train.py"}, form
    assert {one[0] for one in of_concise(run("--format", "concise", "train.py")[1])} == {"train.py"}
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project / "sub dir"))
    assert {one[0] for one in of_github(run("--format", "github", "train.py")[1])} == {"train.py"}


def test_a_summary_for_a_job_page_stays_below_the_limit() -> None:
    view = hostile_view("/p/run.sh")
    many = view.report.findings[:1] * 20_000
    got = written("markdown", View(Report(many, sources=view.report.sources), view.base, view.rules))
    assert len(got.encode()) < MOST_BYTES + 5_000
    assert re.search(r"\n\.\.\. and \d+ more findings\.\n", got)


def test_statistics_count_rules_in_the_formats_that_have_a_place_for_it(project: Path, run: Run) -> None:
    code, out, _ = run("--statistics", "--quiet")
    assert code == 1
    rows = [line.split() for line in out.splitlines()]
    assert ["1", "hang", "W7201", "excessive-heartbeat-timeout"] in rows
    assert ["1", "config", "W7204", "[*]", "ineffective-environment-variable"] in rows
    assert run("--statistics", "--quiet", "--format", "concise")[1] == out
    document = json.loads(run("--statistics", "--format", "json")[1])
    Draft202012Validator(FINDINGS).validate(document)
    assert {(one["rule"], one["findings"]) for one in document["statistics"]} == {
        (one["rule"], 1) for one in document["findings"]
    }
    assert sum(one["fixable"]["safe"] for one in document["statistics"]) == document["summary"]["fixable"]["safe"] == 1
    code, out, err = run("--statistics", "--format", "sarif")
    assert (code, out) == (2, "")
    assert "--statistics does not apply to the format sarif" in err


def test_the_format_of_the_configuration_holds_unless_the_command_line_names_one(project: Path, run: Run) -> None:
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\noutput-format = "concise"\n')
    assert of_concise(run()[1]) == EVERYTHING
    assert of_json(run("--format", "json")[1]) == EVERYTHING
    (project / "pyproject.toml").write_text('[tool.ldlm-lint]\noutput-format = "xml"\n')
    code, _, err = run()
    assert code == 2
    assert "pyproject.toml:2: output-format: must be one of text, full, concise, json" in err


def test_what_fails_is_what_the_format_marks(project: Path, run: Run) -> None:
    commands = re.findall(r"^::(\w+) ", run("--format", "github")[1], re.M)
    assert sorted(commands) == ["notice", "notice", "notice", "warning", "warning"]
    levels = {one["ruleId"]: one["level"] for one in sarif_of(project, run)["results"]}
    assert (levels["W7201"], levels["I7102"]) == ("warning", "note")


def test_the_page_of_formats_says_what_reports_say_of_consequences() -> None:
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"(?m)^\| `([a-z-]+)` \| ([^|]+) \|$", page.partition("| consequence | what happens |")[2].partition("\n\n")[0]))
    assert said == {consequence.value: LEADS_TO[consequence] for consequence in Consequence}
