"""What evidence does to fixes: lifted by one level at a place that was seen, withdrawn where the linter was wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from calling import Enter
from dossiers import LOADER, REFUTED, SYNCHRONIZE, TRAIN, UNUSED, VERIFIED, WRAP, judged, site, written

from ldlm_lint.autofix.groups import merge_groups
from ldlm_lint.evidence.lift import lifted, with_support
from ldlm_lint.evidence.support import Level, weighed
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Span

PREFETCH, SYNC = "dataloader-without-prefetch", "device-synchronized-in-training-loop"
COPY = "ddp-gradient-copy"
SCOPE = "no unused parameter seen in 50 steps on 2 ranks (cpu)"


@pytest.fixture
def project(enter: Enter) -> Path:
    return enter({"pyproject.toml": f"[tool.ldlm-lint]\nselect = {[UNUSED, PREFETCH, SYNC, COPY]}\n", "train.py": TRAIN})


@pytest.fixture
def unused(project: Path, tmp_path: Path) -> Path:
    """Evidence that no parameter was unused."""
    place = site(project / "train.py", WRAP, project)
    return written(tmp_path / "e", project, judged(UNUSED, VERIFIED, [place], lifts=True, reason=SCOPE))


def test_nobody_applies_the_fix_without_evidence(project, run):
    run("check", "--fix", "--unsafe-fixes", ".")
    assert "find_unused_parameters=True" in (project / "train.py").read_text()


def test_evidence_makes_the_shown_fix_an_unsafe_one_with_its_scope_in_words(project, run, unused):
    _, out, _ = run("check", "--evidence", unused, "--format", "json", ".")
    (found,) = [one for one in json.loads(out)["findings"] if one["rule"] == UNUSED]
    assert found["fix"]["applicability"] == "unsafe"
    _, out, _ = run("check", "--evidence", unused, ".")
    assert f"note: unsafe fix: a probe run allows it: {SCOPE}; if a parameter gets no gradient" in out


def test_the_lifted_fix_is_applied_when_unsafe_fixes_are_and_taken_back(project, run, unused):
    run("check", "--evidence", unused, "--fix", ".")
    assert (project / "train.py").read_text() == TRAIN
    code, out, err = run("check", "--evidence", unused, "--fix", "--unsafe-fixes", "--select", UNUSED, ".")
    fixed = TRAIN.replace("find_unused_parameters=True", "find_unused_parameters=False")
    assert (project / "train.py").read_text() == fixed, err
    assert "Fixed 1 finding in 1 file:" in out
    assert code == 0
    run("undo")
    assert (project / "train.py").read_text() == TRAIN


def test_one_fix_in_a_file_does_not_make_the_evidence_of_the_next_stale(project, run, tmp_path):
    """The first round changes the wrap's own line and adds another above it; the second one still knows its place."""
    wraps = TRAIN.replace("    model = DDP", "    torch.cuda.synchronize()\n    model = DDP")
    text = wraps + wraps.partition("\n\n\n")[2].replace("def main", "\n\ndef other")
    (project / "train.py").write_text(text)
    lines = [at for at, line in enumerate(text.splitlines(), 1) if "find_unused_parameters" in line]
    judgements = [
        judged(UNUSED, VERIFIED, [site(project / "train.py", line, project)], lifts=True, reason=SCOPE)
        for line in lines
    ]
    waits = [at for at, line in enumerate(text.splitlines(), 1) if line.startswith("            torch.cuda.sync")]
    refuted = judged(SYNC, REFUTED, [site(project / "train.py", waits[1], project)], device="cuda", reason="rare")
    folder = written(tmp_path / "e", project, *judgements, refuted)
    run("check", "--evidence", folder, "--fix", "--unsafe-fixes", ".")
    after = (project / "train.py").read_text()
    assert after.count("find_unused_parameters=False, gradient_as_bucket_view=True") == 2
    assert after.count("prefetch_factor=4") == 2
    loops = after.split("def other")
    assert ["            torch.cuda.synchronize()" in one for one in loops] == [False, True]


def test_what_remains_after_fixes_is_judged_by_what_is_there_now(project, run, tmp_path, unused):
    place = site(project / "train.py", SYNCHRONIZE, project)
    written(tmp_path / "e", project, judged(SYNC, REFUTED, [place], device="cuda"), run_id="sync")
    code, out, err = run("check", "--evidence", unused, "--fix", "--unsafe-fixes", ".")
    assert "train.py has changed since the probe ran" in err
    assert "seen at run time" not in out
    assert (code, f": {SYNC} (" in out) == (1, True)
    assert run("check", "--evidence", unused, ".")[0] == 1


