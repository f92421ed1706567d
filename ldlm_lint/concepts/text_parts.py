"""Where an expression's value is written, call by call, and the contents of literal sequences and mappings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function

_MOST_ELEMENTS = 60
_ADDS = frozenset({"append", "extend"})
_READS = frozenset({"join", "items", "keys", "values", "copy", "get", "index", "count"})
_PASSES_ON = frozenset({"list", "tuple", "sorted", "set"})
_ONLY_READ = _PASSES_ON | {"print", "len", "str", "dict", "join"}


@dataclass(frozen=True)
class Context:
    """The context of an expression: the call of the ``function`` that it is in, or the current element of a loop."""

    function: Function | None = None
    call: Call | None = None
    element: Expr | None = None
    items: tuple[Place, ...] = ()
    outer: Context | None = None

    def around(self) -> Iterator[Context]:
        """The context and those around it, innermost first."""
        at: Context | None = self
        while at is not None:
            yield at
            at = at.outer


class Place(NamedTuple):
    """An expression and its context; the list or call that it is an element of (``holder``), and which one there."""

    expr: Expr
    context: Context | None = None
    holder: Expr | None = None
    nth: int = 0

    def beside(self, expr: Expr) -> Place:
        """Another expression in the same surroundings."""
        return Place(expr, self.context)

    @property
    def contexts(self) -> list[Context]:
        """Its contexts, innermost first."""
        return list(self.context.around()) if self.context is not None else []


class Places(Concept):
    """Follows expressions through a program; unknown results are None."""

    _open: tuple[Expr, ...] = ()

    def resolved(self, place: Place) -> Place | None:
        """Where the value of an expression is written: after names, parameters, imports and functions that return
        it.
        """
        seen: set[Place] = set()
        while place not in seen:
            seen.add(place)
            following = self._next(place)
            if following is None or following is place:
                return following
            place = following
        return None

    def _next(self, place: Place) -> Place | None:
        expr = place.expr
        if expr.kind == "copy":
            return place.beside(expr.ways[0])
        if expr.kind == "free":
            bound = expr.bound_outside
            return Place(bound[0]) if len(bound) == 1 else _container(place)
        if expr.kind == "param":
            return _given(place)
        if expr.kind in ("elem", "part"):
            return self._taken(place)
        if isinstance(expr, Call):
            return _returned(place, expr)
        return _container(place) if expr.kind in ("attr", "impf", "item") else place

    def _taken(self, place: Place) -> Place | None:
        """The element of a loop or an unpacking in the current iteration."""
        expr, part = place.expr, place.expr.part
        if part is None or expr.base is None:
            context = next((one for one in place.contexts if one.element == expr), None)
            return place if place.context is None else context.items[0] if context is not None and len(context.items) == 1 else None
        base = place.beside(expr.base)
        context = next((one for one in place.contexts if one.element == base.expr), None)
        if context is not None and len(context.items) > 1:
            return context.items[part] if 0 <= part < len(context.items) else None
        whole = self.resolved(base)
        parts = self.elements(whole) if whole is not None and whole.expr.kind == "seq" else None
        return parts[part] if parts is not None and 0 <= part < len(parts) else None

    def elements(self, place: Place, reader: Expr | None = None) -> list[Place] | None:
        """The elements of a list or a comprehension, in order, when a call (``reader``) reads it."""
        rounds = self.rounds(place, reader)
        return None if rounds is None or any(len(one) != 1 for one in rounds) else [one[0] for one in rounds]

    def rounds(self, place: Place, reader: Expr | None = None) -> list[tuple[Place, ...]] | None:
        """The values of each iteration over an expression: one value, or the key and value of a mapping's item."""
        written = self.resolved(place)
        # A list may be in itself.
        if written is None or self._open.count(written.expr) > 1:
            return None
        before, self._open = self._open, (*self._open, written.expr)
        found = self._rounds(written, reader or place.expr)
        self._open = before
        return found if found is not None and len(found) <= _MOST_ELEMENTS else None

    def _rounds(self, place: Place, reader: Expr) -> list[tuple[Place, ...]] | None:
        expr = place.expr
        if expr.kind == "seq":
            own = self._of_sequence(place)
            return None if own is None else self._with_added(place, reader, own)
        if expr.kind in ("map", "upd"):
            entries = self._entries(place)
            return None if entries is None else [(key,) for key, _ in entries.values()]
        if expr.kind == "comp":
            return self._of_comprehension(place)
        if isinstance(expr, Call):
            return self._of_call(place, expr)
        if expr.operator == "Add":
            sides = [self.rounds(place.beside(one)) for one in expr.operands]
            return None if any(side is None for side in sides) else [one for side in sides for one in side or ()]
        return None

    def _of_sequence(self, place: Place) -> list[tuple[Place, ...]] | None:
        found: list[tuple[Place, ...]] = []
        for index, one in enumerate(place.expr.operands):
            if one.kind == "star" and one.base is not None:
                inner = self.rounds(place.beside(one.base))
                if inner is None:
                    return None
                found += inner
            else:
                found.append((Place(one, place.context, place.expr, index),))
        return found

    def _of_call(self, place: Place, call: Call) -> list[tuple[Place, ...]] | None:
        callee, name = call.callee, call.called_name
        is_of_python = callee.kind == "free" and not call.targets and callee.outside_names <= {f"builtins.{name}"}
        if is_of_python and name in _PASSES_ON and len(call.positional) == 1:
            return self.rounds(place.beside(call.positional[0]))
        if call.receiver is not None and name in ("items", "keys", "values") and not call.positional:
            entries = self.entries(place.beside(call.receiver))
            if entries is None:
                return None
            first, last = {"items": (0, 2), "keys": (0, 1), "values": (1, 2)}[name]
            return [tuple(one)[first:last] for one in entries.values()]
        return None

    def entries(self, place: Place) -> dict[str, tuple[Place, Place]] | None:
        """The items of a mapping, key and value, by the texts of their keys."""
        written = self.resolved(place)
        return None if written is None else self._entries(written)

    def _entries(self, place: Place) -> dict[str, tuple[Place, Place]] | None:
        stores: list[Expr] = []
        expr = place.expr
        while expr.kind in ("copy", "upd") and len(stores) < _MOST_ELEMENTS and expr.base is not None:
            stores += [expr] if expr.kind == "upd" else []
            expr = expr.base
        items = [*expr.items, *((one.index, one.put) for one in reversed(stores))]
        if expr.kind != "map" or any(one not in stores for one in expr.changed_by) or any(key is None or key.kind != "const" for key, _ in items):
            return None
        return {str(key.constant): (place.beside(key), place.beside(value)) for key, value in items if key is not None and value is not None}

    def _of_comprehension(self, place: Place) -> list[tuple[Place, ...]] | None:
        """A comprehension with one loop and no condition."""
        taken, made = place.expr.element_taken, place.expr.base
        rounds = self.rounds(place.beside(taken.base)) if taken is not None and taken.base is not None else None
        if rounds is None or made is None:
            return None
        return [(Place(made, Context(element=taken, items=one, outer=place.context)),) for one in rounds]

    def _with_added(self, place: Place, reader: Expr, own: list[tuple[Place, ...]]) -> list[tuple[Place, ...]] | None:
        """A list with the elements appended one after the other before it is read; None if other code may change it."""
        made = place.expr
        bound = next((event.spot for event in made.function.events if event.kind == "bind" and event.expr == made), None)
        if bound is None:
            return None if made.changed_by else own
        handled: set[Expr] = set()
        is_read = False
        for call in bound.function.calls:
            is_read |= call == reader
            if is_read:
                handled.add(call)
            elif call.receiver is not None and call.receiver.unnamed == made:
                if call.called_name in _READS:
                    continue
                if call.called_name not in _ADDS or len(call.positional) != 1 or not call.spot.is_beside(bound):
                    return None
                handled.add(call)
                one = place.beside(call.positional[0])
                added = [(one._replace(holder=call),)] if call.called_name == "append" else self.rounds(one)
                if added is None:
                    return None
                own = [*own, *added]
            elif any(one.unnamed == made for one in call.arguments) and call.called_name not in _ONLY_READ:
                return None
        return own if handled.issuperset(made.changed_by) else None


