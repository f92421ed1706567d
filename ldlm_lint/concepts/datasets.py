"""The datasets of loaders: their classes, and whether their items change between two passes: persistent workers would keep
giving those of the first pass.

The items of a dataset depend on its *state*: the attributes of it and of the objects that it holds, and the globals,
that its methods read. Code outside these methods *changes* the dataset where it sets or fills a part of this state, or
calls a method that does, while the same loader lives. What the code of the items itself writes, a memo of work that is
done, stays in the worker, and what a constructor writes is part of making its object: neither is a change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot

_GIVES_ITEMS = ("__getitem__", "__getitems__", "__iter__")
_ITEMS = (*_GIVES_ITEMS, "__next__", "__len__")
_OF_LOADERS = frozenset({"dataset", "datasets", "train_dataloader", "val_dataloaders", "train_dataloaders", "datamodule"})
"""Attributes by which torch's loaders and wrappers, and a Lightning Trainer, give their datasets to any code."""
_OF_MAIN_PROCESS = frozenset({"sampler", "batch_sampler"})
"""The parts of a loader that stay in the process that trains: changing them reaches no worker."""
_REMOVES = frozenset({"pop", "clear", "remove", "popleft", "sort", "reverse", "shuffle"})
"""Methods of containers, and `random.shuffle`, that change what is kept without adding to it."""
_FILLS = frozenset({*_REMOVES, "append", "extend", "update", "insert", "add"})
_TELLS_EPOCH = "set_epoch"
_TELLING = frozenset({"accelerate.Accelerator", "accelerate.accelerator.Accelerator"})
"""Accelerate passes the epoch to the dataset of each loader that it has prepared."""


@dataclass(frozen=True)
class _State:
    """What items depend on: the classes of a dataset and of the objects in it, the names of the attributes that their
    methods read, containers that come from outside, and globals."""

    family: frozenset[Class]
    names: frozenset[str]
    held: frozenset[Expr]
    globals: frozenset[tuple[Module, str]]


@dataclass(frozen=True)
class _Change:
    """A place that changes a dataset, and what holds the dataset there; None for a class or a global."""

    spot: Spot
    holder: Expr | None = None


