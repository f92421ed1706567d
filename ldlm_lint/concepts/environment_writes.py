"""Writes of a program to the environment of its own process, through names, parameters and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.text_parts import Context, Place
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN

if TYPE_CHECKING:
    from ldlm_lint.concepts.texts import Texts
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.queries import Queries

_ENVIRON = "os.environ"
_MOST_CALLERS = 20


class EnvironmentWrite(NamedTuple):
    """A variable with its possible texts, empty if unknown.

    ``row`` (key) is the store or call that writes it; ``call`` (key) the call of the enclosing function that passes the
    value, 0 if the function has it itself.
    """

    name: str
    texts: tuple[str, ...]
    row: int
    call: int


class EnvironmentWrites:
    """The writes of the requested variables; ``wanted`` decides by name."""

    def __init__(self, ask: Queries, texts: Texts, wanted: Callable[[str], bool]) -> None:
        self._ask = ask
        self._program = ask.program
        self._texts = texts
        self._wanted = wanted

    def all(self) -> Iterator[EnvironmentWrite]:
        """Every write, module by module."""
        for module in self._program.live:
            for number in module.table.updates:
                _, base, key, value = module.nodes[number]
                if self._may_be_wanted(module, base, key) and self._is_environment(module, base):
                    yield from self._written(module, number, key, value)
            for name in ("setdefault", "putenv", "update"):
                for call in module.table.named.get(name, ()):
                    yield from self._passed(module, call, name)

    def _passed(self, module: Module, call: int, name: str) -> Iterator[EnvironmentWrite]:
        """The arguments of ``setdefault``, ``putenv`` and ``update``."""
        function, args = module.nodes[module.nodes[call][1]], module.nodes[call][2]
        if name == "update":
            if function[0] == "attr" and module.last_name(function[1]) == "environ" and self._is_environment(module, function[1]):
                for one in args:
                    yield from self._merged(module, call, one)
        elif len(args) == 2 and self._may_be_wanted(module, function[1] if function[0] == "attr" else 0, args[0]):
            is_setter = self._is_putenv(module, call) if name == "putenv" else function[0] == "attr" and self._is_environment(module, function[1])
            if is_setter:
                yield from self._written(module, call, *args)

    def _merged(self, module: Module, call: int, mapping: int) -> Iterator[EnvironmentWrite]:
        entries = self._texts.places.entries(Place(module.base | mapping))
        for name, (_, value) in (entries or {}).items():
            if self._wanted(name):
                yield EnvironmentWrite(name, self._texts.of(value.key, value.context), module.base | call, 0)

    def _may_be_wanted(self, module: Module, base: int, key: int) -> bool:
        """Whether a name may be wanted; a computed one only if the environment is written out in the same place."""
        row = module.nodes[key]
        if row[0] == "const":
            return isinstance(row[1], str) and self._wanted(row[1])
        return bool(base) and module.last_name(base) in ("environ", "os") and row[0] in ("param", "part", "elem", "free", "copy", "attr")

    def _is_environment(self, module: Module, number: int) -> bool:
        return any(fields[1] == _ENVIRON for fields in self._program.atoms.kinds(self._program.ask(module.base | number), "x"))

    def _is_putenv(self, module: Module, call: int) -> bool:
        function = self._program.ask(module.base | module.nodes[call][1])
        return any(fields[1] == "os.putenv" for fields in self._program.atoms.kinds(function, "x"))

    def _written(self, module: Module, row: int, key: int, value: int) -> Iterator[EnvironmentWrite]:
        names, texts = self._texts.of(module.base | key), self._texts.of(module.base | value)
        found: list[EnvironmentWrite] = []
        says_all = names and texts and module.plain(key)[0] != "param"
        for context in () if says_all else self._contexts(module, row, key):
            handed, given = self._texts.of(module.base | key, context), self._texts.of(module.base | value, context)
            found += [EnvironmentWrite(name, given, module.base | row, context.call) for name in handed if given]
        yield from (one for one in found or (EnvironmentWrite(name, texts, module.base | row, 0) for name in names) if self._wanted(one.name))

    def _contexts(self, module: Module, row: int, key: int) -> Iterator[Context]:
        """The iterations of the loop that provides the name, or else the calls of the enclosing function."""
        taken = module.nodes[key][1] if module.nodes[key][0] == "part" else key
        if module.nodes[taken][0] == "elem":
            rounds = self._texts.places.rounds(Place(module.base | module.nodes[taken][1]))
            yield from (Context(element=module.base | taken, items=one) for one in rounds or ())
            return
        function = self._scope_of(module, row)
        edges = self._program.callers(module.base | function) if function else []
        if len(edges) <= _MOST_CALLERS:
            yield from (Context(module.base | function, edge.call, edge.how) for edge in edges if edge.how != UNKNOWN)

    @staticmethod
    def _scope_of(module: Module, row: int) -> int:
        """The function that a call or a store is in; the module itself is 0."""
        site = module.table.sites.get(row)
        if site is not None:
            return site.scope
        stores = (number for number, scope in enumerate(module.scopes) if any(event[0] == "store" and event[1] == row for event in scope.events))
        return next(stores, 0)


def module_of(ask: Queries, write: EnvironmentWrite) -> tuple[Module, int]:
    """The module and the row that determine a write: the call that passes the value, or the write itself."""
    key = write.call or write.row
    return ask.program.module_of(key), key & MASK


__all__ = ["EnvironmentWrite", "EnvironmentWrites", "module_of"]
