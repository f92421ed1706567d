"""Settings from the launcher for the watcher in each process of a command: one environment variable of JSON."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

VARIABLE = "LDLM_PROBE"
# Files of the folder for evidence: one line for each Python process; evidence of processes that did not train.
PROCESSES = ".processes"
IDLE = ".idle"


@dataclass(frozen=True, slots=True)
class Settings:
    """How one run is watched.

    ``out`` is the folder for evidence; ``root`` the project that call sites are relative to, at its location during the
    run, and ``shown_root`` the original tree (it may be a copy). ``steps`` are watched, and with ``stop`` the program
    is ended after them. ``deadline`` (seconds since the epoch, 0 for none) is when a running process writes its
    evidence. With ``timing`` steps are only timed, from the first on: nothing is observed or profiled.
    """

    out: str
    root: str
    shown_root: str = ""
    run_id: str = ""
    command: tuple[str, ...] = ()
    steps: int = 20
    stop: bool = True
    deadline: float = 0.0
    timing: bool = False

    def to_environment(self) -> str:
        """The value of the variable."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """The launcher's settings; raises KeyError or ValueError outside of a watched command."""
        values = json.loads(environ[VARIABLE])
        return cls(**{**values, "command": tuple(values["command"])})