class Datasets(Concept):
    """The datasets of a codebase's loaders."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._loaders = code[Loaders]
        self._passes = code[LoaderPasses]
        self._making: dict[frozenset[Class], set[Function]] = {}

    def given_to(self, loader: Loader) -> list[Expr]:
        """The expressions that give a loader its dataset."""
        return self._loaders.option(loader, "dataset").values

    def classes_of(self, loader: Loader) -> list[Class]:
        """The classes of the project of a loader's possible datasets, also inside of other packages' wrappers."""
        classes = (one for dataset in self.given_to(loader) for one in self.code.iterated.classes_inside(dataset))
        return [one for one in dict.fromkeys(classes) if _gives_items(one)]

    def change_between_passes(self, loader: Loader) -> bool:
        """Whether the items of a loader's dataset change during the life of the loader."""
        classes, given = self.classes_of(loader), self.given_to(loader)
        if any(_changes_itself_by(one, _TELLS_EPOCH) for one in classes) and self._is_prepared(loader):
            return True
        found = self._changes(self._state(classes)) if classes else self._changes_through_loaders
        # What runs in another program changes nothing here.
        inside = (change for change in found if loader.call.may_run_with(change.spot.function) and not _is_of_another(change, given))
        return any(self._passes.comes_again(change.spot, loader.call) for change in inside)

    @property
    def may_take_epochs(self) -> bool:
        """Whether a dataset of the project changes itself in a ``set_epoch``, which the loops of frameworks call."""
        owners = (one for one in self.code.classes if not any("Sampler" in name for name in one.outside_bases))
        return any(_gives_items(one) and _changes_itself_by(one, _TELLS_EPOCH) for one in owners)

    def _is_prepared(self, loader: Loader) -> bool:
        """Whether an Accelerator takes part in a program that goes through the loader."""
        homes = {loader.call.module, *(one.function.module for one in self._passes.of(loader.call))}
        return any(call.module in homes for call in self.code.calls(_TELLING))

    def _state(self, classes: Collection[Class]) -> _State:
        names, family, held, found = set[str](), set[Class](), set[Expr](), set[tuple[Module, str]]()
        todo = list(classes)
        while todo:
            owner = todo.pop()
            if owner in family:
                continue
            family.update(owner.bases)
            for one in (read for base in owner.bases for read in self._reads(base)):
                if one.kind == "free":
                    found.add((one.module, one.name))
                    continue
                names |= {one.name} if not one.name.startswith("__") else set()
                held |= one.containers
                todo += [kept for kept in one.classes_of if not kept.is_module]
        return _State(frozenset(family), frozenset(names), frozenset(held), frozenset(found))

    def _reads(self, owner: Class) -> Iterator[Expr]:
        """The attributes of ``self`` and the module's changing globals that the methods of a class read for an item."""
        for one in owner.reads:
            if one.kind == "free":
                if one.name in self._globals_of[owner.module] or self.code.writes_of(one.name):
                    yield one
            elif not owner.methods(one.name) and one.base is not None and one.base.plain.function.name != "__init__":
                yield one

    @cached_property
    def _globals_of(self) -> dict[Module, set[str]]:
        """The names that functions of a module declare global."""
        found: dict[Module, set[str]] = defaultdict(set)
        for function in self.code.functions:
            found[function.module].update(function.globals)
        return found

    def _changes(self, state: _State) -> Iterator[_Change]:
        ways = (self._writes, self._fillings, self._calls_of_setattr, self._calls_of_methods, self._writes_of_globals)
        return (change for way in ways for change in way(state) if not self._is_own(change.spot.function, state))

    def _is_own(self, function: Function, state: _State) -> bool:
        """Whether code belongs to the dataset: it makes an object of it, or runs where an item is made."""
        return (function.name == "__init__" and function.owner in state.family) or function in self._making_items(state)

    def _making_items(self, state: _State) -> set[Function]:
        """The functions, and methods of these objects, that the code of the items leads to."""
        if state.family not in self._making:
            found = {method for owner in state.family for name in _ITEMS for method in owner.methods(name)}
            todo = list(found)
            while todo:
                targets = {target for call in todo.pop().calls for target in call.targets if target.owner is None or target.owner in state.family}
                todo += targets - found
                found |= targets
            self._making[state.family] = found
        return self._making[state.family]

    def _writes(self, state: _State) -> Iterator[_Change]:
        """``dataset.epoch = epoch``, on the object, its class or a module's global, by whatever way the code has it."""
        for name in sorted(state.names | {name for _, name in state.globals}):
            for write in self.code.sets_of(name):
                of_module = any(module in write.base.modules for module, one in state.globals if one == name)
                if of_module or (name in state.names and self._may_be(write.base, state)):
                    yield _Change(write.spot, write.base)

    @cached_property
    def _changes_through_loaders(self) -> list[_Change]:
        """``loader.dataset.epoch = epoch`` for a dataset of an unknown class, through a loader that may be any."""
        targets = ((write, write.base.plain) for write in self.code.writes)
        through = [write for write, target in targets if target.kind == "attr" and target.name in _OF_LOADERS]
        return [_Change(write.spot) for write in through if not write.base.classes_of]

    def _fillings(self, state: _State) -> Iterator[_Change]:
        """``dataset.items.append(item)``, ``shared["epoch"] = epoch``."""
        changes = self.code.container_changes if state.held else self.code.container_changes_of(*sorted(state.names))
        for change in (*changes, *self.code.calls_named(*sorted(_REMOVES))):
            container, spot = self._changed(change)
            if container is not None and spot is not None:
                yield from self._filling(state, container, spot)

    def _changed(self, change: Expr) -> tuple[Expr | None, Spot | None]:
        """The container that a call or an assignment to an item changes, and where."""
        if isinstance(change, Call):
            given = change.positional[0] if change.positional and change.called_name == "shuffle" else None
            return given or change.receiver, change.spot
        return change.base, self._stores.get(change)

    @cached_property
    def _stores(self) -> dict[Expr, Spot]:
        """Where items of containers are set."""
        return {event.expr: event.spot for function in self.code.functions for event in function.events_of("store")}

    def _filling(self, state: _State, container: Expr, spot: Spot) -> Iterator[_Change]:
        part = container.plain
        is_part = part.kind == "attr" and part.name in state.names and part.base is not None and self._may_be(part.base, state)
        # A function that makes a container and fills it makes another one each time.
        held = (state.held & container.containers) if state.held and not is_part else ()
        is_held = any(one.function.is_module or one.function != spot.function for one in held)
        if (is_part or is_held) and _class_around(spot.function) not in state.family:
            yield _Change(spot, part.base if is_part else None)

    def _calls_of_setattr(self, state: _State) -> Iterator[_Change]:
        for call in self.code.calls_named("setattr"):
            if len(call.positional) != 3 or _class_around(call.function) in state.family:
                continue
            target, name, _ = call.positional
            is_known = name.kind == "const"
            if (name.constant in state.names and self._may_be(target, state)) if is_known else self._is(target, state):
                yield _Change(call.spot, target)

    def _calls_of_methods(self, state: _State) -> Iterator[_Change]:
        """``dataset.set_epoch(epoch)``: a method that changes what items depend on."""
        for call in self.code.calls_named(*sorted(self._changing_methods(state))):
            if call.receiver is not None and call.callee.owner_of_self not in state.family and self._may_be(call.receiver, state):
                yield _Change(call.spot, call.receiver)

    def _changing_methods(self, state: _State) -> set[str]:
        """The methods, other than those that give items, that change the state themselves or by another one."""
        own = {function for owner in state.family for function in owner.own_methods if function.name not in (*_ITEMS, "__init__")}
        changing = {function for function in own if self._changes_itself(function, state)}
        names = {one.name for one in changing}
        while more := {one for one in own - changing if any(call.called_name in names and call.callee.owner_of_self for call in one.calls)}:
            changing |= more
            names |= {one.name for one in more}
        return names

    def _changes_itself(self, function: Function, state: _State) -> bool:
        fills_memo = function in self._making_items(state)
        written = {write.name for write in function.writes if not (fills_memo and write.value.kind == "upd")}
        if written & state.names or function.globals:
            return True
        # A memo is filled wherever it is called.
        return not fills_memo and bool(_filled_in(function) & state.names)

    def _writes_of_globals(self, state: _State) -> Iterator[_Change]:
        """``global EPOCH; EPOCH = epoch``, in the module of the dataset."""
        for module, name in state.globals:
            yield from (_Change(one.spot) for one in self.code.functions_in(module) if name in one.globals)

    @staticmethod
    def _is(expr: Expr, state: _State) -> bool:
        """Whether an expression may be one of these objects, or their class."""
        return not state.family.isdisjoint((*expr.classes_of, *expr.classes))

    def _may_be(self, expr: Expr, state: _State) -> bool:
        """The same, or the value is unknown and no part of a loader that stays in the main process."""
        if self._is(expr, state):
            return True
        at = expr.plain
        if expr.owner_if_self is not None or (at.kind == "attr" and at.name in _OF_MAIN_PROCESS):
            return False
        return not expr.value or (at.kind == "attr" and at.name in _OF_LOADERS and not expr.classes_of)


