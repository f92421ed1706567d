"""The program of a repository: its modules linked, and the values of its expressions on demand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ldlm_lint.budget import deep
from ldlm_lint.code import Table, packed
from ldlm_lint.program.atoms import MASK, SHIFT
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.expressions import Expressions
from ldlm_lint.program.modules import Module, Modules, Shown
from ldlm_lint.program.outside import Configured
from ldlm_lint.program.slices import slice_of

MOST = 2_000_000
"""Expressions that are in memory, of some 300 bytes each: the values of a program rest on nearly all of its tables, and
reading them repeatedly costs three times as much as all else (measured on diffusers, which has 1.2 million)."""

STANDING = 250_000
"""Expressions above which tables are bytes, a fifth as large, until it is known which of them take part."""


class Program(Expressions):
    """The part of a repository that takes part in trainings; see the package's documentation for its use."""

    def __init__(self, modules: Modules, live: set[int], trains: set[int]) -> None:
        self.begin_classes()
        self.begin_calls()
        self.begin_containers()
        self.begin_expressions()
        super().__init__(modules, live, trains)
        for call in self.calls_around_classes():
            self.look_at(call)
        self.find_bases()
        self.begin_classes()

    def settle(self) -> None:
        """Compute every call, so that all callers of a function are known before anything rests on its parameters.

        Most callers are known before any argument is computed: arguments that come later make values grow again.
        """
        for compute in (self.look_at, self.get):
            for module in self.live:
                for call in module.table.sites:
                    compute(module.base | call)
            self.solve()
        self.say_what_is_missing()

    def calls_of_function(self, function: int) -> list[int]:
        """All calls (keys) of a function, each once."""
        return list(dict.fromkeys(one.call for one in self.callers(function)))

    def given_for(self, function: int, name: str) -> list[tuple[int, int]]:
        """The calls (keys) of a function with the expressions that they pass for a parameter."""
        bound = (one for one in self.callers(function) if one.how != UNKNOWN)
        given = ((one.call, self.argument_node(one.call, function, one.how, name)) for one in bound)
        return [(call, node) for call, node in given if node is not None]

    def modules_above(self, call: int) -> list[Module]:
        """The modules of the functions that lead to a call (key), without its own."""
        todo, seen = [self.function_of(call)], {self.function_of(call)}
        found: dict[int, Module] = {}
        while todo:
            function = todo.pop()
            for one in self.calls_of_function(function) if function & MASK else ():
                above = self.function_of(one)
                if above not in seen:
                    seen.add(above)
                    todo.append(above)
                    found[above >> SHIFT] = self.module_of(above)
        found.pop(call >> SHIFT, None)
        return list(found.values())

    def function_of(self, call: int) -> int:
        """The function that a call is in; the module itself is scope 0."""
        module = self.module_of(call)
        return module.base | module.table.sites[call & MASK].scope


class Filed(NamedTuple):
    """A file of a program: path below the root, its `Shown`, its table (as bytes if it was remembered), and whether it
    is a test.

    A test has no table: it takes part in no training.
    """

    path: str
    shown: Shown
    table: Table | bytes
    is_test: bool


def linked(files: Iterable[Filed], most: int = MOST, configured: Configured | None = None) -> Program:
    """The program of files; where they have more than ``most`` expressions, only the tables in use are in memory.

    ``configured`` says what the configuration files hold for a setting.
    """
    modules = _gathered(files, most)
    trains, live = slice_of(modules)
    for module in modules.all:
        if module.index not in live:
            modules.dropped.add(module.index)
            module.packed = b""
            module.hold(Table())
    with deep():
        program = Program(modules, live, trains)
        program.configured = configured
        program.settle()
    return program


def _gathered(files: Iterable[Filed], most: int) -> Modules:
    modules = Modules(most)
    standing = min(most, STANDING)
    expressions = 0
    for path, shown, table, is_test in files:
        module = modules.add(path, shown, is_test)
        if isinstance(table, bytes):
            module.packed = table
            continue
        before, expressions = expressions, expressions + len(table.nodes)
        module.hold(table)
        if expressions > standing:
            for one in modules.all if before <= standing else [module]:
                _pack(one)
    return modules


def _pack(module: Module) -> None:
    if not module.packed and not module.is_test:
        module.packed = packed(module.table)
        module.let_go()
