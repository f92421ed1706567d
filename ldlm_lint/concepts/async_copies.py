"""Non-blocking copies to the host, and code that reads one before its function waits for the device.

    scores = model(batch).to("cpu", non_blocking=True)
    print(scores.max())  # old contents of that memory
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.program.atoms import MAY_BE_ON_DEVICE, TRUE
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.copies import (
    BLOCKS,
    GOES_THROUGH,
    LOOKS,
    READING_BUILTINS,
    READING_CALLS,
    READS,
    VIEWS,
    WAITS,
)

if TYPE_CHECKING:
    from ldlm_lint.model import Span

_ROWS = frozenset({"elem", "part", "item", "star", "copy", "comp", "dcomp", "seq", "map", "phi", "choice"})
_TAKEN = frozenset({"elem", "part", "item", "copy", "attr"})
_PLAIN_COMPARISONS = frozenset({"Is", "IsNot", "In", "NotIn"})
_SEEN = frozenset({"test", "format"})


class Read(NamedTuple):
    """What reads a copy, where, the line on which it does, and whether it is formatted."""

    reader: Expr
    span: Span
    line: Span
    is_formatted: bool = False


class AsyncCopies(Concept):
    """The copies of a program."""

    def all(self) -> Iterator[Call]:
        """The calls ``tensor.to("cpu", …, non_blocking=True)`` of values that may be on the device."""
        return (call for call in self.code.calls_named("to") if self._is_one(call))

    def _is_one(self, call: Call) -> bool:
        keywords = dict(call.keywords)
        given, target = keywords.get("non_blocking"), keywords.get("device") or next(iter(call.positional), None)
        if call.receiver is None or call.callee.name != "to" or given is None or target is None:
            return False
        value = call.receiver.value
        return given.value == frozenset([TRUE]) and self._is_host(target) and not (value and value.isdisjoint(MAY_BE_ON_DEVICE))

    def _is_host(self, device: Expr) -> bool:
        """Whether a device can only be the host."""
        return self.program.is_cpu(device.value)

    def read_of(self, copy: Call) -> Read | None:
        """The first read of a copy in its function, or in a known caller that gets it; None if none is known, or the code
        waits before it."""
        found = self.first_read(copy)
        if found is not None or not copy.returned_by or _waits(copy.function):
            return found
        reads = map(self.first_read, copy.function.callers)
        return next((read for read in reads if read is not None), None)

    def first_read(self, call: Call) -> Read | None:
        """The first read of the result of a call in its function; None if none is known, or the code waits before it."""
        if _waits(call.function):
            return None
        rows: list[Expr] = []
        uses: list[tuple[Expr, Expr]] = []
        for at in reached([call], lambda one: [user for user in one.users if _hands_on(one, user) and not _is_of_another(user, rows)]):
            rows.append(at)
            uses += [(at, user) for user in at.users if not _hands_on(at, user) and not _is_of_another(user, rows)]
            uses += [(at, at)] if any(event.kind in _SEEN for event in at.events) else []
        for at, user in sorted(uses, key=lambda use: use[1].key):
            read = self._read(at, user)
            if read is not None:
                return None if self._blocked(call, at, read.reader) else read
            if not _only_looks(at, user):
                return None
        return None

    def _read(self, value: Expr, user: Expr) -> Read | None:
        """The read in a use, if it is one."""
        if user == value:
            event = next(one for one in value.events if one.kind in _SEEN)
            return Read(value, event.span, event.spot.line_span, event.kind == "format")
        if user.kind == "attr":
            method = next((one for one in user.users if isinstance(one, Call) and one.callee == user), None)
            return Read(method, method.span, method.line_span) if method is not None and user.name in READS else None
        if isinstance(user, Call) and value in user.positional:
            return Read(user, user.span, user.line_span) if _is_reading_call(user) else None
        is_read = user.kind == "op" or (user.kind == "cmp" and user.operator not in _PLAIN_COMPARISONS)
        return Read(user, self.code.span(user.module, user.place, 0), user.line_span) if is_read else None

    def _blocked(self, copy: Call, used: Expr, read: Expr) -> bool:
        """Whether a blocking copy to the host comes in between: then the stream has finished this copy too."""
        own, at = {read}, used
        while at != copy and (before := at.callee if isinstance(at, Call) else at.base) is not None:
            own.add(at)
            at = before
        between = (one for one in copy.function.calls if copy.precedes(one) and one.precedes(read) and one not in own)
        return any(map(self._blocks, between))

    def _blocks(self, call: Call) -> bool:
        if call.called_name in BLOCKS:
            return not self._is_of_copy(call)
        return call.called_name == "to" and bool(call.positional) and self._is_host(call.positional[0]) and not self._is_one(call)

    def _is_of_copy(self, call: Call) -> bool:
        """Whether a method is called on an asynchronous copy itself, or a row of it: it does not wait."""
        if call.receiver is None:
            return False
        return any(isinstance(one, Call) and self._is_one(one) for one in reached([call.receiver], _viewed))


def _waits(function: Function) -> bool:
    """Whether a function waits for the device itself."""
    return any(call.called_name in WAITS for call in function.calls)


def _is_of_another(user: Expr, rows: list[Expr]) -> bool:
    """Whether an unpacked part is not a row of the tensor: the index of ``enumerate``, another zipped value."""
    element = user.base if user.kind == "part" else None
    iterable = element.base if element is not None and element.kind == "elem" else None
    if not isinstance(iterable, Call) or user.part is None:
        return False
    if iterable.called_name == "enumerate":
        return user.part == 0
    taken = iterable.positional[user.part : user.part + 1] if user.part >= 0 else []
    return iterable.called_name == "zip" and bool(taken) and taken[0] not in rows


def _hands_on(value: Expr, user: Expr) -> bool:
    """Whether a use yields the same memory, or a row of it."""
    if user.kind == "item":
        return user.base == value
    if user.kind in _ROWS:
        return True
    if isinstance(user, Call):
        is_method = user.callee == value and user.receiver is not None
        return user.callee.name in VIEWS if is_method else value in user.positional and user.called_name in GOES_THROUGH
    # The method is examined at its call.
    return user.kind == "attr" and user.name in VIEWS


def _viewed(expr: Expr) -> list[Expr]:
    """What an expression shows the memory of."""
    if not isinstance(expr, Call):
        return [expr.base] if expr.base is not None and expr.kind in _TAKEN else []
    if expr.receiver is not None and expr.callee.name in VIEWS:
        return [expr.receiver]
    return expr.positional[:1] if expr.called_name in GOES_THROUGH else []


def _is_reading_call(call: Call) -> bool:
    function, names = call.callee.plain, call.callee.outside_names
    if function.kind == "free" and function.name in READING_BUILTINS:
        return True
    return bool(names) and all(one in READING_CALLS or one.startswith("numpy.") for one in names)


def _only_looks(value: Expr, user: Expr) -> bool:
    """A use that neither reads the values nor passes them to code that may wait for them."""
    if isinstance(user, Call) and value in user.positional:
        return user.called_name in ("len", "isinstance")
    return user.kind == "cmp" or (user.kind == "attr" and user.name in LOOKS)


__all__ = ["AsyncCopies", "Read"]
