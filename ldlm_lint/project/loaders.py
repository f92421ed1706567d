"""Follows a value over files: from where a loader is made to every loop that iterates it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ldlm_lint.project.calls import Calls
from ldlm_lint.project.index import Project
from ldlm_lint.python.flow import CallSite, Iteration, ModuleFlow
from ldlm_lint.python.slots import ANY_ELEMENT, Slot

_FIT = {"fit", "fit_loop"}
_PREPARES = {"prepare", "setup_dataloaders", "prepare_data_loader", "distribute"}
_LOADER_METHODS = ("train_dataloader", "val_dataloader", "test_dataloader")
_WRAPPER = re.compile(r"prefetch|cycl|infinite|load|wrap|iter|progress|device|dali|inf_")
_STEPS = 4000


@dataclass(frozen=True)
class Site:
    """A loop over the value: where it stands, whether it runs again and again, and whether it trains."""

    path: str
    line: int
    scope: str
    repeated: bool
    loops: tuple[int, ...]
    framework: bool = False


_Place = tuple[str, str, str]


class _Uses:
    """The facts of one file by the place that they speak of, its index left out."""

    def __init__(self, flow: ModuleFlow) -> None:
        self.moves: dict[_Place, list[tuple[Slot, Slot]]] = defaultdict(list)
        self.calls: dict[_Place, list[CallSite]] = defaultdict(list)
        self.iterations: dict[_Place, list[Iteration]] = defaultdict(list)
        for source, target in flow.moves:
            self.moves[_place(source)].append((source, target))
        for call in flow.calls:
            for place in dict.fromkeys(_place(passed.slot) for passed in call.passed):
                self.calls[place].append(call)
        for iteration in flow.iterations:
            self.iterations[_place(iteration.slot)].append(iteration)


class Tracer:
    """Finds the iterations of a value that one call makes."""

    def __init__(self, project: Project, calls: Calls) -> None:
        self.project = project
        self.calls = calls
        self._uses: dict[str, _Uses] = {}
        self._holders: dict[tuple[str, str], frozenset[str]] = {}

    def uses(self, path: str) -> _Uses:
        """The facts of a file, by place."""
        if path not in self._uses:
            self._uses[path] = _Uses(self.project.flow(path))
        return self._uses[path]

    def sites(self, path: str, position: str) -> list[Site]:
        """Every loop over the value of the call at ``line:column`` of a file."""
        found: list[Site] = []
        seen: set[tuple[str, Slot, bool]] = set()
        waiting = [(path, Slot("new", "", position), False)]
        while waiting and len(seen) < _STEPS:
            state = waiting.pop()
            if state in seen:
                continue
            seen.add(state)
            where, slot, repeated = state
            found.extend(self._iterations(where, slot, repeated))
            found.extend(self._by_framework(where, slot))
            waiting.extend(self._onward(where, slot, repeated))
        return found

    def trains(self, site: Site) -> bool:
        """Whether the loop's body computes gradients, itself or through what it calls."""
        if site.framework:
            return True
        return self.calls.loop_trains(site.path, site.scope, {site.line} - {0})

    def _iterations(self, path: str, slot: Slot, repeated: bool) -> Iterator[Site]:
        for iteration in self.uses(path).iterations.get(_place(slot), ()):
            if _same_element(iteration.slot.index, slot.index):
                again = repeated or bool(iteration.loops) or self._taken_again(path, slot, iteration.scope)
                again = again and not iteration.goes_on
                yield Site(path, iteration.line, iteration.scope, again, iteration.loops)

    def _by_framework(self, path: str, slot: Slot) -> Iterator[Site]:
        """Loaders that a Lightning hook returns or that go to ``fit`` are iterated once per epoch."""
        if slot.kind == "ret" and slot.scope.rpartition(".")[2] in _LOADER_METHODS:
            function = self.calls.function(path, slot.scope)
            if function is not None and function.lightning:
                yield Site(path, function.line, slot.scope, True, (), framework=slot.scope.endswith("train_dataloader"))
        for call in self._calls_passing(path, slot):
            if call.callee.kind == "method" and call.callee.name in _FIT and not self.calls.targets(path, call.callee):
                yield Site(path, int(call.position.partition(":")[0]), call.scope, True, (), framework=True)

    def _onward(self, path: str, slot: Slot, repeated: bool) -> Iterator[tuple[str, Slot, bool]]:
        for source, target in self.uses(path).moves.get(_place(slot), ()):
            if (moved := _moved(slot, source, target)) is not None:
                again = repeated or (moved.kind == "var" and self._taken_again(path, slot, moved.scope))
                yield from self._arrived(path, moved, again)
        for call in self._calls_passing(path, slot):
            yield from self._into_call(path, call, slot, repeated)

    def _arrived(self, path: str, slot: Slot, repeated: bool) -> Iterator[tuple[str, Slot, bool]]:
        if slot.kind == "ret":
            for caller, call in self.calls.callers(path, slot.scope):
                yield caller, Slot("out", "", call.position, slot.index), repeated
            yield path, slot, repeated
        elif slot.kind == "attr":
            for other in sorted(self._holders_of(path, slot.name)):
                yield other, slot, repeated
        else:
            yield path, slot, repeated

    def _taken_again(self, path: str, slot: Slot, scope: str) -> bool:
        """Whether a function that uses a value which outlives it is called again and again.

        An attribute, a module's variable and the variable of an enclosing function outlive it.
        """
        if slot.kind == "var":
            return slot.scope != scope and self.calls.repeated(path, scope, within=slot.scope)
        return slot.kind == "attr" and self.calls.repeated(path, scope)

    def _holders_of(self, path: str, attribute: str) -> frozenset[str]:
        """The files that write an attribute of this name and are tied to the file by imports, in either direction."""
        if (path, attribute) not in self._holders:
            needle = b"." + attribute.encode()
            near = {one for one in self.project.files if needle in self.project.data(one)}
            reach = self.project.reach
            self._holders[path, attribute] = frozenset(one for one in near if one in reach(path) or path in reach(one))
        return self._holders[path, attribute]

    def _calls_passing(self, path: str, slot: Slot) -> Iterator[CallSite]:
        for call in self.uses(path).calls.get(_place(slot), ()):
            if any(_same(passed.slot, slot) for passed in call.passed):
                yield call

    def _into_call(self, path: str, call: CallSite, slot: Slot, repeated: bool) -> Iterator[tuple[str, Slot, bool]]:
        targets = self.calls.targets(path, call.callee)
        for passed in call.passed:
            if not _same(passed.slot, slot):
                continue
            again = repeated or bool(passed.loops) or self._taken_again(path, slot, call.scope)
            for where, function in targets:
                name = self.calls.parameter(function, call, passed.key)
                if name:
                    yield where, Slot("var", function.scope, name, slot.index if passed.slot.index == "" else ""), again
            if any(function.yields for _, function in targets):
                yield path, Slot("out", "", call.position), repeated
            if not targets and _hands_on(call.callee.name.rpartition(".")[2], passed.key):
                index = (
                    str(passed.key) if call.callee.name.rpartition(".")[2] in _PREPARES and len(call.passed) > 1 else ""
                )
                yield path, Slot("out", "", call.position, index), repeated


def _hands_on(name: str, key: int | str) -> bool:
    """Whether a call of another package gives back the loader it is given, wrapped or not.

    ``accelerator.prepare(…)`` and wrappers such as ``DataPrefetcher(loader)`` do; a function that takes a loader among
    other things returns something else.
    """
    return name in _PREPARES or (key == 0 and (name[:1].isupper() or _WRAPPER.search(name) is not None))


def _place(slot: Slot) -> _Place:
    return slot.kind, slot.scope, slot.name


def _same(used: Slot, slot: Slot) -> bool:
    """Whether a use is one of the slot, or of the container that holds it as an element."""
    return _place(used) == _place(slot) and (used.index == "" or _same_element(used.index, slot.index))


def _same_element(one: str, other: str) -> bool:
    return one == other or (ANY_ELEMENT in (one, other) and one != "" != other)


def _moved(slot: Slot, source: Slot, target: Slot) -> Slot | None:
    """Where a move takes a slot: an element keeps its index when the whole moves."""
    if _same_element(source.index, slot.index):
        return target
    return replace(target, index=slot.index) if source.index == "" and target.index == "" else None
