"""What each kind of expression may be, from the values of its operands."""

from __future__ import annotations

import builtins
import re
from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from typing import Any

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import (
    BOOLEAN,
    DEVICE,
    FALSE,
    FIRST,
    HOMES,
    HOST,
    MASK,
    NONE,
    NOTHING,
    OF_PYTHON,
    ON_DEVICE,
    ON_HOST,
    TRUE,
    WHERE_TENSOR,
    Value,
)
from ldlm_lint.program.calls import LATER, UNKNOWN
from ldlm_lint.program.counters import counters
from ldlm_lint.program.methods import Methods
from ldlm_lint.program.modules import Module
from ldlm_lint.program.outside import Given
from ldlm_lint.vocabulary.tensors import HOST_ATTRIBUTES, MODULE_METHODS, MODULE_USES, PLAIN_METHODS, TENSOR_ATTRIBUTES

_BUILTINS = frozenset(dir(builtins))
_PLAIN_TYPES = frozenset({"int", "float", "str", "bool"})
_LONGEST = 80
_CHOICES = 8
_ALL_CHOICES = 24
_STARS = re.compile(r"\*+")
_PLACEHOLDER = re.compile(r"%[-+ #0-9.]*[sdrifg]")
_FRAMEWORKS = ("accelerate", "lightning", "pytorch_lightning", "deepspeed", "transformers")
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda left, right: left + right,
    "Sub": lambda left, right: left - right,
    "Mult": lambda left, right: left * right,
    "FloorDiv": lambda left, right: left // right,
    "Div": lambda left, right: left / right,
    "Mod": lambda left, right: left % right,
}
_LARGEST = 1 << 64
_TAKE_MODULES = ("compile", "DataParallel", "DistributedDataParallel", "FullyShardedDataParallel")
"""What is given to one of these is a module."""
_PLAIN = frozenset([HOST, TRUE, FALSE, NONE])


