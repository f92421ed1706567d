"""The purpose of reading a device value: some uses need it immediately on the host; others could read it later, or
never."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from ldlm_lint.program.modules import Module
from ldlm_lint.program.operands import operands, users_in
from ldlm_lint.vocabulary.reading import FINITE, HANDS_ON, MAKES_SIZES

_MOST = 60
_THROUGH = frozenset({"op", "un", "bool", "cmp", "choice", "not", "phi", "copy", "comp", "seq"})
_WHOLE = frozenset({"phi", "copy", "op", "un", "comp", "seq", "choice"})


class Need(enum.Enum):
    """The purpose for which the host needs a value immediately."""

    DECIDES = "decides"
    FINITE = "finite"
    SIZES = "sizes"
    INDEXES = "indexes"


class Reading:
    """Answers for the expressions of one module."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._users = users_in(module)
        events = [event for scope in module.scopes for event in scope.events]
        self._tested = {event[1] for event in events if event[0] == "test"}
        self._added = {event[5] for event in events if event[0] == "add"}
        self._bound = {event[1]: str(event[5]) for event in events if event[0] == "bind"}
        self._returned = {value for scope in module.scopes for value, _ in scope.returns}
        self._written = {value for scope in module.scopes for _, _, value, _ in scope.writes}

    def need_of(self, number: int) -> Need | None:
        """The immediate need for a read value or its variable; None if it could be read later."""
        for one, finite in self._handed_on(number):
            if one in self._tested:
                return Need.FINITE if finite else Need.DECIDES
            for user in self._users.get(one, ()):
                need = self._need_of_user(one, user)
                if need is not None:
                    return need
        return None

    def made_of(self, number: int) -> list[int]:
        """A read value and the numbers, tests and lists that are made from it."""
        return [one for one, _ in self._handed_on(number)]

    def _need_of_user(self, number: int, user: int) -> Need | None:
        row = self.module.nodes[user]
        if row[0] == "slice":
            return Need.SIZES
        if row[0] == "item" and row[2] == number:
            return Need.INDEXES
        if row[0] == "call" and number in row[2] and self.module.last_name(row[1]) in MAKES_SIZES:
            return Need.SIZES
        return None

    def _handed_on(self, number: int) -> Iterator[tuple[int, bool]]:
        """An expression and the numbers, tests and lists made from it, each with whether it tests for finiteness."""
        todo, seen = [(number, self._asks_finite(number))], {number}
        while todo and len(seen) < _MOST:
            one, finite = todo.pop(0)
            yield one, finite
            for user in self._users.get(one, ()):
                row = self.module.nodes[user]
                name = self.module.last_name(row[1]) if row[0] == "call" and one in row[2] else ""
                if user not in seen and (row[0] in _THROUGH or name in HANDS_ON or name in FINITE):
                    seen.add(user)
                    todo.append((user, finite or name in FINITE))

    def _asks_finite(self, number: int) -> bool:
        """``torch.isnan(x)``, ``x.isnan().any()``."""
        todo, seen = [number], 0
        while todo and seen < _MOST:
            row = self.module.nodes[todo.pop()]
            seen += 1
            if row[0] == "call" and self.module.last_name(row[1]) in FINITE:
                return True
            if row[0] in ("call", "attr", "not", "bool"):
                todo += operands(row)
        return False

    def is_returned(self, number: int) -> bool:
        """Whether a function returns a value unchanged."""
        return number in self._returned

    def name_of(self, number: int) -> str:
        """The name of a parameter or of another module's value, or the one that a row is bound to; empty if there is
        none."""
        row = self.module.nodes[number]
        return str(row[2]) if row[0] in ("param", "free", "impf") else self._bound.get(number, "")

    def names_given(self, number: int) -> set[str]:
        """The variables that a value, or the result of its statement, is bound to."""
        found: set[str] = set()
        todo, seen = [number], {number}
        while todo and len(seen) < _MOST:
            one = todo.pop()
            if one in self._bound:
                found.add(self._bound[one])
                continue
            fresh = [user for user in self._users.get(one, ()) if user not in seen]
            seen.update(fresh)
            todo += fresh
        return found

    def is_given_to(self, number: int, names: frozenset[str]) -> bool:
        """Whether a value, a part of it or a result of its methods is passed to a function with one of these names."""
        todo, seen = [number], {number}
        while todo and len(seen) < _MOST:
            one = todo.pop()
            for user in self._users.get(one, ()):
                row = self.module.nodes[user]
                if row[0] == "call" and one != row[1] and self.module.last_name(row[1]) in names:
                    return True
                if user not in seen and row[0] != "cmp":
                    seen.add(user)
                    todo.append(user)
        return False

    def is_added(self, number: int) -> bool:
        """Whether a value is added unchanged to a sum where it is read, and used nowhere else: ``total += loss.item()``."""
        return number in self._added and number not in self._bound

    def is_only_kept(self, number: int) -> bool:
        """Whether a read value or its variable is only shown, collected or summed up in its function."""
        return self._is_kept(number, True, set())

    def _is_kept(self, number: int, may_be_bound: bool, seen: set[int]) -> bool:
        if number in self._added or number in self._written:
            return True
        users = [one for one in self._users.get(number, ()) if one not in seen and not self._is_idle(one)]
        if number in self._returned or len(seen) > _MOST or (number in self._bound and not may_be_bound):
            return False
        seen.update(users)
        return bool(users) and all(self._keeps(number, one, seen) for one in users)

    def _is_idle(self, number: int) -> bool:
        """Whether a use of a value leads nowhere: carried on by a loop and never read."""
        return self.module.nodes[number][0] in ("phi", "copy") and not self._users.get(number) and number not in self._returned

    def _keeps(self, number: int, user: int, seen: set[int]) -> bool:
        """Whether a use shows, collects or adds up a value."""
        row = self.module.nodes[user]
        if row[0] in ("map", "fstr", "upd", "dcomp"):
            return True
        if row[0] == "call" and number != row[1]:
            is_statement = not self._users.get(user) and user not in self._bound and user not in self._returned
            return is_statement or self._is_kept(user, self.module.last_name(row[1]) in HANDS_ON, seen)
        return row[0] in _WHOLE and self._is_kept(user, True, seen)


__all__ = ["Need", "Reading"]
