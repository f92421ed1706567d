"""The meaning of a script's variables, from the origins and uses of their values, not only their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ldlm_lint.patterns import lazily
from ldlm_lint.shell.launch_arguments import Argument, arguments, names_in
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.script import Launch
from ldlm_lint.vocabulary.batch_sizes import is_accumulation, is_world_size

_ARITHMETIC = lazily(r"\"?\$\(\((.*)\)\)\"?", re.S)
# A digit is a positional parameter.
_NAME = lazily(r"[A-Za-z_]\w*|(?<=\$)\d|(?<=\$\{)\d")
_PLAIN = lazily(r"\"?\$(?:\{\w+\}|\w+)\"?")
# Commands that count GPUs, and variables of schedulers and launchers with such a number.
_COUNTS = lazily(r"nvidia-smi|rocm-smi|device_count|get_world_size|SLURM_JOB_NODELIST|PBS_NODEFILE|CUDA_VISIBLE_DEVICES")
_OF_SCHEDULER = lazily(r"(?:SLURM|PBS|LSB|OMPI|PMI)_\w*(?:NODES|NTASKS|NPROCS|GPUS\w*|SIZE|TASKS_PER_NODE)")
_STARTER_OPTIONS = {
    "srun": ("-n", "-N", "--ntasks", "--nodes", "--ntasks-per-node", "--gpus", "--gpus-per-node"),
    "mpirun": ("-n", "-np", "--np"),
    "deepspeed": ("--include", "-i"),
}


@dataclass(frozen=True)
class Quantities:
    """The variables of a script with accumulation steps, and those that launches use as numbers of processes.

    ``written`` are the values of each variable as written.
    """

    written: Mapping[str, Sequence[str]]
    steps: frozenset[str]
    processes: frozenset[str]
    _behind: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, script: Code, found: Iterable[Code]) -> Quantities:
        """The quantities in the launches of a script, and of the strings that it runs."""
        written: dict[str, list[str]] = {}
        for one in script.script.assignments:
            written.setdefault(one.name, []).append(script.source.slice(one.value_span))
        steps: set[str] = set(filter(is_accumulation, written))
        processes: set[str] = set()
        for launch in (launch for code in found for launch in code.script.launches):
            for argument in arguments(script, launch):
                if is_accumulation(argument.name):
                    steps.update(names_in(argument.value))
                elif counts_processes(launch, argument):
                    processes.update(names_in(argument.value))
        return cls(written, _reached(steps, lambda name: _copied(written.get(name, ()))), frozenset(processes))

    def counted_in(self, expression: str) -> frozenset[str]:
        """The variables behind an expression, however many steps away, that are numbers of processes, GPUs or nodes."""
        if expression not in self._behind:
            behind = _reached(_NAME.findall(expression), lambda name: _operands(self.written.get(name, ())))
            self._behind[expression] = frozenset(filter(self._counts, behind))
        return self._behind[expression]

    def _counts(self, name: str) -> bool:
        if name in self.processes or is_world_size(name) or _OF_SCHEDULER.fullmatch(name):
            return True
        return any(map(_COUNTS.search, self.written.get(name, ())))


def counts_processes(launch: Launch, argument: Argument) -> bool:
    """Whether an argument of a launch is a number of its processes, GPUs or nodes."""
    return is_world_size(argument.name) or argument.name in _STARTER_OPTIONS.get(launch.launcher, ())


def _reached(names: Iterable[str], further: Callable[[str], Iterable[str]]) -> frozenset[str]:
    """Names with all that are reached from them."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += further(name)
    return frozenset(found)


def _operands(written: Iterable[str]) -> Iterator[str]:
    """The variables that values are computed from by arithmetic, or copied from."""
    for raw in written:
        if match := _ARITHMETIC.fullmatch(raw):
            yield from _NAME.findall(match[1])
    yield from _copied(written)


def _copied(written: Iterable[str]) -> Iterator[str]:
    for raw in written:
        if _PLAIN.fullmatch(raw):
            yield from names_in(raw)


__all__ = ["Quantities", "counts_processes"]