class Expressions(Methods):
    """The values of rows."""

    def begin_expressions(self) -> None:
        """No call has given a parameter anything yet."""
        self._taken: dict[int, set[int]] = {}
        self._counters: dict[int, frozenset[int]] = {}
        self.hooks: dict[int, dict[str, Value]] = {}
        """What a framework gives the functions that it calls, by parameter; ``*`` for all others."""

    def compute(self, key: Any) -> Value:
        """What a key is, see `Solver.compute`."""
        if key.__class__ is not int:
            self.is_symbolic = key[0] == "returns"
            return _QUESTIONS[key[0]](self, *key[1:])
        self.is_symbolic = True
        if key < 0:
            # What holds no parameter is the same for all callers.
            key = ~key
            value = self.get(key)
            self.is_symbolic = False
            if self.atoms.symbolic.isdisjoint(value):
                return value
        module = self.module_of(key)
        row = module.nodes[key & MASK]
        reader = _READERS.get(row[0])
        return reader(self, module, row, key) if reader is not None else NOTHING

    def _constant(self, module: Module, row: Node, key: int) -> Value:
        value = row[1]
        if value.__class__ is int and abs(value) > _LARGEST:
            return OF_PYTHON
        if isinstance(value, str) and (not 0 < len(value) < _LONGEST or "\n" in value):
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

    def _written(self, value: Value) -> list[str]:
        """How a value is written into a text; ``*`` where that is not known."""
        texts = sorted([*self.atoms.texts(value), *map(str, self.atoms.numbers(value))])
        return texts if 0 < len(texts) <= _CHOICES else ["*"]

    def _of_texts(self, texts: list[str]) -> Value:
        return frozenset(self.atoms.constant(_STARS.sub("*", text)[:_LONGEST]) for text in texts)

    def _parameter(self, module: Module, row: Node, key: int) -> Value:
        function = module.base | row[1]
        scope, name = module.scopes[row[1]], row[2]
        owner = self.owner.get(function)
        if owner is not None and function in self.bound and scope.params[0] == name:
            return frozenset([self.atoms.atom("self", owner, *(("cls",) if self.is_classmethod(function) else ()))])
        if self.is_symbolic:
            return frozenset([self.atoms.symbol("p", key)])
        if owner is not None and scope.name == "forward" and self.is_module(owner):
            return self._parameter_of_forward(module, function, name)
        default = scope.defaults.get(name)
        value = self.get(module.base | default) if default is not None else NOTHING
        self.get(("callers", function))
        value |= self._taken_from_callers(function, name, key)
        if not self.is_used_as_module(module, scope.parameters[name]):
            value |= self.get(("hook", function, name))
        return self._annotated(value, module, scope.annotations.get(name, ""))

    def _parameter_of_forward(self, module: Module, function: int, name: str) -> Value:
        """Whoever calls a module: what it gets is on the device if it is a tensor."""
        scope = module.scopes[function & MASK]
        default = scope.defaults.get(name)
        plain = default is not None and module.nodes[default][0] == "const" and module.nodes[default][1] is not None
        if not plain and scope.annotations.get(name) not in _PLAIN_TYPES:
            return WHERE_TENSOR | self.get(("hook", function, name))
        value = self.get(module.base | default) if default is not None else NOTHING
        for edge in self.get(("edges", function)):
            if edge & 3 != UNKNOWN:
                value |= self.argument_at(edge >> 2, function, edge & 3, name, unpack=False)[0]
        return value - HOMES

    def _taken_from_callers(self, function: int, name: str, key: int) -> Value:
        value = NOTHING
        taken = self._taken.setdefault(key, set())
        for edge in sorted(self.get(("edges", function))):
            if edge in taken or edge & 3 == UNKNOWN or self._stands_in_handler(edge >> 2):
                continue
            call = edge >> 2
            node = self.argument_node(call, function, edge & 3, name)
            module = self.module_of(call)
            if node is not None and module.nodes[node & MASK][0] != "star":
                taken.add(edge)
                value |= self.take(~key, node)
            elif node is not None or any(keyword is None for keyword, _ in module.nodes[call & MASK][3]):
                value |= self.argument_at(call, function, edge & 3, name)[0]
            else:
                taken.add(edge)
        for call in sorted(self.get(("partials", function))):
            node = self.argument_node(call, function, LATER, name)
            if node is not None and self.module_of(call).nodes[node & MASK][0] != "star":
                value |= self.take(~key, node)
        return value

    def _stands_in_handler(self, call: int) -> bool:
        """Whether a call is made after a failure alone: what it gives says nothing of a usual run."""
        module = self.module_of(call)
        guard = module.table.sites[call & MASK].guard
        while guard >= 0:
            if module.table.guards[guard].kind == "except":
                return True
            guard = module.table.guards[guard].parent
        return False

    def _annotated(self, value: Value, module: Module, annotation: str) -> Value:
        """A parameter's value with what its annotation says."""
        if annotation in _PLAIN_TYPES:
            return (value - HOMES) | OF_PYTHON if not value - HOMES else value - HOMES
        if annotation[:1].isupper() and annotation != "Tensor" and not any(one >= FIRST for one in value):
            return value | self.get(("annotation", module.index, annotation))
        return value

    def annotation(self, index: int, name: str) -> Value:
        """Question ``("annotation", module, name)``: an object of the class that a name stands for."""
        found: set[int] = set()
        for one in self.get(("global", index, name)):
            fields = self.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "c":
                found.add(self.atoms.atom("self", fields[1]))
            elif fields[0] == "x" and fields[1].startswith(_FRAMEWORKS):
                found.add(self.atoms.atom("o", fields[1], 0))
        return frozenset(found)

    def hook(self, function: int, name: str) -> Value:
        """Question ``("hook", function, parameter)``: what a framework gives a function that it calls."""
        given = self.hooks.get(function)
        if not given:
            return NOTHING
        module = self.module_of(function)
        default = module.scopes[function & MASK].defaults.get(name)
        if default is not None and module.nodes[default] != ("const", None):
            return NOTHING
        return given.get(name, given.get("*", NOTHING))

    def _container(self, module: Module, row: Node, key: int) -> Value:
        return frozenset([self.atoms.atom("d", key)])

    def _free(self, module: Module, row: Node, key: int) -> Value:
        name = row[2]
        at = module.scopes[row[1]].parent
        while at > 0:
            scope = module.scopes[at]
            if scope.kind == "def" and name in scope.bindings:
                return frozenset().union(*(self.closed(module.base | one) for one in scope.bindings[name]))
            at = scope.parent
        bindings = module.scopes[0].bindings
        if name in bindings:
            return self.get(("global", module.index, name))
        value = self.get(("global", module.index, name)) if "*" in bindings else NOTHING
        if value or name not in _BUILTINS:
            return value
        return frozenset([self.atoms.atom("x", f"builtins.{name}")])

    def global_of(self, index: int, name: str) -> Value:
        """Question ``("global", module, name)``: what a module binds to a name, or imports with a star."""
        module = self.modules.all[index]
        bindings = module.scopes[0].bindings
        if name in bindings:
            return frozenset().union(*(self.get(module.base | one) for one in bindings[name]))
        value = NOTHING
        for star in bindings.get("*", ()):
            row = module.nodes[star]
            target = self.modules.find(self.modules.absolute(module, row[1], row[2]), module)
            if target is not None and target is not module:
                value |= self.get(("global", target.index, name))
        inner = self.modules.by_name.get(f"{module.name}.{name}")
        if inner is not None and inner.index not in self.modules.dropped:
            value |= frozenset([self.atoms.atom("m", inner.index)])
        return value

    def _imported(self, module: Module, row: Node, key: int) -> Value:
        full = self.modules.absolute(module, row[1], row[2])
        target = self.modules.find(full, module)
        return frozenset([self.atoms.atom("x", full) if target is None else self.atoms.atom("m", target.index)])

    def _imported_from(self, module: Module, row: Node, key: int) -> Value:
        name, level = row[2], row[3]
        full = self.modules.absolute(module, row[1], level)
        target = self.modules.find(full, module) if full else None
        if target is None:
            if level or self.modules.is_known(f"{full}.{name}"):
                target = self.modules.find(f"{full}.{name}" if full else name, module)
                if target is not None:
                    return frozenset([self.atoms.atom("m", target.index)])
            return frozenset([self.atoms.atom("x", f"{full}.{name}")])
        if target is module and not level:
            return frozenset([self.atoms.atom("x", f"{full}.{name}")])
        inner = self.modules.by_name.get(f"{target.name}.{name}")
        if inner is None or name in target.scopes[0].bindings:
            return self.get(("global", target.index, name))
        return frozenset([self.atoms.atom("m", inner.index)])

    def _attribute(self, module: Module, row: Node, key: int) -> Value:
        value = self.get(module.base | row[1])
        name = row[2]
        found = self.attribute(value, name)
        if self.is_symbolic and not self.atoms.opaque.isdisjoint(value):
            if name in HOST_ATTRIBUTES:
                found |= OF_PYTHON
            if name not in TENSOR_ATTRIBUTES:
                found |= self.later(key, value)
        return found

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
        """What a container holds under a constant key: what was stored there last on each way."""
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
        return self.item(self.get(module.base | number), key if key.__class__ in (str, int) else None)

    def _key(self, module: Module, number: int) -> object:
        """The key that an index is, if it is one text or whole number; else None."""
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
            if self.may_be_plain(left) and self.may_be_plain(right):
                value |= OF_PYTHON
            boolean = row[1] in ("BitAnd", "BitOr", "BitXor") and BOOLEAN in left | right
            return value | frozenset([BOOLEAN]) if boolean else value
        return self._of_constants(row[1], left, right, counts=(key if key >= 0 else ~key) in self._counters_of(module))

    def _counters_of(self, module: Module) -> frozenset[int]:
        known = self._counters.get(module.index)
        if known is None:
            known = self._counters[module.index] = frozenset([module.base | one for one in counters(module)])
        return known

    def _of_constants(self, name: str, left: Value, right: Value, *, counts: bool) -> Value:
        if name == "Add":
            containers = frozenset(one for one in left | right if one >= FIRST and self.atoms.of[one][0] in ("d", "view"))
            if containers:
                return containers
        if counts and name != "BitOr":
            return OF_PYTHON if left or right else NOTHING
        if name in ("Add", "Div") and (self.atoms.texts(left) or self.atoms.texts(right)):
            between = "/" if name == "Div" else ""
            return self._of_texts([f"{one}{between}{two}" for one in self._written(left) for two in self._written(right)])
        if name == "BitOr":
            mappings = frozenset(one for one in left | right if one >= FIRST and self.atoms.of[one][0] == "d")
            if mappings:
                return mappings
        if name == "Mod" and self.atoms.texts(left):
            return self._of_texts([_PLACEHOLDER.sub("*", text) for text in sorted(self.atoms.texts(left))])
        numbers = self._computed(name, left, right)
        return numbers or (OF_PYTHON if left or right else NOTHING)

    def _computed(self, name: str, left: Value, right: Value) -> Value:
        """The results of arithmetic where both sides are a few known numbers."""
        function = _ARITHMETIC.get(name)
        ones, others = self.atoms.numbers(left), self.atoms.numbers(right)
        if function is None or not (0 < len(ones) == len(left) <= _CHOICES and 0 < len(others) == len(right) <= _CHOICES):
            return NOTHING
        results: set[int] = set()
        for one in ones:
            for two in others:
                if abs(one) > _LARGEST or abs(two) > _LARGEST or (two == 0 and name in ("Div", "FloorDiv", "Mod")):
                    return NOTHING
                results.add(self.atoms.constant(function(one, two)))
        return frozenset(results)

    def _comparison(self, module: Module, row: Node, key: int) -> Value:
        if any(name in ("Is", "IsNot", "In", "NotIn") for name in row[1]):
            return OF_PYTHON
        operands = [self.get(module.base | one) for one in (row[2], *row[3])]
        if any(module.nodes[one][0] == "const" and module.nodes[one][1].__class__ in (str, bool) for one in (row[2], *row[3])):
            # With a text no tensor is compared.
            return OF_PYTHON
        homes = frozenset().union(*map(self.tensor_part, operands))
        if not homes:
            return OF_PYTHON
        plain = OF_PYTHON if all(map(self.may_be_plain, operands)) else NOTHING
        return (ON_DEVICE if DEVICE in homes else homes) | frozenset([BOOLEAN]) | plain

    def may_be_plain(self, value: Value) -> bool:
        """Whether a value may be a number, text or truth value of Python."""
        return not value.isdisjoint(_PLAIN) or any(one >= FIRST and self.atoms.of[one][0] == "k" for one in value)

    def _not(self, module: Module, row: Node, key: int) -> Value:
        return OF_PYTHON

    def _function(self, module: Module, row: Node, key: int) -> Value:
        return frozenset([self.atoms.atom("f", module.base | row[1])])

    def _class(self, module: Module, row: Node, key: int) -> Value:
        return frozenset([self.atoms.atom("c", module.base | row[1])])

    def _element(self, module: Module, row: Node, key: int) -> Value:
        value = self.get(module.base | row[1])
        return self.elements(value) | self.later(key, value)

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
        args = [
            self.elements(self.get(base | nodes[one][1])) if nodes[one][0] == "star" else self.get(base | one)
            for one in row[2]
        ]
        given = Given(module, key if key >= 0 else ~key, args, {name: self.get(base | one) for name, one in row[3] if name})
        value = self._given_by_functions(functions, function[0] == "attr", given)
        if not functions and self.is_used_as_module(module, row[1]):
            value |= self.tensor_of(given.every)
        if function[0] == "attr":
            receiver = self.get(base | function[1])
            if function[2] in MODULE_METHODS and not self.tensor_part(value) and self.is_used_as_module(module, function[1]):
                return value | receiver
            value |= self.method(receiver, function[2], given, base | function[1])
            return value if function[2] in PLAIN_METHODS else value | self.later(key, receiver)
        if self._is_of_project(functions) and self.atoms.opaque.isdisjoint(functions):
            return value
        return value | self.later(key, functions)

    def is_used_as_module(self, module: Module, number: int) -> bool:
        """Whether something that nobody makes in the program is a `torch.nn.Module` by what is done with it."""
        row = module.plain(number)
        uses = self._uses.get(module.index)
        if uses is None:
            uses = self._uses[module.index] = _uses_of(module)
        key = row if row[0] in ("param", "free") else ("attr", row[2]) if row[0] == "attr" else ()
        return not uses.get(key, frozenset()).isdisjoint(MODULE_USES)

    def _is_of_project(self, functions: Value) -> bool:
        return any(one >= FIRST and self.atoms.of[one][0] not in ("x", "o") for one in functions)

    def _given_by_functions(self, functions: Value, is_method: bool, given: Given) -> Value:
        own = frozenset(one for one in functions if one >= FIRST and self.atoms.of[one][0] not in ("x", "o"))
        value = self.callvalue(own, given.call, None, given.args) if own else NOTHING
        homes = functions & HOMES
        if homes and not is_method:
            # A model from outside.
            value |= ON_DEVICE if DEVICE in homes else homes
        for fields in self.atoms.kinds(functions, "x"):
            value |= self.outside(fields[1], given)
        for fields in self.atoms.kinds(functions, "o"):
            if fields[1].startswith("torch.") or any(self.tensor_part(one) for one in given.every):
                value |= self.tensor_of(given.every)
        if functions and not own:
            for one in given.every:
                for fields in self.atoms.kinds(one, "f") + self.atoms.kinds(one, "b"):
                    self.edge(fields[1], given.call, UNKNOWN)
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
        """Question ``("edges", function)``: the calls that go to it; they are put in where they are found."""
        return NOTHING

    def partials(self, function: int) -> Value:
        """Question ``("partials", function)``: the calls of ``functools.partial`` that wrap it; they are put in like `edges`."""
        return NOTHING

    def option(self, parser: int, name: str) -> Value:
        """What an attribute of the result of ``parse_args`` may be: the options of that name, by the calls that add them."""
        found: set[int] = set()
        for call in self._options.get(name, ()):
            if self._adds_to(call, parser):
                found.add(self.atoms.atom("flag", call))
        return frozenset(found)

    @cached_property
    def _options(self) -> dict[str, list[int]]:
        """The calls of ``add_argument``, by the attribute that the option is stored as."""
        found: dict[str, list[int]] = defaultdict(list)
        for call in self.calls.get("add_argument", ()):
            found[self._destination(call)].append(call)
        return found

    def _destination(self, call: int) -> str:
        module = self.module_of(call)
        row = module.nodes[call & MASK]
        given = next((module.nodes[one] for name, one in row[3] if name == "dest"), ("", None))
        texts = [str(module.nodes[one][1]) for one in row[2] if module.nodes[one][0] == "const"]
        long = [text for text in texts if text.startswith("--")] or texts
        return str(given[1]) if given[0] == "const" else long[0].lstrip("-").replace("-", "_") if long else ""

    def _adds_to(self, call: int, parser: int) -> bool:
        module = self.module_of(call)
        receiver = self.closed(module.base | module.nodes[module.nodes[call & MASK][1]][1])
        parsers = [fields for fields in self.atoms.kinds(receiver, "o") if fields[1].startswith("argparse.")]
        return any(fields[2] == parser for fields in parsers)
    _uses: dict[int, dict[Node, frozenset[str]]]


