"""This machine and its torch build, as far as they affect a measurement. It imports neither torch nor pynvml unless
requested; unreadable values are empty, never guessed."""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ldlm_lint.evidence.model import Environment
from ldlm_lint.evidence.statistics import MOST_PRESSURE as MOST_PRESSURE

# Variables that decide how training runs. Nothing else is recorded: an environment contains secrets.
_VARIABLES = re.compile(
    r"(NCCL|GLOO|TORCH|PYTORCH|CUDA|CUBLAS|CUDNN|NVIDIA_TF32|OMP|MKL|KMP|OPENBLAS|HSA|HIP|ROCR|RCCL|TRITON)_\w+|"
    r"TORCHINDUCTOR_\w+|TORCHDYNAMO_\w+|(LOCAL_|GROUP_)?(WORLD_SIZE|RANK)|NO_CUDA"
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|AUTH", re.IGNORECASE)
_LONGEST = 500

PRESSURE = Path("/proc/pressure/cpu")
CGROUP = Path("/sys/fs/cgroup")
BUSY_GPU = 10


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as NVML sees it: bytes, MHz, percent; ``processes`` are the ids of the processes that compute on it."""

    index: int
    name: str
    uuid: str = ""
    memory_total: int | None = None
    memory_used: int | None = None
    utilization: int | None = None
    sm_clock: int | None = None
    most_sm_clock: int | None = None
    throttle_reasons: int | None = None
    mig: bool = False
    processes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpus:
    """All GPUs that NVML shows, or (no ``found``) why it shows none; ``driver`` is the driver's version."""

    found: tuple[Gpu, ...] = ()
    driver: str = ""
    reason: str = ""


def environment(torch: Any = None, device: str = "cpu") -> Environment:
    """The recorded facts about machine, Python and torch; without ``torch`` its own fields stay empty.

    ``device`` is where the parameters are. CUDA is queried only if it is already initialised or ``device`` is ``cuda``:
    a query would create a context in a process that does not use it.
    """
    return Environment(
        python=platform.python_version(),
        executable=(sys.executable or "").replace(os.sep, "/"),
        torch=str(getattr(torch, "__version__", "")),
        device=device,
        device_name=_device_name(torch, device) or _processor(),
        cuda=str(_read(torch, "version.cuda") or _read(torch, "version.hip") or ""),
        nccl=_nccl(torch, device),
        driver=gpus().driver if device == "cuda" else "",
        cpu_capability=str(_read(torch, "backends.cpu.get_cpu_capability()") or ""),
        cpus=cpus(),
        threads=int(_read(torch, "get_num_threads()") or 0),
        load=load(),
        cpu_pressure=cpu_pressure(),
        variables=variables(os.environ),
    )


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that decide how training runs, by name; secrets are never among them."""
    return {
        name: value[:_LONGEST]
        for name, value in sorted(environ.items())
        if _VARIABLES.fullmatch(name) and not _SECRET.search(name)
    }


def cpus() -> float:
    """The CPUs this process may use: the minimum of the machine's CPUs, the affinity and the cgroup's quota."""
    return min(float(affinity()), quota() or float("inf"))


def affinity() -> int:
    """How many CPUs the scheduler may put this process on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def quota(root: Path = CGROUP) -> float | None:
    """The CPUs that the process's cgroup may use at once (version 2 ``cpu.max`` or version 1 quota); None for no limit."""
    found = [_quota_of(folder) for folder in _cgroups(root)]
    return min((one for one in found if one is not None), default=None)


def cpu_pressure(source: Path = PRESSURE) -> float | None:
    """PSI's some-avg10: the percentage of the last 10 s in which some task waited for a CPU; None if unavailable."""
    found = re.search(r"^some avg10=([\d.]+)", _text(source), re.MULTILINE)
    return float(found[1]) if found else None


def cpu_stalled(source: Path = PRESSURE) -> float | None:
    """Seconds since boot in which some task waited for a CPU: the difference over a time is the pressure in it."""
    found = re.search(r"^some .*total=(\d+)", _text(source), re.MULTILINE)
    return int(found[1]) / 1e6 if found else None


def involuntary_switches() -> int | None:
    """How often this process was taken off its CPU although it had work; None if the system does not count it."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw


def load() -> tuple[float, ...]:
    """The load average over 1, 5 and 15 minutes; empty if the system has none."""
    with contextlib.suppress(OSError, AttributeError):
        return tuple(round(one, 2) for one in os.getloadavg())
    return ()


def gpus() -> Gpus:
    """The current state of the GPUs from NVML; never raises: a missing module, driver or permission becomes a
    reason.
    """
    try:
        import pynvml
    except ImportError:
        return Gpus(reason="nvidia-ml-py is not installed (python -m pip install nvidia-ml-py)")
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Gpus(reason=f"NVML cannot be used ({error})")
    try:
        driver = _as_text(pynvml.nvmlSystemGetDriverVersion())
        count = pynvml.nvmlDeviceGetCount()
        return Gpus(tuple(_gpu(pynvml, index) for index in range(count)), driver)
    except pynvml.NVMLError as error:
        return Gpus(reason=f"NVML cannot be used ({error})")
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def busy(seen: Gpus, own: Iterable[int] = (), index: int | None = None) -> str:
    """Why timings on a GPU (all of them without ``index``) are unreliable now, as a sentence; empty if it is idle.

    ``own`` are processes of the caller. Inside a container NVML may hide the processes of others; then only the
    utilisation shows them, unless the caller itself computes.
    """
    mine = set(own)
    for gpu in seen.found:
        if index is not None and gpu.index != index:
            continue
        others = [one for one in gpu.processes if one not in mine]
        if others:
            return f"{len(others)} other process{'' if len(others) == 1 else 'es'} on GPU {gpu.index}"
        if not mine and (gpu.utilization or 0) > BUSY_GPU:
            return f"GPU {gpu.index} is {gpu.utilization} % busy with something else"
    return ""


def _gpu(nvml: Any, index: int) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def ask(name: str, *arguments: Any) -> Any:
        # Each figure may be unsupported (MIG, vGPU, old drivers) or not permitted; the others are still useful.
        with contextlib.suppress(nvml.NVMLError, AttributeError):
            return getattr(nvml, name)(handle, *arguments)
        return None

    memory, rates, mig = (
        ask("nvmlDeviceGetMemoryInfo"),
        ask("nvmlDeviceGetUtilizationRates"),
        ask("nvmlDeviceGetMigMode"),
    )
    clock = getattr(nvml, "NVML_CLOCK_SM", 1)
    return Gpu(
        index,
        _as_text(ask("nvmlDeviceGetName")),
        _as_text(ask("nvmlDeviceGetUUID")),
        memory.total if memory else None,
        memory.used if memory else None,
        rates.gpu if rates else None,
        ask("nvmlDeviceGetClockInfo", clock),
        ask("nvmlDeviceGetMaxClockInfo", clock),
        ask("nvmlDeviceGetCurrentClocksThrottleReasons"),
        bool(mig and mig[0]),
        tuple(one.pid for one in ask("nvmlDeviceGetComputeRunningProcesses") or ()),
    )


def _device_name(torch: Any, device: str) -> str:
    if device != "cuda" or torch is None:
        return ""
    try:
        return str(torch.cuda.get_device_name())
    except Exception:  # a broken driver may raise anything; the name is optional
        return ""


def _nccl(torch: Any, device: str) -> str:
    if device != "cuda" or torch is None:
        return ""
    try:
        found = torch.cuda.nccl.version()
    except Exception:  # AttributeError on builds without NCCL, others on a broken driver
        return ""
    return ".".join(str(one) for one in found) if isinstance(found, tuple) else str(found)


def _processor() -> str:
    found = re.search(r"^model name\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    return found[1].strip() if found else platform.processor() or platform.machine()


def _read(value: Any, path: str) -> Any:
    """``backends.cpu.get_cpu_capability()`` of a module; None if a name of it does not exist."""
    for name in path.split("."):
        value = getattr(value, name.removesuffix("()"), None)
        if value is None:
            return None
        value = value() if name.endswith("()") else value
    return value


def _cgroups(root: Path) -> Iterator[Path]:
    """The folders whose limits bind this process: its own cgroups and those above, if they are mounted here."""
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "cpu" if controllers else root
        below = top / path.lstrip("/")
        yield from (one for one in (below, *below.parents) if one == top or top in one.parents)
    yield root


def _quota_of(folder: Path) -> float | None:
    words = _text(folder / "cpu.max").split()
    if not words:
        words = [*_text(folder / "cpu.cfs_quota_us").split(), *_text(folder / "cpu.cfs_period_us").split()]
    try:
        limit, period = (int(one) for one in words)
    except ValueError:
        return None
    return limit / period if limit > 0 and period > 0 else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _as_text(value: Any) -> str:
    # nvidia-ml-py before 11.515 returns bytes.
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
