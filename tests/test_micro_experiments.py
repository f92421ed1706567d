"""The experiments themselves on a CPU: what they see is what torch's documentation and sources say, not how fast it is."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from ldlm_lint.evidence.files import read
from ldlm_lint.evidence.model import Verdict
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.table import EXPERIMENTS

pytestmark = pytest.mark.torch
MIB = 2**20


class Seen:
    """What an experiment handed on."""

    def __init__(self) -> None:
        self.judgements, self.topics, self.notes = {}, {}, []

    def emit(self, kind, value):
        if kind == "judgement":
            self.judgements[value.rule] = value
        elif kind == "observation":
            self.topics[value["topic"]] = value["values"]
        else:
            self.notes.append(value)


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    yield torch
    torch.set_num_threads(threads)


@pytest.fixture
def experiment(torch, tmp_path):
    """A context with time enough, and what comes out of it."""
    seen = Seen()

    def made(name, **values):
        bound = next(one.bound for one in EXPERIMENTS if one.name == name)
        given = {"device": "cpu", "target": "cpu", "seed": 0, "end": time.monotonic() + 120, "bound": bound, **values}
        return Context(torch=torch, scratch=str(tmp_path), emit=seen.emit, **given), seen

    return made


def test_timeouts_of_groups(experiment):
    from ldlm_lint.probe.micro import groups

    context, seen = experiment("process-groups")
    groups.run(context)
    times = seen.topics["timeouts"]
    assert (times["given"], times["default_group"], times["sub_group"]) == (77, 77.0, 1800.0)
    assert seen.judgements["subgroup-timeout-not-inherited"].verdict is Verdict.VERIFIED
    effective = seen.judgements["excessive-collective-timeout"]
    assert effective.verdict is Verdict.VERIFIED and 1.8 <= effective.measured.value < 10


def test_mixed_flags_raise_and_small_gradients_survive_in_bfloat16(experiment, torch):
    from ldlm_lint.probe.micro import precision

    context, seen = experiment("precision", end=time.monotonic() + 4)
    before = torch.backends.cuda.matmul.fp32_precision
    precision.run(context)
    assert torch.backends.cuda.matmul.fp32_precision == before
    assert seen.judgements["mixed-tf32-apis"].verdict is Verdict.VERIFIED
    scaler = seen.judgements["grad-scaler-with-bfloat16"]
    assert scaler.verdict is Verdict.VERIFIED
    assert scaler.measured.detail["zero_gradients"] == {"float16": 1.0, "bfloat16": 0.0}
    # A CPU has no TF32, whatever the target is.
    assert seen.judgements["tf32-disabled"].verdict is Verdict.INCONCLUSIVE
    assert seen.judgements["tf32-disabled"].measured.value < 3e-6


def test_fused_kernels_are_seen_by_name(experiment):
    from ldlm_lint.probe.micro import fused

    context, _ = experiment("fused-optimizer")
    kernels, missing = fused._kernels(context)
    assert missing == ""
    assert "aten::_fused_adamw_" in kernels["fused"]
    # Fused counts its steps with _foreach_add_, which makes it no foreach optimizer.
    assert not any("_foreach_" in name for name in kernels["fused"])
    assert "aten::_foreach_addcdiv_" in kernels["foreach"] and kernels["default"] == {}


def test_backends_of_attention(experiment):
    from ldlm_lint.probe.micro import attention

    context, _ = experiment("attention")
    found = attention.backends(context)
    assert found["float32, causal"] == found["bfloat16, causal"] == found["float32, boolean mask"] == "flash"
    assert found["float32, dropout"] == found["float32, float mask with gradient"] == "math"


def test_peaks_of_checkpointing_are_those_of_the_arithmetic(experiment, monkeypatch):
    from ldlm_lint.probe.micro import checkpointing

    monkeypatch.setattr(checkpointing, "_ROUNDS", 2)
    context, seen = experiment("activation-checkpointing")
    checkpointing.run(context)
    peaks = seen.topics["peak_bytes"]
    # A block of 512 rows, 128 wide, keeps its norm's output and two inner activations of 4 x 128, in float32.
    inner = 8 * 512 * (4 * 128 * 2 + 128) * 4
    assert peaks[checkpointing._NONE] - peaks[checkpointing._EACH] == pytest.approx(inner * 7 / 8, rel=0.25)
    assert peaks[checkpointing._WHOLE] == pytest.approx(peaks[checkpointing._NONE], rel=0.1)
    assert {one.verdict for one in seen.judgements.values()} == {Verdict.VERIFIED}


def test_ddp_on_two_processes(experiment, monkeypatch):
    from ldlm_lint.probe.micro import ddp

    monkeypatch.setattr(ddp, "_ROUNDS", 2)
    context, seen = experiment("ddp")
    ddp.run(context)
    assert seen.notes == []
    for rank in seen.topics["ranks"].values():
        assert rank["searching_collectives"] == rank["plain_collectives"] + 1
        # 8 layers of weight and bias; as views they lie in DDP's first small bucket and the one for the rest.
        assert (rank["plain_storages"], rank["view_storages"]) == (16, 2)
        assert rank["plain_bytes"] - rank["view_bytes"] == pytest.approx(rank["parameter_bytes"], rel=0.01)
    assert {one.verdict for one in seen.judgements.values()} == {Verdict.VERIFIED}


def test_a_loader_stands_in_for_disk_and_device(experiment, monkeypatch):
    from ldlm_lint.probe.micro import loaders

    monkeypatch.setattr(loaders, "_ROUNDS", 2)
    context, seen = experiment("dataloader")
    loaders.run(context)
    # Two rounds decide nothing, whatever they show.
    assert {one.verdict for one in seen.judgements.values()} == {Verdict.INCONCLUSIVE}
    assert "2 of 9 rounds" in seen.judgements["dataloader-in-main-process"].reason or "waited for a CPU" in (
        seen.judgements["dataloader-in-main-process"].reason
    )
    arms = {one.name: one.median for one in seen.judgements["dataloader-in-main-process"].measured.arms}
    # Without workers, waiting for items and for the step add up: 29 x 1.5 + 3 x 8 + 8 x 6 ms at least.
    assert arms[loaders._MAIN] >= 115
    assert "this machine has none" in seen.judgements["blocking-host-to-device-copy"].reason


def test_errors_of_compilation_come_at_the_first_call(experiment):
    from ldlm_lint.probe.micro import compiling

    context, seen = experiment("compile")
    compiling._late(context)
    assert seen.judgements["compile-guarded-by-try"].verdict is Verdict.VERIFIED


def test_the_command_on_a_cpu_settles_no_rule_of_an_accelerator(tmp_path):
    command = [sys.executable, "-m", "ldlm_lint", "probe", "--only", "attention", "--device", "cpu", "--budget", "60"]
    found = subprocess.run(
        [*command, "--json", "-", "--out", str(tmp_path)], capture_output=True, text=True, check=True
    )
    (verdict,) = json.loads(found.stdout)["verdicts"]
    assert (verdict["rule"], verdict["verdict"]) == ("unfused-attention", "inconclusive")
    assert verdict["reason"].startswith("measured on cpu; the rule is about an accelerator")
    assert verdict["measured"]["value"] > 0 and verdict["measured"]["ci95"]
    (evidence,) = read(tmp_path)
    assert (evidence.run.kind, evidence.environment.device) == ("micro", "cpu") and evidence.environment.torch
    assert "attention: " in found.stderr


def test_cuda_that_is_not_there_is_wrong_usage(torch):
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    command = [sys.executable, "-m", "ldlm_lint", "probe", "--only", "attention", "--device", "cuda"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "torch.cuda.is_available() is False" in found.stderr and "leave --device out" in found.stderr
    assert "Traceback" not in found.stderr
