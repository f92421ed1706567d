"""The number of processes of a launch, as a shell arithmetic expression that counts each once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ldlm_lint.patterns import lazily
from ldlm_lint.shell.launch_arguments import Argument
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.script import Launch

_TOTALS = frozenset({"num_processes", "world_size", "ntasks"})
_NODES = frozenset({"nnodes", "nodes", "num_nodes", "n_nodes", "num_machines", "machines"})
# The option of torchrun takes precedence over those of the command that starts torchrun.
_PROCESSES_OF_NODE = frozenset({"nproc_per_node"})
_STARTED = {"srun": frozenset({"-n", "--gpus"}), "mpirun": frozenset({"-n", "-np", "--np"})}
_NAME = lazily(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_POSITIONAL = lazily(r"\$\{?\d+\}?")
_DEFAULT = lazily(r"\$\{\w+:?-\d+\}")
_ARITHMETIC = lazily(r"\"?\$\(\((.*)\)\)\"?", re.S)
_QUOTIENT = lazily(r"\s*(\$?\{?\w+\}?)\s*/\s*(\$?\{?\w+\}?)\s*")


def total_of(script: Code, launch: Launch, given: Sequence[Argument]) -> str | None:
    """The number of processes of a launch with these arguments; None if unknown.

    ``--nnodes $NODES --nproc_per_node 8`` is ``NODES * 8``, and where ``NODES=$((GPUS / 8))`` it is ``GPUS``.
    """
    per_node = next(_named(given, _PROCESSES_OF_NODE), None)
    nodes = next((one for one in given if one.name == "-N" or _plain(one.name) in _NODES), None)
    total = next((one for one in given if _is_total(launch, one)), None)
    if per_node is None and total is not None:
        return _factor(total)
    if per_node is None:
        others = (one for one in given if one is not nodes and _plain(one.name) not in _NODES)
        per_node = next(others, None)
    if per_node is None or nodes is None:
        return _factor(per_node or nodes) if (per_node or nodes) is not None else None
    return _product(script, nodes, per_node)


def _named(given: Sequence[Argument], names: frozenset[str]) -> Iterator[Argument]:
    return (one for one in given if _plain(one.name) in names)


def _is_total(launch: Launch, argument: Argument) -> bool:
    return argument.name in _STARTED.get(launch.launcher, ()) or _plain(argument.name) in _TOTALS


def _plain(name: str) -> str:
    return name.lstrip("-+~").rpartition(".")[2].replace("-", "_").lower()


def _product(script: Code, nodes: Argument, per_node: Argument) -> str | None:
    left, right = _factor(nodes), _factor(per_node)
    if left is None or right is None:
        return None
    total, divisor = _quotient(script, nodes.value)
    if divisor == right:
        return total
    return " * ".join(one for one in (left, right) if one != "1") or "1"


def _quotient(script: Code, value: str) -> tuple[str, str]:
    """The two sides of ``$((GPUS / 8))``, also through a variable; empty if it is not a quotient of two."""
    name = _NAME.fullmatch(value)
    assigned = script.assigned(name[1] or name[2]) if name else []
    raw = script.source.slice(assigned[0].value_span) if len(assigned) == 1 else value
    arithmetic = _ARITHMETIC.fullmatch(raw)
    match = _QUOTIENT.fullmatch(arithmetic[1]) if arithmetic else None
    return (_bare(match[1]), _bare(match[2])) if match else ("", "")


def _factor(argument: Argument | None) -> str | None:
    """An argument's value as an operand in shell arithmetic."""
    value = argument.value if argument is not None else ""
    if value.isdecimal() or _POSITIONAL.fullmatch(value) or _DEFAULT.fullmatch(value):
        return value
    if _NAME.fullmatch(value):
        return _bare(value)
    arithmetic = _ARITHMETIC.fullmatch(value)
    return f"({arithmetic[1].strip()})" if arithmetic else None


def _bare(name: str) -> str:
    return name.strip("${}")


__all__ = ["total_of"]
