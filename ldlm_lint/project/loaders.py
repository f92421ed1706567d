"""Follows a loader across files: from its creation to every loop over it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.index import Project
from ldlm_lint.project.text import class_text
from ldlm_lint.python.flow import MAPPING, CallSite, Function, ModuleFlow, Passed
from ldlm_lint.python.iterations import Iteration
from ldlm_lint.python.slots import ANY_ELEMENT, LOADERS, Slot

_FIT = {"fit", "fit_loop"}
_PREPARES = {"prepare", "setup_dataloaders", "prepare_data_loader", "distribute"}
_LOADER_METHODS = ("train_dataloader", "val_dataloader", "get_train_dataloader", "get_eval_dataloader")
_LIGHTNING_CLASS = re.compile(rb"\bLightning(?:Data)?Module\b")
_TRAINER = re.compile(rb"(?<![\w.])(?:transformers\.|trl\.)?(?:Seq2Seq|SFT|DPO|Reward)?Trainer\b")
_BASES = 3
_WRAPPER = lazily(r"prefetch|cycl|infinite|load|wrap|iter|progress|device|dali|inf_")
_STEPS = 4000


class Site(NamedTuple):
    """A loop over the value: its place, whether it runs repeatedly, and whether it trains.

    One that ``goes_on`` takes further elements of a pass that began elsewhere; line 0 means no separate loop. ``taken``
    is where the loop gets the value: results of two calls of a function are two values.
    """

    path: str
    line: int
    scope: str
    repeated: bool
    loops: tuple[int, ...]
    framework: bool = False
    goes_on: bool = False
    taken: tuple[str, str, str] = ("", "", "")
    held: bool = False


_Place = tuple[str, str, str]


class _Uses:
    """The facts of one file by their place, without its index."""

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
    """Finds the iterations over a value created by one call."""

    def __init__(self, project: Project, calls: Calls) -> None:
        self.project = project
        self.calls = calls
        self._holders: dict[tuple[str, str], frozenset[str]] = {}
        self._sites: dict[tuple[str, Slot], list[Site]] = {}

    def uses(self, path: str) -> _Uses:
        """The facts of a file, by place."""
        return self.project.drawn(path, _Uses)

    def sites(self, path: str, position: str) -> list[Site]:
        """Every loop over the loader created at ``line:column`` of a file."""
        # A loader whose class is re-exported is the result of a call like any other.
        return self._sites_of(path, (Slot("new", "", position), Slot("out", "", position)))

    def _sites_of(self, path: str, slots: tuple[Slot, ...]) -> list[Site]:
        key = (path, slots[0])
        if key not in self._sites:
            found = self._sites[key] = []
            for where, slot, repeated in (state for start in slots for state in self.reached(path, start)):
                found.extend(self._iterations(where, slot, repeated))
                found.extend(self._by_framework(where, slot))
        return self._sites[key]

    def reached(self, path: str, slot: Slot, *, wrapped: bool = True) -> Iterator[tuple[str, Slot, bool]]:
        """Every place that a value reaches, its own first, and whether it gets there repeatedly.

        With ``wrapped`` a wrapper of another package counts as the value.
        """
        seen: set[tuple[str, Slot, bool]] = set()
        waiting = [(path, slot, False)]
        while waiting and len(seen) < _STEPS:
            state = waiting.pop()
            if state not in seen:
                seen.add(state)
                yield state
                waiting.extend(self._onward(*state, wrapped))

    def loaders_given(self, path: str, slot: Slot, keys: Collection[int | str]) -> Iterator[tuple[str, str]]:
        """The loaders (path, position of the call) that get a value under one of these keys, from a mapping too."""
        for where, current, _ in self.reached(path, slot):
            for call in self.uses(where).calls.get(_place(current), ()):
                if call.callee.name in LOADERS and any(_gives(passed, current, keys) for passed in call.passed):
                    yield where, call.position

    def trains(self, site: Site) -> bool:
        """Whether the loop's body computes gradients, itself or through what it calls; so may a function for one
        batch.
        """
        if site.framework or (site.goes_on and not site.line and self.calls.is_training_step(site.path, site.scope)):
            return True
        return self.calls.loop_trains(site.path, site.scope, {site.line} - {0})

    def _iterations(self, path: str, slot: Slot, repeated: bool) -> Iterator[Site]:
        for iteration in self.uses(path).iterations.get(_place(slot), ()):
            if _same_element(iteration.slot.index, slot.index):
                again = repeated or bool(iteration.loops) or self._taken_again(path, slot, iteration.scope)
                again = again and not iteration.goes_on
                yield Site(path, iteration.line, iteration.scope, again, iteration.loops, goes_on=iteration.goes_on, taken=_place(slot), held=iteration.held)

    def _by_framework(self, path: str, slot: Slot) -> Iterator[Site]:
        """Loaders returned by a Lightning hook or passed to ``fit`` are iterated once per epoch, those of a test
        once.
        """
        hook = self._hook_of(path, slot.scope) if slot.kind == "ret" else ""
        if hook:
            function = self.calls.function(path, slot.scope)
            if function is not None and self._is_hook(path, function):
                yield Site(path, function.line, slot.scope, True, (), framework=hook.endswith("train_dataloader"))
        for call in self._calls_passing(path, slot):
            if call.callee.kind == "method" and call.callee.name in _FIT and not self.calls.targets(path, call.callee):
                yield Site(path, int(call.position.partition(":")[0]), call.scope, True, (), framework=True)

    def _hook_of(self, path: str, scope: str) -> str:
        """The hook of a method, by its name or because its class makes it one: ``self.train_dataloader =
        self._train``.
        """
        owner, _, name = scope.rpartition(".")
        if name in _LOADER_METHODS:
            return name
        data = self.project.data(path)
        if not owner or b".train_dataloader" not in data:
            return ""
        made = re.search(rb"self\.(train_dataloader|val_dataloader)[ \t]*=[ \t]*(?:[\w.]*partial\()?self\.%s\b" % name.encode(), class_text(data, owner))
        return made[1].decode() if made else ""

    def _is_hook(self, path: str, function: Function) -> bool:
        """Whether a method that creates a loader is called by Lightning, or by the Hugging Face Trainer that it belongs
        to."""
        if function.lightning:
            return True
        bases = self._bases(path, function.scope.partition(".")[0])
        of_trainer = function.scope.rpartition(".")[2].startswith("get_")
        return (_TRAINER if of_trainer else _LIGHTNING_CLASS).search(bases) is not None

    def _bases(self, path: str, name: str, depth: int = 0) -> bytes:
        """The bases of a class as written, and those of the project's own classes among them."""
        header = class_text(self.project.data(path), name).partition(b":")[0].partition(b"(")[2]
        own = [header]
        for base in re.findall(rb"[\w.]+", header) if depth < _BASES else ():
            found = self.project.resolve(path, base.decode()) or self._imported(path, base.decode())
            if found is not None:
                own.append(self._bases(*found, depth + 1))
        return b" ".join(own)

    def _imported(self, path: str, name: str) -> tuple[str, str] | None:
        """The origin of a class named in a file: the file itself, or the project's file that it imports the name
        from.
        """
        if name in self.project.skim(path).defined:
            return path, name
        imports = (one for one in self.project.skim(path).imports if one.rpartition(".")[2] == name)
        return next((found for one in imports if (found := self.project.resolve(path, one)) is not None), None)

    def _onward(self, path: str, slot: Slot, repeated: bool, wrapped: bool) -> Iterator[tuple[str, Slot, bool]]:
        for source, target in self.uses(path).moves.get(_place(slot), ()):
            if (moved := _moved(slot, source, target)) is not None:
                again = repeated or (moved.kind == "var" and self._taken_again(path, slot, moved.scope))
                yield from self._arrived(path, moved, again)
                if slot.kind == "new":
                    yield from self._out_of_generator(path, moved)
        yield from self._out_of_closures(path, slot)
        for call in self._calls_passing(path, slot):
            yield from self._into_call(path, call, slot, repeated, wrapped)

    def _out_of_generator(self, path: str, slot: Slot) -> Iterator[tuple[str, Slot, bool]]:
        """A caller of a generator that iterates over its own loader gets the elements of that loader.

        An argument belongs to one call of it, which `_into_call` resolves.
        """
        passes = self.uses(path).iterations.get(_place(slot), ()) if slot.kind == "var" and slot.scope else ()
        if any(one.scope == slot.scope and _same_element(one.slot.index, slot.index) for one in passes):
            yield from self._elements_of_generator(path, slot.scope)

    def _out_of_closures(self, path: str, slot: Slot) -> Iterator[tuple[str, Slot, bool]]:
        """A generator that iterates over a variable of the enclosing function yields its elements to its callers."""
        if slot.kind != "var" or not slot.scope:
            return
        within = f"{slot.scope}."
        for one in self.uses(path).iterations.get(_place(slot), ()):
            if one.scope.startswith(within) and _same_element(one.slot.index, slot.index):
                yield from self._elements_of_generator(path, one.scope)

    def _elements_of_generator(self, path: str, scope: str) -> Iterator[tuple[str, Slot, bool]]:
        function = self.calls.function(path, scope)
        if function is not None and function.yields:
            for caller, call in self.calls.callers(path, scope):
                yield caller, Slot("out", "", call.position), False

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
        """Whether a function that uses a value which outlives it is called repeatedly.

        An attribute, a module's variable and the variable of an enclosing function outlive it.
        """
        if slot.kind == "var":
            return slot.scope != scope and self.calls.repeated(path, scope, within=slot.scope)
        return slot.kind == "attr" and self.calls.repeated(path, scope) and not self.calls.of_new_objects(path, scope)

    def _holders_of(self, path: str, attribute: str) -> frozenset[str]:
        """The files that write an attribute of this name and are connected to the file by imports, in either
        direction.
        """
        if (path, attribute) not in self._holders:
            needle = b"." + attribute.encode()
            tied = self.project.importers(path) | self.project.reach(path)
            self._holders[path, attribute] = frozenset(one for one in tied if needle in self.project.data(one))
        return self._holders[path, attribute]

    def _calls_passing(self, path: str, slot: Slot) -> Iterator[CallSite]:
        for call in self.uses(path).calls.get(_place(slot), ()):
            if any(_same(passed.slot, slot) for passed in call.passed):
                yield call

    def _into_call(self, path: str, call: CallSite, slot: Slot, repeated: bool, wrapped: bool) -> Iterator[tuple[str, Slot, bool]]:
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
            if wrapped and not targets and _hands_on(call.callee.name.rpartition(".")[2], passed.key):
                index = (
                    str(passed.key) if call.callee.name.rpartition(".")[2] in _PREPARES and len(call.passed) > 1 else ""
                )
                yield path, Slot("out", "", call.position, index), repeated


