"""The possible values of each kind of expression, from the values of its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import (
    BOOLEAN,
    DEVICE,
    FIRST,
    HOMES,
    HOST_TENSOR,
    IF_TENSOR,
    MASK,
    NOTHING,
    OF_PYTHON,
    ON_DEVICE,
    ON_HOST,
    SHIFT,
    WHERE_TENSOR,
    Value,
)
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.constants import LARGEST, LONGEST
from ldlm_lint.program.modules import Module
from ldlm_lint.program.outside import Given
from ldlm_lint.program.parameters import Parameters
from ldlm_lint.vocabulary.tensors import (
    BATCH_ATTRIBUTES,
    HOST_ATTRIBUTES,
    MODULE_METHODS,
    PLAIN_METHODS,
    TENSOR_ATTRIBUTES,
)

_ALL_CHOICES = 24
_COMPARED_PLAINLY = frozenset({str, bool, type(None)})
_THERE = frozenset([DEVICE, IF_TENSOR])


class _Called(NamedTuple):
    """The parts of what is called: what the project defines or makes, and the dotted names of other packages' functions and
    objects."""

    own: Value
    outside: tuple[str, ...]
    objects: tuple[str, ...]

    @property
    def is_of_project(self) -> bool:
        """Whether the project defines or makes some of it."""
        return bool(self.own)


class Expressions(Parameters):
    """The values of rows."""

    def begin_expressions(self) -> None:
        """Start without arguments for any parameter."""
        self._taken = {}
        self._uses = {}
        self._counters = {}
        self._last_bound = {}
        self._told_apart: dict[Value, _Called] = {}
        self.hooks = {}

    def compute(self, key: Any) -> Value:
        """The value of a key, see `Solver.compute`."""
        if key.__class__ is not int:
            self.is_symbolic = key[0] == "returns"
            return _QUESTIONS[key[0]](self, *key[1:])
        self.is_symbolic = True
        if key < 0:
            # An expression without parameters is the same for all callers.
            key = ~key
            value = self.get(key)
            self.is_symbolic = False
            if self._symbolic.isdisjoint(value):
                return value
        module = self._all[key >> SHIFT]
        row = module.nodes[key & MASK]
        reader = _READERS.get(row[0])
        return reader(self, module, row, key) if reader is not None else NOTHING

    def _constant(self, module: Module, row: Node, key: int) -> Value:
        value = row[1]
        if value.__class__ is int and abs(value) > LARGEST:
            return OF_PYTHON
        if isinstance(value, str) and (not 0 < len(value) < LONGEST or "\n" in value):
            return OF_PYTHON
        return frozenset([self.atoms.constant(value)])

    def _formatted(self, module: Module, row: Node, key: int) -> Value:
        texts = [""]
        for part in row[1]:
            given = module.nodes[part]
            if given[0] == "const" and isinstance(given[1], str):
                choices = [given[1]]
            else:
                choices = self._written(self.get(module.base | part))
            texts = [f"{text}{choice}" for text in texts for choice in choices]
            if len(texts) > _ALL_CHOICES:
                texts = ["*"]
        return self._of_texts(texts)

    def _container(self, module: Module, row: Node, key: int) -> Value:
        return frozenset([self.atoms.atom("d", key)])

    def _attribute(self, module: Module, row: Node, key: int) -> Value:
        value = self.get(module.base | row[1])
        name = row[2]
        found = self.attribute(value, name)
        if self.is_symbolic and not self.atoms.opaque.isdisjoint(value):
            if name in HOST_ATTRIBUTES or name in BATCH_ATTRIBUTES:
                found |= OF_PYTHON
            if name not in TENSOR_ATTRIBUTES:
                found |= self.later(key, value)
        if name in TENSOR_ATTRIBUTES:
            found |= self._attribute_of_tensor(value, name)
        return found

    def _attribute_of_tensor(self, value: Value, name: str) -> Value:
        """An attribute that only tensors have is on the tensor's device; a gradient is on the trained model's
        device.
        """
        homes = self.tensor_part(value)
        is_own = any(one >= FIRST and self.atoms.of[one][0] in ("i", "self", "m") for one in value)
        return homes | (ON_DEVICE if name == "grad" and not is_own and HOST_TENSOR not in homes else NOTHING)

    def _item(self, module: Module, row: Node, key: int) -> Value:
        registry = module.last_name(row[1])
        if registry in self.registered:
            return self.get(("registered", registry))
        value = self.get(module.base | row[1])
        index = module.nodes[row[2]]
        if index[0] == "slice":
            rest = frozenset(one for one in value if one not in self.atoms.symbolic)
            return self.tensor_part(value) | rest | self.later(key, value)
        if self.is_symbolic and not self.atoms.opaque.isdisjoint(value):
            return self.item(value, None) | self.later(key, value)
        if index[0] == "const":
            return self._stored(module, row[1], index[1], set())
        return self.item(value, self._key(module, row[2]))

    def _stored(self, module: Module, number: int, key: object, seen: set[int]) -> Value:
        """The contents of a container under a constant key: the last store on each path."""
        row = module.nodes[number]
        if number in seen:
            return NOTHING
        seen.add(number)
        if row[0] == "upd":
            stored = module.nodes[row[2]]
            if stored[0] == "const":
                if stored[1] == key:
                    return self.get(module.base | row[3])
                return self._stored(module, row[1], key, seen)
        elif row[0] == "copy":
            return self._stored(module, row[1], key, seen)
        elif row[0] == "phi":
            return frozenset().union(*(self._stored(module, one, key, seen) for one in row[1]))
        elif row[0] == "param" and not self.is_symbolic:
            given = self._stored_by_callers(module, row, key)
            if given:
                return given
        return self.item(self.get(module.base | number), key if key.__class__ in (str, int) else None)

    def _stored_by_callers(self, module: Module, row: Node, key: object) -> Value:
        """What all callers of a function have stored under a key of what they pass for a parameter; nothing if one of them
        shows no store."""
        function = module.base | row[1]
        found = NOTHING
        for edge in sorted(self.get(("edges", function))):
            node = self.argument_node(edge >> 2, function, edge & 3, row[2]) if edge & 3 != UNKNOWN else None
            home = self.module_of(node) if node is not None else module
            if node is None or home.plain(node & MASK)[0] != "upd":
                return NOTHING
            found |= self._stored(home, node & MASK, key, set())
        return found

    def _key(self, module: Module, number: int) -> object:
        """The key of an index, if it is one text or integer; else None."""
        row = module.nodes[number]
        if row[0] == "const":
            return row[1] if row[1].__class__ in (str, int) else None
        if row[0] in ("seq", "op", "cmp", "call", "slice"):
            return None
        value = self.get(module.base | number)
        if len(value) != 1:
            return None
        fields = self.atoms.of[next(iter(value))]
        known = fields[0] == "k" and fields[1].__class__ in (str, int) and "*" not in str(fields[1])
        return fields[1] if known else None

    def _one_of(self, module: Module, row: Node, key: int) -> Value:
        base = module.base
        value = NOTHING
        for one in row[1]:
            value |= self.get(base | one)
        return value

    def _same(self, module: Module, row: Node, key: int) -> Value:
        return self.get(module.base | row[1])

    def _negated(self, module: Module, row: Node, key: int) -> Value:
        return self.get(module.base | row[2])

    def _choice(self, module: Module, row: Node, key: int) -> Value:
        return self.get(module.base | row[2]) | self.get(module.base | row[3])

    def _boolean(self, module: Module, row: Node, key: int) -> Value:
        value = NOTHING
        for one in row[2]:
            value |= self.get(module.base | one)
        return value

    def _operation(self, module: Module, row: Node, key: int) -> Value:
        left, right = self.get(module.base | row[2]), self.get(module.base | row[3])
        homes = self.tensor_part(left | right)
        if homes:
            value = ON_DEVICE if DEVICE in homes else homes - ON_HOST or homes
            plain = self._may_turn_out_plain(module, row[2], left) and self._may_turn_out_plain(module, row[3], right)
            if plain and not self.is_missing(left, right):
                value |= self.later(key, left | right) or OF_PYTHON
            boolean = row[1] in ("BitAnd", "BitOr", "BitXor") and BOOLEAN in left | right
            return value | frozenset([BOOLEAN]) if boolean else value
        if self.is_missing(left, right):
            return NOTHING
        return self._of_constants(row[1], left, right, counts=(key if key >= 0 else ~key) in self._counters_of(module))

    def _may_turn_out_plain(self, module: Module, number: int, value: Value) -> bool:
        """Whether an operand may be a plain Python value; True for unknown operands and parameters."""
        if module.nodes[number][0] != "call" and self.tensor_part(value):
            # ``total = 0.0`` before ``total = total + loss``: the initial value of a sum; not a default as in
            # ``cache.get("offset", 0)``.
            value = frozenset(one for one in value if not self._is_zero(one))
        return not value or self.may_be_plain(value) or (self.is_symbolic and not self.atoms.opaque.isdisjoint(value))

    def _is_zero(self, one: int) -> bool:
        fields = self.atoms.of[one] if one >= FIRST else ("",)
        return fields[0] == "k" and fields[1].__class__ in (int, float) and not fields[1]

    def _comparison(self, module: Module, row: Node, key: int) -> Value:
        if any(name in ("Is", "IsNot", "In", "NotIn") for name in row[1]):
            return OF_PYTHON
        operands = [self.get(module.base | one) for one in (row[2], *row[3])]
        if any(module.nodes[one][0] == "const" and module.nodes[one][1].__class__ in _COMPARED_PLAINLY for one in (row[2], *row[3])):
            # Tensors are not compared with texts, and a comparison with None is plain Python.
            return OF_PYTHON
        homes = frozenset().union(*map(self.tensor_part, operands))
        missing = self.is_missing(*operands)
        if not homes:
            return NOTHING if missing else OF_PYTHON
        plain = OF_PYTHON if all(map(self.may_be_plain, operands)) and not missing else NOTHING
        return (ON_DEVICE if DEVICE in homes else homes) | frozenset([BOOLEAN]) | plain

    def _not(self, module: Module, row: Node, key: int) -> Value:
        return OF_PYTHON

    def _function(self, module: Module, row: Node, key: int) -> Value:
        return frozenset([self.atoms.atom("f", module.base | row[1])])

    def _class(self, module: Module, row: Node, key: int) -> Value:
        return frozenset([self.atoms.atom("c", module.base | row[1])])

    def _element(self, module: Module, row: Node, key: int) -> Value:
        place = module.base | row[1]
        value = self.get(place)
        return self.elements_at(place, value) | self.later(key, value)

    def _part(self, module: Module, row: Node, key: int) -> Value:
        value = self.get(module.base | row[1])
        return self.part(value, row[2]) | self.later(key, value)

    def _updated(self, module: Module, row: Node, key: int) -> Value:
        value = self.get(module.base | row[1])
        if not any(one >= FIRST for one in value):
            value |= self.tensor_part(self.get(module.base | row[3]))
        return value

    def _call(self, module: Module, row: Node, key: int) -> Value:
        nodes, base = module.nodes, module.base
        function = nodes[row[1]]
        functions = self.get(base | row[1])
        given = Given(self, module, key if key >= 0 else ~key)
        value = self._given_by_functions(functions, function[0] == "attr", given)
        if not functions and self.is_used_as_module(module, row[1]):
            value |= self.tensor_of(given.every)
        if not functions:
            value |= self._given_by_unknown(module, row, given, key)
        if function[0] == "attr":
            receiver = self.get(base | function[1])
            if function[2] in MODULE_METHODS and not self.tensor_part(value) and self.is_used_as_module(module, function[1]):
                return value | receiver
            value |= self.method(receiver, function[2], given, base | function[1])
            # These methods of a model return the model itself, too.
            is_plain = function[2] in PLAIN_METHODS and function[2] not in MODULE_METHODS
            return value if is_plain else value | self.later(key, receiver)
        if self._called(functions).is_of_project and self.atoms.opaque.isdisjoint(functions):
            return value
        return value | self.later(key, functions)

    def _given_by_unknown(self, module: Module, row: Node, given: Given, key: int) -> Value:
        """A tensor computed from device tensors by unknown code is on the device: ``agent(states)``."""
        every = [*given.every, *(self.get(module.base | one) for name, one in row[3] if name is None)]
        inside = [self.get(("content", self.atoms.of[one][1], None)) for value in every for one in value if one >= FIRST and self.atoms.of[one][0] == "d"]
        together = frozenset().union(*every, *inside)
        there = together & _THERE
        function = module.nodes[row[1]]
        if DEVICE in there and function[0] == "attr" and self.atoms.kinds(self.get(module.base | function[1]), "super"):
            # The method of a framework's class that the project overrides.
            there = ON_DEVICE
        elif there:
            there = WHERE_TENSOR
        return there | self.later(key, together)

    def _called(self, functions: Value) -> _Called:
        """What is called, told apart by kind: there are few different values."""
        known = self._told_apart.get(functions)
        if known is None:
            own = frozenset(one for one in functions if one >= FIRST and self.atoms.of[one][0] not in ("x", "o"))
            outside, objects = (tuple(str(fields[1]) for fields in self.atoms.kinds(functions, kind)) for kind in ("x", "o"))
            known = self._told_apart[functions] = _Called(own, outside, objects)
        return known

    def _given_by_functions(self, functions: Value, is_method: bool, given: Given) -> Value:
        own, outside, objects = self._called(functions)
        call = None if own and self.calls_decorated(given.module, given.row[1]) else given.call
        value = self.callvalue(own, call, None, lambda: given.args) if own else NOTHING
        homes = functions & HOMES
        if homes and not is_method:
            # A model from outside.
            value |= ON_DEVICE if DEVICE in homes else homes
        for name in outside:
            value |= self.outside(name, given)
        for name in objects:
            if name.startswith("torch.") or any(self.tensor_part(one) for one in given.every):
                value |= self.tensor_of(given.every)
            else:
                # ``self.blocks(tokens=(text, image))``
                inner = [self.elements(one) for one in given.every if self.is_container(one)]
                value |= self.tensor_of(inner) if any(one & HOMES for one in inner) else NOTHING
        if functions and not own and not outside:
            self.called_by_others(given)
        return value

    def returned(self, function: int) -> Value:
        """Question ``("returns", function)``: the summary of what a function returns."""
        module = self.module_of(function)
        scope = module.scopes[function & MASK]
        if scope.yields:
            return frozenset([self.atoms.atom("gen", function)])
        value = NOTHING
        for number, _ in scope.returns:
            if number:
                value |= self.get(module.base | number)
        return value

    def edges(self, function: int) -> Value:
        """Question ``("edges", function)``: the calls that go to it; they are stored when they are found."""
        return NOTHING

    def partials(self, function: int) -> Value:
        """Question ``("partials", function)``: the calls of ``functools.partial`` that wrap it; they are stored like
        `edges`."""
        return NOTHING


_READERS: dict[str, Callable[[Any, Module, Node, int], Value]] = {
    "const": Expressions._constant,
    "free": Expressions._free,
    "param": Expressions._parameter,
    "vararg": Expressions._container,
    "kwarg": Expressions._container,
    "attr": Expressions._attribute,
    "call": Expressions._call,
    "star": Expressions._same,
    "item": Expressions._item,
    "seq": Expressions._container,
    "map": Expressions._container,
    "comp": Expressions._container,
    "dcomp": Expressions._container,
    "op": Expressions._operation,
    "un": Expressions._negated,
    "not": Expressions._not,
    "cmp": Expressions._comparison,
    "bool": Expressions._boolean,
    "choice": Expressions._choice,
    "fstr": Expressions._formatted,
    "def": Expressions._function,
    "class": Expressions._class,
    "elem": Expressions._element,
    "part": Expressions._part,
    "enter": Expressions._same,
    "upd": Expressions._updated,
    "imp": Expressions._imported,
    "impf": Expressions._imported_from,
    "phi": Expressions._one_of,
    "copy": Expressions._same,
}
_QUESTIONS: dict[str, Callable[..., Value]] = {
    "global": Expressions.global_of,
    "attr": Expressions.attribute_of_class,
    "content": Expressions.content,
    "element": Expressions.element_of,
    "keyword": Expressions.keyword,
    "entries": Expressions.entries,
    "returns": Expressions.returned,
    "edges": Expressions.edges,
    "partials": Expressions.partials,
    "callable": Expressions.callable_of,
    "unwrapped": Expressions.unwrapped,
    "registered": Expressions.all_registered,
    "annotation": Expressions.annotation,
    "hook": Expressions.hook,
    "field": Expressions.field,
}
