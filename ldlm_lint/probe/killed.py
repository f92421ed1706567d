"""Processes that were killed: their last snapshot is all their evidence, and says that they still run."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import socket
from collections.abc import Collection, Sequence
from pathlib import Path

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, Run, Status
from ldlm_lint.probe.launch import Ended, members

BY_FORCE = "killed"


def settled(out: Path, found: Sequence[Evidence], run_id: str, ended: Ended) -> list[Evidence]:
    """The evidence in a folder, with ended processes marked as killed, also on disk."""
    if all(one.run.status is not Status.RUNNING for one in found):
        return list(found)
    alive = members(run_id)
    return [_settled(out, one, alive, ended) for one in found]


def _settled(out: Path, one: Evidence, alive: Collection[int], ended: Ended) -> Evidence:
    run = one.run
    # Processes of another machine are unknown here.
    if run.status is not Status.RUNNING or run.host != socket.gethostname() or run.pid in alive:
        return one
    dead = dataclasses.replace(one, run=dataclasses.replace(run, status=Status.KILLED, exception=_how(run, ended)))
    with contextlib.suppress(OSError):
        files.write(dead, out)
    return dead


def _how(run: Run, ended: Ended) -> str:
    """How a process ended, as far as the launcher knows: for its own child the signal, also through a shell."""
    number = -ended.code if ended.code < 0 and run.pid == ended.pid else ended.code - 128
    try:
        name = signal.Signals(number).name if number > 0 and run.world_size == 1 else ""
    except ValueError:
        name = ""
    return f"killed by signal {number} ({name})" if name else BY_FORCE


def sentence(killed: Sequence[Evidence]) -> str:
    """A sentence about killed processes: how they ended, after how many steps, and that these steps are kept."""
    steps = max(one.run.steps for one in killed)
    which = ", ".join(str(one.run.rank) for one in killed)
    who = f"rank {which}" if any(one.run.world_size > 1 for one in killed) else "the program"
    how = killed[0].run.exception
    verb = "was" if len(killed) == 1 else "were"
    return f"{who} {verb} {how} after step {steps}; the evidence of {steps} step{'' if steps == 1 else 's'} is kept"
