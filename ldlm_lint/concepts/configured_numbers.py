"""Numbers that a program takes from a configuration: the settings behind an expression, and their values in the
project's files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_MOST = 40
"""Expressions behind a number that are looked at."""
_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)


class ConfiguredNumbers(Concept):
    """Answers for the expressions of a program, by the files of its project."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.files = code.files
        self.settings = code[ReadSettings]
        self._said: dict[str, frozenset[float]] = {}

    def are_positive(self, key: int) -> bool:
        """Whether an expression (key), or one of its cases, is a setting that the files set to numbers above 0 only."""
        todo, seen = [key], {key}
        while todo and len(seen) < _MOST:
            one = todo.pop()
            module = self.program.module_of(one)
            name = self._setting(module, one & MASK)
            if name and self.settings.is_read(one) and (numbers := self.said(name)) and min(numbers) > 0:
                return True
            for other in self._cases(module, one & MASK):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return False

    def said(self, name: str) -> frozenset[float]:
        """The numbers that the project's configurations give for a key; empty if one of them gives something else."""
        if name not in self._said:
            self._said[name] = self._all_said(name)
        return self._said[name]

    def _all_said(self, name: str) -> frozenset[float]:
        found = self._values(name)
        return frozenset() if None in found else frozenset(one for one in found if one is not None)

    def are_given(self, name: str) -> bool:
        """Whether some configuration sets a key."""
        return bool(self._values(name))

    def may_exceed(self, name: str, most: float) -> bool:
        """Whether one of the configurations sets a key to more than a number."""
        return any(one is not None and one > most for one in self._values(name))

    def _values(self, name: str) -> set[float | None]:
        """The values of a key in the configurations; None stands for a value that is not a number."""
        found: set[float | None] = set()
        word = name.encode()
        for path in self.files.of_kind(*_DOCUMENTS):
            document = self.files.document(path) if word in self.files.data(path) else None
            for entry in document.named(name) if document is not None else ():
                value = entry.value
                found.add(value if isinstance(value, (int, float)) and not isinstance(value, bool) else None)
        return found

    def _setting(self, module: Module, number: int) -> str:
        """The key that an expression reads: ``told["workers"]``, ``told.workers``, ``told.get("workers")``."""
        row = module.nodes[number]
        if row[0] == "attr":
            return str(row[2])
        key = row[2] if row[0] == "item" else row[2][0] if row[0] == "call" and row[2] and module.last_name(row[1]) == "get" else 0
        text = module.nodes[key]
        return text[1] if text[0] == "const" and isinstance(text[1], str) else ""

    def _cases(self, module: Module, number: int) -> Iterator[int]:
        """The ways to a number, and the factors of a product."""
        row = module.nodes[number]
        if row[0] in ("param", "free"):
            yield from self.program.given_or_bound(module, row)
        elif row[0] == "phi":
            yield from (module.base | one for one in row[1])
        elif row[0] == "copy" or (row[0] == "call" and len(row[2]) == 1 and module.last_name(row[1]) == "int"):
            yield module.base | (row[1] if row[0] == "copy" else row[2][0])
        elif row[0] == "op" and row[1] == "Mult":
            yield from (module.base | one for one in row[2:4])
