"""Datasets that a training changes between two passes of their loader: persistent workers would keep their old copies."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.datasets import Datasets
from ldlm_lint.project.loaders import Tracer
from ldlm_lint.project.traits import Trait
from ldlm_lint.project.trees import Trees
from ldlm_lint.python.flow import Callee
from ldlm_lint.python.object_changes import Change, change_by, changes_itself
from ldlm_lint.python.places import function_of, loops_around, scope_name
from ldlm_lint.python.scopes import scope_of
from ldlm_lint.python.slots import Slot
from ldlm_lint.python.walks import nodes_of

_DEPTH = 4
# Accelerate passes the epoch to the dataset of each loader that it has prepared.
_TELLS_DATASETS = Trait(lazily(rb"\bAccelerator\("), (b"Accelerator(",))
_HOOKS = ("train_dataloader", "val_dataloader")
_GIVES_ITEMS = ("__getitem__", "__getitems__", "__iter__")
_ONCE = frozenset({"__init__", "setup", "prepare_data", "configure_model", *_HOOKS})

_Function = tuple[str, str]
"""A function, by its file and its scope."""
Frame = tuple[int, frozenset[int]]
"""The line in a function at which something happens, and the lines of the loops of the function that repeat it."""
Frames = Mapping[_Function, list[Frame]]
"""Where something happens, in its own function and in those that lead there."""


class DatasetChanges:
    """Answers whether the dataset of a loader changes between repeated passes over the loader."""

    def __init__(self, calls: Calls, tracer: Tracer, datasets: Datasets, trees: Trees) -> None:
        self._calls = calls
        self._project = calls.project
        self._tracer = tracer
        self._datasets = datasets
        self._trees = trees

    def between_passes(self, path: str, position: str) -> bool:
        """Whether code changes the dataset of the loader at ``line:column`` of a file after its first pass may have
        begun."""
        passes = self._passes(path, position)
        origins = self._datasets.origins(path, position)
        if self._is_told_by_accelerate(path, position, origins):
            return True
        made = {(path, scope) for scope in self._scopes_at(path, position)}
        made |= {(where, scope) for where, slot in origins if slot.kind == "out" for scope in self._scopes_at(where, slot.name)}
        seen: set[int] = set()
        for where, change in self._changes(path, position, origins):
            if id(change.node) not in seen and self._comes_between(where, change.node, passes, made):
                return True
            seen.add(id(change.node))
        return False

    def some_takes_epochs(self) -> bool:
        """Whether a dataset of the project has a ``set_epoch``, which the loops of frameworks call."""
        return any(self._takes_epochs(one) for one in self._project.files if not self._project.is_test(one))

    def _takes_epochs(self, path: str) -> bool:
        module = self._trees.of(path) if b"def set_epoch" in self._project.data(path) else None
        owners = [one for one in module.body if isinstance(one, nodes.ClassDef)] if module is not None else []
        return any(_gives_items(one) and changes_itself(one, "set_epoch") for one in owners if not _is_sampler(one))

    def _scopes_at(self, path: str, position: str) -> set[str]:
        return {call.scope for call in self._project.flow(path).calls if call.position == position}

    def _is_told_by_accelerate(self, path: str, position: str, origins: Iterable[tuple[str, Slot]]) -> bool:
        classes = (owner for where, slot in origins if slot.kind == "out" for owner in self._datasets.classes_at(where, slot))
        if not any(self._changes_itself(where, name, "set_epoch") for where, name in classes):
            return False
        files = {path, *(site.path for site in self._tracer.sites(path, position))}
        return self._project.any_shows(files, _TELLS_DATASETS)

    def _changes_itself(self, path: str, name: str, method: str) -> bool:
        module = self._trees.of(path)
        found = module.locals.get(name, ()) if module is not None else ()
        return any(isinstance(one, nodes.ClassDef) and changes_itself(one, method) for one in found)

    def _changes(self, path: str, position: str, origins: Iterable[tuple[str, Slot]]) -> Iterator[tuple[str, Change]]:
        """The places that change the dataset, under any name."""
        for where, slot in {state[:2] for origin in origins for state in self._tracer.reached(*origin, wrapped=False)}:
            for use in self._uses(where, slot):
                yield from self._change(where, use)
        for where, slot in self._loader_slots(path, position):
            for use in self._uses(where, slot):
                if isinstance(use.parent, nodes.Attribute) and use.parent.attrname == "dataset":
                    yield from self._change(where, use.parent)

    def _loader_slots(self, path: str, position: str) -> set[tuple[str, Slot]]:
        starts = (Slot("new", "", position), Slot("out", "", position))
        states = {state[:2] for start in starts for state in self._tracer.reached(path, start)}
        # ``trainer.train_dataloader.dataset``: a Trainer returns the loader of the hook.
        hooks = {(one, slot.scope.rpartition(".")[2]) for one, slot in states if slot.kind == "ret"}
        return states | {(one, Slot("attr", "", name)) for one, name in hooks if name in _HOOKS}

    def _change(self, path: str, use: nodes.NodeNG) -> Iterator[tuple[str, Change]]:
        change = change_by(use)
        if change is not None and (not change.method or self._method_changes(path, change)):
            yield path, change

    def _method_changes(self, path: str, change: Change) -> bool:
        """Whether a method changes its object; for another package's if its result is unused."""
        found = self._calls.targets(path, Callee("method", change.method))
        if not found:
            return change.discarded
        owners = ((where, function.scope.split(".")) for where, function in found)
        return any(len(names) == 2 and self._changes_itself(where, *names) for where, names in owners)

    def _uses(self, path: str, slot: Slot) -> Iterator[nodes.NodeNG]:
        """The expressions of a file that read a variable or an attribute."""
        if slot.kind not in ("var", "attr") or not _changing(slot.name).search(self._project.data(path)) or self._project.is_test(path):
            return
        module = self._trees.of(path)
        kind = nodes.Name if slot.kind == "var" else nodes.Attribute
        for use in nodes_of(module, kind) if module is not None else ():
            if isinstance(use, nodes.Attribute):
                if use.attrname == slot.name and not _is_part_of_dataset(use):
                    yield use
            elif use.name == slot.name and (scope := scope_of(use)) is not None and scope_name(scope) == slot.scope:
                yield use

    def _passes(self, path: str, position: str) -> Frames:
        """Where the passes of a loader begin."""
        found: dict[_Function, list[Frame]] = defaultdict(list)
        for site in self._tracer.sites(path, position):
            if not self._project.is_test(site.path):
                self._climb(site.path, site.scope, (site.line, frozenset(site.loops)), found)
        return found

    def _climb(
        self, path: str, scope: str, frame: Frame, found: dict[_Function, list[Frame]], top: Collection[_Function] = (), depth: int = 0
    ) -> None:
        """Collect the places of an event, in its function and in its callers, up to one of the functions ``top``."""
        if frame in found[path, scope] or depth > _DEPTH:
            return
        found[path, scope].append(frame)
        for caller, call in self._calls.callers(path, scope) if scope and (path, scope) not in top else ():
            if not self._project.is_test(caller):
                line = int(call.position.partition(":")[0])
                self._climb(caller, call.scope, (line, frozenset(call.loops)), found, top, depth + 1)

    def _comes_between(self, path: str, node: nodes.NodeNG, passes: Frames, made: set[_Function]) -> bool:
        """Whether a change happens in a loop that repeats a pass, or after one pass and in front of another.

        A call of a function that makes the loader makes another one: its earlier changes reach all workers. A function
        without visible callers may be called for each epoch.
        """
        function = function_of(node)
        frame = (node.lineno or 0, frozenset(one.lineno or 0 for one in loops_around(node)))
        places: dict[_Function, list[Frame]] = defaultdict(list)
        self._climb(path, scope_name(function), frame, places, made)
        common = places.keys() & passes.keys()
        if any(_between(one, passes[key]) for key in common for one in places[key]):
            return True
        called = any(key[1] == "" or key in passes or key in made for key in places)
        return not called and scope_name(function).rpartition(".")[2] not in _ONCE


@functools.lru_cache(maxsize=1024)
def _changing(name: str) -> re.Pattern[bytes]:
    """The text in a file that may change the object with a name: a part of it, or ``setattr``; this avoids parsing most
    files."""
    return re.compile(rb"\b%b\b[\s)]*[.\[]|setattr\(\s*(?:\w+\.)*%b\b" % (name.encode(), name.encode()))


def _is_part_of_dataset(use: nodes.Attribute) -> bool:
    """Whether it is an attribute of a dataset: its method's changes happen when the method is called."""
    owner = next((one for one in use.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
    return owner is not None and use.expr.as_string() == "self" and _gives_items(owner)


def _gives_items(owner: nodes.ClassDef) -> bool:
    return any(name in owner.locals for name in _GIVES_ITEMS)


def _is_sampler(owner: nodes.ClassDef) -> bool:
    """A sampler yields indices, and stays in the main process."""
    return any("Sampler" in base.as_string() for base in owner.bases)


def _between(change: Frame, passes: list[Frame]) -> bool:
    line, loops = change
    if any(loops & repeating for _, repeating in passes):
        return True
    lines = [one for one, _ in passes if one]
    return any(one < line for one in lines) and any(line < one for one in lines)


__all__ = ["DatasetChanges"]
