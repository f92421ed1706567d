"""Classes and objects: the order of bases, attributes by class, methods bound to their objects."""

from __future__ import annotations

from abc import abstractmethod

from ldlm_lint.program.atoms import (
    FIRST,
    HOMES,
    HOST,
    MOVED,
    NOTHING,
    ON_DEVICE,
    SHIFT,
    WHERE_TENSOR,
    Value,
)
from ldlm_lint.program.records import Records
from ldlm_lint.vocabulary.tensors import (
    BATCH_ATTRIBUTES,
    HOST_ATTRIBUTES,
    HOST_METHODS,
    LIBRARIES,
    MODEL_WORDS,
    OTHER_ARRAYS,
    TENSOR_ATTRIBUTES,
)

SUBCLASSES = 64
"""Subclasses above which ``self`` of a base says nothing of theirs."""
_PROPERTIES = frozenset({"property", "cached_property", "lru_property"})
_DEPTH_OF_NAMES = 7
_OBJECTS = frozenset({"i", "self", "c"})


class Classes(Records):
    """The possible values of attributes of objects."""

    _orders: dict[int, list[int]]
    _below: dict[int, list[int]]
    _outside: dict[int, frozenset[str]]
    _modules: dict[int, bool]

    def begin_classes(self) -> None:
        """Reset everything that depends on the bases of classes."""
        self._orders, self._below, self._outside, self._modules = {}, {}, {}, {}

    def order(self, owner: int) -> list[int]:
        """A class and its bases of the project, nearest first."""
        known = self._orders.get(owner)
        if known is None:
            known = self._orders[owner] = [owner]
            for base in self.bases.get(owner, ()):
                known += [one for one in self.order(base) if one not in known]
        return known

    def below(self, owner: int) -> list[int]:
        """A class and its subclasses of the project."""
        known = self._below.get(owner)
        if known is None:
            known = [owner]
            for one in known:
                known += [sub for sub in sorted(self.subclasses.get(one, ())) if sub not in known]
            self._below[owner] = known
        return known

    def outside_of(self, owner: int) -> frozenset[str]:
        """The dotted names of the bases of other packages."""
        known = self._outside.get(owner)
        if known is None:
            known = frozenset(name for one in self.order(owner) for name in self.outside_bases.get(one, ()))
            self._outside[owner] = known
        return known

    def is_module(self, owner: int) -> bool:
        """Whether a class is a `torch.nn.Module`."""
        known = self._modules.get(owner)
        if known is None:
            known = self._modules[owner] = any(
                name.startswith("torch.nn")
                or (name.endswith(MODEL_WORDS) and name.partition(".")[0] not in OTHER_ARRAYS)
                or name.partition(".")[0] in LIBRARIES
                or is_model_of_transformers(name)
                for name in self.outside_of(owner)
            )
        return known

    def methods(self, owner: int, name: str, *, exact: bool = True) -> list[int]:
        """The functions of the project that a method's name may be for an object of a class."""
        found = self.get(("attr", owner, name, not exact))
        return [fields[1] for fields in self.atoms.kinds(found, "f")]

    def attribute_of_class(self, owner: int, name: str, with_subclasses: bool) -> Value:
        """Question ``("attr", class, name, with subclasses)``: the values bound in the classes or set on their
        objects.
        """
        is_field = self.is_field(owner, name)
        value = self.get(("field", owner, name)) if is_field else NOTHING
        for one in self.order(owner):
            body, writes = self._bound_in(one, name)
            for key in (*body, *writes) if not is_field else writes:
                value |= self.get(key)
            if (one, name) in self.buffers:
                value |= ON_DEVICE
            if body:
                break
        below = self.below(owner)[1:] if with_subclasses else []
        if len(below) > SUBCLASSES:
            below = []
            self.limited["subclasses"] += 1
        # An attribute set on an object hides a method of a derived class.
        is_set = any((one, name) in self.own_writes for one in self.order(owner))
        for one in below:
            body, writes = self._bound_in(one, name)
            for key in (*body, *writes) if not (is_field or is_set) else writes:
                value |= self.get(key)
            if self.is_field(one, name):
                value |= self.get(("field", one, name))
        if name in self.other_writes:
            value |= self._set_from_outside(owner, name, {*self.order(owner), *below})
        return value

    def _bound_in(self, owner: int, name: str) -> tuple[list[int], list[int]]:
        module = self.module_of(owner)
        body = [module.base | value for value in module.scopes[owner - module.base].bindings.get(name, ())]
        return body, self.own_writes.get((owner, name), [])

    def _set_from_outside(self, owner: int, name: str, family: set[int]) -> Value:
        value = NOTHING
        home, of = owner >> SHIFT, self.atoms.of
        for target, written in self.other_writes[name]:
            index = target >> SHIFT
            # Where it is made, or where it is trained.
            if index != home and index not in self.trains:
                continue
            for one in self.get(target):
                if one >= FIRST and of[one][0] in _OBJECTS and of[one][1] in family:
                    value |= self.get(written)
                    break
        return value

    def attribute(self, value: Value, name: str, *, called: bool = False) -> Value:
        """The possible values of an attribute of a value; nothing for a called method of a tensor."""
        found: set[int] = set()
        homes = value & HOMES
        if homes:
            if name in HOST_ATTRIBUTES or name in BATCH_ATTRIBUTES or (name in HOST_METHODS and not called):
                found.add(HOST)
            elif not called:
                found |= WHERE_TENSOR if MOVED in value and name not in TENSOR_ATTRIBUTES else homes
        for one in value:
            if one < FIRST:
                if one == HOST and not called:
                    found.add(HOST)
                continue
            found |= self._attribute_of_object(one, name)
        return frozenset(found)

    def _attribute_of_object(self, one: int, name: str) -> Value:
        fields = self.atoms.of[one]
        kind = fields[0]
        if kind == "x":
            return frozenset([self.atoms.atom("x", f"{fields[1]}.{name}")]) if fields[1].count(".") < _DEPTH_OF_NAMES else NOTHING
        if kind == "m":
            return self.get(("global", fields[1], name))
        if kind in ("i", "self", "c"):
            return self._attribute_of_instance(one, name)
        if kind == "super":
            return self._attribute_of_super(fields[1], name)
        if kind == "ns":
            return self.option(fields[1], name)
        if kind == "d":
            return self.attribute_of_open_record(one, name)
        if kind == "o" and fields[1].startswith("torch.nn") and name in ("weight", "bias"):
            return ON_DEVICE
        return NOTHING

    def _attribute_of_instance(self, one: int, name: str) -> Value:
        fields = self.atoms.of[one]
        kind, owner = fields[0], fields[1]
        found = self.get(("attr", owner, name, kind == "self"))
        if not found and name == "module":
            # A wrapper such as DDP counts as the wrapped model.
            found = frozenset([one])
        value = set(found) if kind == "c" else set()
        for method in found:
            if method < FIRST or self.atoms.of[method][0] != "f":
                value.add(method)
                continue
            function = self.atoms.of[method][1]
            if self.owner.get(function) is None or (kind == "c" and not self.is_classmethod(function)):
                value.add(method)
            elif self.is_property(function):
                value |= self.instantiate(function, None, 3, (kind, owner))
            elif function in self.bound:
                value.add(self.atoms.atom("b", function, kind, owner))
            else:
                value.add(method)
        return frozenset(value)

    def _attribute_of_super(self, owner: int, name: str) -> Value:
        for base in self.order(owner)[1:]:
            body, _ = self._bound_in(base, name)
            if body:
                found = frozenset().union(*(self.get(key) for key in body))
                functions = [fields[1] for fields in self.atoms.kinds(found, "f")]
                rest = frozenset(one for one in found if one < FIRST or self.atoms.of[one][0] != "f")
                return rest | frozenset(self.atoms.atom("b", function, "self", owner) for function in functions)
        return NOTHING

    def decorator_names(self, function: int) -> list[str]:
        """The last names of the decorators of a function."""
        module = self.module_of(function)
        return [module.last_name(one) for one in module.scopes[function - module.base].decorators]

    def is_property(self, function: int) -> bool:
        """Whether a method is read like an attribute."""
        return not _PROPERTIES.isdisjoint(self.decorator_names(function))

    def is_classmethod(self, function: int) -> bool:
        """Whether a method takes its class first."""
        return "classmethod" in self.decorator_names(function)

    @abstractmethod
    def instantiate(self, function: int, call: int | None, how: int, receiver: tuple[str, int] | None = None) -> Value:
        """What a function returns, at a call of it."""

    @abstractmethod
    def yielded(self, function: int, number: int, call: int, how: int) -> Value:
        """What a ``yield`` of a generator function gives to the loop over the result of one call."""

    @abstractmethod
    def option(self, parser: int, name: str) -> Value:
        """The possible values of an attribute of the result of ``parse_args``."""


def is_model_of_transformers(name: str) -> bool:
    """Whether a class of transformers is a model, by how these are called: ``LlamaForCausalLM``."""
    last = name.rpartition(".")[2]
    return name.startswith("transformers.") and (last.endswith("PreTrainedModel") or "For" in last)
