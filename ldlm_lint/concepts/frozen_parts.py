"""Parts of models that do not train: ``self.tower.requires_grad_(False)`` beside where the class makes it, or runs of it
that record no gradients."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Function
from ldlm_lint.program.ways_back import Held, WaysBack, all_before
from ldlm_lint.python.model_slots import RETURN_THEMSELVES

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module


class _Switch(NamedTuple):
    """A place that sets the flags of a model (key): to False, and where its conditions may hold; what a user chooses may."""

    target: int
    is_off: bool
    may_run: bool


class FrozenParts(Concept):
    """Answers for the calls of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._untrained = code[Untrained]
        self._left_off = code[LeftOff]
        self._ways = WaysBack(code.program)

    def trains_nothing(self, call: int) -> bool:
        """Whether a call runs a frozen part of an object, ``self.tower(images)``, or records no gradients."""
        module = self.program.module_of(call)
        return self._untrained.records_nothing(Call(self.code, call)) or self._is_of_frozen(module, module.nodes[call & MASK][1])

    def _is_of_frozen(self, module: Module, number: int) -> bool:
        """Whether an expression is an attribute that is frozen, or an attribute of one."""
        row = module.plain(number)
        while row[0] in ("attr", "item"):
            if row[0] == "attr" and any(self._is_frozen_in(owner, row[2]) for owner in self._classes(module.base | row[1])):
                return True
            row = module.plain(row[1])
        return False

    def _is_frozen_in(self, owner: int, name: str) -> bool:
        """Whether what the objects of a class have under a name is frozen, and stays so."""
        program = self.program
        family = {*program.order(owner), *program.below(owner)}
        written = [one for other in sorted(family) for one in program.own_writes.get((other, name), ()) if self._row(one) != ("const", None)]
        if len(written) != 1:
            return False
        way = self._on_the_way(written[0])
        freezes = any(one.is_off and one.may_run and (one.target in way or self._is_part(one.target, family, name)) for one in self._switches)
        return freezes and not any(not one.is_off and self._is_inside(one.target, family, name, way) for one in self._switches)

    def _is_inside(self, target: int, family: set[int], name: str, way: set[int]) -> bool:
        """Whether an expression is the attribute, or a part of it."""
        module = self.program.module_of(target)
        number = module.uncopied(target & MASK)
        while module.base | number not in way and not self._is_part(module.base | number, family, name):
            if module.nodes[number][0] not in ("attr", "item"):
                return False
            number = module.uncopied(module.nodes[number][1])
        return True

    def _is_part(self, target: int, family: set[int], name: str) -> bool:
        """Whether an expression is the attribute of this name of an object of these classes."""
        row = self._row(target)
        return row[0] == "attr" and row[2] == name and bool(self._classes(self.program.module_of(target).base | row[1]) & family)

    def _on_the_way(self, key: int) -> set[int]:
        """The expressions that an object comes from: names, results, and what methods that return their object are called on."""
        return {held.key for held in all_before(Held(key), self._before) if not held.path}

    def _before(self, held: Held) -> Iterator[Held]:
        yield from self._ways.before(held)
        yield from self._called_on(held)

    def _called_on(self, held: Held) -> Iterator[Held]:
        """``build()`` of ``build().eval()``."""
        module = self.program.module_of(held.key)
        row = module.nodes[held.key & MASK]
        function = module.nodes[row[1]] if row[0] == "call" else ("",)
        if function[0] == "attr" and function[2] in RETURN_THEMSELVES:
            yield held._replace(key=module.base | function[1])

    def _row(self, key: int) -> Node:
        return self.program.module_of(key).plain(key & MASK)

    def _own_class(self, key: int) -> int | None:
        return self.program.class_of_self(self.program.module_of(key), key & MASK)

    def _classes(self, key: int) -> set[int]:
        own = self._own_class(key)
        value = self.program.ask(key)
        found = {fields[1] for kind in ("i", "self") for fields in self.program.atoms.kinds(value, kind)}
        return found if own is None else {own}

    @cached_property
    def _switches(self) -> list[_Switch]:
        return [one for module in self.program.live for scope in range(len(module.scopes)) for one in self._in(module, scope)]

    def _in(self, module: Module, scope: int) -> Iterator[_Switch]:
        for model, is_off, guards in self._untrained.switches(Function(self.code, module.base | scope)):
            may_run = guards is not None and self._left_off.may_hold(guards) and self._builds(module.base | scope)
            yield _Switch(model.key, is_off, may_run)

    def _builds(self, function: int) -> bool:
        """Whether a function builds an object or a program, or a constructor calls it."""
        program = self.program
        if function not in program.owner or self._is_constructor(function):
            return True
        calls = Function(self.code, function).callers
        return any(one.function.name == "__init__" and not self._left_off.is_left_off(one) for one in calls)

    def _is_constructor(self, function: int) -> bool:
        return self.program.module_of(function).scopes[function & MASK].name == "__init__"


__all__ = ["FrozenParts"]
