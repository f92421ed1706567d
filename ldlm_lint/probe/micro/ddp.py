"""DDP on two processes: the cost of find_unused_parameters in a backward pass, the savings of
gradient_as_bucket_view.
"""

from __future__ import annotations

import time
from typing import Any

from ldlm_lint.evidence.model import Judgement, Measurement
from ldlm_lint.probe import machine
from ldlm_lint.probe.micro import profiles
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.judging import arms_of, compared, seen
from ldlm_lint.probe.micro.ranks import on_two_ranks
from ldlm_lint.probe.micro.sampling import Call, Timing, sample

_UNUSED, _COPY = "ddp-find-unused-parameters", "ddp-gradient-copy"
_SEARCHES = "find_unused_parameters=True adds a collective to each backward pass although no parameter is unused"
_COPIES = "without gradient_as_bucket_view the gradients are held twice: in the parameters and in DDP's buckets"
_WIDTH, _LAYERS = 256, 8
_ROUNDS, _INNER = 18, 4
_TIMEOUT = 60.0


def run(context: Context) -> None:
    """Count collectives and bytes, which are exact; then time the steps of both ranks."""
    context.world_size = 2
    if not context.torch.distributed.is_available():
        for rule, claim in ((_UNUSED, _SEARCHES), (_COPY, _COPIES)):
            context.judge(seen(context, rule, claim, None, "this torch has no torch.distributed"))
        return
    counts = [] if context.same else on_two_ranks(context, _count, "counts", timeout=_TIMEOUT)
    if counts:
        context.observe("ranks", {str(rank): one for rank, one in enumerate(counts)})
        context.judge(_copied(context, counts))
    speed = _timed(context)
    if context.same and speed is not None:
        context.judge(speed)
    if counts:
        context.judge(_searched(context, counts, speed))


def _copied(context: Context, counts: list[dict[str, Any]]) -> Judgement:
    plain, view, parameters = (counts[0][name] for name in ("plain_bytes", "view_bytes", "parameter_bytes"))
    if not plain or not view:
        return seen(context, _COPY, _COPIES, None, "this torch does not report the sizes of its buckets")
    saved = (plain - view) / parameters
    said = f"after 3 steps gradients and buckets take {plain:,} bytes, as views {view:,} (parameters: {parameters:,}); "
    said += f"gradients use {counts[0]['plain_storages']} storages, as views in {counts[0]['view_storages']}"
    measured = Measurement("saved bytes / bytes of parameters", saved, "x", threshold=0.9, detail=counts[0])
    return seen(context, _COPY, _COPIES, all(_halved(one) for one in counts), said, measured)


def _halved(count: dict[str, Any]) -> bool:
    """Whether a rank saved the gradients' bytes (padding of buckets aside), by bytes and by storages alike."""
    saved = count["plain_bytes"] - count["view_bytes"]
    return saved >= 0.9 * count["parameter_bytes"] and count["view_storages"] < count["plain_storages"]


def _searched(context: Context, counts: list[dict[str, Any]], speed: Judgement | None) -> Judgement:
    plain, searching = counts[0]["plain_collectives"], counts[0]["searching_collectives"]
    said = f"a backward pass runs {searching} all-reduces with it and {plain} without"
    detail: dict[str, Any] = {"collectives": {"plain": plain, "searching": searching}}
    if speed is not None and speed.measured is not None:
        said += f"; a step took {speed.measured.value:.2f} times as long on the wall clock ({speed.verdict.value})"
        detail["time"] = {"ratio": speed.measured.value, "ci95": speed.measured.ci95, "n": speed.measured.n}
        detail["time_verdict"] = speed.verdict.value
    measured = Measurement("additional all-reduces per backward", float(searching - plain), "", detail=detail)
    holds = all(one["searching_collectives"] > one["plain_collectives"] > 0 for one in counts)
    return seen(context, _UNUSED, _SEARCHES, holds if plain else None, said, measured)


def _timed(context: Context) -> Judgement | None:
    """The time of a step, the slower rank's: a statement about this machine's gloo or NCCL and this small model."""
    if context.left < 3:
        return None
    before, stalled, began = machine.cpu_pressure(), machine.cpu_stalled(), time.monotonic()
    # The other rank and the profiler's last words take their time as well.
    found = on_two_ranks(context, _time, "times", context.left - 1.5, context.same, timeout=_TIMEOUT)
    if not found or not found[0]["samples"]:
        return None
    slower = {
        arm: [max(pair) for pair in zip(*(one["samples"][arm] for one in found), strict=True)]
        for arm in found[0]["samples"]
    }
    seconds, now = time.monotonic() - began, machine.cpu_stalled()
    during = 100 * (now - stalled) / seconds if now is not None and stalled is not None else None
    pressure = max((one for one in (before, during) if one is not None), default=None)
    timing = Timing("perf_counter", {"perf_counter": slower}, _INNER, pressure)
    return compared(
        context, _UNUSED, _SEARCHES, timing, "searching", "plain", stand_in=f"{_LAYERS} layers of {_WIDTH} wide"
    )


