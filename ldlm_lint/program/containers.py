"""Containers: the possible values of a key, an element or a part of an unpacking, including values stored later
anywhere in the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import (
    BOOLEAN,
    DEVICE_LOADER,
    FIRST,
    HOMES,
    HOST,
    HOST_TENSOR,
    LOADER,
    MAPPING,
    MASK,
    MOVED,
    NOTHING,
    OF_PYTHON,
    ON_DEVICE,
    ON_HOST,
    PARAMETERS,
    Value,
)
from ldlm_lint.program.batches import Batches
from ldlm_lint.program.modules import Module

GIVEN = 64
"""Places that give a keyword above which what is handed on by ``**`` says nothing of it."""
_FROM_PAIRS = frozenset({"dict", "OrderedDict"})
_KEYED = frozenset({"map", "dcomp", "kwarg"})


class Containers(Batches):
    """The contents of containers."""

    _mappings: dict[int, frozenset[Node]]

    def begin_containers(self) -> None:
        """Start without any file."""
        self._mappings = {}

    def item(self, value: Value, key: object) -> Value:
        """The possible values of ``value[key]``; any item for None."""
        found = set(self.entry(self.tensor_part(value), key))
        if BOOLEAN in value and not found.isdisjoint(HOMES):
            found.add(BOOLEAN)
        if MOVED in value and key.__class__ is not str:
            found.add(MOVED)
        for one in value:
            if one < FIRST:
                if one == HOST:
                    found.add(HOST)
                continue
            fields = self.atoms.of[one]
            kind = fields[0]
            if kind == "d":
                found |= self.get(("content", fields[1], key))
            elif kind in ("i", "self"):
                for function in self.methods(fields[1], "__getitem__", exact=kind == "i"):
                    found |= self.instantiate(function, None, 3)
            elif kind == "view":
                found |= self.elements(frozenset([one]))
            elif kind == "pair":
                found |= self.part(frozenset([one]), key)
            elif kind == "ns":
                found |= self.option(fields[1], key) if isinstance(key, str) else NOTHING
            elif kind == "parsed":
                found |= self._parsed(fields[1], key)
            elif kind == "k":
                found.add(HOST)
        return frozenset(found)

    def elements(self, value: Value) -> Value:
        """The elements of an iteration over a value."""
        found = set(self.tensor_part(value)) if MAPPING not in value else {HOST}
        for one in value:
            if one == HOST:
                found.add(HOST)
            elif one in (PARAMETERS, DEVICE_LOADER):
                found |= ON_DEVICE
            elif one == MOVED:
                found.add(MOVED)
            elif one == LOADER:
                found |= ON_HOST
            elif one >= FIRST:
                found |= self.get(("element", one))
        return frozenset(found)

    def elements_at(self, place: int, value: Value) -> Value:
        """The elements of an iteration over the value of an expression: of a batch that the program uses as a mapping its
        keys."""
        homes = value & HOMES
        if homes and self.is_used_as_mapping(self.module_of(place), (place if place >= 0 else ~place) & MASK):
            return self.elements(value - homes) | OF_PYTHON
        return self.elements(value)

    def is_used_as_mapping(self, module: Module, number: int) -> bool:
        """Whether a file reads an entry of something by a text, or by what a loop over it takes."""
        mappings = self._mappings.get(module.index)
        if mappings is None:
            mappings = self._mappings[module.index] = frozenset(_mappings_of(module))
        return module.plain(number) in mappings

    def element_of(self, one: int) -> Value:
        """Question ``("element", object)``."""
        fields = self.atoms.of[one]
        kind = fields[0]
        if kind == "d":
            made = self.module_of(fields[1]).nodes[fields[1] & MASK]
            return OF_PYTHON if made[0] in _KEYED else self.get(("content", fields[1], None))
        if kind == "gen":
            module = self.module_of(fields[1])
            yields = module.scopes[fields[1] & MASK].yields
            if fields[2:]:
                return frozenset().union(*(self.yielded(fields[1], number, *fields[2:]) for number in yields))
            return frozenset().union(*(self.get(module.base | number) for number in yields))
        if kind == "view":
            return self._element_of_view(fields)
        if kind in ("i", "self"):
            return self._element_of_object(fields)
        return OF_PYTHON if kind == "k" else NOTHING

    def _element_of_view(self, fields: tuple[Any, ...]) -> Value:
        how, place = fields[1], fields[2]
        if how == "values":
            return self.item(self.get(place), None)
        if how in ("pass", "iter"):
            return self.elements_at(place, self.get(place))
        if how == "map":
            return self.callvalue(self.get(place), None)
        return frozenset([self.atoms.atom("pair", how, place)])

    def _element_of_object(self, fields: tuple[Any, ...]) -> Value:
        exact = fields[0] == "i"
        functions = self.methods(fields[1], "__iter__", exact=exact)
        if functions:
            return frozenset().union(*(self.elements(self.instantiate(one, None, 3)) for one in functions))
        functions = self.methods(fields[1], "__getitem__", exact=exact)
        if functions:
            return frozenset().union(*(self.instantiate(one, None, 3) for one in functions))
        if any(name.endswith("DataLoader") for name in self.outside_of(fields[1])):
            return ON_HOST
        return NOTHING

    def part(self, value: Value, index: object) -> Value:
        """The possible values of a part of an unpacking; -1 for an unknown position."""
        place = index if index.__class__ is int else -1
        found = set(self.tensor_part(value))
        for one in value:
            if one < FIRST:
                if one == HOST:
                    found.add(HOST)
                continue
            fields = self.atoms.of[one]
            kind = fields[0]
            if kind == "pair":
                found |= self._part_of_pair(fields, place)
            elif kind == "parsed":
                found |= self._parsed(fields[1], place)
            elif kind == "prep":
                found |= self._part_of_prepared(fields[1], place)
            elif kind == "init":
                found |= frozenset(part for part in self.get(fields[1]) if part >= FIRST) if place == 0 else NOTHING
            elif kind == "d":
                made = self.module_of(fields[1]).nodes[fields[1] & MASK]
                known = isinstance(place, int) and place >= 0 and made[0] in ("seq", "vararg")
                found |= self.get(("content", fields[1], place if known else None))
            elif kind in ("gen", "view", "i", "self"):
                found |= self.elements(frozenset([one]))
            elif kind == "ns":
                found.add(one)
        return frozenset(found)

    def _parsed(self, call: int, place: object) -> Value:
        """The object of one of the dataclasses that a parser was made with; any of them if the position is unknown."""
        module = self.module_of(call)
        row = module.nodes[call & MASK]
        first = row[2][0] if row[2] else next((value for name, value in row[3] if name == "dataclass_types"), 0)
        given = module.plain(first)
        classes = list(given[2]) if given[0] == "seq" else [first] if first else []
        wanted = classes[place : place + 1] if isinstance(place, int) and place >= 0 else classes
        owners = {fields[1] for one in wanted for fields in self.atoms.kinds(self.get(module.base | one), "c")}
        return frozenset(self.atoms.atom("i", owner) for owner in owners)

    def _part_of_pair(self, fields: tuple[Any, ...], place: object) -> Value:
        how, key = fields[1], fields[2]
        if how == "zip":
            module = self.module_of(key)
            args = module.nodes[key & MASK][2]
            if any(module.nodes[one][0] == "star" for one in args):
                return self.elements(self.elements(self.get(module.base | module.nodes[args[0]][1])))
            return self.elements(self.get(module.base | args[place])) if isinstance(place, int) and 0 <= place < len(args) else NOTHING
        if place == 0:
            return OF_PYTHON
        if how == "items":
            return self.item(self.get(key), None)
        if how == "enum":
            return self.elements_at(key, self.get(key))
        return ON_DEVICE if how == "parameters" else NOTHING

    def _part_of_prepared(self, call: int, place: object) -> Value:
        module = self.module_of(call)
        args = module.nodes[call & MASK][2]
        wanted = [args[place]] if isinstance(place, int) and 0 <= place < len(args) else args
        return frozenset().union(*(self.prepared(self.get(module.base | one)) for one in wanted))

    def prepared(self, value: Value) -> Value:
        """The result of an Accelerator's ``prepare``: loaders yield batches on the device, tensors move there."""
        moved = frozenset([DEVICE_LOADER if one == LOADER else one for one in value if one != HOST_TENSOR])
        return moved | ON_DEVICE if HOST_TENSOR in value else moved

    def is_container(self, value: Value) -> bool:
        """Whether a value may be a container."""
        return any(one >= FIRST and self.atoms.of[one][0] in ("d", "gen", "view") for one in value)

    def content(self, place: int, key: object) -> Value:
        """Question ``("content", place, key)``: the contents of the container made at a place under a key, anything for
        None."""
        module = self.module_of(place)
        row = module.nodes[place & MASK]
        follow = not (row[0] == "kwarg" and key.__class__ is str)
        value = self._first_content(module, row, place, key, follow) | self._added(module, place, key)
        return value if value or follow else self.get(("keyword", key))

    def keyword(self, name: str) -> Value:
        """Question ``("keyword", name)``: all arguments for a keyword that is passed on by ``**``, one cell for all."""
        given = self.given.get(name, ())
        if len(given) > GIVEN:
            self.limited["keywords"] += 1
            return NOTHING
        value = NOTHING
        for _, source in given:
            value |= self.take(("keyword", name), source, objects_only=True)
        return value

    def _first_content(self, module: Module, row: tuple[Any, ...], place: int, key: object, follow: bool) -> Value:
        """The initial contents of a container, from the expression that makes it."""
        kind = row[0]
        if kind == "seq":
            return self._content_of_sequence(module, row, key)
        if kind == "map":
            return self._content_of_mapping(module, row, key, follow)
        if kind == "comp":
            return self.get(module.base | row[1])
        if kind == "dcomp":
            return self.get(module.base | row[2])
        if kind == "call":
            return self._content_of_call(module, row, key, follow)
        if kind == "kwarg":
            return self._content_of_kwargs(module.base | row[1], key, follow)
        return self._content_of_varargs(module.base | row[1], key) if kind == "vararg" else NOTHING

    def _content_of_sequence(self, module: Module, row: tuple[Any, ...], key: object) -> Value:
        found: set[int] = set()
        for index, one in enumerate(row[2]):
            if module.nodes[one][0] == "star":
                found |= self.elements(self.get(module.base | module.nodes[one][1]))
            elif key.__class__ is not int or key == index:
                found |= self.get(module.base | one)
        return frozenset(found)

    def _content_of_mapping(self, module: Module, row: tuple[Any, ...], key: object, follow: bool) -> Value:
        found: set[int] = set()
        for name, value in zip(row[1], row[2], strict=True):
            if not name:
                found |= self.item(self.get(module.base | value), key) if follow else NOTHING
            elif key is None or module.nodes[name][0] != "const" or module.nodes[name][1] == key:
                found |= self.get(module.base | value)
        return frozenset(found)

    def _content_of_call(self, module: Module, row: tuple[Any, ...], key: object, follow: bool) -> Value:
        """Of ``dict(…)``, ``ModuleList([…])`` and the like."""
        found: set[int] = set()
        nodes, base = module.nodes, module.base
        if module.last_name(row[1]) == "asdict" and row[2] and key.__class__ is str:
            return self.attribute(self.get(base | row[2][0]), str(key))
        for one in row[2] if follow else ():
            if nodes[one][0] == "star":
                found |= self.elements(self.get(base | nodes[one][1]))
                continue
            given = self.get(base | one)
            if module.last_name(row[1]) in _FROM_PAIRS and module.plain(one)[0] in ("comp", "seq"):
                found |= self.part(self.elements(given), 1)
            elif key.__class__ is str:
                found |= self.item(given, key)
            elif self.is_container(given):
                found |= self.elements(given)
        found |= self._given_by_keyword(module, row[3], key, follow)
        if module.last_name(row[1]) == "defaultdict" and row[2]:
            found |= self.callvalue(self.get(base | row[2][0]), None)
        return frozenset(found)

    def _given_by_keyword(self, module: Module, keywords: Any, key: object, follow: bool = True) -> Value:
        found: set[int] = set()
        for name, value in keywords:
            if name is None:
                found |= self.item(self.get(module.base | value), key) if follow else NOTHING
            elif key is None or key == name:
                found |= self.get(module.base | value)
        return frozenset(found)

    def _content_of_kwargs(self, function: int, key: object, follow: bool) -> Value:
        found: set[int] = set()
        params = self.module_of(function).scopes[function & MASK].params
        for edge in self.get(("edges", function)):
            module = self.module_of(edge >> 2)
            keywords = module.nodes[(edge >> 2) & MASK][3]
            found |= self._given_by_keyword(module, [one for one in keywords if one[0] not in params], key, follow)
        return frozenset(found)

    def _content_of_varargs(self, function: int, key: object) -> Value:
        found: set[int] = set()
        scope = self.module_of(function).scopes[function & MASK]
        for edge in self.get(("edges", function)):
            module = self.module_of(edge >> 2)
            how = edge & 3
            skip = scope.positional - (1 if how == 1 else 0) + (1 if how == 2 else 0)
            for index, one in enumerate(module.nodes[(edge >> 2) & MASK][2]):
                if module.nodes[one][0] == "star":
                    found |= self.elements(self.get(module.base | module.nodes[one][1]))
                elif index >= skip and (key.__class__ is not int or key == index - skip):
                    found |= self.get(module.base | one)
        return frozenset(found)

    def _added(self, home: Module, place: int, key: object) -> Value:
        """The contents added later, wherever a name of the container is changed."""
        found: set[int] = set()
        container = self.atoms.atom("d", place)
        for name in sorted(self.names_of(place)):
            for change in sorted({*self.changes.get(name, ()), *self.changes.get((home.index, name), ())}):
                module = self.module_of(change)
                row = module.nodes[change & MASK]
                if row[0] == "upd":
                    put = module.nodes[row[2]]
                    if key is not None and put[0] == "const" and put[1] != key:
                        continue
                    if container in self.get(module.base | row[1]):
                        found |= self.get(module.base | row[3])
                elif container in self.get(module.base | module.nodes[row[1]][1]):
                    found |= self._put_by_method(module, row, key)
        return frozenset(found)

    def _put_by_method(self, module: Module, row: tuple[Any, ...], key: object) -> Value:
        method, args, base = module.nodes[row[1]][2], row[2], module.base
        if method in ("append", "add", "appendleft"):
            return self.get(base | args[0]) if args else NOTHING
        if method in ("insert", "setdefault"):
            named = module.nodes[args[0]] if args else ("", None)
            if len(args) < 2 or (method == "setdefault" and key is not None and named[0] == "const" and named[1] != key):
                return NOTHING
            return self.get(base | args[1])
        found: set[int] = set()
        for one in args:
            given = self.get(base | one)
            found |= self.item(given, key) if method == "update" else self.elements(given)
        return frozenset(found) | self._given_by_keyword(module, row[3], key)


def _mappings_of(module: Module) -> Iterator[Node]:
    """What ``x["name"]`` and ``for key in x: x[key]`` read."""
    for row in module.nodes:
        if row[0] == "item":
            read, key = module.plain(row[1]), module.plain(row[2])
            if (key[0] == "const" and isinstance(key[1], str)) or (key[0] == "elem" and module.plain(key[1]) == read):
                yield read
