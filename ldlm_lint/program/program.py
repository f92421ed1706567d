"""The program of a repository: its modules linked, and the values of its expressions on demand."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator

from ldlm_lint.code import Table
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.expressions import Expressions
from ldlm_lint.program.modules import Module, Modules
from ldlm_lint.program.slices import slice_of

_FRAMES = 8_000
"""Frames of Python that questions may take: `solver.DEPTH` of them, each through up to some forty functions."""


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
    with deep():
        return Program(modules, live, trains)


@contextlib.contextmanager
def deep() -> Iterator[None]:
    """Give questions the frames of Python that they may take; whoever asks a program more than a few of them does it inside."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _drop(module: Module) -> None:
    """Forget the table of a module that takes part in no training."""
    module.table = Table()
    module.nodes, module.scopes = [], []
