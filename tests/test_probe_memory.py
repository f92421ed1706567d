"""`ldlm-lint probe memory` against what training needs for real: the profiler's memory events on the CPU."""

from __future__ import annotations

import functools
import gc
import json
import os
import time
from pathlib import Path

import pytest

from ldlm_lint.cli import main
from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Verdict, from_json
from ldlm_lint.probe.memory.request import Request, RequestError, Shape

pytestmark = pytest.mark.torch
MODELS = Path(__file__).parent / "probed" / "memory"
# What the fake figure may differ from the real peak. Convolutions on the CPU have workspaces inside of their kernels, which
# no operator returns.
EXACT, WITH_WORKSPACES = 0.002, 0.12


@pytest.fixture(autouse=True)
def _beside_the_models(monkeypatch):
    monkeypatch.chdir(MODELS)
    monkeypatch.syspath_prepend(str(MODELS))


@functools.cache
def variants(target: str, **options):
    from ldlm_lint.probe.memory.measure import measure

    return {one.name: one for one in measure(Request(f"models:{target}", **options)).variants}


def real_peak(request: Request) -> int:
    """The bytes of a step in steady state: what lives between steps, and the highest sum of the profiler's memory events."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    from ldlm_lint.probe.memory import measure, subject

    used = subject.built(subject.resolve(request.target)())
    if request.dtype:
        subject.cast(used, getattr(torch, request.dtype))
    optimizer = measure._optimizer(used.model.train(), request)

    def step() -> None:
        with measure._autocast(request):
            output = used.call()
            loss = used.loss_of(output)
        loss.backward()
        optimizer.step()
        used.model.zero_grad(set_to_none=True)

    step()
    step()
    gc.collect()
    state = [value for one in optimizer.state.values() for value in one.values() if isinstance(value, torch.Tensor)]
    living = [*used.model.parameters(), *used.model.buffers(), *subject.tensors(used.batch), *state]
    total = peak = sum({one.untyped_storage()._cdata: one.untyped_storage().nbytes() for one in living}.values())
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        step()
    events = [one for one in recorded.profiler.kineto_results.events() if one.name() == "[memory]"]
    for event in sorted(events, key=lambda one: one.start_ns()):
        total += event.nbytes()
        peak = max(peak, total)
    return peak


@pytest.mark.parametrize(
    ("target", "options", "tolerance"),
    [
        ("gpt", {}, EXACT),
        ("gpt", {"autocast": "bfloat16"}, EXACT),
        pytest.param("gpt", {"dtype": "bfloat16", "optimizer": "sgd"}, EXACT, marks=pytest.mark.slow),
        pytest.param("gpt_with_dropout", {}, EXACT, marks=pytest.mark.slow),
        pytest.param("tiny_gpt2", {}, EXACT, marks=pytest.mark.slow),
        ("convolutions", {}, WITH_WORKSPACES),
    ],
)
def test_the_fake_peak_is_the_real_one(target, options, tolerance):
    request = Request(f"models:{target}", device="cpu", checkpoint="none", **options)
    fake = variants(target, device="cpu", checkpoint="none", **options)["as it is"].peak
    assert fake == pytest.approx(real_peak(request), rel=tolerance)


def test_the_tracker_counts_what_torchs_own_tracker_counts():
    tools = pytest.importorskip("torch.distributed._tools.mem_tracker")
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    from ldlm_lint.probe.memory.subject import built, resolve
    from ldlm_lint.probe.memory.tracker import PARAMETERS, Tracker

    def peak(make_tracker, see, read):
        with FakeTensorMode():
            used = built(resolve("models:gpt")())
            counted = make_tracker()
            see(counted, used)
            with counted:
                torch.autograd.backward(used.loss_of(used.call()))
            return read(counted)

    def see_all(counted, used):
        for one in (*used.model.parameters(), *used.batch):
            counted.see(one, PARAMETERS)

    ours = peak(Tracker, see_all, lambda one: one.peak)
    theirs = peak(
        tools.MemTracker,
        lambda counted, used: counted.track_external(used.model, *used.batch),
        lambda one: sum(device["Total"] for device in one.get_tracker_snapshot("peak").values()),
    )
    assert ours == theirs


def test_checkpoints_keep_the_blocks_inputs_and_the_kinds_add_up():
    found = variants("gpt")
    as_is, blocks, whole = (found[name] for name in found)
    assert blocks.peak < 0.8 * as_is.peak
    # One segment is computed again as a whole: it frees nothing at the peak.
    assert whole.peak >= as_is.peak
    assert (as_is.recomputed, blocks.recomputed["LayerNorm"]) == ({}, 4)
    assert blocks.saved < as_is.saved / 2
    for one in found.values():
        assert sum(one.at_peak.values()) == one.peak == max(one.phases.values())
        assert 0 <= one.kept - one.saved <= 4 * 128 * 500 * 4 + 4096, "what lives and is not saved is the output"


def test_a_model_of_80_gigabytes_and_more_needs_neither_memory_nor_minutes():
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = variants("gpt_large", checkpoint="none")["as it is"]
    weights = 50304 * 8192 * 2 + 8 * (12 * 8192**2 + 13 * 8192)
    assert found.at_peak["parameters"] == 4 * weights > 29 * 10**9
    assert found.peak > 4 * 4 * weights
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000, "kilobytes"


@pytest.mark.slow
def test_state_and_gradients_follow_optimizer_and_type():
    parameters = variants("gpt", checkpoint="none", optimizer="none", device="cpu")["as it is"].at_peak["parameters"]
    states = {
        name: variants("gpt", checkpoint="none", optimizer=name, device="cpu")["as it is"].at_peak["optimizer state"]
        for name in ("none", "sgd", "sgd-momentum", "adamw", "adamw-fused")
    }
    assert states["none"] == states["sgd"] == 0
    assert states["sgd-momentum"] == parameters
    assert 2 * parameters <= states["adamw"] == states["adamw-fused"] <= 2.1 * parameters
    half = variants("gpt", checkpoint="none", dtype="bfloat16", device="cpu")["as it is"].at_peak
    assert half["parameters"] == pytest.approx(parameters / 2, rel=0.01)


@pytest.mark.slow
def test_cuda_has_other_temporaries_than_the_cpu():
    # The foreach kernels, CUDA's default, hold a copy of the second moments; fused ones and the CPU's loop do not.
    sizes = {"cuda": {}, "fused": {"optimizer": "adamw-fused"}, "cpu": {"device": "cpu"}}
    steps = {
        name: variants("gpt", checkpoint="none", **options)["as it is"].phases["optimizer step"]
        for name, options in sizes.items()
    }
    parameters = variants("gpt", checkpoint="none")["as it is"].at_peak["parameters"]
    assert steps["cuda"] - steps["fused"] == pytest.approx(parameters, rel=0.02)
    assert steps["cuda"] > steps["cpu"]
    # Attention with dropout keeps the whole matrix on the CPU, and only there.
    with_dropout = {device: variants("gpt_with_dropout", device=device) for device in ("cuda", "cpu")}
    plain = variants("gpt")
    for name, one in plain.items():
        assert with_dropout["cuda"][name].peak == one.peak
        assert not with_dropout["cuda"][name].error
    assert with_dropout["cpu"]["as it is"].peak > 1.3 * plain["as it is"].peak


def test_autocast_computes_in_the_types_that_cuda_takes():
    import torch
    from torch.nn import functional as F

    from ldlm_lint.probe.memory.as_on_cuda import AsOnCuda, cuda_autocast_on_cpu

    x = torch.ones(2, 4, dtype=torch.bfloat16)
    operations = {
        "softmax": lambda: F.softmax(x, -1),
        "layer_norm": lambda: F.layer_norm(x, (4,)),
        "power": lambda: x**2,
        "relu": lambda: F.relu(x),
    }
    with torch.autocast("cpu", torch.bfloat16):
        assert {operation().dtype for operation in operations.values()} == {torch.bfloat16}
        with AsOnCuda():
            types = {name: operation().dtype for name, operation in operations.items()}
    assert types == {
        "softmax": torch.float32,
        "layer_norm": torch.float32,
        "power": torch.float32,
        "relu": torch.bfloat16,
    }
    with cuda_autocast_on_cpu(), torch.autocast("cuda", dtype=torch.bfloat16):
        assert (x.float() @ x.float().T).dtype == torch.bfloat16
    with AsOnCuda():
        assert F.softmax(x, -1).dtype == torch.bfloat16, "no autocast, no cast"


def test_what_is_meant_for_cuda_is_measured_without_it():
    from ldlm_lint.probe.memory.measure import measure

    found = measure(Request("models:gpt_on_cuda", checkpoint="none"))
    assert found.batch == ["(4, 128) int64"] * 2
    # Tokens and targets are one tensor here.
    assert found.variants[0].peak == variants("gpt", checkpoint="none")["as it is"].peak - 4 * 128 * 8
    assert any("dropout" in note for note in found.notes)


def test_batches_by_rows_and_by_shapes():
    four = variants("gpt", checkpoint="none")["as it is"]
    eight = variants("gpt", checkpoint="none", rows=8)["as it is"]
    assert eight.saved == pytest.approx(2 * four.saved, rel=0.01)
    shapes = (Shape("", (8, 128), "int64"), Shape("", (8, 128), "int64"))
    assert variants("gpt_without_batch", checkpoint="none", shapes=shapes)["as it is"].peak == eight.peak
    named = (Shape("tokens", (8, 128), "int64"), Shape("targets", (8, 128), "int64"))
    assert variants("gpt_named", checkpoint="none", shapes=named)["as it is"].peak == eight.peak
    assert variants("gpt_named", checkpoint="none", rows=8)["as it is"].peak == eight.peak
    # A model made by the import itself, with real parameters.
    assert variants("ready_made", checkpoint="none", shapes=shapes)["as it is"].peak == eight.peak


def test_values_of_constants_may_be_read():
    found = variants("gpt_of_read_depth", device="cpu", checkpoint="none")["as it is"]
    plain = variants("gpt", device="cpu", checkpoint="none")["as it is"]
    assert found.peak == plain.peak + 8 * 4, "and the buffer of a constant is counted"


def test_the_place_that_reads_a_value_is_named():
    from ldlm_lint.probe.memory.__main__ import outcome
    from ldlm_lint.probe.memory.request import to_plain

    found = outcome(to_plain(Request("models:reads_values", checkpoint="none")))
    assert found["kind"] == "failed"
    assert found["error"].startswith("models.py:60: the program reads a value of a tensor (aten._local_scalar_dense")


def test_a_loss_that_is_missing_is_said():
    from ldlm_lint.probe.memory.measure import measure

    without = measure(Request("models:gpt_without_loss", checkpoint="none", optimizer="none"))
    assert any("no loss was given" in note for note in without.notes) and not without.has_loss


def test_without_a_loss_nothing_fits(capfd):
    words = ("probe", "memory", "models.py:gpt_without_loss", "--fits")
    assert main([*words, "80GB", "--checkpoint", "none"]) == 3
    shown = capfd.readouterr()
    assert "It fits" not in shown.out and "Whether it fits into 74.51 GiB was not measured" in shown.out
    # What is too large without it does not fit with it.
    assert main([*words, "1MB", "--checkpoint", "none"]) == 1
    assert "It does not fit into 976.56 KiB" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        (Request("models:nothing"), "has no 'nothing'"),
        (Request("no_such_module:build"), "no module 'no_such_module'"),
        (Request("missing.py:build"), "no file 'missing.py'"),
        (Request("models"), "not of the form"),
        (Request("models:no_module"), "returned a dict, not a torch.nn.Module"),
        (Request("models:gpt_without_batch"), "returned no batch"),
        (Request("models:frozen"), "no tensor of the model's output requires a gradient"),
        (Request("models:gpt", checkpoint="Blok"), "no module of the model is of a class 'Blok' (there are Block, "),
        (Request("models:gpt", shapes=(Shape("a", (1,)), Shape("", (1,)))), "either all shapes have names"),
    ],
)
def test_requests_that_name_nothing_usable(request_, text):
    from ldlm_lint.probe.memory.measure import measure

    with pytest.raises(RequestError) as caught:
        measure(request_)
    assert text in str(caught.value)


def test_the_command_answers_and_its_evidence_is_read_back(tmp_path, capfd):
    target = tmp_path / "evidence-memory-1.json"
    assert main(["probe", "memory", "models.py:gpt", "--fits", "80GB", "--json", str(target)]) == 0
    shown = capfd.readouterr()
    assert "It fits into 74.51 GiB as it is" in shown.out and "each block checkpointed" in shown.out
    assert "with all its side effects" in shown.err
    (found,) = files.read(tmp_path)
    memory = found.observations["memory"]
    assert memory["fits"] is True and memory["blocks"] == {"Block": 2}
    (judgement,) = found.judgements
    assert (judgement.rule, judgement.verdict) == ("missing-activation-checkpointing", Verdict.VERIFIED)
    lines = (MODELS / "models.py").read_text().splitlines()
    assert [lines[site.line - 1].split("(")[0] for site in judgement.sites] == ["class Gpt", "class Block"]
    assert judgement.sites[0].path == "models.py" and judgement.sites[0].sha256
    assert "2 Block" in judgement.reason and "(4, 128) int64" in judgement.reason


@pytest.mark.slow
def test_what_does_not_fit_ends_with_1_and_stdout_is_json_alone(capfd):
    assert main(["probe", "memory", "models:speaks", "--fits", "5MB", "--checkpoint", "none", "--json", "-"]) == 1
    shown = capfd.readouterr()
    assert from_json(json.loads(shown.out)).observations["memory"]["fits"] is False
    assert "this line is not for stdout" in shown.err


def test_a_model_that_checkpoints_already_refutes_the_finding():
    import torch

    from ldlm_lint.probe.memory.findings import evidence
    from ldlm_lint.probe.memory.measure import measure

    request = Request("models:checkpoints_already", checkpoint="none")
    (judgement,) = evidence(torch, request, measure(request), str(MODELS), time.time()).judgements
    assert judgement.verdict is Verdict.REFUTED
    assert "4 LayerNorm" in judgement.reason


@pytest.mark.parametrize(
    ("target", "code", "text"),
    [
        pytest.param("reads_values", 3, "models.py:60: the program reads a value", marks=pytest.mark.slow),
        pytest.param("raises", 3, "ValueError: no configuration given", marks=pytest.mark.slow),
        ("crashes", 3, "SIGABRT"),
        pytest.param("exits", 3, "left no result", marks=pytest.mark.slow),
        pytest.param("hangs", 3, "no result after 8 s", marks=pytest.mark.slow),
        pytest.param("no_module", 2, "not a torch.nn.Module", marks=pytest.mark.slow),
    ],
)
def test_code_that_fails(target, code, text, capfd):
    limit = ["--max-seconds", "8"] if target == "hangs" else []
    assert main(["probe", "memory", f"models:{target}", *limit]) == code
    shown = capfd.readouterr()
    assert text in shown.err and not shown.out


def test_code_that_reads_values_can_be_measured_for_real():
    assert variants("reads_values", real=True, device="cpu")["as it is"].at_peak["parameters"] == 80


def test_without_torch_the_command_says_how_to_get_it(tmp_path, monkeypatch, capfd):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert main(["probe", "memory", "models:gpt"]) == 2
    assert 'python -m pip install ".[probe]"' in capfd.readouterr().err
