"""Where a file uses functions or classes of other packages under their names: calls them, decorates with them, or hands them
on; naming a type in a test of types runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.modules import Module
from ldlm_lint.program.origins import VERSIONS
from ldlm_lint.program.spots import Event, Spot
from ldlm_lint.program.value_uses import How
from ldlm_lint.program.walks import Through, reached

if TYPE_CHECKING:
    from ldlm_lint.model import Span

_KINDS = ("attr", "impf", "free")
_TYPE_TESTS = frozenset({"isinstance", "issubclass"})
_GIVEN_AWAY = frozenset({"write", "return", "yield", "delete"})
_NO_VALUE = frozenset({"attr", "phi", "copy", "cmp"})


@dataclass(frozen=True)
class NamedUse:
    """A use of an interface by its dotted ``name``: of the expression ``named``, by a call or a decorator (``call``), or as a
    value, which ``taker`` gets."""

    name: str
    named: Expr
    call: Call | None = None
    taker: Expr | Function | Class | Event | None = None
    """What takes it: an expression, a function as the default of a parameter, a class that is derived from it, a return."""

    @property
    def spot(self) -> Spot:
        """Where it runs."""
        at = self.call or self.taker
        if isinstance(at, (Call, Event)):
            return at.spot
        events = (event.spot for event in at.events) if isinstance(at, Expr) else iter(())
        return next(events, self.named.function.spot)

    @property
    def root(self) -> Expr:
        """What the name begins with: ``torch`` of ``torch.optim.Adam``."""
        return _root(self.named)

    @property
    def imports(self) -> list[Expr]:
        """The imports that its first name may be bound by; empty if anything else may bind it."""
        found = list(_ends(self.root))
        return found if all(one.is_outside_import for one in found) else []

    @property
    def aliased(self) -> list[Expr]:
        """The full names of the interface that the file binds to the name."""
        return [one for one in _ends(self.named) if one != self.named and one.kind == "attr"]


class Brought(NamedTuple):
    """An interface that a call may get by a value: its name, and the expression that names it."""

    name: str
    call: Call
    named: Expr

    @property
    def is_import(self) -> bool:
        """Whether the call names it as it is imported, here or in another file."""
        return self.named.kind == "impf" and self.call.callee.kind in ("free", "impf")

    @property
    def span(self) -> Span:
        """Where it is written in full; the call if it is not, or if the call itself writes it."""
        is_written = self.named.kind == "attr" and self.named.place and self.named != self.call.callee
        return self.named.span if is_written else self.call.span


class NamedUses(Concept):
    """Answers for the files of a program."""

    def of(self, module: Module, names: Collection[str]) -> Iterator[NamedUse]:
        """The uses of some interfaces in a file, in the order of the text; each name for certain, where it exists."""
        for call in self.code.calls_in(module):
            name = _surely(call.callee, names)
            if name:
                yield NamedUse(name, call.callee, call)
        for kind in _KINDS:
            for expr in self.code.expressions_in(module, kind):
                name = _surely(expr, names)
                if name:
                    yield from (NamedUse(name, expr, None, taker) for taker in self.takers(expr))

    def takers(self, expr: Expr) -> Iterator[Expr | Function | Class | Event]:
        """What gets an expression as a value; no name that stands for it, whose uses are its own."""
        yield from (use.by for use in expr.uses() if use.by is not None and _takes(use.by, expr))
        yield from (use.function for use in expr.uses() if use.function is not None and use.how is How.DEFAULT)
        yield from (event for event in expr.events if event.kind in _GIVEN_AWAY)
        yield from (owner for owner in self._derived if expr in owner.written_bases)

    def brought(self, names: Collection[str]) -> Iterator[Brought]:
        """The interfaces that a value of another place brings to a call, in no branch for some versions."""
        for call in self.code.calls(names):
            for one in () if call.is_as_written else call.callee.alternatives(names):
                for origin in one.origins if one.owner is None else ():
                    if not origin.is_fallback and not origin.is_guarded_by(VERSIONS):
                        yield Brought(one.name, call, origin.expr)

    def tested_types(self, module: Module) -> frozenset[str]:
        """The interfaces that a file names in full in a test of types."""
        tests = (call for call in self.code.calls_in(module, *_TYPE_TESTS) if call.callee.kind == "free")
        return frozenset(name for call in tests for one in call.positional[1:] for part in one.within if part.kind == "attr" for name in part.outside_names)

    def only_reads(self, made: Call) -> bool:
        """Whether an object is held by one variable, of which the file only reads attributes."""
        names = {event.name for event in made.events if event.kind == "bind"}
        if len(names) != 1 or any(event.kind in _GIVEN_AWAY for event in made.events):
            return False
        reads = [made, *(one for one in self.code.expressions_in(made.module, "free") if one.name in names and made in one.bound_outside)]
        return all(by.kind in ("attr", "copy", "phi") for one in reached(reads, lambda at: [by for by in at.users if by.kind in ("copy", "phi")]) for by in one.users)

    @cached_property
    def _derived(self) -> list[Class]:
        return [one for one in self.code.classes if one.written_bases]


def _takes(by: Expr, expr: Expr) -> bool:
    if isinstance(by, Call):
        return by.callee != expr and by.called_name not in _TYPE_TESTS
    is_type = by.kind == "item" and by.index == expr
    names_types = by.is_tuple and bool(by.users) and not any(_takes(one, by) for one in by.users)
    return by.kind not in _NO_VALUE and not is_type and not names_types


def _surely(expr: Expr, names: Collection[str]) -> str:
    """The one interface of another package that a name stands for, where all else is a fallback; empty for anything else."""
    if expr.outside_names.isdisjoint(names):
        return ""
    found: set[str] = set()
    for end in _ends(expr):
        if not end.is_fallback:
            is_named = all(one.is_outside_import for one in _ends(_root(end)))
            found |= end.outside_names if is_named and end.outside_names else {""}
    return next(iter(found)) if len(found) == 1 and found <= set(names) else ""


def _root(expr: Expr) -> Expr:
    while expr.kind == "attr" and expr.base is not None:
        expr = expr.base
    return expr


def _ends(expr: Expr) -> Iterator[Expr]:
    """What a name of the file stands for."""
    for one in expr.origins(Through.NAMES | Through.OUTSIDE):
        if one.kind not in ("copy", "phi") and not (one.kind == "free" and (one.bound_outside or one.function.is_module)):
            yield one


__all__ = ["Brought", "NamedUse", "NamedUses"]
