"""The process of one experiment: ``python -m ldlm_lint.probe.micro.child REQUEST``, results as lines of JSON in a file.

A line is ``{"kind": ..., "value": ...}``; it is written immediately, so that a crash, a hang or the end of the budget
loses only unfinished results.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ldlm_lint.evidence.model import plain
from ldlm_lint.probe import machine
from ldlm_lint.probe.micro.experiment import Context, Experiment
from ldlm_lint.probe.micro.table import EXPERIMENTS

# Exit codes of the process: an experiment failed, torch cannot be imported, the requested device is not available.
FAILED, NO_TORCH, NO_DEVICE = 3, 4, 5
# Seconds reserved for the last lines, of the parent's limit.
_MARGIN = 0.5


def main(request: dict[str, Any]) -> int:
    """Run a request and return the exit code.

    Its keys: ``experiment``, ``device`` (empty: the best available), ``target``, ``seed``, ``end`` (of time.time),
    ``parent`` (its id), ``results``, ``scratch``, ``same``.
    """
    leave_with(request["parent"])
    end = time.monotonic() + request["end"] - time.time() - _MARGIN
    experiment = next(one for one in EXPERIMENTS if one.name == request["experiment"])
    # Queried before this process has its own context on the device.
    gpus = machine.gpus()
    try:
        import torch
    except Exception as error:  # a broken installation may raise anything: ImportError, OSError, RuntimeError
        print(f"torch cannot be imported ({type(error).__name__}: {error})")
        return NO_TORCH
    device, missing = chosen(torch, request["device"])
    if missing:
        print(missing)
        return NO_DEVICE
    with open(request["results"], "a", encoding="utf-8") as file:
        emit = _emitter(file)
        emit("environment", machine.environment(torch, device))
        if device == "cuda" and gpus.reason:
            emit("note", f"other processes on the GPU cannot be seen: {gpus.reason}")
        context = _context(torch, experiment, request, device, end, emit)
        context.gpu_busy = machine.busy(gpus, index=_index(torch, gpus)) if device == "cuda" else ""
        importlib.import_module(f"{__package__}.{experiment.module}").run(context)
        if device == "cuda":
            emit("observation", {"topic": "gpus", "values": {"before": plain(gpus), "after": plain(machine.gpus())}})
    return 0


def leave_with(parent: int) -> None:
    """End this process and its group once its parent process has ended: the results are no longer needed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(FAILED)

    threading.Thread(target=watch, daemon=True).start()


def chosen(torch: Any, wanted: str) -> tuple[str, str]:
    """The device to experiment on, or why it is unavailable; by default a working accelerator, else the CPU."""
    if wanted == "cpu":
        return "cpu", ""
    why = _no_cuda(torch)
    return ("cuda", "") if not why else ("", why) if wanted == "cuda" else ("cpu", "")


def _no_cuda(torch: Any) -> str:
    """Why CUDA cannot be used, empty if it can: an operation on the device is tried."""
    if not torch.cuda.is_available():
        build = getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None)
        driver = machine.gpus()
        return (
            "torch.cuda.is_available() is False: "
            + (f"this is a build for the CPU ({torch.__version__})" if not build else f"torch is built for {build}; ")
            + ("" if not build else driver.reason or f"the driver is {driver.driver} with {len(driver.found)} GPUs")
        )
    try:
        (torch.ones(2, device="cuda") + 1).sum().item()
    except Exception as error:  # a broken or full device raises RuntimeError, AcceleratorError, OutOfMemoryError
        return f"the CUDA device cannot be used ({type(error).__name__}: {str(error).splitlines()[0]})"
    return ""


def _index(torch: Any, gpus: machine.Gpus) -> int | None:
    """NVML's index of the GPU in use, which CUDA may number differently; None if this torch does not provide its
    UUID.
    """
    own = str(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", ""))
    return next((one.index for one in gpus.found if own and one.uuid.removeprefix("GPU-") == own), None)


def _context(
    torch: Any,
    experiment: Experiment,
    request: dict[str, Any],
    device: str,
    end: float,
    emit: Callable[[str, Any], None],
) -> Context:
    torch.manual_seed(request["seed"])
    return Context(
        torch=torch,
        device=device,
        target=request["target"],
        seed=request["seed"],
        end=end,
        scratch=request["scratch"],
        bound=experiment.bound,
        same=request["same"],
        emit=emit,
    )


def _emitter(file: Any) -> Callable[[str, Any], None]:
    def emit(kind: str, value: Any) -> None:
        file.write(json.dumps({"kind": kind, "value": plain(value)}) + "\n")
        file.flush()

    return emit


if __name__ == "__main__":
    _request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    try:
        _code = main(_request)
    except Exception:
        traceback.print_exc()
        _code = FAILED
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of torch, inductor's worker pool and loaders may keep a finished process alive.
    os._exit(_code)
