"""Numbers that a program takes from a configuration: the settings behind an expression, and their values in the
project's files."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.source import Kind

_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)


class ConfiguredNumbers(Concept):
    """Answers for the expressions of a codebase, by the files of its project."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._settings = code[ReadSettings]
        self._values: dict[str, set[float | None]] = {}

    def are_positive(self, number: Expr) -> bool:
        """Whether an expression, or one of its cases, is a setting that the files set to numbers above 0 only."""
        todo, seen = [number], {number}
        while todo:
            at = todo.pop()
            name = _setting(at)
            if name and self._settings.is_read(at) and (numbers := self.said(name)) and min(numbers) > 0:
                return True
            new = [one for one in _cases(at) if one not in seen]
            seen.update(new)
            todo += new
        return False

    def said(self, name: str) -> frozenset[float]:
        """The numbers that the project's configurations give for a key; empty if one of them gives something else."""
        found = self._values_of(name)
        return frozenset() if None in found else frozenset(one for one in found if one is not None)

    def are_given(self, name: str) -> bool:
        """Whether some configuration sets a key."""
        return bool(self._values_of(name))

    def may_exceed(self, name: str, most: float) -> bool:
        """Whether one of the configurations sets a key to more than a number."""
        return any(one is not None and one > most for one in self._values_of(name))

    def _values_of(self, name: str) -> set[float | None]:
        """The values of a key in the configurations; None stands for a value that is not a number."""
        if name not in self._values:
            found = self._values[name] = set()
            files, word = self.code.files, name.encode()
            for path in files.of_kind(*_DOCUMENTS):
                document = files.document(path) if word in files.data(path) else None
                for entry in document.named(name) if document is not None else ():
                    is_number = isinstance(entry.value, (int, float)) and not isinstance(entry.value, bool)
                    found.add(entry.value if is_number else None)
        return self._values[name]


def _setting(at: Expr) -> str:
    """The key that an expression reads: ``told["workers"]``, ``told.workers``, ``told.get("workers")``."""
    if at.kind == "attr":
        return at.name
    key = at.positional[0] if isinstance(at, Call) and at.called_name == "get" and at.positional else at.index
    return key.constant if key is not None and isinstance(key.constant, str) else ""


def _cases(at: Expr) -> Iterable[Expr]:
    """The ways to a number, and the factors of a product."""
    if at.kind in ("param", "free"):
        return at.given if at.kind == "param" else at.bound_outside
    if at.kind in ("phi", "copy"):
        return at.ways
    if isinstance(at, Call) and at.called_name == "int" and len(at.positional) == 1:
        return at.positional
    return at.operands if at.operator == "Mult" else ()


__all__ = ["ConfiguredNumbers"]
