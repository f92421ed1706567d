"""Non-blocking copies to the host, and code that reads one before its function waits for the device.

    scores = model(batch).to("cpu", non_blocking=True)
    print(scores.max())  # old contents of that memory
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.code.table import Event, Node
from ldlm_lint.program import Program
from ldlm_lint.program.atoms import MASK, MAY_BE_ON_DEVICE, TRUE
from ldlm_lint.program.modules import Module
from ldlm_lint.program.operands import users_in
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

_ROWS = frozenset({"elem", "part", "item", "star", "copy", "comp", "dcomp", "seq", "map", "phi", "choice"})
_PLAIN_COMPARISONS = frozenset({"Is", "IsNot", "In", "NotIn"})
_MOST = 200


class Read(NamedTuple):
    """The row that reads a copy, its start and end (0: to the end of the expression that begins there), and whether it
    is formatted."""

    number: int
    place: int
    end: int
    is_formatted: bool = False


class AsyncCopies:
    """The copies of one module."""

    def __init__(self, program: Program, module: Module) -> None:
        self.program = program
        self.module = module
        self._users = users_in(module)
        self._events: dict[int, list[Event]] = {}
        for scope in module.scopes:
            for event in scope.events:
                self._events.setdefault(event[1], []).append(event)

    def is_one(self, call: int) -> bool:
        """Whether a call (row) is ``tensor.to("cpu", …, non_blocking=True)``, of a value that may be on the device."""
        module, row = self.module, self.module.nodes[call]
        keywords = dict(row[3])
        function = module.nodes[row[1]]
        target = keywords.get("device") or next(iter(row[2]), 0)
        if function[0] != "attr" or function[2] != "to" or "non_blocking" not in keywords or not target:
            return False
        is_async = self.program.ask(module.base | keywords["non_blocking"]) == frozenset([TRUE])
        value = self.program.ask(module.base | function[1])
        return is_async and self.is_host(target) and not (value and value.isdisjoint(MAY_BE_ON_DEVICE))

    def is_host(self, number: int) -> bool:
        """Whether a device can only be the host."""
        return self.program.is_cpu(self.program.ask(self.module.base | number))

    def waits_itself(self, scope: int) -> bool:
        """Whether a function waits for the device itself."""
        return any(self.module.last_name(self.module.nodes[one][1]) in WAITS for one in self.module.scopes[scope].calls)

    def first_read(self, call: int, copy: int | None = None) -> Read | None:
        """The first read of the result of a call (row); None if none is known, or the code waits before it."""
        scope = self.module.table.sites[call].scope
        if self.waits_itself(scope):
            return None
        # Rows are numbered in the order of evaluation.
        for number, user in sorted(self._uses(call), key=lambda use: use[1]):
            read = self._reads(number, user)
            if read is not None:
                return None if self._blocked(scope, call, number, user) else read
            if not self._only_looks(number, user):
                return None
        return None

    def _uses(self, call: int) -> Iterator[tuple[int, int]]:
        """The uses of a value, or of its rows and views: the used value, and the row that uses it."""
        todo, seen = [call], {call}
        while todo and len(seen) < _MOST:
            number = todo.pop()
            for event in self._events.get(number, ()):
                if event[0] in ("test", "format"):
                    yield number, number
            for user in self._users.get(number, ()):
                if self._is_of_another(user, seen):
                    continue
                if self._hands_on(number, user):
                    if user not in seen:
                        seen.add(user)
                        todo.append(user)
                else:
                    yield number, user

    def _is_of_another(self, user: int, seen: set[int]) -> bool:
        """Whether an unpacked part is not a row of the tensor: the index of ``enumerate``, another zipped value."""
        row = self.module.nodes[user]
        element = self.module.nodes[row[1]] if row[0] == "part" else ("",)
        iterable = self.module.nodes[element[1]] if element[0] == "elem" else ("",)
        name = self.module.last_name(iterable[1]) if iterable[0] == "call" else ""
        if name == "enumerate":
            return bool(row[2] == 0)
        return name == "zip" and 0 <= row[2] < len(iterable[2]) and iterable[2][row[2]] not in seen

    def _hands_on(self, number: int, user: int) -> bool:
        """Whether a use yields the same memory, or a row of it."""
        row = self.module.nodes[user]
        if row[0] in ("item", "choice"):
            return bool(row[1] == number) or row[0] == "choice"
        if row[0] in _ROWS:
            return True
        if row[0] == "attr":
            # The method is examined at its call.
            return row[2] in VIEWS
        if row[0] != "call":
            return False
        function = self.module.nodes[row[1]]
        if function[0] == "attr" and row[1] == number:
            return function[2] in VIEWS
        return number in row[2] and self.module.last_name(row[1]) in GOES_THROUGH

    def _reads(self, number: int, user: int) -> Read | None:
        """The read in a use, if it is one."""
        module = self.module
        if user == number:
            event = next(one for one in self._events[number] if one[0] in ("test", "format"))
            return Read(number, event[4], 0, event[0] == "format")
        row = module.nodes[user]
        if row[0] == "attr":
            call = next((one for one in self._users.get(user, ()) if module.nodes[one][0] == "call" and module.nodes[one][1] == user), 0)
            return self._of_call(call) if call and row[2] in READS else None
        if row[0] == "call" and number in row[2]:
            return self._of_call(user) if self._is_reading_call(row) else None
        is_read = row[0] == "op" or (row[0] == "cmp" and _PLAIN_COMPARISONS.isdisjoint(row[1]))
        return Read(user, module.table.places[user], 0) if is_read else None

    def _of_call(self, call: int) -> Read:
        site = self.module.table.sites[call]
        return Read(call, site.place, site.end)

    def _is_reading_call(self, row: Node) -> bool:
        value = self.program.ask(self.module.base | row[1])
        names = [fields[1] for fields in self.program.atoms.kinds(value, "x")]
        plain = self.module.plain(row[1])
        if plain[0] == "free" and plain[2] in READING_BUILTINS:
            return True
        return bool(names) and all(one in READING_CALLS or one.startswith("numpy.") for one in names)

    def _only_looks(self, number: int, user: int) -> bool:
        """A use that neither reads the values nor passes them to code that may wait for them."""
        row = self.module.nodes[user]
        if row[0] == "call" and number in row[2]:
            return self.module.last_name(row[1]) in ("len", "isinstance")
        return row[0] == "cmp" or (row[0] == "attr" and row[2] in LOOKS)

    def _blocked(self, scope: int, call: int, used: int, read: int) -> bool:
        """Whether a blocking copy to the host comes in between: then the stream has finished this copy too."""
        own = {read, *self._rows_behind(used, call)}
        return any(call < one < read and one not in own and self._blocks(one) for one in self.module.scopes[scope].calls)

    def _rows_behind(self, number: int, call: int) -> Iterator[int]:
        """The calls that a use is read through: only views of the copy."""
        row = self.module.nodes[number]
        while number != call and row[0] in (*_ROWS, "call", "attr") and row[1].__class__ is int:
            yield number
            number = row[1]
            row = self.module.nodes[number]

    def _blocks(self, call: int) -> bool:
        row = self.module.nodes[call]
        name = self.module.last_name(row[1])
        if name in BLOCKS:
            return not self._is_of_copy(row)
        return name == "to" and bool(row[2]) and self.is_host(row[2][0]) and not self.is_one(call)

    def _is_of_copy(self, row: Node) -> bool:
        """Whether a method is called on an asynchronous copy itself, or a row of it: it does not wait."""
        function = self.module.nodes[row[1]]
        number, steps = function[1] if function[0] == "attr" else 0, 0
        while number and steps < _MOST:
            row = self.module.nodes[number]
            if row[0] == "call" and self.is_one(number):
                return True
            if row[0] == "call":
                inner = self.module.nodes[row[1]]
                number = inner[1] if inner[0] == "attr" and inner[2] in VIEWS else row[2][0] if row[2] and self.module.last_name(row[1]) in GOES_THROUGH else 0
            else:
                number = row[1] if row[0] in ("elem", "part", "item", "copy", "attr") else 0
            steps += 1
        return False


def copies_of(program: Program) -> Iterator[int]:
    """The calls (keys) of ``to`` with ``non_blocking``."""
    for call in program.calls.get("to", ()):
        module = program.module_of(call)
        if any(name == "non_blocking" for name, _ in module.nodes[call & MASK][3]):
            yield call


__all__ = ["AsyncCopies", "Read", "copies_of"]
