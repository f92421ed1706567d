"""Two ranks whose defects are known: the probe recovers each, refutes each in the run without them, and changes no loss."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, Judgement, Verdict
from ldlm_lint.evidence.verdicts import judge

pytestmark = pytest.mark.torch

PROGRAM = Path(__file__).parent / "probed" / "seeded" / "train.py"
STEPS = 12
CLEAN = (
    *("--unused", "never", "--no-sync", "--checkpointing", "blocks", "--fused", "--persistent", "--set-epoch"),
    *("--bucket-view", "--saves", "pruned", "--group-timeout", "99"),
)
TRUTHS = {
    "accumulation-without-no-sync": "loss.backward()\n        total",
    "missing-activation-checkpointing": "class Plain(",
    "sampler-without-set-epoch": "sampler = DistributedSampler(",
    "subgroup-timeout-not-inherited": "group = dist.new_group(",
    "unbounded-checkpoints": "torch.save(state, path)\n    if",
}

RESTARTS = "dataloader-without-persistent-workers"

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(PROGRAM))
FORKED = (sys.executable, str(PROGRAM.with_name("ranks.py")))


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def _watched(folder: Path, launcher: tuple[str, ...], *options: str) -> tuple[list[Evidence], str]:
    out, evidence = folder / "out", folder / "evidence"
    out.mkdir(parents=True)
    probe = [
        sys.executable,
        "-m",
        "ldlm_lint",
        "probe",
        "run",
        "--yes",
        "--steps",
        str(STEPS),
        "--out",
        str(evidence),
        "--",
    ]
    done = _run([*probe, *launcher, "--out", str(out), *options], PROGRAM.parent)
    assert done.returncode == 1, done.stdout + done.stderr
    return files.read(evidence), done.stdout


def _losses(output: str) -> dict[tuple[str, str], str]:
    found = re.findall(r"rank (\d) step (\d+) loss (\S+)", output)
    return {(rank, step): loss for rank, step, loss in found if int(step) < STEPS}


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Evidence], str]:
    return _watched(tmp_path_factory.mktemp("seeded"), TORCHRUN)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Evidence], str]:
    return _watched(tmp_path_factory.mktemp("clean"), FORKED, *CLEAN)


def _by_rule(evidence: list[Evidence]) -> dict[str, Judgement]:
    return {one.rule: one for one in judge(evidence)}


def _line_of(text: str) -> int:
    source = PROGRAM.read_text()
    return source[: source.index(text)].count("\n") + 1


def test_both_ranks_leave_evidence(seeded) -> None:
    assert [(one.run.rank, one.run.world_size, one.run.steps) for one in seeded[0]] == [(0, 2, STEPS), (1, 2, STEPS)]
    assert not any("own error" in text for one in seeded[0] for text in one.unavailable.values())


@pytest.mark.parametrize("rule", TRUTHS)
def test_each_seeded_truth_is_verified_where_it_stands(seeded, rule: str) -> None:
    found = _by_rule(seeded[0])[rule]
    assert found.verdict is Verdict.VERIFIED, found.reason
    assert _line_of(TRUTHS[rule]) in found.sites[0].lines
    assert found.scope.ranks == (0, 1)


def test_workers_that_start_again_are_seen_and_only_a_measured_cost_verifies_them(seeded) -> None:
    found = _by_rule(seeded[0])[RESTARTS]
    assert _line_of("loader = DataLoader(") in found.sites[0].lines
    assert re.search(r"worker started \d+ times for \d+ iterations", found.reason), found.reason
    assert found.verdict is Verdict.INCONCLUSIVE or (found.measured and found.measured.clock), found.reason


def test_the_needed_flag_is_refuted_with_the_names_of_what_is_unused(seeded) -> None:
    found = _by_rule(seeded[0])["ddp-find-unused-parameters"]
    assert found.verdict is Verdict.REFUTED and not found.lifts
    assert "dead.bias, dead.weight" in found.reason and "on every rank" in found.reason


def test_the_timeout_is_read_from_the_group_of_each_rank(seeded) -> None:
    groups = [group for one in seeded[0] for group in one.observations["process_groups"]["groups"] if group["default"]]
    assert [group["timeouts"]["cpu"]["seconds"] for group in groups] == [99, 99]
    found = _by_rule(seeded[0])["excessive-collective-timeout"]
    assert found.verdict is Verdict.REFUTED and "99 s (gloo, on 2 ranks)" in found.reason


def test_the_unfused_optimizer_is_seen_and_not_settled_on_a_cpu(seeded) -> None:
    found = _by_rule(seeded[0])["optimizer-not-fused"]
    assert found.verdict is Verdict.INCONCLUSIVE and "fused" not in str(found.sites)


@pytest.mark.parametrize("rule", [*TRUTHS, RESTARTS])
def test_each_truth_is_refuted_where_it_is_mended(clean, rule: str) -> None:
    found = _by_rule(clean[0])[rule]
    assert found.verdict is Verdict.REFUTED, found.reason


def test_a_flag_that_is_not_needed_is_verified_and_lifts_the_fix(clean) -> None:
    found = _by_rule(clean[0])["ddp-find-unused-parameters"]
    assert found.verdict is Verdict.VERIFIED and found.lifts
    assert found.reason == f"no unused parameter seen in {STEPS} steps on 2 ranks (cpu)"


def test_gradients_that_are_views_share_their_stores(seeded, clean) -> None:
    alone = seeded[0][0].observations["ddp"][0]["gradients"]
    shared = clean[0][0].observations["ddp"][0]["gradients"]
    assert alone["count"] == alone["stores"] and shared["stores"] < shared["count"]
    assert _by_rule(clean[0])["ddp-gradient-copy"].verdict is Verdict.REFUTED


def test_losses_are_those_of_a_run_without_the_probe_bit_for_bit(seeded, tmp_path: Path) -> None:
    done = _run([*FORKED, "--out", str(tmp_path), "--steps", str(STEPS)], PROGRAM.parent)
    assert done.returncode == 0, done.stdout + done.stderr
    plain = _losses(done.stdout)
    assert len(plain) == 2 * (STEPS - 1)
    assert _losses(seeded[1]) == plain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ("--unused", "one-rank", "--saves", "in-place", "--all-ranks-save", "--micro", "1"),
            {
                "ddp-find-unused-parameters": "refuted",
                "non-atomic-checkpoint": "verified",
                "checkpoint-saved-by-every-rank": "verified",
                "accumulation-without-no-sync": "inconclusive",
                "requires-grad-toggled-per-step": None,
            },
        ),
        (
            ("--unused", "frozen", "--checkpointing", "whole", "--saves", "atomic"),
            {
                "ddp-find-unused-parameters": "refuted",
                "requires-grad-toggled-per-step": "verified",
                "parameters-frozen-after-wrap": "verified",
                "whole-model-checkpoint": "verified",
                "non-atomic-checkpoint": "refuted",
                "checkpoint-saved-by-every-rank": "refuted",
                "checkpoint-removed-before-replacement": None,
            },
        ),
        (
            ("--unused", "never", "--checkpointing", "reentrant", "--saves", "removed-first"),
            {
                "reentrant-checkpoint-misuse": "verified",
                "checkpoint-removed-before-replacement": "verified",
                "missing-activation-checkpointing": "inconclusive",
            },
        ),
    ],
    ids=["one-rank", "frozen", "reentrant"],
)
def test_other_defects(tmp_path: Path, options: tuple[str, ...], expected: dict[str, str | None]) -> None:
    evidence, _ = _watched(tmp_path, FORKED, *options)
    judged = {rule: one.verdict.value for rule, one in _by_rule(evidence).items()}
    assert {rule: judged.get(rule) for rule in expected} == expected
    if "one-rank" in options:
        assert "dead.bias, dead.weight) on rank 1" in _by_rule(evidence)["ddp-find-unused-parameters"].reason
