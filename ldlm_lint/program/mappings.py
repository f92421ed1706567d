"""The keys that a mapping may have, those it surely has, and whether it may have others; used for all ``**``
arguments.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import FIRST, MASK, NONE, Value
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.modules import Module
from ldlm_lint.program.program import Program

_ADDS = frozenset({"update", "setdefault"})
_READS = frozenset({"loads", "literal_eval", "safe_load"})
_DROPS = frozenset({"pop", "clear", "popitem"})


class Keys:
    """The keys of a mapping: ``entries`` are the possible expressions of each key, ``certain`` the keys that always
    exist.

    ``put_by`` are the expressions that add them, in the same order; ``flags`` the options by which a user may add
    others, and ``opened_by`` the expressions with unknown keys (0 if there is no expression): unknown code may add
    others there.
    """

    __slots__ = ("certain", "entries", "flags", "opened_by", "put_by")

    def __init__(self) -> None:
        self.entries: dict[str, list[int]] = defaultdict(list)
        self.put_by: dict[str, list[int]] = defaultdict(list)
        self.certain: set[str] = set()
        self.flags: set[int] = set()
        self.opened_by: set[int] = set()

    @property
    def unresolved(self) -> bool:
        """Whether unknown code may add other keys."""
        return bool(self.opened_by)

    @property
    def is_open(self) -> bool:
        """Whether it may have other keys."""
        return self.unresolved or bool(self.flags)

    def add(self, key: str, value: int, by: int, *, certain: bool) -> None:
        """Add an entry with the expression that adds it; a certain entry replaces the previous one."""
        if certain:
            self.entries[key], self.put_by[key] = [], []
            self.certain.add(key)
        self.entries[key].append(value)
        self.put_by[key].append(by)

    def join(self, other: Keys, *, certain: bool) -> None:
        """Merge another mapping into this one; ``certain`` if that always happens."""
        for key, values in other.entries.items():
            if certain and key in other.certain:
                # The previous entries are replaced.
                self.entries[key], self.put_by[key] = [], []
                self.certain.add(key)
            self.entries[key] += values
            self.put_by[key] += other.put_by[key]
        self.opened_by |= other.opened_by
        self.flags |= other.flags

    def either(self, other: Keys) -> None:
        """This mapping or another one."""
        for key, values in other.entries.items():
            self.entries[key] += values
            self.put_by[key] += other.put_by[key]
        self.certain &= other.certain
        self.opened_by |= other.opened_by
        self.flags |= other.flags


class Mappings:
    """The mappings of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[int, Keys] = {}
        self._changes: dict[int, list[int]] | None = None

    def keys(self, value: Value, call: int = 0, by: int = 0) -> Keys:
        """The keys of all possible values; opened ``by`` an expression if a value may be anything but a mapping of the
        program.

        Keys that a function adds after its own ``call`` do not count.
        """
        ways = [self._of_atom(one, call, by) for one in sorted(self._behind(value)) if one != NONE]
        if not ways:
            keys = Keys()
            keys.opened_by.add(by)
            return keys
        first = Keys()
        first.join(ways[0], certain=True)
        first.certain = set(ways[0].certain)
        for way in ways[1:]:
            first.either(way)
        return first

    def keys_at(self, key: int, call: int = 0) -> Keys:
        """The keys of an expression's value, without the keys added after a ``call``."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] == "call" and module.last_name(row[1]) in _READS and row[2]:
            # ``json.loads(args.options)``
            return self.keys_at(module.base | row[2][0], call)
        return self.keys(self.program.ask(key), call, key)

    def put_into(self, place: int) -> Keys:
        """The later changes of a mapping, by the expression that created it."""
        keys = Keys()
        self._change(keys, place, frozenset())
        return keys

    def _of_atom(self, one: int, call: int, by: int) -> Keys:
        fields = self.program.atoms.of[one] if one >= FIRST else ("",)
        if fields[0] == "d":
            later = self._later(one, call) if call else frozenset()
            return self._made_at(fields[1], later) if later else self._of_place(fields[1])
        keys = Keys()
        if fields[0] == "flag":
            keys.flags.add(fields[1])
        else:
            keys.opened_by.add(by)
        return keys

    def _behind(self, value: Value) -> set[int]:
        """The possible values, with the argument of ``list(options)`` instead of its result; ``options = list(options)`` in a
        loop is made from itself."""
        found: set[int] = set()
        seen: set[int] = set()
        todo = set(value)
        while todo:
            one = todo.pop()
            fields = self.program.atoms.of[one] if one >= FIRST else ("",)
            inner = self.program.ask(fields[2]) if fields[:2] == ("view", "pass") else frozenset()
            if inner:
                seen.add(one)
                todo |= inner - seen
            else:
                found.add(one)
        return found

    def _of_place(self, place: int) -> Keys:
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = Keys()
            # A mapping built from itself has no further keys from that.
            self._fill(known, place, frozenset())
        return known

    def _made_at(self, place: int, later: frozenset[int]) -> Keys:
        """The keys of a mapping without some changes of it."""
        keys = Keys()
        self._fill(keys, place, later)
        return keys

    def _fill(self, keys: Keys, place: int, without: frozenset[int]) -> None:
        module = self.program.module_of(place)
        self._make(keys, module, module.nodes[place & MASK], place)
        self._change(keys, place, without)

    def _later(self, container: int, call: int) -> frozenset[int]:
        """The changes of a mapping that the caller makes after the call, and not before it in another iteration of a
        loop."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        found = []
        for change in self._changes_of(container):
            if change > call and self.program.module_of(change) is module:
                standing = self._standing(module, change & MASK)
                if standing is not None and standing[0] == site.scope and not self._share_loop(module, site.loop, standing[1]):
                    found.append(change)
        return frozenset(found)

    @staticmethod
    def _share_loop(module: Module, one: int, other: int) -> bool:
        around = set()
        while one >= 0:
            around.add(one)
            one = module.table.loops[one].parent
        while other >= 0:
            if other in around:
                return True
            other = module.table.loops[other].parent
        return False

    def _make(self, keys: Keys, module: Module, row: Node, place: int) -> None:
        kind = row[0]
        if kind == "map":
            for key, value in zip(row[1], row[2], strict=True):
                if key:
                    self._put(keys, module, key, module.base | value, place, certain=True)
                else:
                    keys.join(self.keys_at(module.base | value), certain=True)
        elif kind == "call" and module.last_name(row[1]) in ("dict", "OrderedDict", "defaultdict"):
            for one in row[2]:
                keys.join(self.keys_at(module.base | one), certain=True)
            self._put_keywords(keys, module, row[3], place, certain=True)
        elif kind == "call" and module.last_name(row[1]) == "asdict" and row[2]:
            self._put_fields(keys, self.program.ask(module.base | row[2][0]))
        elif kind == "kwarg":
            self._put_by_callers(keys, module, module.base | row[1])
        else:
            keys.opened_by.add(0)

    def _put(self, keys: Keys, module: Module, key: int, value: int, by: int, *, certain: bool) -> None:
        texts = self.program.atoms.texts(self.program.ask(module.base | key))
        if len(texts) == 1 and "*" not in next(iter(texts)):
            keys.add(next(iter(texts)), value, by, certain=certain)
        elif not texts or any("*" in text for text in texts):
            keys.opened_by.add(0)
        else:
            for text in texts:
                keys.add(text, value, by, certain=False)

    def _put_keywords(
        self, keys: Keys, module: Module, keywords: Iterable[tuple[str | None, int]], by: int, *, certain: bool
    ) -> None:
        for name, value in keywords:
            if name is None:
                keys.join(self.keys_at(module.base | value), certain=certain)
            else:
                keys.add(name, module.base | value, by, certain=certain)

    def _put_fields(self, keys: Keys, value: Value) -> None:
        """The fields of a record, as in the dictionary of ``asdict``."""
        program = self.program
        owners = {fields[1] for kind in ("i", "self") for fields in program.atoms.kinds(value, kind)}
        owner = next(iter(owners)) if len(owners) == 1 else 0
        if not owner or not program.is_record(owner):
            keys.opened_by.add(0)
            return
        for name in program.fields_of(owner):
            for number, source in enumerate(program.field_sources(owner, name)):
                keys.add(name, source, source, certain=not number)

    def _put_by_callers(self, keys: Keys, module: Module, function: int) -> None:
        """The ``**kwargs`` of the known calls of a function."""
        program = self.program
        edges = program.callers(function)
        params = module.scopes[function & MASK].params
        if not edges:
            keys.opened_by.add(0)
        for index, edge in enumerate(edges):
            caller = program.module_of(edge.call)
            own = Keys()
            if edge.how == UNKNOWN:
                own.opened_by.add(0)
            given = [one for one in caller.nodes[edge.call & MASK][3] if one[0] not in params]
            self._put_keywords(own, caller, given, edge.call, certain=True)
            for name in params:
                own.entries.pop(name, None)
                own.put_by.pop(name, None)
                own.certain.discard(name)
            if index:
                keys.either(own)
            else:
                keys.join(own, certain=True)

    def _change(self, keys: Keys, place: int, without: frozenset[int]) -> None:
        """The keys added or removed, wherever the mapping is passed."""
        container = self.program.atoms.atom("d", place)
        for change in self._changes_of(container):
            if change in without:
                continue
            module = self.program.module_of(change)
            row = module.nodes[change & MASK]
            if row[0] == "upd":
                certain = self._stands_beside(module, change, place)
                self._put(keys, module, row[2], module.base | row[3], change, certain=certain)
                continue
            if row[0] == "item":
                self._drop(keys, module, row[2], gone=self._stands_beside(module, change, place))
                continue
            method = module.nodes[row[1]][2]
            if method == "setdefault" and row[2]:
                self._put(keys, module, row[2][0], module.base | row[2][-1], change, certain=False)
            elif method == "update":
                certain = self._stands_beside(module, change, place)
                for one in row[2]:
                    keys.join(self.keys_at(module.base | one), certain=certain)
                self._put_keywords(keys, module, row[3], change, certain=certain)
            elif method in _DROPS:
                self._drop(keys, module, row[2][0] if row[2] else 0, gone=self._stands_beside(module, change, place))

    def _drop(self, keys: Keys, module: Module, key: int, *, gone: bool) -> None:
        """Remove a key, or all keys; ``gone`` if that always happens."""
        texts = self.program.atoms.texts(self.program.ask(module.base | key)) if key else set(keys.entries)
        keys.certain -= texts or set(keys.certain)
        if gone and (not key or len(texts) == 1):
            for text in texts:
                keys.entries.pop(text, None)
                keys.put_by.pop(text, None)

    def _stands_beside(self, module: Module, change: int, place: int) -> bool:
        """Whether a change surely follows the creation of the mapping: in the same function, under no further guard or
        loop."""
        home = self.program.module_of(place)
        if module is not home:
            return False
        made, changed = self._standing(module, place & MASK), self._standing(module, change & MASK)
        return made is not None and made == changed

    @staticmethod
    def _standing(module: Module, number: int) -> tuple[int, int, int] | None:
        """Scope, loop and guard of an expression that is a call, or bound or stored right away."""
        site = module.table.sites.get(number)
        if site is not None:
            return site.scope, site.loop, site.guard
        for index, scope in enumerate(module.scopes):
            for event in scope.events:
                if event[1] == number and event[0] in ("bind", "store", "delete"):
                    return index, event[2], event[3]
        return None

    def _changes_of(self, container: int) -> list[int]:
        if self._changes is None:
            self._changes = defaultdict(list)
            for change in self._all_changes():
                module = self.program.module_of(change)
                row = module.nodes[change & MASK]
                base = row[1] if row[0] in ("upd", "item") else module.nodes[row[1]][1]
                for one in self.program.ask(module.base | base):
                    if one >= FIRST and self.program.atoms.of[one][0] == "d":
                        self._changes[one].append(change)
        return sorted(self._changes.get(container, ()))

    def _all_changes(self) -> list[int]:
        program = self.program
        found: set[int] = set()
        for module in program.live:
            found.update(module.base | update for update in module.table.updates)
            deleted = (event[1] for scope in module.scopes for event in scope.events if event[0] == "delete")
            found.update(module.base | number for number in deleted if module.nodes[number][0] == "item")
        for name in (*_ADDS, *_DROPS):
            for call in program.calls.get(name, ()):
                module = program.module_of(call)
                if module.nodes[module.nodes[call & MASK][1]][0] == "attr":
                    found.add(call)
        return sorted(found)


