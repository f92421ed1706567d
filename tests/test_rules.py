"""Every rule on its fixtures, in the fast engine and in pylint: findings, fixes, and what a rule promises of them.

The whole output of each case is in ``tests/fixtures/<rule>/expected.out``; ``--update`` writes it (`snapshots.py`).
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from collected import for_every
from harness import (
    Case,
    by_project,
    cases,
    contents,
    expected,
    expected_to_remain,
    lint,
    materialize,
    places,
    pylint_in_process,
    pylint_in_workers,
    seen_by_engine,
    sources_of,
    strip,
)
from outline import outline
from snapshots import Snapshots, rendered

from ldlm_lint.autofix.apply import FixResult, fix_files
from ldlm_lint.checkers.queries import queries
from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Applicability, Edit, Report, Span
from ldlm_lint.project.texts import ChangedError
from ldlm_lint.rules import ALL, by_symbol, environment
from ldlm_lint.rules.linter import HOST_RULES, INTERNAL_ERROR
from ldlm_lint.source import Kind
from ldlm_lint.trades import agreed

CASES = cases()
BAD = [case for case in CASES if case.bad]
every_rule = for_every("rule", [one for one in ALL if one not in HOST_RULES], lambda one: one.symbol)
# The smallest case of each rule, for what depends on a kind of file and not on what a rule finds.
SHORT = [case for case in BAD if case.path.stem == "bad_short"]
every_short_case = for_every("case", SHORT, lambda case: case.name)
# pylint differs in how it comes to a file and to what the project says, which is the same for all cases of a rule that are
# written alike: the first bad and the first good one of each kind of file, and of each rule a project of several files.
ALIKE = list({(case.symbol, case.bad, case.path.is_dir(), case.path.suffix): case for case in reversed(CASES)}.values())

# One process lints all cases, for this file and for those that read their texts.
pytestmark = pytest.mark.xdist_group("fixtures")


@pytest.fixture(scope="module")
def snapshots(request: pytest.FixtureRequest) -> Iterator[Snapshots]:
    """What is recorded of all cases; ``--update`` writes what the tests that run have seen."""
    found = Snapshots(request.config.getoption("--update"))
    yield found
    if found.update:
        found.write(CASES)


def fix(root: Path, report: Report, limit: Applicability = Applicability.UNSAFE) -> FixResult:
    return fix_files(lambda overlay: map(agreed, lint(root, overlay).findings), sources_of(report), limit)


@every_rule
def test_a_rule_has_its_fixtures(rule):
    own = [case for case in CASES if case.symbol == rule.symbol]
    examples = {case.path.stem: case for case in own}
    assert {"bad", "good"} <= examples.keys()
    assert any(symbol == rule.symbol for _, _, symbol in expected(examples["bad"]))
    fixable = rule.applicability in (Applicability.UNSAFE, Applicability.SAFE)
    assert examples["bad"].fixed.exists() == fixable


@for_every("rule", [one for one in ALL if any(one.triggers)], lambda one: one.symbol)
def test_the_good_cases_tempt_the_rule_as_often_as_the_bad_ones(rule):
    # The small example repeats what another case has.
    own = [case for case in CASES if case.symbol == rule.symbol and not case.path.stem.endswith("_short")]
    good = [data for case in own if not case.bad for data in contents(case.path).values()]
    # The linked program looks where the words of its queries stand.
    words = {*rule.triggers, *rule.setting_triggers, *(word for query in queries() if rule.symbol in query.symbols for word in query.words)}
    tempting = sum(data.count(word) for data in good for word in words if word)
    positive = sum(count for case in own for place, count in expected(case).items() if place[2] == rule.symbol)
    assert tempting >= positive


@for_every("folder", sorted({case.symbol for case in CASES}))
def test_a_folder_of_fixtures_belongs_to_a_rule(folder):
    assert folder in by_symbol


@for_every("case", CASES, lambda case: case.name)
def test_a_case_has_the_output_that_is_recorded(case, projects, reports, snapshots):
    root, report = projects[case], reports[case]
    assert places(seen_by_engine(root, report)) == expected(case)
    assert bool(expected(case)) == case.bad
    said = rendered(root, report)
    if snapshots.update:
        snapshots.record(case, said)
    assert said == snapshots.of(case)


def test_what_is_recorded_belongs_to_a_case(snapshots):
    assert snapshots.update or snapshots.without_case(CASES) == []


@for_every("case", BAD, lambda case: case.name)
def test_fixing_makes_the_fixed_case_which_stays_as_it_is(case, projects, reports, tmp_path):
    root = projects[case]
    result = fix(root, reports[case])
    before = {name: strip(data) for name, data in contents(case.path).items()}
    changed = {Path(path).relative_to(root).as_posix(): data for path, data in result.changed.items()}
    is_fixed = case.fixed.exists()
    assert before | changed == ({name: strip(data) for name, data in contents(case.fixed).items()} if is_fixed else before)
    assert result.converged
    assert not result.rejected
    if is_fixed:
        a_fixed_case_is_clean_and_stays(case, reports[case], materialize(case, case.fixed, tmp_path / "fixed"))


def a_fixed_case_is_clean_and_stays(case: Case, before: Report, root: Path) -> None:
    report = lint(root)
    assert places(seen_by_engine(root, report)) == expected_to_remain(case)
    assert fix(root, report).changed == {}
    old, new = (Counter(finding.rule for finding in one.findings) for one in (before, report))
    assert new < old
    for path in root.rglob("*.py"):
        ast.parse(path.read_bytes())


@pytest.mark.parametrize("chosen", [pytest.param(ALIKE, id="alike"), pytest.param(CASES, id="all", marks=pytest.mark.slow)])
def test_pylint_finds_the_same(chosen, reports, projects, tmp_path):
    roots = {case: materialize(case, case.path, tmp_path / case.symbol / case.path.stem) for case in chosen}
    messages = pylint_in_process(tmp_path)
    seen = by_project(messages, list(roots.values()))
    assert [case.name for case, root in roots.items() if seen[root] != seen_by_engine(projects[case], reports[case])] == []
    # As for the messages of its own checkers.
    assert [one for one in messages if not Path(one["absolutePath"]).is_absolute()] == []


def test_pylint_finds_the_same_with_two_workers(projects, reports, tmp_path):
    # Rules of one file, of several files, of scripts and of configurations.
    chosen = [case for case in BAD if case.path.is_dir()][:: len(BAD) // 40] + SHORT[::20]
    roots = {case: materialize(case, case.path, tmp_path / case.symbol / case.path.stem) for case in chosen}
    messages = pylint_in_workers(tmp_path)
    seen = by_project(messages, list(roots.values()))
    found = {case: seen_by_engine(root, lint(root)) for case, root in roots.items()}
    assert all(found.values())
    assert [case.name for case, root in roots.items() if seen[root] != found[case]] == []
    assert [one for one in messages if not Path(one["absolutePath"]).is_absolute()] == []


@every_short_case
def test_line_ends_of_old_macs_fail_no_rule(case, projects):
    scripts = {path.as_posix(): path.read_bytes().replace(b"\n", b"\r") for path in projects[case].rglob("*.py")}
    assert INTERNAL_ERROR.symbol not in {one.rule for one in lint(projects[case], scripts).findings}


def windows(data: bytes) -> bytes:
    """A file as some editors of Windows write it: a byte-order mark, CRLF."""
    return b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n")


@for_every("case", [case for case in SHORT if case.path.suffix == ".py" and case.fixed.exists()], lambda case: case.name)
def test_line_endings_and_a_byte_order_mark_survive_the_fix(case, tmp_path_factory):
    root = materialize(case, case.path, tmp_path_factory.mktemp("windows") / case.symbol)
    file = root / case.path.name
    file.write_bytes(windows(file.read_bytes()))
    report = lint(root)
    assert places(seen_by_engine(root, report)) == expected(case)
    assert fix(root, report).changed == {file.as_posix(): windows(strip(case.fixed.read_bytes()))}


@every_rule
def test_fixes_reach_the_declared_applicability_and_never_exceed_it(rule, reports):
    findings = [one for report in reports.values() for one in report.findings if one.rule == rule.symbol]
    levels = [finding.fix.applicability for finding in findings if finding.fix]
    assert max(levels, default=None) == rule.applicability
    assert all(
        bool(finding.fix.reason) == (finding.fix.applicability < Applicability.SAFE)
        for finding in findings
        if finding.fix
    )


def test_safe_fixes_leave_the_rest_of_the_syntax_alone(reports):
    safe = {
        (edit.span.path, one.fix): report.sources[edit.span.path]
        for report in reports.values()
        for one in report.findings
        if one.fix and one.fix.applicability is Applicability.SAFE
        for edit in one.fix.edits
    }
    assert safe
    for (path, fix_), source in safe.items():
        edits = [edit for edit in fix_.edits if edit.span.path == path]
        after = apply_edits(source.data, edits, source.encoding)
        assert outline(source.kind, source.data, edits) == outline(source.kind, after, edits, applied=True)


BREAKING = """import os
import torch
from torch.nn.parallel import DistributedDataParallel


