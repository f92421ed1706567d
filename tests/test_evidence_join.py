"""What evidence does to findings: the places that join them, staleness, contradictions, devices, and the exit code."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from calling import Enter, Run
from dossiers import INCONCLUSIVE, LOADER, REFUTED, SYNCHRONIZE, TRAIN, UNUSED, VERIFIED, WRAP, judged, site, written

PREFETCH = "dataloader-without-prefetch"
TIMEOUT = "excessive-collective-timeout"
SYNC = "device-synchronized-in-training-loop"
Check = Callable[..., dict]


@pytest.fixture
def project(enter: Enter) -> Path:
    rules = [UNUSED, PREFETCH, TIMEOUT, SYNC, "evaluation-with-gradients", "nccl-blocking-wait", "static-graph-with-no-sync"]
    return enter({"pyproject.toml": f"[tool.ldlm-lint]\nselect = {rules}\n", "train.py": TRAIN})


@pytest.fixture
def check(run: Run) -> Check:
    """The JSON report of a check with evidence; its exit code is under ``code``."""

    def call(*arguments: object) -> dict:
        code, out, err = run("check", "--format", "json", *arguments)
        assert code in (0, 1), err
        return {**json.loads(out), "code": code, "err": err}

    return call


def of(report: dict, rule: str) -> dict:
    (found,) = [one for one in report["findings"] if one["rule"] == rule]
    return found


def verdict(finding: dict) -> str:
    return finding["evidence"]["verdict"] if finding["evidence"] else ""


def test_without_evidence_the_summary_names_the_probe_that_settles_findings(project, run):
    _, out, _ = run("check", ".")
    assert out.endswith("confirm or refute 3 findings in a run        ldlm-lint probe run -- <your launch command>\n")
    assert out.count("probe") == 1 and "probe" not in run("check", "--quiet", ".")[1]


def test_a_verified_finding_is_sure_and_says_why(project, run, check, tmp_path):
    place = site(project / "train.py", SYNCHRONIZE, project)
    folder = written(tmp_path / "e", project, judged(SYNC, VERIFIED, [place], device="cuda", reason="called 20 times"))
    found = of(check("--evidence", folder), SYNC)
    assert (found["confidence"], verdict(found), found["evidence"]["level"]) == ("high", "verified", "place")
    assert found["evidence"]["judgements"][0]["measured"]["ci95"] == [4.33, 4.47]
    _, out, _ = run("check", "--evidence", folder, ".")
    assert "probe: verified: called 20 times\n" in out
    assert "confirm or refute 2 findings in a run" in out
    assert "probe: 1 verified" in out


def test_a_refuted_finding_counts_for_nothing(project, run, check, tmp_path):
    for rule, line in ((UNUSED, WRAP), (SYNC, SYNCHRONIZE)):
        place = site(project / "train.py", line, project)
        written(tmp_path / "e", project, judged(rule, REFUTED, [place], device="cuda"), run_id=rule)
    report = check("--evidence", tmp_path / "e")
    assert report["code"] == 0
    assert [of(report, rule)["confidence"] for rule in (UNUSED, SYNC)] == ["low", "low"]
    assert {one["severity"] for one in report["findings"]} == {"warning", "info"}
    code, out, _ = run("check", "--evidence", tmp_path / "e", ".")
    assert code == 0
    assert f"probe: refuted (the linter was wrong here): {UNUSED} was refuted in 50 steps on 2 ranks (cuda)" in out
    assert "not applied by --fix: refuted by the probe: " in out
    assert run("check", "--evidence", tmp_path / "e", "--fail-level", "info", ".")[0] == 1


def test_a_verified_info_counts_as_a_refactoring(project, check, tmp_path):
    place = site(project / "train.py", LOADER, project)
    written(tmp_path / "e", project, judged(PREFETCH, VERIFIED, [place]))
    silenced = ("--ignore", f"{UNUSED},{SYNC}")
    assert check(*silenced)["code"] == 0
    report = check("--evidence", tmp_path / "e", *silenced)
    assert (report["code"], of(report, PREFETCH)["severity"]) == (1, "info")
    assert check("--evidence", tmp_path / "e", "--fail-level", "warning", *silenced)["code"] == 0


def test_what_settles_nothing_changes_nothing(project, check, tmp_path):
    place = site(project / "train.py", WRAP, project)
    written(tmp_path / "e", project, judged(UNUSED, INCONCLUSIVE, [place]))
    before, after = check(), check("--evidence", tmp_path / "e")
    assert verdict(of(after, UNUSED)) == "inconclusive"
    assert after["code"] == before["code"]
    for one in after["findings"]:
        one["evidence"] = None
    assert after["findings"] == before["findings"]


def test_evidence_of_changed_code_is_dropped_and_said(project, run, check, tmp_path):
    place = site(project / "train.py", WRAP, project)
    written(tmp_path / "e", project, judged(UNUSED, REFUTED, [place]))
    (project / "train.py").write_text(TRAIN + "\n# another line\n")
    report = check("--evidence", tmp_path / "e")
    assert verdict(of(report, UNUSED)) == ""
    assert report["summary"]["evidence"]["stale"] == [{"rule": UNUSED, "path": "train.py", "line": WRAP}]
    _, out, err = run("check", "--evidence", tmp_path / "e", ".")
    assert f"note: train.py has changed since the probe ran: 1 verdict left out ({UNUSED})\n" in err
    assert "probe: 1 stale" in out


def test_a_place_without_a_hash_cannot_be_compared(project, check, tmp_path):
    place = replace(site(project / "train.py", WRAP, project), sha256="")
    written(tmp_path / "e", project, judged(UNUSED, REFUTED, [place]))
    report = check("--evidence", tmp_path / "e")
    assert verdict(of(report, UNUSED)) == ""
    assert len(report["summary"]["evidence"]["stale"]) == 1


def test_evidence_of_another_checkout_and_from_another_folder(project, check, tmp_path):
    elsewhere = tmp_path / "machine" / "somewhere"
    shutil.copytree(project, elsewhere)
    whole = judged(UNUSED, REFUTED, [site(elsewhere / "train.py", WRAP, elsewhere)])
    inner = judged(UNUSED, REFUTED, [site(elsewhere / "train.py", WRAP, tmp_path / "machine")])
    outside = judged(UNUSED, REFUTED, [site(elsewhere / "train.py", WRAP, tmp_path / "other")])
    for name, root, one in (
        ("1", elsewhere, whole),
        ("2", elsewhere.parent, inner),
        ("3", tmp_path / "other", outside),
    ):
        written(tmp_path / name, root, one)
        assert verdict(of(check("--evidence", tmp_path / name), UNUSED)) == "refuted", name


def test_of_two_files_that_could_be_meant_none_is(project, check, tmp_path):
    elsewhere = tmp_path / "machine"
    elsewhere.mkdir()
    shutil.copy(project / "train.py", elsewhere / "train.py")
    folder = written(
        tmp_path / "e", elsewhere, judged(UNUSED, REFUTED, [site(elsewhere / "train.py", WRAP, elsewhere)])
    )
    for name in ("one", "two"):
        (project / name).mkdir()
        shutil.copy(project / "train.py", project / name / "train.py")
    (project / "train.py").unlink()
    report = check("--evidence", folder)
    assert [verdict(one) for one in report["findings"] if one["rule"] == UNUSED] == ["", ""]
    assert len(report["summary"]["evidence"]["unmatched"]) == 1
    # The same contents tell which one it was.
    (project / "one" / "train.py").write_text(TRAIN + "# changed\n")
    assert [verdict(one) for one in check("--evidence", folder)["findings"] if one["rule"] == UNUSED] == ["", "refuted"]


def test_the_file_itself_is_meant_before_one_that_is_called_the_same(project, check, tmp_path):
    (project / "old").mkdir()
    shutil.copy(project / "train.py", project / "old" / "train.py")
    written(tmp_path / "e", project, judged(UNUSED, REFUTED, [site(project / "train.py", WRAP, project)]))
    report = check("--evidence", tmp_path / "e")
    assert {one["path"]: verdict(one) for one in report["findings"] if one["rule"] == UNUSED} == {
        "old/train.py": "",
        "train.py": "refuted",
    }


def test_runs_that_contradict_each_other_settle_nothing(project, check, tmp_path):
    place = site(project / "train.py", WRAP, project)
    written(tmp_path / "a", project, judged(UNUSED, VERIFIED, [place], lifts=True, reason="none unused"), run_id="a")
    written(tmp_path / "b", project, judged(UNUSED, REFUTED, [place], reason="two unused"), run_id="b")
    found = of(check("--evidence", tmp_path / "a", "--evidence", tmp_path / "b"), UNUSED)
    assert verdict(found) == "inconclusive"
    assert found["evidence"]["reason"] == "the evidence contradicts itself: verified: none unused; refuted: two unused"
    assert found["fix"]["applicability"] == "display"


def test_the_place_decides_before_the_machine_and_what_settles_before_what_does_not(project, check, tmp_path):
    place = site(project / "train.py", WRAP, project)
    written(tmp_path / "m", project, judged(UNUSED, VERIFIED, reason="it costs"), kind="micro")
    written(tmp_path / "p", project, judged(UNUSED, REFUTED, [place], reason="needed"))
    written(tmp_path / "i", project, judged(UNUSED, INCONCLUSIVE, [place], reason="one rank only"))
    machine, refuted, open_ = (("--evidence", tmp_path / name) for name in "mpi")
    assert of(check(*machine, *refuted), UNUSED)["evidence"]["reason"] == "needed"
    found = of(check(*machine, *open_), UNUSED)
    assert (found["evidence"]["reason"], found["evidence"]["level"]) == ("it costs", "machine")


def test_a_machine_s_experiment_speaks_to_all_findings_of_a_rule_and_makes_none_sure(project, run, check, tmp_path):
    second = TRAIN.replace("def main", "def other").partition("\n\n\n")[2]
    (project / "train.py").write_text(TRAIN + "\n\n" + second)
    written(tmp_path / "m", project, judged(PREFETCH, VERIFIED, reason="1.4 times as fast"), kind="micro")
    report = check("--evidence", tmp_path / "m")
    found = [one for one in report["findings"] if one["rule"] == PREFETCH]
    assert [verdict(one) for one in found] == ["verified", "verified"]
    before = [one["confidence"] for one in check()["findings"] if one["rule"] == PREFETCH]
    assert [one["confidence"] for one in found] == before
    assert check("--evidence", tmp_path / "m", "--ignore", f"{UNUSED},{SYNC}")["code"] == 0
    assert "probe: verified on this machine: 1.4 times as fast" in run("check", "--format", "full", "--evidence", tmp_path / "m", ".")[1]


def test_a_cpu_settles_no_rule_of_the_device_unless_it_is_the_target(project, check, tmp_path):
    place = site(project / "train.py", SYNCHRONIZE, project)
    folder = written(tmp_path / "e", project, judged(SYNC, VERIFIED, [place], device="cpu", reason="in each step"))
    for target in ((), ("--target", "cuda")):
        found = of(check("--evidence", folder, *target), SYNC)
        assert verdict(found) == "inconclusive", target
        assert found["evidence"]["reason"].startswith("observed on cpu, but the rule is about ")
        assert found["evidence"]["reason"].endswith("; in each step")
    assert verdict(of(check("--evidence", folder, "--target", "cpu"), SYNC)) == "verified"
    on_device = written(tmp_path / "g", project, judged(SYNC, VERIFIED, [place], device="cuda"))
    assert verdict(of(check("--evidence", on_device), SYNC)) == "verified"
    assert verdict(of(check("--evidence", on_device, "--target", "cpu"), SYNC)) == "inconclusive"


def test_a_claim_about_one_place_is_not_refuted_by_another_function(project, check, tmp_path):
    nearby = site(project / "train.py", 12, project)
    written(tmp_path / "n", project, judged(SYNC, REFUTED, [nearby], device="cuda"))
    assert of(check("--evidence", tmp_path / "n"), SYNC)["evidence"]["level"] == "file"
    (project / "train.py").write_text(TRAIN.replace("\n\n\ndef", "\n\nWORLD = 2\n\n\ndef"))
    elsewhere = site(project / "train.py", 5, project)
    written(tmp_path / "r", project, judged(SYNC, REFUTED, [elsewhere], device="cuda"))
    report = check("--evidence", tmp_path / "r")
    assert verdict(of(report, SYNC)) == ""
    assert [one["verdict"] for one in report["summary"]["evidence"]["unmatched"]] == ["refuted"]
    written(tmp_path / "v", project, judged(SYNC, VERIFIED, [elsewhere], device="cuda", reason="in each step"))
    found = of(check("--evidence", tmp_path / "v"), SYNC)
    assert (found["evidence"]["level"], found["evidence"]["reason"]) == ("file", "in each step (seen at train.py:5)")


def test_a_claim_about_the_whole_run_is_told_wherever_its_only_finding_is(project, check, tmp_path):
    (project / "train.py").write_text("import torch.distributed as dist\n\ndist.init_process_group('nccl')\n")
    (project / "run.sh").write_text("export TORCH_NCCL_BLOCKING_WAIT=1\ntorchrun train.py\n")
    rule, place = "nccl-blocking-wait", site(project / "train.py", 3, project)
    folder = written(tmp_path / "e", project, judged(rule, VERIFIED, [place], device="cuda", reason="it was 1"))
    found = of(check("--evidence", folder), rule)
    assert (found["path"], found["evidence"]["level"]) == ("run.sh", "run")
    assert found["evidence"]["reason"] == "it was 1 (seen at train.py:3)"
    (project / "other.sh").write_text("export TORCH_NCCL_BLOCKING_WAIT=1\ntorchrun train.py --other\n")
    report = check("--evidence", folder)
    shells = [one for one in report["findings"] if one["rule"] == rule and one["path"].endswith(".sh")]
    assert [verdict(one) for one in shells] == ["", ""]


def test_a_defect_that_only_the_probe_saw_is_a_finding_of_its_own(project, run, check, tmp_path):
    quiet = TRAIN.replace("find_unused_parameters=True", "**options").replace("dataset)", "dataset, options)", 1)
    (project / "train.py").write_text(quiet)
    place = site(project / "train.py", WRAP, project)
    folder = written(tmp_path / "e", project, judged(UNUSED, VERIFIED, [place], lifts=True))
    found = of(check("--evidence", folder), UNUSED)
    assert (found["line"], found["column"], found["end_line"]) == (WRAP, 5, WRAP)
    assert (found["message"], found["fix"], found["confidence"]) == (
        f"seen at run time: the claim of {UNUSED}",
        None,
        "high",
    )
    assert f"slow W7226 {UNUSED}: seen at run time: the claim of {UNUSED}" in run("check", "--format", "full", "--evidence", folder, ".")[1]
    assert f"<br>probe: verified: {UNUSED} was verified" in run("check", "--format", "markdown", "--evidence", folder, ".")[1]
    assert check("--evidence", folder, "--ignore", UNUSED)["summary"]["findings"] == 2
    lines = quiet.splitlines(keepends=True)
    lines[WRAP - 1] = lines[WRAP - 1].rstrip("\n") + f"  # ldlm-lint: ignore[{UNUSED}] the caller knows\n"
    (project / "train.py").write_text("".join(lines))
    again = written(tmp_path / "f", project, judged(UNUSED, VERIFIED, [site(project / "train.py", WRAP, project)]))
    report = check("--evidence", again)
    assert (report["summary"]["suppressed"], [one for one in report["findings"] if one["rule"] == UNUSED]) == (1, [])
    refuted = written(tmp_path / "g", project, judged(UNUSED, REFUTED, [site(project / "train.py", WRAP, project)]))
    assert check("--evidence", refuted)["summary"]["suppressed"] == 0


def test_what_a_rule_trades_is_no_finding_of_its_own(project, check, tmp_path):
    place = site(project / "train.py", WRAP, project)
    folder = written(tmp_path / "e", project, judged("missing-activation-checkpointing", VERIFIED, [place]))
    assert "missing-activation-checkpointing" not in {one["rule"] for one in check("--evidence", folder)["findings"]}


def test_findings_of_a_configuration_meet_the_call_that_reads_it(project, check, tmp_path):
    (project / "train.py").write_text(
        "import yaml\nfrom torch.nn.parallel import DistributedDataParallel as DDP\n\n\n"
        "def main(model, batch):\n    with open('config.yaml') as file:\n        config = yaml.safe_load(file)\n"
        "    model = DDP(model, find_unused_parameters=config['find_unused_parameters'])\n"
        "    model(batch).mean().backward()\n"
    )
    (project / "config.yaml").write_text("find_unused_parameters: true\n")
    place = site(project / "train.py", 8, project)
    written(tmp_path / "e", project, judged(UNUSED, VERIFIED, [place], lifts=True))
    found = of(check("--evidence", tmp_path / "e"), UNUSED)
    assert (found["path"], verdict(found), found["evidence"]["level"]) == ("config.yaml", "verified", "place")


def test_options_of_the_project_s_own_leave_verdicts_open(project, check, tmp_path):
    text = (
        "import datetime\nimport torch.distributed as dist\n\n"
        "dist.init_process_group('nccl', timeout=datetime.timedelta(hours=3))\n"
    )
    (project / "train.py").write_text(text)
    place = site(project / "train.py", 4, project)
    folder = written(tmp_path / "e", project, judged(TIMEOUT, REFUTED, [place], reason="the group has 3 h"))
    assert verdict(of(check("--evidence", folder), TIMEOUT)) == "refuted"
    with (project / "pyproject.toml").open("a") as file:
        file.write("collective-limit = 3600\n")
    found = of(check("--evidence", folder), TIMEOUT)
    assert verdict(found) == "inconclusive"
    assert "collective-limit is 3600; the group has 3 h" in found["evidence"]["reason"]


def test_the_gate_holds_back_what_the_probe_saw_too(project, check, tmp_path):
    (project / "train.py").write_text(TRAIN.replace("find_unused_parameters=True", "**OPTIONS"))
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "."], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *identity, "commit", "-qm", "one"], check=True)
    place = site(project / "train.py", WRAP, project)
    folder = written(tmp_path / "e", project, judged(UNUSED, VERIFIED, [place]))
    since = check("--evidence", folder, "--since", "HEAD")
    assert (since["summary"]["findings"], since["summary"]["unchanged"]) == (0, 3)
    measured = of(check("--evidence", folder), UNUSED)
    entry = {"path": "train.py", "rule": UNUSED, "symbol": "main", "code": "model=DDP(model,**OPTIONS)", "count": 1}
    baseline = {"schema": "ldlm-lint-baseline/1", "findings": [entry]}
    (project / ".ldlm-lint-baseline.json").write_text(json.dumps(baseline))
    known = check("--evidence", folder)
    assert known["summary"]["baselined"] == 1, measured["fingerprint"]
    assert [one["rule"] for one in known["findings"]] == [PREFETCH, SYNC]


def test_rules_that_do_not_exist_are_said_and_what_is_of_no_rule_is_not(project, check, tmp_path):
    place = site(project / "train.py", WRAP, project)
    written(tmp_path / "e", project, judged("from-the-future", VERIFIED, [place]), judged("", VERIFIED))
    report = check("--evidence", tmp_path / "e")
    assert report["summary"]["evidence"]["notes"] == ["evidence for an unknown rule: from-the-future"]
    assert report["summary"]["evidence"]["unmatched"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--evidence", "nowhere"), "nowhere: No such file or directory"),
        (("--evidence", "."), "no evidence here"),
        (("--evidence", "train.py"), "not JSON"),
        (("--target", "cpu"), "add --evidence DIR"),
    ],
)
def test_evidence_that_cannot_be_used_is_wrong_usage(project, run, arguments, said):
    code, out, err = run("check", *arguments)
    assert (code, out) == (2, "")
    assert re.search(said, err)


def test_ignore_comments_are_not_written_from_evidence(project, run, tmp_path):
    folder = written(tmp_path / "e", project)
    assert run("check", "--add-ignores", "--evidence", folder)[0] == 2
    assert (project / "train.py").read_text() == TRAIN


def test_evidence_and_reports_are_not_linted_themselves(project, check):
    """They hold the variables of a run; NaN in them is no mistake of somebody's configuration."""
    place = site(project / "train.py", WRAP, project)
    folder = written(project / "evidence", project, judged(UNUSED, INCONCLUSIVE, [place]))
    (path,) = folder.iterdir()
    seen = '"observations": {"environment": {"TORCH_NCCL_BLOCKING_WAIT": "1"}, "norm": NaN}'
    text = path.read_text().replace('"observations": {}', seen)
    assert seen in text
    path.write_text(text)
    assert {one["path"] for one in check("--select", "ALL")["findings"]} == {"train.py"}
    path.write_text(text.replace("ldlm-evidence/1", "another/1"))
    assert {one["path"] for one in check("--select", "ALL")["findings"]} > {"train.py"}


@pytest.mark.parametrize(
    ("gpus", "command"),
    [
        (8, "bash captions/scripts/train.sh"),
        # Eight ranks with 16 workers each are nothing for a laptop.
        (1, "torchrun --nproc-per-node 1 captions/train.py <its arguments>"),
        (0, "torchrun --nproc-per-node 1 captions/train.py <its arguments>"),
    ],
)
def test_the_script_that_launches_a_file_is_named_where_this_machine_can_run_it(run, tmp_path, monkeypatch, gpus, command):
    monkeypatch.setattr("ldlm_lint.report.common.gpus", lambda: gpus)
    shutil.copytree(Path(__file__).parent.parent / "examples" / "latent-captions", tmp_path / "captions")
    monkeypatch.chdir(tmp_path)
    _, out, _ = run("check", "captions")
    settling = set(re.findall(r"^      confirm or refute \d+ findings in a run\s+(.*)$", out, re.M))
    assert settling == {f"ldlm-lint probe run -- {command}"}
    _, out, _ = run("check", "--format", "json", "captions")
    assert {one["probe"] for one in json.loads(out)["findings"] if "probe" in one} == settling
