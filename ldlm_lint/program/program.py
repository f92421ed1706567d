"""The program of a repository: its modules linked, and the values of its expressions on demand."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ldlm_lint.code import Table
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.expressions import Expressions
from ldlm_lint.program.modules import Module, Modules
from ldlm_lint.program.slices import slice_of

_RECURSION = 20_000
"""Frames of Python that a question may take: `solver.DEPTH` questions, each through some twenty functions."""


class Program(Expressions):
    """The part of a repository that takes part in trainings; see the package's text for how to ask it."""

    def __init__(self, modules: Modules, live: set[int], trains: set[int]) -> None:
        self.begin_classes()
        self.begin_calls()
        self.begin_expressions()
        self._destinations = {}
        self._uses = {}
        super().__init__(modules, live, trains)
        self.find_bases()
        self.begin_classes()

    def function_of(self, call: int) -> int:
        """The function that a call stands in; the module itself is scope 0."""
        module = self.module_of(call)
        return module.base | module.table.sites[call & MASK].scope


def linked(tables: Iterable[tuple[str, Table, bool]]) -> Program:
    """The program of files: path below the root, table, and whether it is a test."""
    modules = Modules()
    for path, table, is_test in tables:
        modules.add(path, table, is_test)
    trains, live = slice_of(modules)
    for module in modules.all:
        if module.index not in live:
            modules.dropped.add(module.index)
            _drop(module)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION))
    return Program(modules, live, trains)


def _drop(module: Module) -> None:
    """Forget the table of a module that takes part in no training."""
    module.table = Table()
    module.nodes, module.scopes = [], []
