"""Functions and classes of the project."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program import handles
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.handles.base import Handle
from ldlm_lint.program.spots import Event, Spot, Write

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.program.handles.calls import Call, Option
    from ldlm_lint.program.handles.expressions import Expr
    from ldlm_lint.program.handles.places import Loop, Try
    from ldlm_lint.program.modules import Module

_TRANSPARENT = frozenset({"no_grad", "enable_grad", "staticmethod", "classmethod", "override", "autocast", "typechecked", "jaxtyped", "final", "compile"})
"""Decorators of Python, torch, typing, typeguard and jaxtyping that do not change the parameters of a function."""


class Function(Handle):
    """A function, lambda or class body of the project, or what a module runs itself."""

    def visible(self, name: str) -> list[Expr]:
        """What a name stands for in it: what it binds it to, or the first function around it, or the module, that does."""
        at, scopes = self.key & MASK, self.module.scopes
        while at >= 0:
            bound = scopes[at].bindings.get(name)
            if bound and (scopes[at].kind != "class" or at == self.key & MASK):
                return [handles.expression(self.code, self.module.base | one) for one in bound]
            at = scopes[at].parent
        return []

    @property
    def is_module(self) -> bool:
        """Whether it is the code of a module outside of all functions."""
        return self.key & MASK == 0

    @property
    def name(self) -> str:
        """Its name in its module."""
        return self.module.scopes[self.key & MASK].name

    @property
    def line(self) -> int:
        """The line of its ``def``, from 1."""
        return self.spot.line

    @property
    def span(self) -> Span:
        """``def name``, as it is written."""
        place = self.module.scopes[self.key & MASK].place
        return self.code.span(self.module, place, place + len(f"def {self.name}".encode()))

    @property
    def owner(self) -> Class | None:
        """The class that it is a method of."""
        owner = self.code.program.owner.get(self.key)
        return Class(self.code, owner) if owner is not None else None

    @property
    def around(self) -> Iterator[Function]:
        """The function itself and those around it, innermost first, without the module."""
        at, scopes = self.key & MASK, self.module.scopes
        while at > 0:
            if scopes[at].kind == "def":
                yield Function(self.code, self.module.base | at)
            at = scopes[at].parent

    @cached_property
    def callers(self) -> tuple[Call, ...]:
        """All calls that go to it."""
        return tuple(handles.Call(self.code, one.call) for one in self.code.program.callers(self.key))

    @property
    def named_callers(self) -> list[Call]:
        """The calls that go to it by its name; anyone who is handed a function may have got another one."""
        return [call for call in self.callers if self.owner is not None or call.called_name == self.name]

    @property
    def leading(self) -> dict[Function, bool]:
        """The function itself and those that lead to it by such calls, nearest first, each with whether others may lead to
        it: it is the code of a module, or something else calls it."""
        found: dict[Function, bool] = {}
        todo = [self]
        for function in todo:
            if function not in found:
                named = [] if function.is_module else function.named_callers
                found[function] = not named or len(named) < len(function.callers)
                todo += [call.function for call in named]
        return found

    @property
    def is_called_from_outside_only(self) -> bool:
        """Whether all its callers are other packages, which were handed the function."""
        return all(one.how == UNKNOWN for one in self.code.program.callers(self.key))

    @property
    def parameter_names(self) -> list[str]:
        """The names of its parameters, in order."""
        return list(self.module.scopes[self.key & MASK].params)

    @property
    def positional_names(self) -> list[str]:
        """The names of those that may be given by position."""
        scope = self.module.scopes[self.key & MASK]
        return list(scope.params[: scope.positional])

    @property
    def annotations(self) -> Mapping[str, str]:
        """The types that are written for its parameters."""
        return self.module.scopes[self.key & MASK].annotations

    @property
    def has_unknown_callers(self) -> bool:
        """Whether another package, which was handed the function, calls it."""
        return any(one.how == UNKNOWN for one in self.code.program.callers(self.key))

    @property
    def returned(self) -> list[Expr]:
        """The expressions that it returns."""
        module = self.module
        return [handles.expression(self.code, module.base | one) for one, _ in module.scopes[self.key & MASK].returns if one]

    @property
    def decorators(self) -> list[Expr]:
        """Its decorators, as written from top to bottom."""
        return [handles.expression(self.code, self.module.base | one) for one in self.module.scopes[self.key & MASK].decorators]

    @property
    def keeps_signature(self) -> bool:
        """Whether its decorators are known to leave its parameters as they are."""
        named = [one.callee if isinstance(one, handles.Call) else one for one in self.decorators]
        return all(one.last_name in _TRANSPARENT and not one.targets_if_called for one in named)

    @property
    def calls(self) -> list[Call]:
        """The calls in it, in the order of evaluation."""
        module = self.module
        return [handles.Call(self.code, module.base | one, module) for one in module.scopes[self.key & MASK].calls]

    @property
    def is_special(self) -> bool:
        """Whether Python or torch calls it: ``__len__``, ``forward``."""
        return self.name.startswith("__") or self.name == "forward"

    def is_inside(self, owner: Class) -> bool:
        """Whether it is a method of a class, its body, or in one of these."""
        at = self.key & MASK if self.module is owner.module else 0
        while at > 0 and self.module.base | at != owner.key:
            at = self.module.scopes[at].parent
        return at > 0

    @property
    def is_hook(self) -> bool:
        """Whether a framework, or code that is not visible, calls it with what is assumed of that."""
        return self.key in self.code.program.hooks

    @property
    def expressions(self) -> Iterator[Expr]:
        """The expressions that are written in it, without those of its ``def`` itself."""
        table, scope = self.module.table, self.module.scopes[self.key & MASK]
        places = enumerate(table.places)
        return (handles.expression(self.code, self.module.base | one) for one, place in places if place and scope.place < place < scope.end)

    @property
    def takes_object(self) -> bool:
        """Whether it is a method that takes an object first."""
        return self.key in self.code.program.bound

    @property
    def is_generator(self) -> bool:
        """Whether it yields."""
        return bool(self.module.scopes[self.key & MASK].yields)

    @property
    def is_class(self) -> bool:
        """Whether it is the body of a class."""
        return self.module.scopes[self.key & MASK].kind == "class"

    @property
    def is_in_class(self) -> bool:
        """Whether it is the body of a class, a method, or a function inside of one."""
        return self.is_class or (self.outer is not None and self.outer.is_in_class)

    @property
    def outer(self) -> Function | None:
        """The function or class body around it, or the module."""
        parent = self.module.scopes[self.key & MASK].parent
        return Function(self.code, self.module.base | parent) if parent >= 0 and not self.is_module else None

    @property
    def defined_at(self) -> Spot | None:
        """Where its ``def`` or ``class`` runs; None for the code of a module."""
        outer, definition = self.outer, ("class" if self.is_class else "def", self.key & MASK)
        if outer is None:
            return None
        return next((event.spot for event in outer.events_of("bind") if event.expr.row == definition), outer.spot)

    @property
    def enclosing(self) -> list[Function]:
        """The function itself and all functions and class bodies around it, innermost first, without the module."""
        at: Function | None = self
        found: list[Function] = []
        while at is not None and not at.is_module:
            found.append(at)
            at = at.outer
        return found

    @property
    def spot(self) -> Spot:
        """Where it begins, inside of it and under no condition."""
        return handles.spot_at(self, self.key & MASK, -1, -1, self.module.scopes[self.key & MASK].place)

    @property
    def parameters(self) -> dict[str, Expr]:
        """Its parameters by their names."""
        return {name: handles.Expr(self.code, self.module.base | one) for name, one in self.module.scopes[self.key & MASK].parameters.items()}

    def options_for(self, parameter: str) -> list[Option]:
        """The options of a command line that click passes for a parameter."""
        module = self.module
        value = self.code.program.option_of(module, module.scopes[self.key & MASK], parameter)
        return [handles.Option(self.code, fields[1]) for fields in self.code.program.atoms.kinds(value, "flag")]

    @property
    def takes_any(self) -> bool:
        """Whether it has ``*args`` or ``**kwargs``."""
        return self.takes_any_keyword or self.takes_any_positional

    @property
    def takes_any_positional(self) -> bool:
        """Whether it has ``*args``."""
        return bool(self.module.scopes[self.key & MASK].vararg)

    @property
    def takes_any_keyword(self) -> bool:
        """Whether it has ``**kwargs``."""
        return bool(self.module.scopes[self.key & MASK].kwarg)

    @property
    def globals(self) -> tuple[str, ...]:
        """The names of its module that it declares global."""
        return self.module.scopes[self.key & MASK].globals

    def default(self, parameter: str) -> Expr | None:
        """The default of a parameter."""
        found = self.module.scopes[self.key & MASK].defaults.get(parameter)
        return handles.expression(self.code, self.module.base | found) if found is not None else None

    @property
    def loops(self) -> list[Loop]:
        """Its loops, in the order of the text."""
        here = self.key & MASK
        return [handles.Loop(self.code, self.module.base | at) for at, one in enumerate(self.module.table.loops) if one.scope == here]

    def mentions(self, names: re.Pattern[str]) -> bool:
        """Whether its code mentions a name that contains this, see `ldlm_lint.program.mentions`."""
        return self.code.mentions.are_in(self, names)

    def tries_at(self, place: int) -> list[Try]:
        """The blocks around a place in it whose exceptions an ``except`` catches, innermost first."""
        tries, scope = self.module.table.tries, self.key & MASK
        numbers = [one for one, row in enumerate(tries) if row.scope == scope and row.begin <= place < row.end]
        return [handles.Try(self.code, self.module.base | one, self.module) for one in reversed(numbers)]

    def loop_defining(self, inner: Function) -> Loop | None:
        """The loop in which it defines a function; None if it does so in none."""
        loops = [event.spot.loop for event in self.events if event.kind == "bind" and event.expr.row == ("def", inner.key & MASK)]
        return next((one for one in loops if one is not None), None)

    @property
    def writes(self) -> Iterator[Write]:
        """The attributes that it sets, in the order of evaluation."""
        scope = self.module.scopes[self.key & MASK]
        if not scope.writes:
            return
        events = (event for event in scope.events if event[0] == "write")
        for (base, name, value, place), (_, _, loop, guard, _, _) in zip(scope.writes, events, strict=True):
            spot = handles.spot_at(self, self.key & MASK, loop, guard, place)
            yield Write(handles.expression(self.code, self.module.base | base), name, handles.expression(self.code, self.module.base | value), spot)

    @property
    def events(self) -> Iterator[Event]:
        """What happens to values in it, in the order of evaluation."""
        return (handles.event_of(self, row) for row in self.module.scopes[self.key & MASK].events)

    def events_of(self, *kinds: str) -> Iterator[Event]:
        """Those of some kinds alone."""
        return (handles.event_of(self, row) for row in self.module.scopes[self.key & MASK].events if row[0] in kinds)


class Class(Handle):
    """A class of the project."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name in its module."""
        return self.module.scopes[self.key & MASK].name

    @property
    def is_module(self) -> bool:
        """Whether it is a `torch.nn.Module`."""
        return self.code.program.is_module(self.key)

    @property
    def outside_bases(self) -> frozenset[str]:
        """The dotted names of its bases of other packages."""
        return self.code.program.outside_of(self.key)

    @property
    def decorators(self) -> list[Expr]:
        """Its decorators, as written from top to bottom."""
        return [handles.expression(self.code, self.module.base | one) for one in self.module.scopes[self.key & MASK].decorators]

    @property
    def keywords(self) -> list[tuple[str, Expr]]:
        """What its statement gives by name: ``metaclass=ABCMeta``."""
        return [(name or "", handles.expression(self.code, self.module.base | one)) for name, one in self.module.scopes[self.key & MASK].keywords]

    @property
    def functions(self) -> list[Function]:
        """The methods that are written in it."""
        scopes = enumerate(self.module.scopes)
        return [Function(self.code, self.module.base | one) for one, scope in scopes if scope.kind == "def" and scope.parent == self.key & MASK]

    @property
    def span(self) -> Span:
        """``class Name``, as it is written."""
        place = self.module.scopes[self.key & MASK].place
        return self.code.span(self.module, place, place + len(f"class {self.name}".encode()))

    @property
    def line_span(self) -> Span:
        """The line on which it begins."""
        return self.code.line_span(self.module, self.module.scopes[self.key & MASK].place)

    def mentions(self, names: re.Pattern[str]) -> bool:
        """Whether its code mentions a name that contains this, see `ldlm_lint.program.mentions`."""
        return self.code.mentions.are_in(self, names)

    def methods(self, name: str) -> list[Function]:
        """The functions of the project that a method of this name may be for its objects."""
        return [Function(self.code, one) for one in self.code.program.methods(self.key, name)]

    @property
    def body(self) -> Function:
        """What its body runs."""
        return Function(self.code, self.key)

    @property
    def text(self) -> str:
        """Its code."""
        scope = self.module.scopes[self.key & MASK]
        return self.code.text(self.module, scope.place, scope.end)

    @property
    def own_names(self) -> list[str]:
        """The names that its body binds."""
        return list(self.module.scopes[self.key & MASK].bindings)

    def own_methods_named(self, name: str) -> list[Function]:
        """The functions that its body binds to a name, on several ways."""
        rows = [self.module.nodes[one] for one in self.module.scopes[self.key & MASK].bindings.get(name, ())]
        return [Function(self.code, self.module.base | row[1]) for row in rows if row[0] == "def"]

    @property
    def own_methods(self) -> list[Function]:
        """The functions that its body binds to names."""
        rows = [self.module.nodes[bound[-1]] for bound in self.module.scopes[self.key & MASK].bindings.values()]
        return [Function(self.code, self.module.base | row[1]) for row in rows if row[0] == "def"]

    @property
    def reads(self) -> list[Expr]:
        """What its methods read of ``self``, and by names that they do not bind."""
        module, program = self.module, self.code.program
        found = []
        for number, row in enumerate(module.nodes):
            of_self = row[0] == "attr" and program.class_of_self(module, row[1]) == self.key
            if of_self or (row[0] == "free" and row[1] and class_at(module, row[1]) == self.key & MASK):
                found.append(handles.expression(self.code, module.base | number))
        return found

    def field_values(self, name: str) -> list[Expr]:
        """What its constructions give a field, if it is a record, and its default where one omits it or none is known."""
        return [handles.expression(self.code, one) for one in self.code.program.field_sources(self.key, name)]

    def callables(self, name: str) -> list[Function]:
        """The same with functions that are assigned to them, also by `functools.partial`: ``self.load = self._load``."""
        program = self.code.program
        value = program.ask(("attr", self.key, name, False))
        for fields in program.atoms.kinds(value, "partial"):
            value |= program.ask(("unwrapped", fields[1]))
        return [Function(self.code, fields[1]) for kind in ("f", "b") for fields in program.atoms.kinds(value, kind)]

    @property
    def constructions(self) -> list[Call]:
        """The calls that make objects of exactly this class."""
        return [handles.Call(self.code, one) for one in self.code.program.constructions(self.key)]

    @property
    def bases(self) -> list[Class]:
        """The class itself and its bases of the project, nearest first."""
        return [Class(self.code, one) for one in self.code.program.order(self.key)]

    @property
    def written_bases(self) -> list[Expr]:
        """Its bases as its statement names them."""
        return [handles.expression(self.code, self.module.base | one) for one in self.module.scopes[self.key & MASK].bases]

    @property
    def subclasses(self) -> list[Class]:
        """The class itself and its subclasses of the project."""
        return [Class(self.code, one) for one in self.code.program.below(self.key)]

    def written(self, attribute: str) -> list[Expr]:
        """What its methods, and those of its bases of the project, set as an attribute of ``self``."""
        program = self.code.program
        return [handles.expression(self.code, value) for one in program.order(self.key) for value in program.own_writes.get((one, attribute), ())]

    def set_itself(self, attribute: str) -> list[Expr]:
        """What its own methods set as an attribute of ``self``."""
        return [handles.expression(self.code, one) for one in self.code.program.own_writes.get((self.key, attribute), ())]

    def bound(self, name: str) -> list[Expr]:
        """What its own body binds a name to."""
        return [handles.expression(self.code, self.module.base | one) for one in self.module.scopes[self.key & MASK].bindings.get(name, ())]

    def line_of(self, name: str) -> Span | None:
        """The line on which its body binds a name; None if it does not."""
        events = self.module.scopes[self.key & MASK].events
        place = next((event[4] for event in events if event[0] == "bind" and event[5] == name), None)
        return None if place is None else self.code.line_span(self.module, place)

    def changes(self, *names: str) -> bool:
        """Whether it, or one of its bases of the project, has a method or attribute of one of these names."""
        program = self.code.program
        bound = (program.module_of(one).scopes[one & MASK].bindings for one in program.order(self.key))
        return any(name in one for one in bound for name in names)


def class_at(module: Module, scope: int) -> int:
    """The innermost class around a scope; 0 for none."""
    while scope > 0 and module.scopes[scope].kind != "class":
        scope = module.scopes[scope].parent
    return max(scope, 0)


def leading_to(functions: Iterable[Function]) -> frozenset[Function]:
    """Some functions, and those that call them, directly or through others."""
    todo = list(dict.fromkeys(functions))
    found = set(todo)
    for function in todo:
        above = {call.function for call in function.callers} - found
        found |= above
        todo += above
    return frozenset(found)