def _gives_items(owner: Class) -> bool:
    """Whether a class can be a dataset: a factory by configuration may also create models."""
    return any(owner.methods(name) for name in _GIVES_ITEMS) or any("Dataset" in name for name in owner.outside_bases)


def _changes_itself_by(owner: Class, method: str) -> bool:
    """Whether a method of a class sets or fills attributes of its object."""
    functions = owner.methods(method)
    return any(any(write.base.owner_if_self for write in one.writes) or _filled_in(one) for one in functions)


def _filled_in(function: Function) -> set[str]:
    """The attributes whose containers a function changes."""
    parts = [event.expr.base for event in function.events if event.kind == "store"]
    parts += [call.receiver for call in function.calls if call.called_name in _FILLS]
    return {one.plain.name for one in parts if one is not None and one.plain.kind == "attr"}


def _class_around(function: Function) -> Class | None:
    return next((one.owner for one in function.around if one.owner is not None), None)


def _is_of_another(change: _Change, given: Collection[Expr]) -> bool:
    """Whether what is changed was made by another call than the dataset."""
    holder, made = _maker(change.holder), [_maker(one) for one in given]
    return holder is not None and all(made) and holder not in made


def _maker(expr: Expr | None) -> Call | None:
    """The call that surely made the object of an expression."""
    at = expr.unnamed if expr is not None else None
    return at if isinstance(at, Call) and at.callee.classes else None


__all__ = ["Datasets"]
