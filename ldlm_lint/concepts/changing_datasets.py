"""Datasets whose items change between two passes: persistent workers would keep giving those of the first pass.

The items of a dataset depend on its *state*: the attributes of it and of the objects that it holds, and the globals,
that its methods read. Code outside these methods *changes* the dataset where it sets or fills a part of this state, or
calls a method that does, while the same loader lives. What the code of the items itself writes, a memo of work that is
done, stays in the worker, and what a constructor writes is part of making its object: neither is a change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ldlm_lint.code import Scope
from ldlm_lint.concepts.loaders import Loaders
from ldlm_lint.program.atoms import FIRST, MASK, Value
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module
from ldlm_lint.program.together import closure

_ITEMS = ("__getitem__", "__getitems__", "__iter__", "__next__", "__len__")
_OF_LOADERS = frozenset({"dataset", "datasets", "train_dataloader", "val_dataloaders", "train_dataloaders", "datamodule"})
"""Attributes by which torch's loaders and wrappers, and a Lightning Trainer, give their datasets to any code."""
_OF_MAIN_PROCESS = frozenset({"sampler", "batch_sampler"})
"""The parts of a loader that stay in the process that trains: changing them reaches no worker."""
_KEPT_CHANGES = frozenset({"pop", "clear", "remove", "popleft", "sort", "reverse", "shuffle"})
"""Methods of containers, and `random.shuffle`, that change what is kept without adding to it."""


class State(NamedTuple):
    """What items depend on: the classes of a dataset and of the objects in it, the names of the attributes that their
    methods read, containers and objects that come from outside, and globals as (module index, name)."""

    family: frozenset[int]
    names: frozenset[str]
    held: Value
    globals: frozenset[tuple[int, str]]


class Change(NamedTuple):
    """A place that changes a dataset: the function (key), the innermost loop there (-1: none), and what holds the dataset
    there (a key, 0 for a class or a global)."""

    function: int
    loop: int
    holder: int = 0