def _gives(passed: Passed, slot: Slot, keys: Collection[int | str]) -> bool:
    if _place(passed.slot) != _place(slot):
        return False
    if passed.key == MAPPING:
        return passed.slot.index == "" and slot.index in keys
    return passed.key in keys and _same_element(passed.slot.index, slot.index)


def _hands_on(name: str, key: int | str) -> bool:
    """Whether a call of another package returns its loader argument, wrapped or not.

    ``accelerator.prepare(…)`` and wrappers such as ``DataPrefetcher(loader)`` do; a function that takes a loader among
    other things returns something else.
    """
    return name in _PREPARES or (key == 0 and (name[:1].isupper() or _WRAPPER.search(name) is not None))


def _place(slot: Slot) -> _Place:
    return slot.kind, slot.scope, slot.name


def _same(used: Slot, slot: Slot) -> bool:
    """Whether a use concerns the slot, or the container with it as an element."""
    return _place(used) == _place(slot) and (used.index == "" or _same_element(used.index, slot.index))


def _same_element(one: str, other: str) -> bool:
    return one == other or (ANY_ELEMENT in (one, other) and one != "" != other)


def _moved(slot: Slot, source: Slot, target: Slot) -> Slot | None:
    """The target of a slot by a move: an element keeps its index when the whole moves."""
    if _same_element(source.index, slot.index):
        return target
    return target.at(slot.index) if source.index == "" and target.index == "" else None
