"""Two ranks of one group, for experiments on DDP and collectives."""

from __future__ import annotations

import datetime
import json
import multiprocessing
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ldlm_lint.probe.micro.experiment import Context

WORLD = 2
Work = Callable[..., dict[str, Any]]


def on_two_ranks(context: Context, work: Work, name: str, *arguments: Any, timeout: float) -> list[dict[str, Any]]:
    """Run ``work(torch, rank, device, *arguments)`` on two ranks and return their results; empty if one returned
    nothing.

    ``device`` is this rank's. With two GPUs the backend is NCCL (not yet run on CUDA), else gloo; ``timeout`` in
    seconds is the group's. An exception of a rank becomes a note.
    """
    devices = _devices(context)
    # A fork has torch already; CUDA, once used, does not survive one.
    way = "fork" if context.device == "cpu" and "fork" in multiprocessing.get_all_start_methods() else "spawn"
    # typeshed has no process class for a context with a computed name.
    start: Any = multiprocessing.get_context(way)
    folder = Path(context.scratch, name)
    folder.mkdir()
    ranks = [
        start.Process(target=_rank, args=(work, rank, devices[rank], str(folder), timeout, context.seed, arguments))
        for rank in range(WORLD)
    ]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join(max(0.1, context.left))
        if one.is_alive():
            one.kill()
    return _answers(context, folder)


def _devices(context: Context) -> list[str]:
    if context.device == "cuda" and context.torch.cuda.device_count() >= WORLD:
        return [f"cuda:{rank}" for rank in range(WORLD)]
    # Two ranks of NCCL cannot share a GPU; gloo accepts tensors on one GPU.
    return ["cuda:0" if context.device == "cuda" else "cpu"] * WORLD


def _answers(context: Context, folder: Path) -> list[dict[str, Any]]:
    found = []
    for rank in range(WORLD):
        path = folder / f"{rank}.json"
        if not path.exists():
            context.emit("note", f"rank {rank} of the experiment {folder.name} did not answer")
            return []
        values = json.loads(path.read_text(encoding="utf-8"))
        if "error" in values:
            context.emit("note", f"rank {rank} of the experiment {folder.name}: {values['error']}")
            return []
        found.append(values)
    return found


def _rank(
    work: Work, rank: int, device: str, folder: str, seconds: float, seed: int, arguments: tuple[Any, ...]
) -> None:
    import torch
    from torch import distributed

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    backend = "nccl" if device == f"cuda:{rank}" and torch.cuda.device_count() >= WORLD else "gloo"
    store = distributed.FileStore(str(Path(folder, "store")), WORLD)
    timeout = datetime.timedelta(seconds=seconds)
    try:
        distributed.init_process_group(backend, store=store, rank=rank, world_size=WORLD, timeout=timeout)
        answer = work(torch, rank, device, *arguments)
    except Exception as error:
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    part = Path(folder, f"{rank}.part")
    part.write_text(json.dumps(answer), encoding="utf-8")
    part.rename(Path(folder, f"{rank}.json"))
