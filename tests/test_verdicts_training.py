"""Verdicts about optimizers, switches, attention, scaling and host time from evidence written by hand: what a GPU would say, what
ranks disagree on, what is missing. The kernel names of CUDA are from public traces."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from collected import for_every

from ldlm_lint.evidence.model import Environment, Evidence, Judgement, Run, Verdict
from ldlm_lint.evidence.verdicts import assess

VERIFIED, REFUTED, INCONCLUSIVE = Verdict
FUSED_CUDA = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "FusedOptimizerTensorListMetadata<4>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, "
    "(at::native::ADAM_MODE)1, false>, ...>"
)
FOREACH_CUDA = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::TensorListMetadata<3>, "
    "at::native::(anonymous namespace)::PointwiseOpScalarListFunctor<float, 3, 3, 0>, std::divides<float> >"
)


def site(line: int, path: str = "train.py", function: str = "main") -> dict[str, object]:
    return {"path": path, "line": line, "end_line": line, "sha256": "", "function": function}


def optimizer(**changes: object) -> dict[str, object]:
    flags = {
        "fused": changes.pop("fused", None),
        "foreach": None,
        "capturable": False,
        "differentiable": False,
        "groups": 1,
    }
    return {
        **{"class": "AdamW", "module": "torch.optim.adamw", "site": site(10), "asked": {}, "error": "", "steps": 12},
        **{"groups": [flags], "loads": [], "kernels": {FOREACH_CUDA: 8}, "devices": ["cuda"], "types": ["Parameter"]},
        **{"dtypes": ["float32"], "tensors": 80, "elements": 1000},
        **changes,
    }


def judged(
    *ranks: dict[str, object], device: str = "cuda", target: str = "", exception: str = "", unavailable: Mapping[str, str] | None = None
) -> list[Judgement]:
    evidence = [
        Evidence(
            Run("watch", "run", rank=rank, world_size=len(ranks), steps=12, exception=exception),
            Environment(device=device),
            observations,
            unavailable=unavailable or {},
        )
        for rank, observations in enumerate(ranks)
    ]
    found = assess(evidence, target)
    assert not found.notes
    return list(found.judgements)


def only(found: list[Judgement], rule: str) -> Judgement:
    [one] = [judgement for judgement in found if judgement.rule == rule]
    return one


@for_every(
    ("record", "verdict", "says"),
    [
        (optimizer(), VERIFIED, "no fused kernel ran, but multi_tensor_apply_kernel"),
        (optimizer(fused=True, kernels={FUSED_CUDA: 1}), REFUTED, "FusedAdamMathFunctor ran"),
        (optimizer(fused=True, kernels={"aten::_fused_adamw_": 1, FUSED_CUDA: 1}), REFUTED, "aten::_fused_adamw_ ran"),
        (optimizer(kernels=None), VERIFIED, "fused is off in all of its groups"),
        (optimizer(fused=True, kernels=None), INCONCLUSIVE, "were not profiled"),
        (optimizer(fused=True), INCONCLUSIVE, "no kernel of the profiled step has a known fused name"),
        (optimizer(kernels={"Torch-Compiled Region: 0/0": 1}), INCONCLUSIVE, "its step is compiled"),
        (optimizer(devices=["cpu"]), INCONCLUSIVE, "its parameters are on cpu"),
        (optimizer(types=["Special"]), VERIFIED, "Special prevents torch's foreach implementation"),
    ],
)
def test_an_optimizer_on_cuda(record, verdict, says):
    one = only(judged({"optimizers": [record]}), "optimizer-not-fused")
    assert (one.verdict, says in one.reason) == (verdict, True), one.reason
    assert one.reason.endswith("in 12 steps on 1 rank (cuda)")


@pytest.mark.parametrize(
    "record",
    [optimizer(steps=0), optimizer(**{"class": "RMSprop"}), optimizer(module="apex.optimizers"), optimizer(site=None)],
)
def test_what_is_no_optimizer_of_the_rule_is_silent(record):
    assert not [one for one in judged({"optimizers": [record]}) if one.rule == "optimizer-not-fused"]


def test_ranks_that_disagree_settle_nothing():
    ranks = ({"optimizers": [optimizer()]}, {"optimizers": [optimizer(fused=True, kernels={FUSED_CUDA: 1})]})
    one = only(judged(*ranks), "optimizer-not-fused")
    assert (one.verdict, one.scope.ranks) == (INCONCLUSIVE, (0, 1))


def test_a_step_that_may_be_compiled_is_not_judged_by_its_flags():
    calls = {"calls": [{"site": site(3), "calls": 1, "errors": []}]}
    found = judged({"optimizers": [optimizer(kernels=None)], "compilation": calls})
    assert only(found, "optimizer-not-fused").verdict is INCONCLUSIVE


def test_cuda_is_not_settled_by_another_target():
    assert only(judged({"optimizers": [optimizer()]}, target="cpu"), "optimizer-not-fused").verdict is INCONCLUSIVE


def test_a_fallback_that_works_is_refuted():
    records = [
        optimizer(
            asked={"fused": True}, error="RuntimeError: `fused=True` requires all the params to be floating", steps=0
        ),
        optimizer(site=site(12)),
    ]
    found = judged({"optimizers": records})
    assert only(found, "fused-fallback-ineffective").verdict is REFUTED
    assert only(found, "fused-conflict").verdict is VERIFIED


def switches(**changes: object) -> dict[str, object]:
    off = {"anomaly": 0, "deterministic_algorithms": 0, "cudnn_deterministic": 0, "cudnn_benchmark": 0}
    return {
        **{"settings": [], "passes": 12, "on": off, "precision": {"matmul.fp32_precision": "none"}},
        **{"entry": site(5), "step_site": site(30), **changes},
    }


PRODUCTS = {"aten": {"aten::addmm": 14}, "kernels": {}}


@for_every(
    ("precision", "casts", "verdict"),
    [
        ({"matmul.fp32_precision": "none"}, [], VERIFIED),
        ({"matmul.fp32_precision": "ieee"}, [], VERIFIED),
        ({"matmul.fp32_precision": "tf32"}, [], REFUTED),
        ({"matmul.allow_tf32": True}, [], REFUTED),
        ({"matmul.allow_tf32": False}, [], VERIFIED),
        ({"matmul.fp32_precision": "none"}, [{"enabled": True, "dtype": "bfloat16"}], INCONCLUSIVE),
    ],
)
def test_full_precision_on_cuda(precision, casts, verdict):
    seen = {
        "switches": switches(precision=precision),
        "operations": PRODUCTS,
        "optimizers": [optimizer()],
        "autocasts": casts,
    }
    one = only(judged(seen), "tf32-disabled")
    assert (one.verdict, [place.line for place in one.sites]) == (verdict, [5, 30])
    assert only(judged(seen, device="cpu", target="cpu"), "tf32-disabled").verdict is INCONCLUSIVE


def test_full_precision_is_not_told_where_autocast_could_not_be_seen():
    """Seen on an H100: torch.compile takes the watch on autocast away, and products of bfloat16 were taken for float32."""
    seen = {"switches": switches(), "operations": PRODUCTS, "optimizers": [optimizer()]}
    assert only(judged(seen), "tf32-disabled").verdict is VERIFIED
    found = only(judged(seen, unavailable={"autocasts": "torch.compile is used"}), "tf32-disabled")
    assert found.verdict is INCONCLUSIVE and "torch.compile is used" in found.reason


@pytest.mark.parametrize(
    ("shapes", "on", "verdict"),
    [({"[8, 3, 224, 224] on cuda": 3}, 0, VERIFIED), ({"a": 1, "b": 2}, 0, INCONCLUSIVE), ({"a": 3}, 12, REFUTED)],
)
def test_the_autotuner_on_cuda(shapes, on, verdict):
    states = {**switches()["on"], "cudnn_benchmark": on}  # type: ignore[dict-item]
    seen = {"switches": switches(on=states), "convolutions": {"first_shapes": shapes}}
    assert only(judged(seen), "convolution-autotuner-off").verdict is verdict


def test_a_switch_that_was_on_for_a_part_of_the_passes_settles_nothing():
    settings = [{"site": site(3), "what": "anomaly", "value": True, "calls": 1}]
    seen = {"switches": switches(settings=settings, on={**switches()["on"], "anomaly": 4})}  # type: ignore[dict-item]
    one = only(judged(seen), "anomaly-detection-left-on")
    assert (one.verdict, "on in 4 of 12" in one.reason) == (INCONCLUSIVE, True)


def called(iterations: int, of: int = 20, kind: str = "synchronize") -> dict[str, object]:
    place = {
        "site": site(40),
        "kind": kind,
        "call": f"torch.cuda.{kind}",
        "calls": iterations,
        "iterations": iterations,
    }
    return {"host_calls": {"iterations": of, "places": [{**place, "last": 1, "outside": 0}]}}


@for_every(
    ("iterations", "of", "verdict"),
    [(20, 20, VERIFIED), (1, 20, REFUTED), (12, 20, INCONCLUSIVE), (3, 3, INCONCLUSIVE)],
)
@for_every(
    ("kind", "rule"),
    [("synchronize", "device-synchronized-in-training-loop"), ("empty_cache", "cache-emptied-in-training-loop")],
)
def test_calls_that_hold_a_gpu_up(iterations, of, verdict, kind, rule):
    seen = called(iterations, of, kind)
    assert only(judged(seen), rule).verdict is verdict
    assert only(judged(seen, device="cpu"), rule).verdict is INCONCLUSIVE


def read(**changes: object) -> dict[str, object]:
    place = {
        **{"site": site(50), "caller": "program", "reads": 2, "warned": 2, "methods": ["item"], "devices": ["cuda"]},
        **{"on_graph": 0, "iterations": 2, "warned_iterations": 2},
        **changes,
    }
    return {"host_syncs": {"iterations": 2, "warned": changes.pop("mode", True), "places": [place]}}


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (read(), VERIFIED),
        (read(warned_iterations=0, devices=["cpu"]), REFUTED),
        (read(warned_iterations=0), INCONCLUSIVE),
        (read(warned_iterations=1), INCONCLUSIVE),
        (read(mode=False), INCONCLUSIVE),
    ],
)
def test_reads_of_values_on_cuda(seen, verdict):
    assert only(judged(seen), "host-sync-in-training-loop").verdict is verdict


def test_reads_of_the_optimizer_and_the_loader_are_not_the_programs():
    for caller in ("optimizer", "loader"):
        assert not judged(read(caller=caller))


@pytest.mark.parametrize("target", ["", "cpu", "cuda"])
def test_no_read_is_settled_on_a_cpu(target):
    assert only(judged(read(), device="cpu", target=target), "host-sync-in-training-loop").verdict is INCONCLUSIVE


@pytest.mark.parametrize(
    ("operators", "verdict"),
    [
        ({"aten::_scaled_dot_product_flash_attention": 4}, REFUTED),
        ({"aten::_scaled_dot_product_cudnn_attention": 4}, REFUTED),
        ({"aten::_scaled_dot_product_attention_math": 4}, VERIFIED),
        ({"aten::_scaled_dot_product_attention_math": 1, "aten::_efficient_attention_forward": 2}, INCONCLUSIVE),
    ],
)
def test_fused_attention_on_cuda(operators, verdict):
    place = {
        "site": site(60),
        "kind": "fused",
        "calls": 2,
        "training_calls": 2,
        "shape": [1, 2, 3, 4],
        "devices": ["cuda"],
    }
    seen = {"attention": [place], "operations": {"aten": operators, "kernels": {}}}
    assert only(judged(seen), "unfused-attention").verdict is verdict


def test_attention_that_is_only_evaluated_is_no_matter():
    place = {
        "site": site(60),
        "kind": "by_hand",
        "calls": 2,
        "training_calls": 0,
        "shape": [1, 2, 3, 4],
        "devices": ["cuda"],
    }
    assert not judged({"attention": [place]})


def scheduler(**changes: object) -> dict[str, object]:
    return {
        **{"site": site(70), "class": "StepLR", "calls": 12, "before_first_step": 0, "after_step": 12},
        **{"after_backward_alone": 0, "optimizer_steps": 12, "most_backwards_per_step": 1, "rates": []},
        **changes,
    }


@for_every(
    ("record", "verdicts"),
    [
        (scheduler(), {"scheduler-before-optimizer": REFUTED}),
        (
            scheduler(before_first_step=1, after_step=11, after_backward_alone=1),
            {"scheduler-before-optimizer": VERIFIED},
        ),
        # The first call of an epoch, before anything else.
        (scheduler(calls=1, before_first_step=1, after_step=0), {"scheduler-before-optimizer": VERIFIED}),
        # A run that is resumed winds its scheduler forward.
        (scheduler(calls=5, before_first_step=5, after_step=0), {"scheduler-before-optimizer": INCONCLUSIVE}),
        (
            scheduler(calls=24, before_first_step=2, after_step=11, after_backward_alone=13, most_backwards_per_step=2),
            {"scheduler-per-micro-batch": VERIFIED},
        ),
        (
            scheduler(most_backwards_per_step=4),
            {"scheduler-before-optimizer": REFUTED, "scheduler-per-micro-batch": REFUTED},
        ),
        (scheduler(optimizer_steps=0), {}),
    ],
)
def test_schedulers(record, verdicts):
    assert {one.rule: one.verdict for one in judged({"schedules": [record]})} == verdicts


@pytest.mark.parametrize(
    ("others", "loads"),
    [([scheduler(site=site(90))], []), ([], [{"before": [], "after": [], "entries": 4, "site": None}])],
    ids=["steps at another place", "the optimizer was restored"],
)
def test_one_call_that_resumes_a_schedule_is_not_one_before_the_optimizer(others, loads):
    wound = scheduler(calls=1, before_first_step=1, after_step=0)
    found = judged({"schedules": [wound, *others], "optimizers": [{**optimizer(), "loads": loads}]})
    at_wound = [one for one in found if one.rule == "scheduler-before-optimizer" and one.sites[0].line == 70]
    assert [(one.verdict, "as when a run is resumed" in one.reason) for one in at_wound] == [(INCONCLUSIVE, True)]


def test_observations_of_another_shape_end_their_room_with_a_note():
    evidence = Evidence(Run("watch", "run"), Environment(), {"optimizers": [{"site": site(1), "steps": 3}]})
    found = assess([evidence])
    assert not found.judgements
    assert "optimizers" in found.notes[0]
