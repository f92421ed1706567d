"""The place of a watched process: the device of its parameters, its rank and the size of its world."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ldlm_lint.probe.session import Session


def settle(session: Session, optimizer: Any = None) -> None:
    """Determine device, ranks and world size, from the process group if there is one; it may no longer exist at the
    program's end."""
    device = device_of(optimizer.param_groups if optimizer is not None else ())
    if device is not None:
        session.device = device.type
    session.rank, session.local_rank, session.world_size = ranks_of(os.environ)
    group = group_of(session.torch) or session.group
    if group is not None:
        session.group = group
        session.rank, session.world_size = group
        if "LOCAL_RANK" not in os.environ and device is not None and device.index is not None:
            session.local_rank = device.index


def device_of(groups: Iterable[Mapping[str, Any]]) -> Any:
    """The device of an optimizer's first parameter that is not a CPU's, else of its first; None without parameters."""
    devices = [one.device for group in groups for one in group["params"] if hasattr(one, "device")]
    return next((one for one in devices if one.type != "cpu"), devices[0] if devices else None)


def ranks_of(environ: Mapping[str, str]) -> tuple[int, int, int]:
    """Rank, local rank and world size from a launcher; those of a single process without one.

    >>> ranks_of({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4"}), ranks_of({"RANK": "x"})
    ((3, 1, 4), (0, 0, 1))
    """
    rank, local, size = (environ.get(name, "") for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
    if not (rank.isdigit() and size.isdigit() and int(rank) < int(size)):
        return 0, 0, 1
    return int(rank), int(local) if local.isdigit() else 0, int(size)


def group_of(torch: Any) -> tuple[int, int] | None:
    """Rank and world size of the default process group; None if there is none."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()
