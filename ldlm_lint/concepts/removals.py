"""Calls that remove files, and the possible names of these."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ldlm_lint.concepts.path_patterns import JOINS, PathPatterns
from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_REMOVES = ("remove", "unlink", "rmtree", "removedirs", "rmdir")
_MOVES = ("replace", "rename", "move")
_LISTS = frozenset({"listdir", "scandir", "iterdir", "walk"})
_OWN_ROTATION = ("_keep_last", ("path", "before", "after", "keep"))
"""What the fix of unbounded-checkpoints writes: it prunes the saves that call it, and says nothing about others."""
_STEPS = 12
_MOST = 8
"""Ways and elements that are looked at."""


class Removal(NamedTuple):
    """A call (key) that removes files, their names (empty if unknown), and the expression (key) of the removed path."""

    call: int
    names: set[str]
    path: int


class Removals:
    """The calls of a program that remove files."""

    def __init__(self, program: Program, patterns: PathPatterns) -> None:
        self.program = program
        self.patterns = patterns

    def all(self) -> Iterator[Removal]:
        """The calls that remove files; renaming to a constant name removes the file under its old name."""
        yield from self._removed()
        for name in _MOVES:
            for call in self.program.calls.get(name, ()):
                yield from self._moved(call)

    def _moved(self, call: int) -> Iterator[Removal]:
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        function = module.nodes[row[1]]
        if len(row[2]) == 2 and self._removes_files(module, row):
            source, target = row[2]
        elif len(row[2]) == 1 and function[0] == "attr":
            source, target = function[1], row[2][0]
        else:
            return
        names = self._names(module, source, 0)
        stays = all("*" not in posixpath.basename(one) for one in self.patterns.of(module.base | target))
        if names and stays:
            yield Removal(call, names, 0)

    def _removed(self) -> Iterator[Removal]:
        for name in _REMOVES:
            for call in self.program.calls.get(name, ()):
                module = self.program.module_of(call)
                row = module.nodes[call & MASK]
                function = module.nodes[row[1]]
                scope = module.scopes[module.table.sites[call & MASK].scope]
                if (scope.name, scope.params) == _OWN_ROTATION:
                    continue
                if function[0] == "attr" and not row[2]:
                    yield Removal(call, self._names(module, function[1], 0), module.base | function[1])
                elif row[2] and self._removes_files(module, row):
                    yield Removal(call, self._names(module, row[2][0], 0), module.base | row[2][0])

    def _removes_files(self, module: Module, row: tuple[object, ...]) -> bool:
        """Whether the function is from Python's standard library: lists have a ``remove``, too."""
        functions = self.program.ask(module.base | int(str(row[1])))
        return any(fields[1].partition(".")[0] in ("os", "shutil", "pathlib") for fields in self.program.atoms.kinds(functions, "x"))

    def _names(self, module: Module, number: int, steps: int) -> set[str]:
        """The names that a removed path may be: its own patterns, or those of the search that found it."""
        texts = set(self.patterns.of(module.base | number)) - {"*"}
        if texts:
            return texts
        row = module.nodes[number]
        kind = row[0]
        if steps > _STEPS:
            return set()
        if kind == "call":
            name = module.last_name(row[1])
            if name in ("glob", "iglob", "rglob") and row[2]:
                found = self.program.atoms.texts(self.program.ask(module.base | row[2][0]))
                # ``folder.glob("step_*.pt")`` looks below a folder that the text does not name.
                return {text if "/" in text else f"*/{text}" for text in found}
            if name in _LISTS:
                return self._listed(module, row)
            inner = row[2][-1] if name in JOINS and row[2] else row[2][0] if row[2] else 0
            return self._names(module, inner, steps + 1) if inner else set()
        if kind == "param":
            given = [node for _, node in self.program.given_for(module.base | row[1], row[2])]
            return set().union(*(self._names(self.program.module_of(one), one & MASK, steps + 1) for one in given))
        if kind == "attr":
            return self._names_of_attribute(module, row)
        if kind in ("phi", "seq"):
            ways = row[1] if kind == "phi" else row[2]
            return set().union(*(self._names(module, one, steps + 1) for one in ways[:_MOST]))
        inner = row[2] if kind == "op" and row[1] == "Div" else row[1] if kind in ("copy", "elem", "item", "part", "star") else 0
        if kind == "comp":
            inner = row[1]
        return self._names(module, inner, steps + 1) if inner else set()

    def _names_of_attribute(self, module: Module, row: tuple[Any, ...]) -> set[str]:
        """The names of a path that an object stores, such as that of the last file."""
        owner = self.program.class_of_self(module, row[1])
        written = self.program.own_writes.get((owner, str(row[2])), ()) if owner is not None else ()
        return {text for one in written for text in self.patterns.of(one) if text.strip("*")}

    def _listed(self, module: Module, row: tuple[Any, ...]) -> set[str]:
        """All that is in a folder."""
        function = module.nodes[row[1]]
        folder = row[2][0] if row[2] else function[1] if function[0] == "attr" else 0
        return {f"{text}/*" for text in self.patterns.of(module.base | folder)} if folder else set()
