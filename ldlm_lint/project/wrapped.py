"""The variables and attributes with a model returned by DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.index import Project
from ldlm_lint.python.flow import CallSite, ModuleFlow
from ldlm_lint.python.slots import Slot

_TRANSPARENT = {"torch.compile"}
_STEPS = 200


class Wraps:
    """Follows values backwards, from their use to the call that created them."""

    def __init__(self, project: Project, calls: Calls) -> None:
        self._project = project
        self._calls = calls

    def makers(self, path: str, slot: Slot) -> Iterator[tuple[str, CallSite, frozenset[str]]]:
        """The calls that may have created the value of a slot: file, call, and the files on the way to it."""
        waiting, seen = [(path, slot)], {(path, slot)}
        while waiting and len(seen) < _STEPS:
            where, current = waiting.pop()
            yield from ((where, call, frozenset(one for one, _ in seen)) for call in self._made_by(where, current))
            for state in self._sources(where, current):
                if state not in seen:
                    seen.add(state)
                    waiting.append(state)

    def _made_by(self, path: str, slot: Slot) -> Iterator[CallSite]:
        if slot.kind == "out" and slot.index == "":
            yield from self._project.drawn(path, _calls).get(slot.name, ())

    def _sources(self, path: str, slot: Slot) -> Iterator[tuple[str, Slot]]:
        for source, target in self._project.drawn(path, _moves).get(slot[:3], ()):
            if target.index == slot.index:
                yield path, source
            elif target.index == source.index == "":
                yield path, source.at(slot.index)
        if slot.kind == "out":
            yield from self._results(path, slot)
        elif slot.kind == "var":
            yield from self._arguments(path, slot)

    def _results(self, path: str, slot: Slot) -> Iterator[tuple[str, Slot]]:
        """The results of the project functions that a call may reach."""
        for call in self._project.drawn(path, _calls).get(slot.name, ()):
            for where, function in self._calls.targets(path, call.callee):
                yield where, Slot("ret", function.scope, "", slot.index)
            if call.callee.name in _TRANSPARENT:
                yield from ((path, passed.slot) for passed in call.passed if passed.key == 0)

    def _arguments(self, path: str, slot: Slot) -> Iterator[tuple[str, Slot]]:
        """The arguments of callers for a parameter."""
        function = self._calls.function(path, slot.scope)
        if function is None or slot.name not in function.params:
            return
        for caller, call in self._calls.callers(path, function.scope):
            for passed in call.passed:
                if self._calls.parameter(function, call, passed.key) == slot.name:
                    yield caller, passed.slot


def _moves(flow: ModuleFlow) -> Mapping[tuple[str, str, str], list[tuple[Slot, Slot]]]:
    """The moves of a file by target, without its index."""
    found: dict[tuple[str, str, str], list[tuple[Slot, Slot]]] = {}
    for move in flow.moves:
        found.setdefault(move[1][:3], []).append(move)
    return found


def _calls(flow: ModuleFlow) -> Mapping[str, list[CallSite]]:
    """The calls of a file by their positions."""
    found: dict[str, list[CallSite]] = {}
    for call in flow.calls:
        found.setdefault(call.position, []).append(call)
    return found
