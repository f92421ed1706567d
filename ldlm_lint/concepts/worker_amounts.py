"""The places of the possible worker numbers of a loader: constants, and counts of the node's CPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.code.table import Node
from ldlm_lint.concepts.worker_counts import CPU_COUNTS, counts_affinity, is_bounded, looked_up_default, setting_of
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Queries

_CASTS = frozenset({"int", "round", "floor"})
_LOOK_UPS = frozenset({"get", "getattr", "pop", "getenv"})
_FEW = 4
"""A division of the CPUs by less leaves many times what is a rank's share."""
_MOST_OPEN = 30
_MOST = 60
"""Expressions behind a number of workers that are looked at."""


class Written(NamedTuple):
    """A number that a setting gets elsewhere (an option's default, an attribute, a field of a class) with its place."""

    number: int
    home: Module
    place: int


class WorkerAmounts:
    """Answers for the expressions of a program."""

    def __init__(self, ask: Queries) -> None:
        self.ask = ask
        self.program = ask.program
        self._open = 0

    def whole_nodes(self, key: int, limit: int) -> list[int]:
        """The expressions (keys) after a number of workers that are the CPUs of the node, or nearly all of them."""
        if self._open > _MOST_OPEN:
            return []
        self._open += 1
        try:
            return list(dict.fromkeys(self._nodes(key, limit)))
        finally:
            self._open -= 1

    def _nodes(self, key: int, limit: int) -> Iterator[int]:
        module = self.program.module_of(key)
        row, base = module.nodes[key & MASK], module.base
        kind = row[0]
        if kind == "call":
            yield from self._of_call(module, key, row, limit)
        elif kind == "op":
            by = module.nodes[row[3]]
            is_small = by[0] == "const" and isinstance(by[1], (int, float)) and (row[1] == "Sub" or (row[1] in ("Div", "FloorDiv") and by[1] < _FEW))
            if is_small and self.whole_nodes(base | row[2], limit):
                yield key
        elif kind == "choice":
            for arm, holds in ((row[2], True), (row[3], False)):
                if not is_bounded(module, arm, row[1], holds, limit - 1):
                    yield from self.whole_nodes(base | arm, limit)
        elif kind == "phi" or (kind == "bool" and row[1] == "Or"):
            for one in row[1] if kind == "phi" else row[2]:
                yield from self.whole_nodes(base | one, limit)
        elif kind == "copy":
            yield from self.whole_nodes(base | row[1], limit)
        elif kind in ("param", "free"):
            for one in self.program.given_or_bound(module, row):
                yield from self.whole_nodes(one, limit)

    def _of_call(self, module: Module, key: int, row: Node, limit: int) -> Iterator[int]:
        names = self.ask.names_of(self.program.ask(module.base | row[1]))
        if (names and names <= CPU_COUNTS) or counts_affinity(self.ask, module, row):
            yield key
            return
        name, args = module.last_name(row[1]), [module.base | one for one in row[2]]
        if name in _CASTS and len(args) == 1 and self.whole_nodes(args[0], limit):
            yield key
        elif name == "max":
            for one in args:
                yield from self.whole_nodes(one, limit)
        elif name == "min" and args:
            # The smallest decides: all of them must be that large, and a number is more informative.
            each = [self.whole_nodes(one, limit) for one in args]
            if all(each):
                yield each[0][0]

    def written_for(self, key: int) -> Iterator[Written]:
        """The numbers for a setting whose value is unknown here, in the programs that read it."""
        seen, todo = {key}, [key]
        while todo and len(seen) < _MOST:
            one = todo.pop()
            yield from self._written(one)
            behind_it = set(self._behind(one)) - seen
            seen |= behind_it
            todo += sorted(behind_it)

    def _behind(self, key: int) -> Iterator[int]:
        module = self.program.module_of(key)
        row, base = module.nodes[key & MASK], module.base
        if row[0] == "copy":
            yield base | row[1]
        elif row[0] == "phi":
            yield from (base | one for one in row[1])
        elif row[0] in ("param", "free"):
            yield from self.program.given_or_bound(module, row)
        elif row[0] == "call" and module.last_name(row[1]) in _CASTS and len(row[2]) == 1:
            yield base | row[2][0]

    def _written(self, key: int) -> Iterator[Written]:
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] == "call" and module.last_name(row[1]) in _LOOK_UPS:
            default = looked_up_default(module, row)
            number = _whole(module, default) if default is not None else None
            if number is not None:
                yield Written(number, module, module.table.sites[key & MASK].place if key & MASK in module.table.sites else 0)
        if row[0] == "attr":
            yield from self._by_name(module, key, row)

    def _by_name(self, module: Module, key: int, row: Node) -> Iterator[Written]:
        program, name = self.program, setting_of(module, row)
        near = program.together.programs_of(module)
        flags = [fields[1] for fields in program.atoms.kinds(program.ask(key), "flag")] or self.ask.flags_by_name(key)
        computed = (_whole(program.module_of(value), value & MASK) is None for _, value in program.other_writes.get(name, ()) if program.module_of(value).index in near)
        # ``args.workers = args.workers // ranks``: the loader does not get the option itself.
        for call in () if any(computed) else flags:
            default = self.ask.flag(call).default
            yield from self._numbered(default, near, call)
        for target, value in program.other_writes.get(name, ()):
            home = program.module_of(value)
            writes = (write for scope in home.scopes for write in scope.writes)
            place = next((at for base, written, one, at in writes if (base, written, one) == (target & MASK, name, value & MASK)), 0)
            if place and home.index in near and (number := _whole(home, value & MASK)) is not None:
                yield Written(number, home, place)
        owners = [one for classes in program.classes.values() for one in classes if program.is_field(one, name)]
        for owner in owners:
            home = program.module_of(owner)
            for event in home.scopes[owner & MASK].events if home.index in near else ():
                if event[0] == "bind" and event[5] == name and (number := _whole(home, event[1])) is not None:
                    yield Written(number, home, event[4])

    def _numbered(self, default: int | None, near: set[int] | frozenset[int], call: int) -> Iterator[Written]:
        if default is None:
            return
        home = self.program.module_of(default)
        number = _whole(home, default & MASK)
        if number is not None and home.index in near:
            owner = self.program.module_of(call)
            yield Written(number, owner, owner.table.sites[call & MASK].place)


def _whole(module: Module, number: int) -> int | None:
    """A literal integer, also as text."""
    row = module.plain(number)
    if row[0] != "const":
        return None
    if isinstance(row[1], str):
        return int(row[1]) if row[1].isdecimal() and len(row[1]) < 7 else None
    return row[1] if row[1].__class__ is int else None
