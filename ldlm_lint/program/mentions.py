"""Where the code of a file mentions names: what it reads, sets, defines and passes by name, and texts that are a single word.

Comments, docstrings and imports mention nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import expression

if TYPE_CHECKING:
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.handles import Class, Expr, Function
    from ldlm_lint.program.modules import Module

_MEMBERS = "__dict__"
"""The attribute by which the members of a module are looked up."""
_WORD = lazily(r"-{0,2}\w[\w.-]*")


class Mentions:
    """Answers for the files of a codebase, by patterns that a name must contain."""

    def __init__(self, code: Codebase) -> None:
        self._code = code
        self._found: dict[tuple[int, re.Pattern[str]], frozenset[int]] = {}
        self._names: dict[int, dict[str, set[int]]] = {}

    def are_in(self, owner: Class | Function, names: re.Pattern[str]) -> bool:
        """Whether the code of a class or a function mentions such a name."""
        return any(self._is_inside(owner.module, one, owner) for one in self._scopes(owner.module, names))

    def are_outside(self, module: Module, classes: frozenset[Class], names: re.Pattern[str]) -> bool:
        """Whether the code of a file outside of some classes mentions such a name."""
        own = [one for one in classes if one.module is module]
        return any(not any(self._is_inside(module, one, owner) for owner in own) for one in self._scopes(module, names))

    def of(self, name: str) -> list[Expr]:
        """The expressions that read the name of a class, a method or a function of the project, or an alias of it, import or
        define it, and the texts that end with it: ``"package.module.Class"``."""
        found = [one for written in (name, *sorted(self._code.program.aliases.get(name, ()))) for one in self._by_name.get(written, ())]
        return [expression(self._code, one) for one in found]

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        program = self._code.program
        names = {scope.name for module in program.live for scope in module.scopes if scope.kind in ("class", "def")} | {_MEMBERS}
        names |= {alias for name in names for alias in program.aliases.get(name, ())}
        found: dict[str, list[int]] = defaultdict(list)
        for module in program.live:
            exported = _exported(module)
            for number, row in enumerate(module.nodes):
                kind, name = row[0], ""
                if kind in ("free", "attr", "impf"):
                    name = row[2]
                elif kind == "class":
                    name = module.scopes[row[1]].name
                elif kind == "const" and row[1].__class__ is str and number not in exported:
                    name = row[1].replace(":", ".").rpartition(".")[2]
                if name in names:
                    found[name].append(module.base | number)
        return dict(found)

    def _is_inside(self, module: Module, scope: int, owner: Class | Function) -> bool:
        while scope > 0:
            if module.base | scope == owner.key:
                return True
            scope = module.scopes[scope].parent
        return False

    def _scopes(self, module: Module, names: re.Pattern[str]) -> frozenset[int]:
        """The scopes in which such a name is mentioned."""
        key = (module.index, names)
        if key not in self._found:
            if module.index not in self._names:
                self._names[module.index] = self._named(module)
            self._found[key] = frozenset[int]().union(*(found for name, found in self._names[module.index].items() if names.search(name)))
        return self._found[key]

    def _named(self, module: Module) -> dict[str, set[int]]:
        """The scopes in which each name is mentioned."""
        found: dict[str, set[int]] = {}
        for number, scope in enumerate(module.scopes):
            bound = (name for name, values in scope.bindings.items() if any(module.nodes[one][0] not in ("imp", "impf") for one in values))
            for name in (scope.name if scope.kind != "module" else "", *scope.params, *bound, *(name for _, name, _, _ in scope.writes)):
                found.setdefault(name, set()).add(number)
        for call, site in module.table.sites.items():
            _, function, args, keywords = module.nodes[call]
            taken = (module.nodes[one][2] for one in args if module.nodes[one][0] == "impf")
            for name in (module.last_name(function), *taken, *(key or "" for key, _ in keywords)):
                found.setdefault(name, set()).add(site.scope)
        for number, row in enumerate(module.nodes):
            read = row[2] if row[0] in ("attr", "free") else row[1] if row[0] == "const" else None
            if isinstance(read, str) and (row[0] != "const" or _WORD.fullmatch(read)):
                inside = row[1] if row[0] == "free" else self._scope_at(module, number)
                found.setdefault(read, set()).add(inside)
        return found

    def _scope_at(self, module: Module, number: int) -> int:
        """The scope around an expression; that of the module for what is written nowhere."""
        place = module.table.places[number]
        return next(self._code.scopes_at(module, place), 0) if place else 0


def _exported(module: Module) -> frozenset[int]:
    """The texts of ``__all__``, which only say who may import."""
    rows = (module.nodes[one] for one in module.scopes[0].bindings.get("__all__", ()))
    return frozenset(one for row in rows if row[0] == "seq" for one in row[2])


__all__ = ["Mentions"]