def main(model, loader):
    model = DistributedDataParallel(model.cuda(), find_unused_parameters=True, gradient_as_bucket_view=True)
    os.environ["NCCL_P2P_DISABLE"] = "1"
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    for batch in loader:
        model(batch).mean().backward()
        optimizer.step()
"""


_FAILING = "ldlm_lint.checkers.python_environment.find"


@pytest.fixture
def failing_rule(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A project of two files, and a query that raises on the first of them."""

    def fail(code):
        raise ValueError(f"no such node: {code.modules[0].path}")

    monkeypatch.setattr(_FAILING, fail)
    (tmp_path / "pyproject.toml").write_text("[tool.ldlm-lint]\n")
    (tmp_path / "train.py").write_text(BREAKING)
    (tmp_path / "wrap.py").write_text(BREAKING.partition("    os.environ")[0])
    return tmp_path


@pytest.mark.parametrize("host", ["engine", "pylint -j1"])
def test_a_rule_that_raises_is_reported_and_the_others_go_on(host, failing_rule):
    if host == "engine":
        seen = seen_by_engine(failing_rule, lint(failing_rule))
    else:
        seen = by_project(pylint_in_process(failing_rule), [failing_rule])[failing_rule]
    assert places(seen) == {
        ("train.py", 1, "ldlm-internal-error"): 1,
        ("train.py", 7, "ddp-find-unused-parameters"): 1,
        ("wrap.py", 7, "ddp-find-unused-parameters"): 1,
    }
    text = next(one.text for one in seen if one.rule == "ldlm-internal-error")
    assert environment.RULES[0].symbol in text and "ValueError: no such node: train.py" in text


