"""What a machine with a CUDA device has to show (`python -m pytest -m gpu -s tests/test_probe_gpu.py`).

It prints a record for docs/evidence: the experiments as the command tells them, the watcher on a small training with
and without torch.compile, and a process group of NCCL. docs/evidence/h100-2.11.md is the record of its first run.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ldlm_lint.evidence.files import read
from ldlm_lint.probe import machine
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.table import EXPERIMENTS

pytestmark = [pytest.mark.gpu, pytest.mark.torch]

TRAINING = """
import sys, torch
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).cuda()
forward = torch.compile(model) if "--compile" in sys.argv else model
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
total = 0.0
for step in range(40):
    batch = torch.randn(64, 512).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = forward(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss.item()
print(f"loss {total:.6f}")
"""


@pytest.fixture(scope="module")
def torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.fail(f"this test needs a CUDA device ({machine.gpus().reason or 'torch sees none'})")
    return torch


@pytest.fixture(scope="module")
def measured(torch, tmp_path_factory):
    """All experiments by the command, as it is used."""
    folder = tmp_path_factory.mktemp("evidence")
    command = [sys.executable, "-m", "ldlm_lint", "probe", "--device", "cuda", "--budget", "240", "--out", str(folder)]
    began = time.monotonic()
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"\n$ {' '.join(['ldlm-lint', *command[3:-2]])}\n{found.stdout}")
    assert found.returncode == 0, found.stderr
    assert time.monotonic() - began < 240
    (evidence,) = read(folder)
    return evidence


def judgement(evidence, rule):
    return next(one for one in evidence.judgements if one.rule == rule)


def test_the_record_names_the_machine(measured):
    environment = measured.environment
    print(
        json.dumps(
            {
                "torch": environment.torch,
                "cuda": environment.cuda,
                "driver": environment.driver,
                "nccl": environment.nccl,
            }
        )
    )
    assert environment.device == "cuda" and environment.device_name and environment.cuda
    assert measured.unavailable == {}


def test_fused_and_foreach_kernels_have_the_names_that_are_looked_for(measured):
    kernels = measured.observations["fused-optimizer"]["kernels"]
    assert any(re.search("Fused(Adam|Sgd)MathFunctor", name) for name in kernels["fused"]), kernels["fused"]
    # On CUDA foreach is the default.
    assert any("multi_tensor_apply_kernel" in name and "Fused" not in name for name in kernels["default"]), kernels[
        "default"
    ]
    found = judgement(measured, "optimizer-not-fused").measured
    assert found.clock == "perf_counter" and found.detail["ratio_by_cuda_events"] > 0


def test_attention_takes_a_fused_backend_in_bfloat16_and_not_flash_in_float32(measured):
    backends = measured.observations["attention"]["backends"]
    assert backends["bfloat16, causal"] in ("flash", "cudnn", "efficient"), backends
    assert backends["float32, causal"] != "flash", backends


def test_checkpointing_lowers_the_peak_that_the_allocator_counts(measured, torch):
    from ldlm_lint.probe.micro import checkpointing

    peaks = measured.observations["activation-checkpointing"]["peak_bytes"]
    assert peaks[checkpointing._EACH] < 0.6 * peaks[checkpointing._NONE]
    assert peaks[checkpointing._WHOLE] > 0.9 * peaks[checkpointing._NONE]


def test_tf32_is_effective_where_the_device_has_it(measured, torch):
    found = judgement(measured, "tf32-disabled")
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("no TF32 before Ampere")
    assert found.measured.detail["errors"]["float32"] < 3e-5 < found.measured.detail["errors"]["tf32"]


def test_pinned_copies_are_told_by_name(measured):
    copies = judgement(measured, "dataloader-without-pin-memory").measured.detail["copies"]
    assert any("Pageable" in name for name in copies["pageable"]), copies
    assert any("Pinned" in name for name in copies["pinned"]), copies


def test_a_group_of_one_process_has_its_timeout_with_nccl(measured):
    times = measured.observations["process-groups"]["timeouts"]
    assert times["backend"] == "nccl" and times["nccl"]
    assert (times["given"], times["default_group"]) == (77, 77.0)
    # The default of NCCL is 10 minutes since torch 2.2.
    assert times["sub_group"] == 600.0


def test_a_thing_against_itself_on_the_device(torch, tmp_path):
    from ldlm_lint.probe.micro import attention, fused

    found = []
    for name, room in (("fused-optimizer", fused), ("attention", attention)):
        bound = next(one.bound for one in EXPERIMENTS if one.name == name)
        for seed in range(5):

            def emit(kind, value):
                if kind == "judgement":
                    found.append(value)

            end = time.monotonic() + 30
            room.run(Context(torch, "cuda", "cuda", seed, end, str(tmp_path), bound=bound, same=True, emit=emit))
    assert len(found) == 10 and "verified" not in {one.verdict.value for one in found}


@pytest.mark.parametrize("options", [[], ["--compile"]])
def test_the_watcher_leaves_a_training_on_the_device_as_it_is(torch, tmp_path, options):
    script = tmp_path / "train.py"
    script.write_text("import torch\ntorch.manual_seed(0)\n" + TRAINING)
    plain = subprocess.run([sys.executable, str(script), *options], capture_output=True, text=True, check=True)
    out = tmp_path / "evidence"
    command = [sys.executable, "-m", "ldlm_lint", "probe", "run", "--no-stop", "--out", str(out), "--"]
    watched = subprocess.run(
        [*command, sys.executable, str(script), *options], capture_output=True, text=True, check=False
    )
    print(f"\n{' '.join(options) or 'eager'}\n{watched.stdout}")
    assert re.findall(r"loss [\d.]+", plain.stdout)[0] in watched.stdout + watched.stderr, watched.stderr
    (evidence,) = read(Path(out))
    assert evidence.environment.device == "cuda"
