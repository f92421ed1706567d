"""Index of the slice: calls, attribute stores, changed containers, registries, classes and their bases."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ldlm_lint.program.atoms import FIRST, MASK, SHIFT
from ldlm_lint.program.modules import Module, Modules
from ldlm_lint.program.processes import add_processes
from ldlm_lint.program.solver import Solver

TIMM = "timm.create_model"
"""The registry that `timm` keeps of the functions that its ``register_model`` decorates."""

_SETS = ("register_buffer", "register_parameter", "add_module", "register_module")
_CHANGES = ("append", "extend", "update", "setdefault", "add", "insert", "appendleft")
_NAMED_ELSEWHERE = frozenset({"const", "op", "cmp", "attr", "free", "param", "imp", "impf", "def", "class", "phi", "copy", "upd", "item"})
"""What is not a container itself, or has a name at its place."""
_UNNAMED = frozenset({"none", "const", "imp", "impf"})
_SAYS_NOTHING = frozenset({"const", "op", "cmp", "fstr", "map", "seq", "none", "comp", "item"})


class Index(Solver):
    """The indexes of a slice; everything in them is a key."""

    def __init__(self, modules: Modules, live: set[int], trains: set[int]) -> None:
        super().__init__(modules)
        self.live = [module for module in modules.all if module.index in live]
        self.trains = trains
        self.calls: dict[str, list[int]] = defaultdict(list)
        """The calls by the last name of the function."""
        self.aliases: dict[str, set[str]] = defaultdict(set)
        self.own_writes: dict[tuple[int, str], list[int]] = defaultdict(list)
        """What methods of a class set on ``self``, by class and name."""
        self.other_writes: dict[str, list[tuple[int, int]]] = defaultdict(list)
        """What is set on other objects, by name: the object and the value."""
        self.changes: dict[str | tuple[int, str], list[int]] = defaultdict(list)
        """What is put into containers, by the name that the container has there."""
        self.given: dict[str, list[tuple[int, int]]] = defaultdict(list)
        """What is given for a keyword, in calls and mappings: where, and the value."""
        self.owner: dict[int, int] = {}
        """The class of a method."""
        self.bound: set[int] = set()
        """The methods that take an object first."""
        self.buffers: set[tuple[int, str]] = set()
        self.registered: dict[str, set[int]] = defaultdict(set)
        """What is put into a registry by a decorator, by the registry's name."""
        self.classes: dict[str, list[int]] = defaultdict(list)
        self.bases: dict[int, list[int]] = {}
        self.outside_bases: dict[int, set[str]] = {}
        self.subclasses: dict[int, set[int]] = defaultdict(set)
        self.starts: set[int] = set()
        """The calls that start a function in another process: its arguments are in a separate call."""
        self.decorating: set[int] = set()
        """The calls that a decorator stands for."""
        self.decorators: set[str] = set()
        """The last names of all decorators."""
        self._names: dict[int, dict[int, frozenset[str]]] = {}
        for module in self.live:
            self._index_module(module)
            # Few modules are needed again.
            self._names.clear()

    def _index_module(self, module: Module) -> None:
        base, table = module.base, module.table
        added = add_processes(module)
        self.starts.update(base | call for _, _, call in added)
        if added:
            module.keep()
        for name, alias in table.aliases:
            self.aliases[name].add(alias)
        for name, calls in table.named.items():
            self.calls[name] += [base | call for call in calls]
        for call, decorator, _ in table.decorations:
            self.decorating.add(base | call)
            self.decorators.add(module.last_name(decorator).removeprefix("()"))
            self.calls[module.last_name(decorator)].append(base | call)
        self._index_scopes(module)
        self._index_changes(module)
        self._index_registrations(module)
        self._index_given(module)

    def _index_scopes(self, module: Module) -> None:
        base, nodes = module.base, module.nodes
        for number, scope in enumerate(module.scopes):
            if scope.kind == "class":
                self.classes[scope.name].append(base | number)
            elif number and module.scopes[scope.parent].kind == "class":
                self.owner[base | number] = base | scope.parent
                if not any(nodes[one][0] == "free" and nodes[one][2] == "staticmethod" for one in scope.decorators):
                    self.bound.add(base | number)
            for target, name, value, _ in scope.writes:
                self._index_write(module, target, name, value)

    def _index_write(self, module: Module, target: int, name: str, value: int) -> None:
        owner = self.class_of_self(module, target)
        if owner is not None:
            self.own_writes[owner, name].append(module.base | value)
        else:
            self.other_writes[name].append((module.base | target, module.base | value))

    def _index_changes(self, module: Module) -> None:
        nodes, named = module.nodes, module.table.named
        for method in _SETS:
            for call in named.get(method, ()):
                function, args = nodes[nodes[call][1]], nodes[call][2]
                if function[0] == "attr" and len(args) > 1 and nodes[args[0]][0] == "const":
                    owner = self.class_of_self(module, function[1])
                    if owner is not None:
                        name = str(nodes[args[0]][1])
                        self.own_writes[owner, name].append(module.base | args[1])
                        self.buffers.add((owner, name))
        for method in _CHANGES:
            for call in named.get(method, ()):
                function = nodes[nodes[call][1]]
                if function[0] == "attr":
                    self._add_change(module, function[1], module.base | call)
        for update in module.table.updates:
            self._add_change(module, nodes[update][1], module.base | update)

    def _index_registrations(self, module: Module) -> None:
        for _, decorator, defined in module.table.decorations:
            row = module.nodes[decorator]
            if row[0] == "call":
                row = module.nodes[row[1]]
            if row[0] == "attr" and row[2].startswith("register"):
                self.registered[module.last_name(row[1])].add(module.base | defined)
            elif module.last_name(decorator) == "register_model":
                self.registered[TIMM].add(module.base | defined)

    def _index_given(self, module: Module) -> None:
        base, nodes = module.base, module.nodes
        for call in module.table.sites:
            for name, value in nodes[call][3]:
                if name and nodes[value][0] not in _SAYS_NOTHING:
                    self.given[name].append((base | call, base | value))
        for mapping in module.table.maps:
            for key, value in zip(nodes[mapping][1], nodes[mapping][2], strict=True):
                if nodes[key][0] == "const" and nodes[value][0] not in _SAYS_NOTHING:
                    self.given[str(nodes[key][1])].append((base | mapping, base | value))

    def _add_change(self, module: Module, container: int, key: int) -> None:
        name = self._name_of_container(module, container)
        self.changes[module.index, name].append(key)
        row = module.nodes[container]
        for _ in range(12):
            if row[0] not in ("item", "upd", "copy", "phi"):
                break
            row = module.nodes[row[1][0] if row[0] == "phi" else row[1]]
        # The objects that other modules may reach by this name.
        if row[0] in ("attr", "free", "impf"):
            self.changes[name].append(key)

    def _name_of_container(self, module: Module, number: int, steps: int = 0) -> str:
        row = module.nodes[number]
        if steps > 12:
            return ""
        if row[0] in ("attr", "free", "param", "impf"):
            return str(row[2])
        if row[0] == "item":
            key = module.nodes[row[2]]
            if key[0] == "const" and isinstance(key[1], str):
                return key[1]
            return self._name_of_container(module, row[1], steps + 1)
        if row[0] in ("upd", "copy"):
            return self._name_of_container(module, row[1], steps + 1)
        if row[0] == "phi":
            return self._name_of_container(module, row[1][0], steps + 1)
        names = self.names_of(module.base | number)
        return min(names) if names else ""

    def class_of_self(self, module: Module, number: int) -> int | None:
        """The class whose ``self`` an expression is, in a method or in a scope inside one."""
        row = module.plain(number)
        if row[0] == "free":
            scope = module.scopes[row[1]]
            while scope.parent > 0 and row[2] not in scope.parameters:
                scope = module.scopes[scope.parent]
            if row[2] not in scope.parameters:
                return None
            row = module.nodes[scope.parameters[row[2]]]
        if row[0] != "param":
            return None
        scope = module.scopes[row[1]]
        if scope.params[:1] != (row[2],) or module.scopes[scope.parent].kind != "class":
            return None
        return module.base | scope.parent

    def calls_decorated(self, module: Module, function: int) -> bool:
        """Whether an expression is the function that a decorator was given, inside of what it returns instead.

        Who calls a decorated function by its name calls the function itself here: the call inside of the wrapper would
        mix all functions that are decorated with one decorator. Which functions decorate is known by their names only:
        this is asked while it is found out where calls go.
        """
        row = module.nodes[function]
        if row[0] != "free":
            return False
        at = module.scopes[row[1]].parent
        while at > 0 and row[2] not in module.scopes[at].parameters:
            at = module.scopes[at].parent
        around = [at, module.scopes[at].parent] if at > 0 else []
        return any(module.scopes[one].name in self.decorators for one in around if one > 0)

    def names_of(self, key: int) -> frozenset[str]:
        """The names that an expression is bound to: of variables, attributes and keys of mappings.

        None for what has a name at its place, or is no container itself: see `all_names_of`.
        """
        kind = self.module_of(key).nodes[key - self.module_of(key).base][0]
        return self.all_names_of(key) if kind not in _NAMED_ELSEWHERE else frozenset()

    def all_names_of(self, key: int) -> frozenset[str]:
        """The names that an expression is bound to, whatever it is."""
        module = self.module_of(key)
        names = self._names.get(module.index)
        if names is None:
            names = self._names[module.index] = self._bound_names(module)
        return names.get(key - module.base, frozenset())

    @staticmethod
    def _bound_names(module: Module) -> dict[int, frozenset[str]]:
        names: dict[int, frozenset[str]] = {}
        alone: dict[str, frozenset[str]] = {}

        def add(value: int, name: str) -> None:
            if module.nodes[value][0] in _UNNAMED:
                return
            one = alone.setdefault(name, frozenset([name]))
            known = names.get(value)
            names[value] = one if known is None else known | one

        for scope in module.scopes:
            for name, values in scope.bindings.items():
                for value in values:
                    add(value, name)
            for _, name, value, _ in scope.writes:
                add(value, name)
        for mapping in module.table.maps:
            row = module.nodes[mapping]
            for key, value in zip(row[1], row[2], strict=True):
                if module.nodes[key][0] == "const" and module.nodes[value][0] in ("map", "seq", "call"):
                    add(value, str(module.nodes[key][1]))
        return names

    def calls_around_classes(self) -> Iterator[int]:
        """The calls of functions that define a class: one of their parameters may be its base."""
        for one in (one for classes in self.classes.values() for one in classes):
            scopes = self.module_of(one).scopes
            around = scopes[scopes[one & MASK].parent]
            if around.kind == "def" and scopes[one & MASK].bases:
                yield from self.calls.get(around.name, ())

    def find_bases(self) -> None:
        """Resolve the bases of all classes; no objects were evaluated before."""
        written: list[tuple[int, list[int]]] = []
        for classes in self.classes.values():
            for one in classes:
                module = self.module_of(one)
                written.append((one, [module.base | number for number in module.scopes[one - module.base].bases]))
        for _, bases in written:
            for base in bases:
                self.closed(base)
        self.solve()
        for one, bases in written:
            own, outside = self.bases.setdefault(one, []), self.outside_bases.setdefault(one, set())
            for base in bases:
                for atom in sorted(self.closed(base)):
                    fields = self.atoms.of[atom] if atom >= FIRST else ("",)
                    if fields[0] == "c" and fields[1] != one:
                        own.append(fields[1])
                        self.subclasses[fields[1]].add(one)
                    elif fields[0] == "x":
                        outside.add(fields[1])


def key_of(module: Module, number: int) -> int:
    """The key of an expression or scope of a module."""
    return module.index << SHIFT | number
