"""The grammar of launchers: which simple commands start training processes, behind which wrappers."""

from __future__ import annotations

import re
from collections.abc import Sequence

HINT = re.compile(rb"torchrun|python|accelerate|deepspeed|srun|mpirun|mpiexec")

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python[\d.]*")
_DIRECT = {"torchrun": "torchrun", "deepspeed": "deepspeed", "srun": "srun", "mpirun": "mpirun", "mpiexec": "mpirun"}
_MODULES = {
    "torch.distributed.run": "torch.distributed.run",
    "torch.distributed.launch": "torch.distributed.launch",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
}
_PYTHON_OPTIONS_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})
# A wrapper and the options of it that take the next word as their value.
_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset({"-u", "--unset", "-C", "--chdir"}),
    "nohup": frozenset(),
    "exec": frozenset({"-a"}),
    "time": frozenset({"-f", "-o"}),
    "command": frozenset(),
    "sudo": frozenset({"-u", "-g"}),
    "nice": frozenset({"-n"}),
    "ionice": frozenset({"-c", "-n"}),
    "stdbuf": frozenset({"-i", "-o", "-e"}),
    "timeout": frozenset({"-s", "-k", "--signal", "--kill-after"}),
    "numactl": frozenset({"-C", "-N", "-m", "-i", "-p"}),
    "taskset": frozenset(),
    "setsid": frozenset(),
}
_OPERANDS = {"timeout": 1, "taskset": 1}
_RUNNERS = {"uv": "run", "poetry": "run", "pixi": "run"}


def launcher_of(words: Sequence[str]) -> str | None:
    """The launcher that a command's words start with, seen through wrappers; None for any other command."""
    words = list(words)
    while words:
        name = words[0].rpartition("/")[2]
        if name in _WRAPPERS:
            words = _behind(words[1:], _WRAPPERS[name], _OPERANDS.get(name, 0))
        elif name in _RUNNERS and words[1:2] == [_RUNNERS[name]]:
            words = _behind(words[2:], frozenset(), 0)
        else:
            return _direct(name, words[1:])
    return None


def _behind(words: list[str], with_value: frozenset[str], operands: int) -> list[str]:
    """The words after a wrapper's options, its assignments and its own operands."""
    index = 0
    while index < len(words) and (words[index].startswith("-") or _ASSIGNMENT.match(words[index])):
        index += 2 if words[index] in with_value else 1
    return words[index + operands :]


def _direct(name: str, rest: list[str]) -> str | None:
    if name == "accelerate":
        return "accelerate" if "launch" in rest[:1] else None
    if _PYTHON.fullmatch(name):
        return _module(rest)
    return _DIRECT.get(name)


def _module(rest: list[str]) -> str:
    """The launcher module that python is told to run with ``-m``, ``python`` where it is a script of one's own."""
    index = 0
    while index < len(rest) and rest[index].startswith("-"):
        if rest[index] == "-m":
            return _MODULES.get(rest[index + 1] if index + 1 < len(rest) else "", "python")
        index += 2 if rest[index] in _PYTHON_OPTIONS_WITH_VALUE else 1
    return "python"
