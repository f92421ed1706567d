"""Timeouts of process groups: whether the given timeout is used, and the timeout of a sub-group."""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import Any

from ldlm_lint.evidence.model import Measurement
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.judging import seen
from ldlm_lint.probe.micro.ranks import on_two_ranks

_EFFECTIVE = "a collective that a rank does not join fails after the timeout given to init_process_group"
_INHERITED = "a sub-group without a timeout gets the backend's default, not the timeout of the default group"
_GIVEN = 77
_SHORT = 2.0
# A collective that fails later than this did not fail for the timeout's sake.
_MOST = 10.0


def run(context: Context) -> None:
    """Judge both rules; on CUDA with NCCL, else with gloo."""
    if context.same:
        return
    backend = "nccl" if context.device == "cuda" else "gloo"
    if not _available(context.torch, backend):
        for rule, claim in (
            ("subgroup-timeout-not-inherited", _INHERITED),
            ("excessive-collective-timeout", _EFFECTIVE),
        ):
            context.judge(seen(context, rule, claim, None, f"this torch has no {backend}"))
        return
    found = _options(context, backend)
    context.observe("timeouts", found)
    _judge_inherited(context, found, backend)
    _judge_effective(context, found, backend)


def _available(torch: Any, backend: str) -> bool:
    distributed = torch.distributed
    return distributed.is_available() and bool(getattr(distributed, f"is_{backend}_available", lambda: False)())


def _options(context: Context, backend: str) -> dict[str, Any]:
    """The timeouts, in seconds, of a default group with 77 s and of a sub-group without one."""
    torch, distributed = context.torch, context.torch.distributed
    device = torch.device(context.device, 0) if context.device == "cuda" else torch.device("cpu")
    store = distributed.FileStore(str(Path(context.scratch, "store")), 1)
    given = datetime.timedelta(seconds=_GIVEN)
    distributed.init_process_group(backend, store=store, rank=0, world_size=1, timeout=given)
    try:
        group = distributed.new_group([0])
        found: dict[str, Any] = {
            "backend": backend,
            "given": _GIVEN,
            "default_group": _seconds(distributed.group.WORLD, device),
            "sub_group": _seconds(group, device),
        }
        if backend == "nccl":
            found["nccl"] = ".".join(str(one) for one in torch.cuda.nccl.version())
        return found
    finally:
        distributed.destroy_process_group()


def _seconds(group: Any, device: Any) -> float | None:
    """A group's timeout by names that torch does not promise; None if this torch has others."""
    try:
        return group._get_backend(device).options._timeout.total_seconds()
    except (AttributeError, RuntimeError):
        return None


def _judge_inherited(context: Context, found: dict[str, Any], backend: str) -> None:
    rule, inner, outer = "subgroup-timeout-not-inherited", found["sub_group"], found["default_group"]
    if inner is None or outer is None:
        context.judge(
            seen(context, rule, _INHERITED, None, f"this torch does not report the timeout of a {backend} group")
        )
        return
    said = f"{backend}: the default group was given {_GIVEN} s and has {outer:g} s, its sub-group has {inner:g} s"
    measured = Measurement("timeout of the sub-group", inner, "s", detail=found)
    # If the default group ignored its timeout, inheritance cannot be judged.
    context.judge(seen(context, rule, _INHERITED, inner != outer if outer == _GIVEN else None, said, measured))


def _judge_effective(context: Context, found: dict[str, Any], backend: str) -> None:
    """With gloo one of two ranks waits for the other, for real; one GPU cannot hold two ranks of NCCL."""
    rule = "excessive-collective-timeout"
    if backend == "nccl":
        outer = found["default_group"]
        said = f"the nccl group was given {_GIVEN} s and has {outer if outer is None else format(outer, 'g')} s; "
        said += "whether a hung collective ends after that time was not tested"
        measured = Measurement("timeout of the group", outer, "s", detail=found)
        context.judge(seen(context, rule, _EFFECTIVE, None, said, measured))
        return
    waited = on_two_ranks(context, _wait_alone, "timeout", timeout=_SHORT)
    seconds, message = (waited[0]["seconds"], waited[0]["message"]) if waited else (None, "the ranks did not answer")
    if seconds is None:
        context.judge(seen(context, rule, _EFFECTIVE, None, message))
        return
    said = f"gloo: given {_SHORT:g} s, all_reduce without the other rank failed after {seconds:.1f} s ({message})"
    measured = Measurement("seconds until it failed", seconds, "s", detail={"given": _SHORT, **found})
    context.judge(seen(context, rule, _EFFECTIVE, _SHORT * 0.9 <= seconds < _MOST, said, measured))


def _wait_alone(torch: Any, rank: int, device: str) -> dict[str, Any]:
    """Rank 0 starts a collective which rank 1 never joins."""
    if rank:
        time.sleep(_SHORT + 2)
        return {}
    began = time.monotonic()
    try:
        torch.distributed.all_reduce(torch.ones(1))
    except RuntimeError as error:
        return {"seconds": time.monotonic() - began, "message": _tail(str(error).splitlines()[0])}
    return {"seconds": None, "message": "all_reduce finished without the other rank"}


def _tail(message: str) -> str:
    """The text without gloo's leading position in a C++ file."""
    return message.partition("] ")[2] or message