def _count(torch: Any, rank: int, device: str) -> dict[str, Any]:
    """One rank: collectives of a backward pass, bytes and storages of gradients."""
    found: dict[str, Any] = {}
    kind = device.partition(":")[0]
    for name, options in (("plain", {}), ("searching", {"find_unused_parameters": True})):
        step = _step(torch, device, **options)
        for _ in range(3):
            step()
        counted = profiles.counted(profiles.profiled(torch, step, kind), profiles.ALL_REDUCE)
        found[f"{name}_collectives"] = sum(counted.values())
    for name, options in (("plain", {}), ("view", {"gradient_as_bucket_view": True})):
        found.update(_held(torch, device, name, options))
    return found


def _held(torch: Any, device: str, name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The memory of DDP and the gradients after 3 steps, without the parameters.

    The profiler is not used: a thread of gloo may be the last owner of a bucket, and its release is not recorded.
    """
    model = _model(torch, device)
    wrapped = torch.nn.parallel.DistributedDataParallel(model, **options)
    for _ in range(3):
        _train(torch, wrapped, device)
    stores = {one.grad.untyped_storage().data_ptr(): one.grad.untyped_storage().nbytes() for one in model.parameters()}
    buckets = _bucket_bytes(wrapped)
    beside = buckets if len(stores) > len(buckets) else []
    return {
        f"{name}_bytes": sum(stores.values()) + sum(beside) if buckets else None,
        f"{name}_storages": len(stores),
        "parameter_bytes": sum(one.numel() * one.element_size() for one in model.parameters()),
    }


def _bucket_bytes(wrapped: Any) -> list[int]:
    """The bytes of each bucket, from DDP (rebuilt after the first step); empty if this torch does not provide them."""
    told: dict[str, Any] = getattr(wrapped, "_get_ddp_logging_data", dict)()
    sizes = told.get("rebuilt_bucket_sizes") or told.get("bucket_sizes") or ""
    return [int(one) for one in str(sizes).split(",") if one.strip().isdigit()]


def _time(torch: Any, rank: int, device: str, seconds: float, same: bool) -> dict[str, Any]:
    """One rank's samples; both ranks shuffle alike and do the same number of rounds, or they would wait forever."""
    began = time.monotonic()
    builds = {
        "plain": lambda: _step(torch, device),
        "searching": lambda: _step(torch, device, find_unused_parameters=True),
    }
    probe = builds["plain"]()
    for _ in range(3):
        probe()
    first = time.monotonic()
    for _ in range(_INNER):
        probe()
    context = Context(torch, device, "", 0, 0.0, "", same=same)
    arms = arms_of(context, builds, "plain")
    left = seconds - 2 * (time.monotonic() - began)
    # The searching arm and the warm-up take longer than the last measurement.
    rounds = torch.tensor([min(_ROUNDS, int(left / (len(arms) * 1.5 * (time.monotonic() - first))))])
    rounds = rounds.to(device)
    torch.distributed.broadcast(rounds, 0)
    if int(rounds) < 2:
        return {"samples": {}}
    timing = sample(arms, _clock(torch, device), seed=0, end=float("inf"), rounds=int(rounds), inner=_INNER)
    return {"samples": timing.samples["perf_counter"]}


def _clock(torch: Any, device: str) -> Any:
    def clock(call: Call, inner: int) -> dict[str, float]:
        torch.distributed.barrier()
        began = time.perf_counter()
        for _ in range(inner):
            call()
        if device != "cpu":
            torch.cuda.synchronize()
        return {"perf_counter": (time.perf_counter() - began) / inner}

    return clock


def _step(torch: Any, device: str, **options: Any) -> Call:
    wrapped = torch.nn.parallel.DistributedDataParallel(_model(torch, device), **options)
    return lambda: _train(torch, wrapped, device)


def _train(torch: Any, wrapped: Any, device: str) -> None:
    wrapped.zero_grad(set_to_none=False)
    wrapped(torch.ones(8, _WIDTH, device=device)).square().mean().backward()


def _model(torch: Any, device: str) -> Any:
    return torch.nn.Sequential(*(torch.nn.Linear(_WIDTH, _WIDTH) for _ in range(_LAYERS))).to(device)