def test_a_rule_that_raises_is_a_problem_of_the_run(failing_rule):
    problems = lint(failing_rule).problems
    assert [(Path(one.path).name, one.line) for one in problems] == [("train.py", 1)]


def test_a_file_that_changes_while_it_is_checked_is_named_without_a_trace(
    failing_rule: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decide(*_: object) -> None:
        raise ChangedError("model.py")

    monkeypatch.setattr(_FAILING, lambda _: ())
    monkeypatch.setattr("ldlm_lint.checkers.distributed.ddp_find_unused_parameters.find", decide)
    found = {one.text for one in seen_by_engine(failing_rule, lint(failing_rule)) if one.rule == "ldlm-internal-error"}
    assert found
    assert all("model.py has changed while it was checked; run again)" in one and "ChangedError" not in one for one in found)


def test_an_outline_shows_what_a_fix_did_outside_of_its_edits():
    before = b"x = f(1, 2)\ny = g(3)\n"
    edit = Edit(Span("a.py", 6, 7), "10")
    same, other = b"x = f(10, 2)\ny = g(3)\n", b"x = f(10, 2)\ny = g(4)\n"
    assert outline(Kind.PYTHON, before, [edit]) == outline(Kind.PYTHON, same, [edit], applied=True)
    assert outline(Kind.PYTHON, before, [edit]) != outline(Kind.PYTHON, other, [edit], applied=True)
    script, removed = b"export A=1\nif true; then\n  run\nfi\n", b"if true; then\n  run\nfi\n"
    gone = Edit(Span("a.sh", 0, 11), "")
    assert outline(Kind.SHELL, script, [gone]) == outline(Kind.SHELL, removed, [gone], applied=True)
    assert outline(Kind.SHELL, script, [gone]) != outline(Kind.SHELL, b"true; run\n", [gone], applied=True)
