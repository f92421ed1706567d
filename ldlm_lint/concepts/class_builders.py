"""Classes that something builds: a call, a table, a registry or a configuration names them where the branch can be taken.

    class Copied:              # an import, a base class and `isinstance(x, Copied)` build nothing
        def train(self): ...
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.code.table import Node, guards_above
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.program.modules import Module
from ldlm_lint.program.operands import users_in

_ASKS = frozenset({"isinstance", "issubclass", "cast", "TypeVar", "hasattr"})
"""Functions that are given a class and build nothing with it."""
_PLAIN = ("dataclasses.", "functools.", "typing.", "abc.", "enum.", "torch.jit.", "builtins.", "attr.", "attrs.")
"""Decorators from these packages keep a class where it is."""
_LOOKS_UP = frozenset({"globals", "eval", "vars", "locals"})
_HANDS_ON = frozenset({"copy", "phi", "choice", "bool", "seq"})
OF_FRAMEWORKS = frozenset({"lightning", "pytorch_lightning", "transformers", "trl", "mmengine", "mmcv", "mmdet", "mmseg", "mmdet3d", "accelerate"})
"""Packages that build what a command line or configuration of theirs names."""
_ANYWHERE = -1
Guards = Callable[[Module, int, int], bool]


class Site(NamedTuple):
    """A place that may build a class: its module (index, -1 for anywhere), its function (0 if unknown), and whether it
    runs only where the module is the program."""

    module: int
    function: int
    is_main: bool


class ClassBuilders(Concept):
    """Answers for the classes of a program.

    ``can_run`` tells whether code under a guard of a function can run at all; ``is_named`` whether a configuration or
    script names something.
    """

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._can_run = code[Rhythm].passes
        self._is_named = code.is_named_in_configurations
        self._sites: dict[int, tuple[Site, ...]] = {}
        self._users: dict[int, dict[int, list[int]]] = {}
        self._mentions: dict[int, dict[str, list[int]]] = {}
        self._kept: dict[int, tuple[dict[int, list[int]], Counter[int]]] = {}

    def is_configured(self, owner: int) -> bool:
        """Whether a configuration or script of the project has the name of a class."""
        return self._is_named(self.program.module_of(owner).scopes[owner & MASK].name)

    def is_built(self, owner: int, loaded: frozenset[int], started: int) -> bool:
        """Whether a program that starts in a module builds a class, or one derived from it."""
        for one in self.program.below(owner):
            for site in self.sites(one):
                if site.module == _ANYWHERE or (site.module in loaded and (not site.is_main or site.module == started)):
                    return True
        return False

    def functions_for(self, owner: int) -> list[int] | None:
        """The functions that build a class, or one derived from it; None if something unknown builds it."""
        sites = [site for one in self.program.below(owner) for site in self.sites(one)]
        if any(site.module == _ANYWHERE or not site.function for site in sites):
            return None
        return list(dict.fromkeys(site.function for site in sites))

    def sites(self, owner: int) -> tuple[Site, ...]:
        """The places that may build a class itself."""
        if owner not in self._sites:
            self._sites[owner] = ()
            self._sites[owner] = tuple(self._find(owner))
        return self._sites[owner]

    def _find(self, owner: int) -> Iterator[Site]:
        home = self.program.module_of(owner)
        name = home.scopes[owner & MASK].name
        if self._is_of_framework(owner) or self._is_registered(home, owner) or self._is_looked_up(home, name) or self._is_named(name):
            yield Site(_ANYWHERE, 0, False)
            return
        for module in self.program.live:
            for written in {name, *self.program.aliases.get(name, ())}:
                for number in self._mentioned(module).get(written, ()):
                    row = module.nodes[number]
                    if row[0] == "const":
                        yield Site(_ANYWHERE, 0, False)
                    elif self._means(module, number, row, owner):
                        yield from self._uses(module, number, owner)

    def _is_of_framework(self, owner: int) -> bool:
        """Whether a class is derived from one of a training framework, whose command line builds it as well."""
        return any(name.partition(".")[0] in OF_FRAMEWORKS for name in self.program.outside_of(owner))

    def _is_registered(self, home: Module, owner: int) -> bool:
        """Whether a decorator, a base or a metaclass puts a class where others find it."""
        for one in self.program.order(owner):
            module = self.program.module_of(one)
            scope = module.scopes[one & MASK]
            if "__init_subclass__" in scope.bindings or any(key == "metaclass" and module.last_name(value) != "ABCMeta" for key, value in scope.keywords):
                return True
        if self.program.calls.get("__subclasses__"):
            return True
        return any(self._keeps(home, one) for one in home.scopes[owner & MASK].decorators)

    def _keeps(self, module: Module, decorator: int) -> bool:
        row = module.nodes[decorator]
        value = self.program.ask(module.base | (row[1] if row[0] == "call" else decorator))
        names = [fields[1] for fields in self.program.atoms.kinds(value, "x")]
        return not names or not all(name.startswith(_PLAIN) for name in names)

    def _is_looked_up(self, home: Module, name: str) -> bool:
        """Whether classes are looked up by computed names in a module that has this one."""
        bound = [self.program.modules.all[one].scopes[0].bindings for one in self._searched]
        return home.index in self._searched or any(name in names or "*" in names for names in bound)

    @cached_property
    def _searched(self) -> frozenset[int]:
        """The modules (indexes) whose members are looked up by computed names."""
        program = self.program
        found: set[int] = set()
        for call in program.calls.get("getattr", ()):
            module = program.module_of(call)
            args = module.nodes[call & MASK][2]
            if len(args) > 1 and module.plain(args[1])[0] != "const":
                found.update(fields[1] for fields in program.atoms.kinds(program.ask(module.base | args[0]), "m"))
        for name in _LOOKS_UP:
            found.update(program.module_of(call).index for call in program.calls.get(name, ()))
        for module in program.live:
            for row in module.nodes:
                if row[0] == "attr" and row[2] == "__dict__":
                    found.update(fields[1] for fields in program.atoms.kinds(program.ask(module.base | row[1]), "m"))
        return frozenset(found)

    def _mentioned(self, module: Module) -> dict[str, list[int]]:
        """The expressions of a module that may name a class of the project, by the name; texts are among them."""
        known = self._mentions.get(module.index)
        if known is None:
            known = self._mentions[module.index] = defaultdict(list)
            names, exported = self._names, _exported(module)
            for number, row in enumerate(module.nodes):
                kind = row[0]
                if kind in ("free", "attr", "impf") and row[2] in names:
                    known[row[2]].append(number)
                elif kind == "class" and module.scopes[row[1]].name in names:
                    known[module.scopes[row[1]].name].append(number)
                elif kind == "const" and row[1].__class__ is str and number not in exported:
                    last = row[1].replace(":", ".").rpartition(".")[2]
                    if last in names:
                        known[last].append(number)
        return known

    @cached_property
    def _names(self) -> frozenset[str]:
        names = set(self.program.classes)
        return frozenset(names.union(*(self.program.aliases.get(name, ()) for name in self.program.classes)))

    def _means(self, module: Module, number: int, row: Node, owner: int) -> bool:
        """Whether an expression is a class."""
        if row[0] == "class":
            return module.base | row[1] == owner
        value = self.program.ask(module.base | number)
        found = [fields[1] for fields in self.program.atoms.kinds(value, "c")]
        # A name that is not resolved may mean any class of that name.
        return owner in found or not found

    def _uses(self, module: Module, number: int, owner: int) -> Iterator[Site]:
        """The uses of an expression that may build what it names."""
        row = module.nodes[number]
        if row[0] == "impf" and module.path.endswith("__init__.py"):
            # What a package exports is built by who uses the package.
            yield Site(module.index, 0, False)
        held = self._held(module, number)
        for one in held:
            for user in self._users_of(module).get(one, ()):
                if user not in held and self._builds(module, one, user):
                    yield from self._site(module, user, owner)
        kept, bound = self._kept_in(module)
        for one in held:
            yield from (Site(module.index, at, False) for at in kept.get(one, ()))
        if sum(bound[one] for one in held) > (row[0] in ("class", "impf")):
            yield Site(module.index, 0, False)

    def _kept_in(self, module: Module) -> tuple[dict[int, list[int]], Counter[int]]:
        """The expressions that the functions of a module return, set as attributes or have as defaults, with these
        functions; and how many names each expression has."""
        known = self._kept.get(module.index)
        if known is None:
            kept: dict[int, list[int]] = defaultdict(list)
            bound: Counter[int] = Counter()
            for at, scope in enumerate(module.scopes):
                function = module.base | at if scope.kind == "def" and at else 0
                values = {*(value for value, _ in scope.returns), *(value for _, _, value, _ in scope.writes), *scope.defaults.values()}
                for one in values:
                    kept[one].append(function)
                bound.update(one for values in scope.bindings.values() for one in values)
            known = self._kept[module.index] = (kept, bound)
        return known

    def _held(self, module: Module, number: int) -> set[int]:
        """An expression, and those that only hand its value on or hold it."""
        held, todo = {number}, [number]
        while todo:
            for user in self._users_of(module).get(todo.pop(), ()):
                if module.nodes[user][0] in _HANDS_ON and user not in held:
                    held.add(user)
                    todo.append(user)
        return held

    def _users_of(self, module: Module) -> dict[int, list[int]]:
        known = self._users.get(module.index)
        if known is None:
            known = self._users[module.index] = users_in(module)
        return known

    @staticmethod
    def _builds(module: Module, number: int, user: int) -> bool:
        """Whether an expression does something with a class that it is made of, other than to ask for it."""
        row = module.nodes[user]
        asks = row[0] == "call" and row[1] != number and module.last_name(row[1]) in _ASKS
        return row[0] != "cmp" and not asks

    def _site(self, module: Module, user: int, owner: int) -> Iterator[Site]:
        site = module.table.sites.get(user)
        if site is None:
            yield Site(module.index, 0, False)
        elif not self._is_inside(module, site.scope, owner) and self._can_run(Call(self.code, module.base | user).spot):
            scope = module.scopes[site.scope]
            yield Site(module.index, module.base | site.scope if scope.kind == "def" or not site.scope else 0, is_main(module, site.guard))

    @staticmethod
    def _is_inside(module: Module, scope: int, owner: int) -> bool:
        """Whether code is in a class: what a class builds of itself needs someone who begins."""
        while scope > 0:
            if module.base | scope == owner:
                return True
            scope = module.scopes[scope].parent
        return False


def _exported(module: Module) -> frozenset[int]:
    """The texts of ``__all__``."""
    rows = (module.nodes[one] for one in module.scopes[0].bindings.get("__all__", ()))
    return frozenset(one for row in rows if row[0] == "seq" for one in row[2])


def is_main(module: Module, guard: int) -> bool:
    """Whether code runs only where its module is the program: ``if __name__ == "__main__":``."""
    for one in guards_above(module.table.guards, guard):
        test = module.table.guards[one].test
        row = module.nodes[test] if test else ("",)
        if row[0] == "cmp" and any(module.nodes[number] == ("const", "__main__") for number in (row[2], *row[3])):
            return True
    return False