def _receiver(module: Module, number: int) -> Node:
    """What ``net.cuda().train()`` is called on in the end: methods of modules give the module."""
    row = module.plain(number)
    while row[0] == "call":
        function = module.nodes[row[1]]
        if function[0] != "attr" or function[2] not in MODULE_METHODS:
            break
        row = module.plain(function[1])
    return row


def _uses_of(module: Module) -> dict[Node, frozenset[str]]:
    """The methods that are called on each name of a module, and on each attribute by its name."""
    uses: dict[Node, set[str]] = {}
    for call in module.table.sites:
        function = module.nodes[module.nodes[call][1]]
        if function[0] == "attr":
            row = _receiver(module, function[1])
            if row[0] in ("param", "free"):
                uses.setdefault(row, set()).add(function[2])
            elif row[0] == "attr":
                uses.setdefault(("attr", row[2]), set()).add(function[2])
    for name in _TAKE_MODULES:
        for call in module.table.named.get(name, ()):
            args = module.nodes[call][2]
            row = _receiver(module, args[0]) if args else ("",)
            if row[0] in ("param", "free"):
                uses.setdefault(row, set()).add("parameters")
    return {row: frozenset(names) for row, names in uses.items()}


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
    "returns": Expressions.returned,
    "callers": Expressions.callers,
    "edges": Expressions.edges,
    "partials": Expressions.partials,
    "callable": Expressions.callable_of,
    "unwrapped": Expressions.unwrapped,
    "to": Expressions.goes_to,
    "registered": Expressions.all_registered,
    "annotation": Expressions.annotation,
    "hook": Expressions.hook,
    "field": Expressions.field,
}
