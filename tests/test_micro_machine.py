"""What the probe records of the machine: whitelisted variables, limits of cgroups, pressure, GPUs through NVML."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from ldlm_lint.probe import machine


def test_only_variables_of_training_are_recorded_and_no_secrets():
    environ = {
        "NCCL_DEBUG": "INFO",
        "TORCH_NCCL_BLOCKING_WAIT": "1",
        "OMP_NUM_THREADS": "4",
        "WORLD_SIZE": "8",
        "LOCAL_RANK": "0",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "TORCH_HUB_TOKEN": "hf_secret",
        "WANDB_API_KEY": "secret",
        "HF_TOKEN": "secret",
        "HOME": "/home/someone",
        "MY_NCCL_X": "1",
    }
    assert sorted(machine.variables(environ)) == [
        "CUDA_VISIBLE_DEVICES",
        "LOCAL_RANK",
        "NCCL_DEBUG",
        "OMP_NUM_THREADS",
        "TORCH_NCCL_BLOCKING_WAIT",
        "WORLD_SIZE",
    ]
    assert len(machine.variables({"NCCL_X": "y" * 10_000})["NCCL_X"]) == 500


@pytest.mark.parametrize(
    ("text", "cpus"), [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None), ("x y", None)]
)
def test_the_quota_of_cgroup_version_2(tmp_path, text, cpus):
    (tmp_path / "cpu.max").write_text(text)
    assert machine.quota(tmp_path) == cpus


def test_the_quota_of_cgroup_version_1(tmp_path):
    (tmp_path / "cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")
    assert machine.quota(tmp_path) == 0.5
    (tmp_path / "cpu.cfs_quota_us").write_text("-1\n")
    assert machine.quota(tmp_path) is None


def test_pressure(tmp_path):
    source = tmp_path / "cpu"
    assert machine.cpu_pressure(source) is None and machine.cpu_stalled(source) is None
    source.write_text("some avg10=23.51 avg60=1.00 avg300=0.5 total=2500000\nfull avg10=0.00 total=0\n")
    assert machine.cpu_pressure(source) == 23.51
    assert machine.cpu_stalled(source) == 2.5


def test_the_environment_without_torch_says_nothing_of_torch():
    found = machine.environment()
    assert (found.torch, found.threads, found.cuda, found.nccl) == ("", 0, "", "")
    assert found.python and found.cpus > 0


class Nvml:
    """A driver with one GPU: what it does not support raises, as NVML does."""

    NVMLError = type("NVMLError", (Exception,), {})

    def __init__(self, processes=(), fails=False):
        self.processes, self.fails = processes, fails

    def nvmlInit(self):
        if self.fails:
            raise self.NVMLError("NVML Shared Library Not Found")

    def nvmlShutdown(self):
        pass

    def nvmlSystemGetDriverVersion(self):
        return b"550.54.15"

    def nvmlDeviceGetCount(self):
        return 1

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetName(self, handle):
        return "NVIDIA H100"

    def nvmlDeviceGetUtilizationRates(self, handle):
        raise self.NVMLError("Not Supported")

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return [SimpleNamespace(pid=one) for one in self.processes]


def test_gpus_are_described_as_far_as_the_driver_tells(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(processes=(7, 8)))
    seen = machine.gpus()
    assert (seen.driver, seen.reason) == ("550.54.15", "")
    assert (seen.found[0].name, seen.found[0].utilization, seen.found[0].processes) == ("NVIDIA H100", None, (7, 8))
    assert machine.busy(seen) == "2 other processes on GPU 0"
    assert machine.busy(seen, own=[7]) == "1 other process on GPU 0"
    assert machine.busy(seen, own=[7, 8]) == "" and machine.busy(seen, index=1) == ""


def test_a_missing_driver_is_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", Nvml(fails=True))
    assert machine.gpus() == machine.Gpus(reason="NVML cannot be used (NVML Shared Library Not Found)")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "pip install nvidia-ml-py" in machine.gpus().reason