def test_a_fixed_setting_makes_no_finding_at_the_call_that_was_watched(project, run, tmp_path):
    """The finding stood in the configuration; its evidence is of Python, which the fix leaves as it is."""
    (project / "train.py").write_text(
        "import yaml\nfrom torch.utils.data import DataLoader\n\n\n"
        "def main(model, dataset):\n    with open('config.yaml') as file:\n        config = yaml.safe_load(file)\n"
        "    loader = DataLoader(dataset, num_workers=config['num_workers'], persistent_workers=True)\n"
        "    for epoch in range(3):\n        for batch in loader:\n            model(batch).mean().backward()\n"
    )
    (project / "config.yaml").write_text("num_workers: 64\n")
    rule, place = "dataloader-too-many-workers", site(project / "train.py", 8, project)
    folder = written(tmp_path / "e", project, judged(rule, VERIFIED, [place]))
    code, out, _ = run("check", "--evidence", folder, "--fix", "--unsafe-fixes", "--select", rule, ".")
    assert (project / "config.yaml").read_text() == "num_workers: 8\n"
    assert (code, "seen at run time" in out) == (0, False)


def test_the_patch_of_evidence_is_what_it_would_write(project, run, unused):
    _, patch, _ = run("check", "--evidence", unused, "--diff", "--unsafe-fixes", "--select", UNUSED, ".")
    assert "+    model = DDP(model, find_unused_parameters=False)" in patch
    assert (project / "train.py").read_text() == TRAIN


def test_a_refuted_finding_s_fix_is_not_applied(project, run, tmp_path):
    place = site(project / "train.py", LOADER, project)
    folder = written(tmp_path / "e", project, judged(PREFETCH, REFUTED, [place], device="cuda"))
    run("check", "--evidence", folder, "--fix", "--unsafe-fixes", "--select", f"{PREFETCH},{SYNC}", ".")
    after = (project / "train.py").read_text()
    assert "prefetch_factor" not in after
    assert "synchronize" not in after


def test_only_the_place_that_was_seen_is_lifted(project, run, tmp_path):
    elsewhere = site(project / "train.py", 6, project)
    folder = written(tmp_path / "e", project, judged(UNUSED, VERIFIED, [elsewhere], lifts=True))
    machine = written(tmp_path / "m", project, judged(UNUSED, VERIFIED, lifts=True), kind="micro")
    run("check", "--evidence", folder, "--evidence", machine, "--fix", "--unsafe-fixes", "--select", UNUSED, ".")
    assert (project / "train.py").read_text() == TRAIN


@pytest.mark.parametrize("level", [Applicability.SAFE, Applicability.UNSAFE])
def test_no_evidence_makes_a_fix_safe(level):
    fix = Fix("title", (Edit(Span("a.py", 0, 1), "x"),), level, "reason")
    assert lifted(fix, judged(UNUSED, VERIFIED, lifts=True)) == fix


def test_advice_without_edits_stays_advice():
    fix = Fix("title", (), Applicability.DISPLAY, "reason")
    assert lifted(fix, judged(UNUSED, VERIFIED, lifts=True)) == fix


@pytest.mark.parametrize("whole", [False, True])
def test_a_refuted_member_leaves_its_group_unless_a_part_of_that_would_be_dangerous(whole):
    edits = [Edit(Span("a.py", at, at + 1), "x") for at in (0, 5)]
    fixes = [Fix("title", (edit,), Applicability.UNSAFE, "reason", "group", whole) for edit in edits]
    first, second = (Finding(UNUSED, "W7226", edit.span, fix=fix) for edit, fix in zip(edits, fixes, strict=True))
    support = weighed([(Level.PLACE, judged(UNUSED, REFUTED, reason="needed"))])
    merged = merge_groups([with_support(first, support), second], [])
    levels = [one.fix.applicability for one in merged]
    assert levels == ([Applicability.DISPLAY] * 2 if whole else [Applicability.DISPLAY, Applicability.UNSAFE])
    assert merged[0].fix.reason.startswith("refuted by the probe: needed")
