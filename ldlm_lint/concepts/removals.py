"""What removes files, and the names that these may have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.handed import handed_in
from ldlm_lint.concepts.path_patterns import JOINS, PathPatterns
from ldlm_lint.program.atoms import MASK

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_REMOVES = {"remove": 0, "unlink": 0, "rmtree": 0, "removedirs": 0, "rmdir": 0}
_STEPS = 12


class Removals:
    """The calls of a program that remove files."""

    def __init__(self, program: Program, patterns: PathPatterns) -> None:
        self.program = program
        self.patterns = patterns

    def all(self) -> Iterator[tuple[int, set[str]]]:
        """The calls that remove files, and the names of what they remove; no names where these are not known."""
        for name in _REMOVES:
            for call in self.program.calls.get(name, ()):
                module = self.program.module_of(call)
                row = module.nodes[call & MASK]
                function = module.nodes[row[1]]
                if function[0] == "attr" and not row[2]:
                    yield call, self._names(module, function[1], 0)
                elif row[2] and self._removes_files(module, row):
                    yield call, self._names(module, row[2][0], 0)

    def _removes_files(self, module: Module, row: tuple[object, ...]) -> bool:
        """Whether the function is one of Python's own: lists have a ``remove``, too."""
        functions = self.program.ask(module.base | int(str(row[1])))
        return any(fields[1].partition(".")[0] in ("os", "shutil", "pathlib") for fields in self.program.atoms.kinds(functions, "x"))

    def _names(self, module: Module, number: int, steps: int) -> set[str]:
        """The names that a removed path may be: what it is by itself, or what was looked for where it comes from."""
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
            inner = row[2][-1] if name in JOINS and row[2] else row[2][0] if row[2] else 0
            return self._names(module, inner, steps + 1) if inner else set()
        if kind == "param":
            given = [node for _, node in handed_in(self.program, module.base | row[1], row[2])]
            return set().union(*(self._names(self.program.module_of(one), one & MASK, steps + 1) for one in given))
        if kind == "phi":
            return set().union(*(self._names(module, one, steps + 1) for one in row[1]))
        inner = row[2] if kind == "op" and row[1] == "Div" else row[1] if kind in ("copy", "elem", "item", "part", "star") else 0
        if kind == "comp":
            inner = row[1]
        return self._names(module, inner, steps + 1) if inner else set()
