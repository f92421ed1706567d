"""Records: dataclasses, named tuples, models of pydantic and attrs, whose constructor arguments become fields.

Their constructors are implicit: a class declares its fields in order, each with or without a default.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any

from ldlm_lint.program.atoms import FIRST, MASK, NOTHING, Value
from ldlm_lint.program.index import Index
from ldlm_lint.program.modules import Module

_DECORATORS = frozenset({"dataclass", "()dataclass", "define", "()define", "frozen", "()frozen", "attrs", "()attrs"})
_BASES = frozenset({"typing.NamedTuple", "typing_extensions.NamedTuple", "pydantic.BaseModel", "pydantic.BaseSettings"})
OPEN_RECORDS = frozenset({"SimpleNamespace", "Namespace", "EasyDict", "AttrDict", "Munch", "Box", "ConfigDict"})
"""Classes of other packages, by last name, whose objects take any attribute, those of their constructor's keywords first."""
_NO_POSITION = 1 << 20
_DEFAULTS = ("default", "factory", "default_factory")


class Records(Index):
    """The possible values of fields of records."""

    @cached_property
    def _sets_keywords(self) -> dict[int, bool]:
        return {}

    @abstractmethod
    def order(self, owner: int) -> list[int]:
        """A class and its bases of the project, nearest first."""

    def is_record(self, owner: int) -> bool:
        """Whether a class gets its constructor from the fields that it declares, or one that sets every keyword."""
        module = self.module_of(owner)
        scope = module.scopes[owner & MASK]
        if self.sets_keywords(owner):
            return True
        if "__init__" in scope.bindings:
            return False
        decorated = any(module.last_name(one) in _DECORATORS for one in scope.decorators)
        return decorated or any(not _BASES.isdisjoint(self.outside_bases.get(one, ())) for one in self.order(owner))

    def sets_keywords(self, owner: int) -> bool:
        """Whether the constructor of a class makes each keyword an attribute: ``for k, v in kwargs.items(): setattr(self,
        k, v)``, ``self.__dict__.update(kwargs)``."""
        known = self._sets_keywords.get(owner)
        if known is None:
            classes = ((self.module_of(one), self.module_of(one).scopes[one & MASK]) for one in self.order(owner))
            bound = next(((module, scope.bindings["__init__"][-1]) for module, scope in classes if "__init__" in scope.bindings), None)
            row = bound[0].nodes[bound[1]] if bound is not None else ("",)
            known = bound is not None and row[0] == "def" and self._sets_all(bound[0], row[1])
            self._sets_keywords[owner] = known
        return known

    def _sets_all(self, module: Module, number: int) -> bool:
        scope = module.scopes[number]
        if not scope.kwarg:
            return False
        for call in scope.calls:
            row = module.nodes[call]
            function = module.nodes[row[1]]
            if module.last_name(row[1]) == "setattr" and len(row[2]) == 3:
                if self.class_of_self(module, row[2][0]) is not None and module.nodes[row[2][1]][0] != "const":
                    return True
            elif function[0] == "attr" and function[2] == "update" and row[2] and module.plain(row[2][0])[0] == "kwarg":
                return module.last_name(function[1]) in ("__dict__", "()vars")
        return False

    def is_field(self, owner: int, name: str) -> bool:
        """Whether an attribute of a class is a field of a record."""
        return self.is_record(owner) and name in self.fields_of(owner)

    def fields_of(self, owner: int) -> list[str]:
        """The fields in the order of the constructor's parameters: those of the bases first."""
        fields: dict[str, None] = {}
        with_plain = self.sets_keywords(owner)
        for one in reversed(self.order(owner)):
            module = self.module_of(one)
            scope = module.scopes[one & MASK]
            fields.update(dict.fromkeys(scope.annotations))
            if with_plain:
                fields.update((name, None) for name, bound in scope.bindings.items() if module.nodes[bound[-1]][0] not in ("def", "class"))
        return list(fields)

    def _position_of(self, owner: int, name: str) -> int:
        """The position of a field among the arguments of a construction; one that no call has if it is a keyword."""
        return _NO_POSITION if self.sets_keywords(owner) else self.fields_of(owner).index(name)

    def constructions(self, owner: int) -> list[int]:
        """The calls that make objects of exactly this class."""
        name = self.module_of(owner).scopes[owner & MASK].name
        made = self.atoms.atom("c", owner)
        calls = {call for one in (name, *sorted(self.aliases.get(name, ()))) for call in self.calls.get(one, ())}
        return [call for call in sorted(calls) if made in self.closed(self._function_of(call))]

    def _function_of(self, call: int) -> int:
        module = self.module_of(call)
        return module.base | module.nodes[call & MASK][1]

    def field(self, owner: int, name: str) -> Value:
        """Question ``("field", class, name)``: the arguments for a field in all constructions of a record, and its
        default if one omits it."""
        if not self.is_field(owner, name):
            return NOTHING
        calls = self.constructions(owner)
        value, is_left = NOTHING, not calls
        for call in calls:
            given, is_given = self._given_for_field(call, self._position_of(owner, name), name)
            value |= given
            is_left |= not is_given
        return value | self._default_of_field(owner, name) if is_left else value

    def field_sources(self, owner: int, name: str) -> list[int]:
        """The arguments for a field in the constructions of a record, and its default if one omits it or none is
        known.
        """
        calls = self.constructions(owner)
        given = [self.source_of_field(call, owner, name) for call in calls]
        found = [one for one in given if one]
        return found if calls and all(given) else [*found, *self._defaults_of_field(owner, name)]

    def source_of_field(self, call: int, owner: int, name: str) -> int:
        """What a construction of a record passes for a field; 0 if it leaves that at its default."""
        module = self.module_of(call)
        row = module.nodes[call & MASK]
        index = self._position_of(owner, name)
        named = next((value for keyword, value in row[3] if keyword == name), 0)
        value = named or (row[2][index] if index < len(row[2]) else 0)
        return module.base | value if value else 0

    def _defaults_of_field(self, owner: int, name: str) -> list[int]:
        for one in self.order(owner):
            module = self.module_of(one)
            bound = module.scopes[one & MASK].bindings.get(name, ())
            if bound:
                return [module.base | self._written_default(module, number) for number in bound]
        return []

    @staticmethod
    def _written_default(module: Module, number: int) -> int:
        row = module.nodes[number]
        given = {keyword: value for keyword, value in row[3] if keyword} if row[0] == "call" else {}
        return int(given.get("default", number))

    def _given_for_field(self, call: int, index: int, name: str) -> tuple[Value, bool]:
        module = self.module_of(call)
        row = module.nodes[call & MASK]
        for keyword, given in row[3]:
            if keyword == name:
                return self.closed(module.base | given), True
        for position, given in enumerate(row[2][: index + 1]):
            if module.nodes[given][0] == "star":
                return NOTHING, False
            if position == index:
                return self.closed(module.base | given), True
        value = NOTHING
        for keyword, given in row[3]:
            if keyword is None:
                value |= self.item(self.closed(module.base | given), name)
        return value, bool(value)

    def _default_of_field(self, owner: int, name: str) -> Value:
        for one in self.order(owner):
            module = self.module_of(one)
            bound = module.scopes[one & MASK].bindings.get(name, ())
            if bound:
                return frozenset().union(*(self._default(module, number) for number in bound))
        return NOTHING

    def _default(self, module: Module, number: int) -> Value:
        """A default as written, or inside of ``field(default=…)``."""
        row = module.nodes[number]
        if row[0] == "call":
            given = dict(row[3])
            for keyword in _DEFAULTS:
                if keyword in given:
                    value = self.closed(module.base | given[keyword])
                    return value if keyword == "default" else self._made_by(value)
        return self.closed(module.base | number)

    def _made_by(self, factory: Value) -> Value:
        """The result of a default factory that is a class or function of the project."""
        made = frozenset(self.atoms.atom("i", fields[1]) for fields in self.atoms.kinds(factory, "c"))
        return made.union(*(self.get(("returns", fields[1])) for fields in self.atoms.kinds(factory, "f")))

    def attribute_of_open_record(self, container: int, name: str) -> Value:
        """The possible values of an attribute of a namespace: constructor arguments and assignments anywhere."""
        place = self.atoms.of[container][1]
        module = self.module_of(place)
        row = module.nodes[place & MASK]
        if row[0] != "call":
            return NOTHING
        if module.last_name(row[1]) not in OPEN_RECORDS:
            return self._field_of_named_tuple(module, row, name)
        value = self.get(("content", place, name))
        for target, written in self.other_writes.get(name, ()):
            if container in self.get(target):
                value |= self.get(written)
        return value

    def names_of_named_tuple(self, place: int) -> list[str]:
        """The fields of the class that ``collections.namedtuple(name, fields)`` makes; none for any other expression."""
        module = self.module_of(place)
        row = module.nodes[place & MASK]
        if row[0] != "call" or len(row[2]) < 2 or module.last_name(row[1]) != "namedtuple":
            return []
        given = module.nodes[row[2][1]]
        written = [given] if given[0] == "const" else [module.nodes[one] for one in given[2]] if given[0] == "seq" else []
        return [name for one in written if one[0] == "const" for name in str(one[1]).replace(",", " ").split()]

    def _field_of_named_tuple(self, module: Module, row: tuple[Any, ...], name: str) -> Value:
        value = NOTHING
        for one in self.get(module.base | row[1]):
            names = self.names_of_named_tuple(self.atoms.of[one][1]) if one >= FIRST and self.atoms.of[one][0] == "d" else []
            if name in names:
                index = names.index(name)
                given = {keyword: number for keyword, number in row[3] if keyword}.get(name) or (row[2][index] if index < len(row[2]) else 0)
                value |= self.get(module.base | given) if given else NOTHING
        return value

    @abstractmethod
    def item(self, value: Value, key: object) -> Value:
        """The possible values of ``value[key]``; any item for None."""