class ChangingDatasets(Concept):
    """Answers for the datasets of a program's loaders."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.loaders = code[Loaders]
        self._of_items: dict[frozenset[int], set[int]] = {}

    def changes(self, loader: int, classes: set[int], datasets: Sequence[int]) -> bool:
        """Whether the items of a dataset change during the life of the loader that a call makes: the classes that it may be
        of, and the expressions that give it to the loader."""
        near = self.program.together.programs_of(self.program.module_of(loader))
        found = self._changes(self._state(classes)) if classes else self._changes_through_loaders()
        # What runs in another program changes nothing here.
        inside = (change for change in found if self.program.module_of(change.function).index in near and not self._is_of_another(change, datasets))
        return any(self.loaders.may_happen_again(change.function, change.loop, loader) for change in inside)

    def _is_of_another(self, change: Change, datasets: Sequence[int]) -> bool:
        """Whether what is changed was made by another call than the dataset."""
        holder, made = self._maker(change.holder), [self._maker(one) for one in datasets]
        return bool(holder and all(made)) and holder not in made

    def _maker(self, key: int) -> int:
        """The call (key) that surely made the object of an expression; 0 if it may come from elsewhere."""
        module = self.program.module_of(key)
        number = module.uncopied(key & MASK)
        row = module.nodes[number]
        return module.base | number if row[0] == "call" and self.program.atoms.kinds(self.program.ask(module.base | row[1]), "c") else 0

    def _state(self, classes: set[int]) -> State:
        names, family, held, found = set[str](), set[int](), set[int](), set[tuple[int, str]]()
        todo = sorted(classes)
        while todo:
            owner = todo.pop()
            if owner in family:
                continue
            family.update(self.program.order(owner))
            for module, number in self._reads(self.program.order(owner)):
                row = module.nodes[number]
                if row[0] == "free":
                    found.add((module.index, row[2]))
                    continue
                if not row[2].startswith("__"):
                    names.add(row[2])
                kept = self.program.ask(module.base | number)
                held |= {one for one in kept if one >= FIRST and self.program.atoms.of[one][0] == "d"}
                todo += [fields[1] for fields in self.program.atoms.kinds(kept, "i") if not self.program.is_module(fields[1])]
        return State(frozenset(family), frozenset(names), frozenset(held), frozenset(found))

    def _reads(self, family: list[int]) -> Iterator[tuple[Module, int]]:
        """The attributes of ``self`` and the module's changing globals that the methods of a class read for an item."""
        for owner in family:
            module = self.program.module_of(owner)
            later = {name for scope in module.scopes for name in scope.globals}
            for number, row in enumerate(module.nodes):
                if row[0] == "attr" and self.program.class_of_self(module, row[1]) == owner:
                    if not self.program.methods(owner, row[2]) and not self._is_in_constructor(module, row[1]):
                        yield module, number
                elif row[0] == "free" and row[1] and (row[2] in later or row[2] in self._set_from_elsewhere) and self._owner_of(module, row[1]) == owner:
                    yield module, number

    @staticmethod
    def _is_in_constructor(module: Module, number: int) -> bool:
        row = module.plain(number)
        return row[0] == "param" and module.scopes[row[1]].name == "__init__"

    @property
    def _set_from_elsewhere(self) -> set[str]:
        """The names that code sets as attributes of other objects, modules among them."""
        return set(self.program.other_writes)

    @staticmethod
    def _owner_of(module: Module, scope: int) -> int | None:
        while scope > 0:
            if module.scopes[scope].kind == "class":
                return module.base | scope
            scope = module.scopes[scope].parent
        return None

    def _changes(self, state: State) -> Iterator[Change]:
        ways = (self._writes, self._fillings, self._calls_of_setattr, self._calls_of_methods, self._writes_of_globals)
        return (change for way in ways for change in way(state) if not self._is_own(change.function, state))

    def _is_own(self, function: int, state: State) -> bool:
        """Whether code belongs to the dataset: it makes an object of it, or runs where an item is made."""
        return self._constructs(function, state) or function in self._making_items(state)

    def _constructs(self, function: int, state: State) -> bool:
        scope = self.program.module_of(function).scopes[function & MASK]
        return scope.name == "__init__" and self.program.owner.get(function) in state.family

    def _making_items(self, state: State) -> set[int]:
        """The functions, and methods of these objects, that the code of the items leads to."""
        if state.family not in self._of_items:
            starts = {method for owner in state.family for name in _ITEMS for method in self.program.methods(owner, name)}
            self._of_items[state.family] = closure(starts, lambda function: self._called_in(function, state))
        return self._of_items[state.family]

    def _called_in(self, function: int, state: State) -> Iterator[int]:
        module = self.program.module_of(function)
        for call in module.scopes[function & MASK].calls:
            for target in sorted(self.program.targets_of.get(module.base | call, ())):
                if target not in self.program.owner or self.program.owner[target] in state.family:
                    yield target

    def _writes(self, state: State) -> Iterator[Change]:
        """``dataset.epoch = epoch``, on the object, its class or a module's global, by whatever way the code has it."""
        named = {name for _, name in state.globals}
        written = [(name, target) for name in state.names | named for target, _ in self.program.other_writes.get(name, ())]
        targets = {target for name, target in written if name in state.names and self._may_be(target, state)}
        targets |= {target for name, target in written if name in named and self._is_module_of(self.program.ask(target), state)}
        wanted = state.names | named
        for module in {self.program.module_of(target).index: self.program.module_of(target) for target in targets}.values():
            for number, scope in enumerate(module.scopes):
                for base, name, loop in _written_in(scope):
                    if module.base | base in targets and name in wanted:
                        yield Change(module.base | number, loop, module.base | base)

    def _changes_through_loaders(self) -> Iterator[Change]:
        """``loader.dataset.epoch = epoch`` for a dataset of an unknown class, through a loader that may be any."""
        for module in self.program.live:
            for number, scope in enumerate(module.scopes):
                for base, _, loop in _written_in(scope):
                    row = module.plain(base)
                    if row[0] == "attr" and row[2] in _OF_LOADERS and not self._is_known(self.program.ask(module.base | base)):
                        yield Change(module.base | number, loop)

    def _fillings(self, state: State) -> Iterator[Change]:
        """``dataset.items.append(item)``, ``shared["epoch"] = epoch``."""
        changed = {key for name in self.program.changes for key in self.program.changes[name]} if state.held else set()
        for key in {*changed, *(key for name in state.names for key in self.program.changes.get(name, ()))}:
            yield from self._filling(state, key)
        for method in _KEPT_CHANGES:
            for key in self.program.calls.get(method, ()):
                yield from self._filling(state, key)

    def _filling(self, state: State, key: int) -> Iterator[Change]:
        module = self.program.module_of(key)
        container, scope, loop = self._container(module, key)
        row = module.plain(container)
        is_part = row[0] == "attr" and row[2] in state.names and self._may_be(module.base | row[1], state)
        held = state.held & self.program.ask(module.base | container) if not is_part and state.held else frozenset()
        # A function that makes a container and fills it makes another one each time.
        is_held = any(self._function_of(fields[1]) != module.base | scope for fields in self.program.atoms.kinds(held, "d"))
        if (is_part or is_held) and self._owner_of(module, scope) not in {one for one in state.family}:
            yield Change(module.base | scope, loop, module.base | row[1] if is_part else 0)

    def _function_of(self, place: int) -> int:
        """The function in which a container is made; -1 at the top of a module, where it is made once."""
        module = self.program.module_of(place)
        begins = module.table.places[place & MASK]
        around = [number for number, scope in enumerate(module.scopes) if scope.kind == "def" and scope.place <= begins < scope.end]
        return module.base | max(around, key=lambda number: module.scopes[number].place) if around else -1

    def _container(self, module: Module, key: int) -> tuple[int, int, int]:
        """What a call or an assignment to an item changes, with the scope and the loop of the change."""
        row = module.nodes[key & MASK]
        if row[0] == "call":
            site = module.table.sites[key & MASK]
            function = module.nodes[row[1]]
            given = row[2][0] if row[2] and module.last_name(row[1]) == "shuffle" else 0
            return (given or (function[1] if function[0] == "attr" else 0)), site.scope, site.loop
        stores = ((number, event) for number, scope in enumerate(module.scopes) for event in scope.events)
        at, loop = next(((number, event[2]) for number, event in stores if event[0] == "store" and event[1] == key & MASK), (0, -1))
        return row[1], at, loop

    def _calls_of_setattr(self, state: State) -> Iterator[Change]:
        for key in self.program.calls.get("setattr", ()):
            module = self.program.module_of(key)
            row = module.nodes[key & MASK]
            if len(row[2]) == 3 and self._owner_of(module, module.table.sites[key & MASK].scope) not in state.family:
                name = module.nodes[row[2][1]]
                named = name[0] == "const" and name[1] in state.names
                if (named and self._may_be(module.base | row[2][0], state)) or (name[0] != "const" and self._is(module.base | row[2][0], state)):
                    site = module.table.sites[key & MASK]
                    yield Change(module.base | site.scope, site.loop, module.base | row[2][0])

    def _calls_of_methods(self, state: State) -> Iterator[Change]:
        """``dataset.set_epoch(epoch)``: a method that changes what items depend on."""
        for name in self._changing_methods(state):
            for call in self.program.calls.get(name, ()):
                module = self.program.module_of(call)
                function = module.nodes[module.nodes[call & MASK][1]]
                if function[0] == "attr" and self.program.class_of_self(module, function[1]) not in state.family and self._may_be(module.base | function[1], state):
                    site = module.table.sites[call & MASK]
                    yield Change(module.base | site.scope, site.loop, module.base | function[1])

    def _changing_methods(self, state: State) -> set[str]:
        """The methods, other than those that give items, that change the state themselves or by another one."""
        program = self.program
        found: dict[int, str] = {}
        for owner in state.family:
            module = program.module_of(owner)
            for name, bound in module.scopes[owner & MASK].bindings.items():
                row = module.nodes[bound[-1]]
                if row[0] == "def" and name not in (*_ITEMS, "__init__"):
                    found[module.base | row[1]] = name
        changing = {function for function in found if self._changes_itself(function, state)}
        while more := {one for one in found.keys() - changing if self._calls_one_of(one, {found[two] for two in changing})}:
            changing |= more
        return {found[function] for function in changing}

    def _changes_itself(self, function: int, state: State) -> bool:
        module = self.program.module_of(function)
        scope = module.scopes[function & MASK]
        fills_memo = function in self._making_items(state)
        written = {name for _, name, value, _ in scope.writes if not (fills_memo and module.nodes[value][0] == "upd")}
        if written & state.names or scope.globals:
            return True
        if fills_memo:
            # Wherever it is called.
            return False
        parts = [module.nodes[event[1]][1] for event in scope.events if event[0] == "store"]
        for call in scope.calls:
            row = module.nodes[module.nodes[call][1]]
            if row[0] == "attr" and row[2] in (*_KEPT_CHANGES, "append", "extend", "update", "insert", "add"):
                parts.append(row[1])
        rows = [module.plain(part) for part in parts]
        return any(row[0] == "attr" and row[2] in state.names for row in rows)

    def _calls_one_of(self, function: int, names: set[str]) -> bool:
        module = self.program.module_of(function)
        rows = [module.nodes[module.nodes[call][1]] for call in module.scopes[function & MASK].calls]
        return any(row[0] == "attr" and row[2] in names and self.program.class_of_self(module, row[1]) is not None for row in rows)

    def _writes_of_globals(self, state: State) -> Iterator[Change]:
        """``global EPOCH; EPOCH = epoch``, in the module of the dataset."""
        for index, name in sorted(state.globals):
            module = next(one for one in self.program.live if one.index == index)
            for number, scope in enumerate(module.scopes):
                if name in scope.globals:
                    # The table does not say where such a name is bound.
                    yield Change(module.base | number, -1)

    def _is(self, key: int, state: State) -> bool:
        """Whether an expression may be one of these objects, or their class."""
        atoms = self.program.atoms
        return any(one >= FIRST and atoms.of[one][0] in ("i", "self", "c") and atoms.of[one][1] in state.family for one in self.program.ask(key))

    def _may_be(self, key: int, state: State) -> bool:
        """The same, or the value is unknown and no part of a loader that stays in the main process."""
        if self._is(key, state):
            return True
        module = self.program.module_of(key)
        row = module.plain(key & MASK)
        if self.program.class_of_self(module, key & MASK) is not None or (row[0] == "attr" and row[2] in _OF_MAIN_PROCESS):
            return False
        value = self.program.ask(key)
        return not value or (row[0] == "attr" and row[2] in _OF_LOADERS and not self._is_known(value))

    def _is_known(self, value: Value) -> bool:
        return any(one >= FIRST and self.program.atoms.of[one][0] in ("i", "self") for one in value)

    def _is_module_of(self, value: Value, state: State) -> bool:
        """Whether it is a module with one of the globals."""
        modules = {index for index, _ in state.globals}
        return any(one >= FIRST and self.program.atoms.of[one][0] == "m" and self.program.atoms.of[one][1] in modules for one in value)


def _written_in(scope: Scope) -> Iterator[tuple[int, str, int]]:
    """The attributes that a scope sets: the base, the name, and the loop that this is in."""
    events = (event for event in scope.events if event[0] == "write")
    return ((base, name, event[2]) for (base, name, _, _), event in zip(scope.writes, events, strict=True))
