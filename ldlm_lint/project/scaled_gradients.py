"""Whether a training reads gradients after a scaler's step that a fused optimizer would leave scaled."""

from __future__ import annotations

import re
from typing import NamedTuple

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.index import Project
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.scaled_gradients import ScaledStep, gradient_readers, scaled_steps

_STEPS = Trait(re.compile(rb"scaler\w*\.step[ \t]*\(", re.I), (b"scaler",))
_READS = Trait(re.compile(rb"\.grad\b|clip_grad_|get_total_norm"), (b"grad", b"get_total_norm"))


class Read(NamedTuple):
    """The line of a scaler's step, and the later line that reads gradients, directly or through a call."""

    path: str
    step: int
    line: int


class ScaledGradients:
    """Finds reads of gradients after scaled steps; each file is analysed once."""

    def __init__(self, project: Project, calls: Calls) -> None:
        self._project = project
        self._calls = calls
        self._readers: dict[str, frozenset[str]] = {}
        self._read: dict[str, Read | None] = {}

    def read_in(self, trainer: str) -> Read | None:
        """The first such read in the files of a training; None if there is none."""
        files = self._project.universe.of(self._project.reach(trainer)) & self._project.showing(_STEPS) & self._project.plain
        return next((found for path in files if (found := self._in_file(path)) is not None), None)

    def _in_file(self, path: str) -> Read | None:
        if path not in self._read:
            steps = self._project.trees.glance(path, lambda module, _: scaled_steps(module)) or []
            lines = ((one, one.read or self._by_call(path, one)) for one in steps)
            self._read[path] = next((Read(path, one.line, line) for one, line in lines if line), None)
        return self._read[path]

    def _by_call(self, path: str, step: ScaledStep) -> int:
        """The first line between a step and the next reset that calls a function of the project which reads gradients; 0 if none."""
        found = []
        for call in self._project.calls_in(path, step.scope):
            line = int(call.position.partition(":")[0])
            if step.line < line < step.until and any(self._reads(where, one.scope) for where, one in self._calls.targets(path, call.callee)):
                found.append(line)
        return min(found, default=0)

    def _reads(self, path: str, scope: str) -> bool:
        if path not in self._project.showing(_READS):
            return False
        if path not in self._readers:
            self._readers[path] = self._project.trees.glance(path, lambda module, _: gradient_readers(module)) or frozenset()
        return scope in self._readers[path]
