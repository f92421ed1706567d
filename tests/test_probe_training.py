"""Optimizers, schedules, scaling, switches, attention, compilation, evaluation, graphs and host time in a watched training:
each seeded defect is told at its place, each clean variant is refuted or silent, and no loss changes by a bit."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest
import warm

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, Judgement, Verdict
from ldlm_lint.evidence.verdicts import assess
from ldlm_lint.probe.settings import IDLE

pytestmark = pytest.mark.torch

HERE = Path(__file__).parent / "probed"
PROGRAM = HERE / "topics_a" / "train.py"
VERIFIED, REFUTED, INCONCLUSIVE = Verdict
MANY = (
    *("unfused", "zeros", "schedule-first", "anomaly", "attention", "evaluation", "retained", "listed-losses"),
    *("empty-cache", "reads", "mixed-tf32", "deterministic", "fused-conflict"),
)
# The rules that one run with all of these defects verifies, and what stands in a line of the place.
SEEDED = {
    "optimizer-not-fused": "return torch.optim.AdamW(model.parameters(), lr=1e-3)",
    "fused-conflict": "fused=True, foreach=True",
    "gradients-kept-as-zeros": "optimizer.zero_grad(",
    "scheduler-before-optimizer": "scheduler.step()",
    "anomaly-detection-left-on": "set_detect_anomaly(",
    "unfused-attention": "F.softmax(scores",
    "evaluation-with-gradients": "value = model(x).mean()",
    "graph-retained-on-backward": ".backward(",
    "loss-graph-accumulation": "listed.append(loss)",
    "mixed-tf32-apis": ".fp32_precision",
}
# What they say of the same training without the defects.
CLEAN = {
    "optimizer-not-fused",
    "fused-lost-on-resume",
    "gradients-kept-as-zeros",
    "scheduler-before-optimizer",
    "anomaly-detection-left-on",
    "unfused-attention",
    "evaluation-with-gradients",
    "loss-graph-accumulation",
}
# What has no effect on a CPU, or nothing to wait for.
NEVER_ON_CPU = {
    "tf32-disabled",
    "nondeterminism-guard-left-on",
    "cache-emptied-in-training-loop",
    "host-sync-in-training-loop",
}
DEVICE_BOUND = {"optimizer-not-fused", "unfused-attention", "grad-scaler-with-bfloat16"}


@functools.cache
def _plain(*arguments: str, program: Path = PROGRAM) -> list[str]:
    code, out, err = warm.run([str(program), *arguments], PROGRAM.parent, {}, 120)
    assert code == 0, err
    return _losses(out)


def _losses(out: str) -> list[str]:
    return re.findall(r"^(?:loss|value) \S+$", out, re.MULTILINE)


@pytest.fixture
def watched(tmp_path: Path):
    def run(*arguments: str, steps: int = 20, code: int = 0, program: Path = PROGRAM) -> tuple[Evidence, list[str]]:
        words = [str(HERE / "watched.py"), str(tmp_path), str(steps), str(program), *arguments]
        found, out, err = warm.run(words, PROGRAM.parent, {}, 120)
        assert found == code, err
        # A process that ends before its first backward pass leaves its evidence apart.
        [evidence] = files.read(tmp_path if list(tmp_path.glob(files.PATTERN)) else tmp_path / IDLE)
        assert not {topic: why for topic, why in evidence.unavailable.items() if "own error" in why}
        return evidence, _losses(out)

    return run


def _judged(evidence: Evidence, target: str = "cpu") -> dict[str, list[Judgement]]:
    found = assess([evidence], target)
    assert not found.notes
    by_rule: dict[str, list[Judgement]] = {}
    for one in found.judgements:
        by_rule.setdefault(one.rule, []).append(one)
    return by_rule


def _verdicts(found: dict[str, list[Judgement]], rule: str) -> set[Verdict]:
    return {one.verdict for one in found.get(rule, ())}


def _line(judgement: Judgement) -> str:
    site = judgement.sites[0]
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[number - 1] for number in site.lines)


def test_each_seeded_defect_is_verified_at_its_place(watched):
    many = (*MANY, "--steps", "14")
    evidence, losses = watched(*many)
    assert losses == _plain(*many)
    found = _judged(evidence)
    for rule, text in SEEDED.items():
        assert _verdicts(found, rule) == {VERIFIED}, (rule, found.get(rule))
        assert text in _line(found[rule][0]), rule
    for rule in NEVER_ON_CPU:
        assert _verdicts(found, rule) == {INCONCLUSIVE}, rule
    assert all(one.sites for judgements in found.values() for one in judgements)


def test_without_a_target_a_cpu_settles_nothing_that_is_bound_to_the_device(watched):
    found = _judged(watched("unfused", "attention", "scaler-bf16", "--amp", "bfloat16")[0], "")
    for rule in DEVICE_BOUND | {"host-sync-in-training-loop"}:
        assert _verdicts(found, rule) == {INCONCLUSIVE}, rule
    assert "observed on cpu" in found["optimizer-not-fused"][0].reason
    assert found["optimizer-not-fused"][0].measured.value == 0


def test_a_training_without_the_defects_is_refuted_or_silent(watched):
    evidence, losses = watched()
    assert losses == _plain()
    found = _judged(evidence)
    for rule in CLEAN:
        assert _verdicts(found, rule) == {REFUTED}, (rule, found.get(rule))
    others = {one for one in found if VERIFIED in _verdicts(found, one)}
    assert others <= {"missing-activation-checkpointing"}
    assert found["optimizer-not-fused"][0].measured.detail["kernels"]["aten::_fused_adamw_"] == 1


def test_a_state_without_fused_switches_it_off(watched):
    found = _judged(watched("lost-on-resume")[0])
    assert _verdicts(found, "fused-lost-on-resume") == {VERIFIED}
    assert [one.function for one in found["fused-lost-on-resume"][0].sites] == ["make_optimizer", "resume"]
    assert _verdicts(found, "optimizer-not-fused") == {VERIFIED}


def test_a_fallback_that_the_first_step_passes_by(watched):
    found = _judged(watched("fallback", code=1)[0])
    assert _verdicts(found, "fused-fallback-ineffective") == {VERIFIED}
    assert "requires all the params" in found["fused-fallback-ineffective"][0].reason


def test_a_compiler_that_fails_behind_its_try(watched):
    found = _judged(watched("compile-try", code=1)[0])
    assert _verdicts(found, "compile-guarded-by-try") == {VERIFIED}


def test_a_scheduler_and_a_graph_across_micro_batches(watched):
    options = ("schedule-micro", "hidden-state", "--accumulate", "2")
    evidence, losses = watched(*options)
    assert losses == _plain(*options)
    found = _judged(evidence)
    assert _verdicts(found, "scheduler-per-micro-batch") == {VERIFIED}
    assert found["scheduler-per-micro-batch"][0].measured.value == 2
    assert "scheduler-before-optimizer" not in found
    # The graph of the hidden state is walked again, and it keeps the losses alive.
    assert _verdicts(found, "graph-retained-on-backward") == {REFUTED}
    assert "hidden = 0.5 * hidden + loss" in _line(found["loss-graph-accumulation"][0])


def test_a_scheduler_after_each_accumulated_step_is_no_defect(watched):
    found = _judged(watched("kept-losses", "frozen-statistics", "--accumulate", "2")[0])
    assert _verdicts(found, "scheduler-per-micro-batch") == {REFUTED}
    assert "running = running + loss" in _line(found["loss-graph-accumulation"][0])
    # A part that is in evaluation mode while the model is trained is not evaluated.
    assert len(found["evaluation-with-gradients"]) == 1
    assert _verdicts(found, "evaluation-with-gradients") == {REFUTED}


@pytest.mark.parametrize(("defect", "verdict"), [(("clip-scaled",), VERIFIED), ((), REFUTED)])
def test_clipping_of_scaled_gradients(watched, defect, verdict):
    evidence, losses = watched(*defect, "--amp", "float16")
    assert losses == _plain(*defect, "--amp", "float16")
    found = _judged(evidence)
    assert _verdicts(found, "clip-before-unscale") == {verdict}
    assert (found["clip-before-unscale"][0].measured.value > 1000) is bool(defect)
    assert _verdicts(found, "grad-scaler-with-bfloat16") == {REFUTED}


def test_a_scaler_beside_bfloat16(watched):
    found = _judged(watched("scaler-bf16", "--amp", "bfloat16")[0])
    assert _verdicts(found, "grad-scaler-with-bfloat16") == {VERIFIED}
    assert found["grad-scaler-with-bfloat16"][0].measured.value == 0


def test_the_program_is_ended_after_the_watched_steps(watched):
    evidence, losses = watched(*MANY, steps=6)
    assert evidence.run.steps == 6
    assert losses == _plain(*MANY)[:6]
    found = _judged(evidence)
    assert _verdicts(found, "loss-graph-accumulation") == {VERIFIED}
    assert _verdicts(found, "optimizer-not-fused") == {VERIFIED}


def test_functions_that_torchscript_compiles_are_what_they_were(watched):
    program = PROGRAM.with_name("scripted.py")
    evidence, losses = watched(program=program)
    assert losses == _plain(program=program)
    found = _judged(evidence)
    # The patches come back: attention is seen after the first compilation.
    assert _verdicts(found, "unfused-attention") == {REFUTED}
