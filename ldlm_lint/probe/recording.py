"""The evidence of a watched process, from its watcher's observations."""

from __future__ import annotations

import dataclasses
import os
import socket
import zlib
from collections.abc import Mapping
from typing import Any

from ldlm_lint.evidence.model import Environment, Evidence, Run
from ldlm_lint.probe.machine import environment
from ldlm_lint.probe.watcher import Watcher


def recorded(
    watcher: Watcher,
    run: Run,
    observations: Mapping[str, Any],
    *,
    machine: Environment | None = None,
    unseen: Mapping[str, str] | None = None,
) -> Evidence:
    """The evidence of a watcher with ``observations``; ``run`` has facts that only the caller knows.

    ``machine`` is already known about it (a query takes a moment), ``unseen`` what could not be observed so far.
    """
    session = watcher.session
    whole = dataclasses.replace(
        run,
        rank=session.rank,
        local_rank=session.local_rank,
        world_size=session.world_size,
        host=socket.gethostname(),
        steps=session.step,
        seconds=watcher.seconds,
    )
    machine = machine or environment(session.torch, session.device)
    unseen = dict(session.unavailable if unseen is None else unseen)
    return Evidence(whole, machine, dict(observations), (), unseen, tuple(session.notes), session.overhead_seconds)


def _starts_others(environ: Mapping[str, str]) -> bool:
    """Whether rank 0 may be the parent of the others, as under Lightning, which passes a free port to all of them."""
    return "TORCHELASTIC_RUN_ID" not in environ and {"LOCAL_RANK", "MASTER_PORT"} <= environ.keys()


def identity_of(run_id: str, world_size: int, environ: Mapping[str, str], *, pid: int = 0, parent: int = 0) -> str:
    """The run that a process belongs to: one command may train several times, in sequence or again.

    Ranks of a group share the launcher as parent, across machines the rendezvous address; a single process is its own
    run.

    >>> identity_of("a", 1, {}, pid=7) != identity_of("a", 1, {}, pid=8)
    True
    >>> identity_of("a", 2, {}, pid=7, parent=3) == identity_of("a", 2, {}, pid=8, parent=3)
    True
    """
    if world_size <= 1:
        key = f"process {pid or os.getpid()}"
    elif int(environ.get("LOCAL_WORLD_SIZE") or world_size) < world_size or _starts_others(environ):
        key = f"{environ.get('MASTER_ADDR')}:{environ.get('MASTER_PORT')}"
    else:
        key = f"children of {parent or os.getppid()}"
    again = environ.get("TORCHELASTIC_RESTART_COUNT", "")
    return f"{run_id}-{zlib.crc32(f'{key} {again}'.encode()):08x}"