def _container(place: Place) -> Place:
    """The only container of an attribute or an imported name, where it is created; else the expression itself."""
    made = place.expr.containers
    only = next(iter(made)) if len(made) == place.expr.count_of_values == 1 else place.expr
    return place if only == place.expr else Place(only)


def _given(place: Place) -> Place | None:
    """What the call of its function passes for a parameter: the one of the context, or else the only one."""
    parameter = place.expr
    context = next((one for one in place.contexts if one.function == parameter.function), None)
    if context is None:
        callers = parameter.function.callers
        context = Context(parameter.function, callers[0]) if len(callers) == 1 and not parameter.function.has_unknown_callers else None
    if context is None or context.call is None:
        return None
    given = context.call.given_for(parameter)
    if given is not None:
        return None if given.kind == "star" else Place(given, context.outer)
    default = parameter.default
    unpacked = any(not name for name, _ in context.call.keywords)
    return None if default is None or unpacked else Place(default)


def _returned(place: Place, call: Call) -> Place | None:
    """What the only function of the project that a call goes to returns; the call itself for all else."""
    functions = call.callee.functions
    if len(functions) != 1 or call.callee.count_of_values != 1:
        return place
    function = functions[0]
    returns = sum(1 for _ in function.events_of("return"))
    is_recursive = any(one.call == call for one in place.contexts)
    if len(function.returned) != 1 or returns > 1 or function.is_generator or function.decorators or is_recursive:
        return None
    return Place(function.returned[0], Context(function, call, outer=place.context))


__all__ = ["Context", "Place", "Places"]
