"""Computes values on demand, depth first, operands before their users; a worklist handles only values that grow later.

A key is an expression (``module << SHIFT | number``) or a tuple for another question. An expression has two values: the
*symbolic* one of a summary, in which parameters stand for themselves (key ``k``), and the *closed* one (key ``~k``), in
which they have the values from known callers. Values only grow, so the order of questions only affects time.

Every limit depends on syntax or on the size of a value, is monotone, and is counted in `Solver.limited`.

Once a program is settled, no value that was given grows any more: see `Solver.stay_settled`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from itertools import islice
from typing import Any, TypeAlias

from ldlm_lint.program.atoms import CROWD, FIRST, HOMES, HOST, MANY_CONTAINERS, NOTHING, SHIFT, Atoms, Value
from ldlm_lint.program.modules import Module, Modules

Key: TypeAlias = Any
"""An int for an expression, negative for its closed value; a tuple for another question."""
DEPTH = 160
"""How deep questions go into each other before the rest waits in the worklist: Python's own stack is bounded."""
WIDE = 24
"""Constants, containers or symbols of one value above which they say nothing."""
TEXTS = 12
CROWDED = 256
"""Objects of one value above which only functions and classes are kept: a registry is a list of these."""
_CONTAINERS = frozenset({"d", "view", "pair", "gen"})
_CALLABLES = frozenset({"f", "c", "k"})
_CALLED = frozenset({"edges", "partials", "callable"})
_FLOWING = frozenset({"f", "c", "i", "self", "partial", "x", "o", "b"})


class GrownError(Exception):
    """A value grew after it was given: answers would depend on the order of questions."""


class Solver(ABC):
    """The values of a program as far as they were computed."""

    watches = False
    """Debug mode: whether a value that grows after it was given to a rule is an error."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules
        self.atoms = Atoms()
        self.values: dict[Key, Value] = {}
        self.limited: Counter[str] = Counter()
        self.evaluations = 0
        self.is_symbolic = False
        self._all = modules.all
        self._symbolic = self.atoms.symbolic
        self._readers: dict[Key, Any] = {}
        """Who has read a key: one other key, or a list of them."""
        self._pending: list[Key] = []
        self._queued: set[Key] = set()
        self._current: Key = None
        self._depth = 0
        self._flows: dict[Key, dict[Key, bool]] = {}
        self._pushes: list[tuple[Key, Value]] = []
        self._pushing = False
        self._shared: dict[Value, Value] = {}
        self._is_settled = False
        self._given: set[Key] | None = None
        self.says_what_is_missing = False
        """Whether an operand without a value is unknown; before, it may only not be computed yet."""
        self._missing: set[Key] = set()

    def module_of(self, key: int) -> Module:
        """The module of an expression, function or class."""
        return self._all[(key if key >= 0 else ~key) >> SHIFT]

    def get(self, key: Key) -> Value:
        """The current value of a key; the reader is recomputed when the value grows."""
        values = self.values
        if key.__class__ is int and key >= 0 and not self.is_symbolic:
            # An expression without parameters is the same for all callers: it has no closed key of its own, unless it
            # is given one.
            value = values.get(~key)
            if value is not None:
                key = ~key
            else:
                value = values.get(key)
                if value is None:
                    value = self._first(key)
                if not self._symbolic.isdisjoint(value):
                    key = ~key
                    value = values.get(key)
        else:
            value = values.get(key)
        if value is None:
            value = self._first(key)
        current = self._current
        if current is not None:
            # Most have one reader: a list for each would take a fifth of the memory.
            readers = self._readers.get(key)
            if readers is None:
                self._readers[key] = current
            elif readers.__class__ is list:
                if readers[-1] != current:
                    readers.append(current)
            elif readers != current:
                self._readers[key] = [readers, current]
        return value

    def _first(self, key: Key) -> Value:
        """The value of a key that was not computed before."""
        self.values[key] = NOTHING
        if self._depth >= DEPTH:
            self._pending.append(key)
            self._queued.add(key)
            return NOTHING
        self._depth += 1
        self._evaluate(key)
        self._depth -= 1
        return self.values[key]

    def closed(self, key: int) -> Value:
        """The closed value of an expression, for any reader."""
        symbolic, self.is_symbolic = self.is_symbolic, False
        value = self.get(key)
        self.is_symbolic = symbolic
        return value

    def ask(self, key: Key) -> Value:
        """The value of a key at the fixed point; for callers outside the solver."""
        if self._is_settled and self._given is None and key.__class__ is int and key >= 0 and not self.is_symbolic:
            # What was computed does not grow any more.
            known = self.values.get(~key)
            if known is None and (symbolic := self.values.get(key)) is not None and self._symbolic.isdisjoint(symbolic):
                known = symbolic
            if known is not None and not self._pending:
                return known
        value = self.get(key)
        if self._pending:
            self.solve()
            value = self.get(key)
        if self._is_settled and self._readers and self._depth == 0:
            self._forget_readers()
        if self._given is not None and self._depth == 0:
            self._given.update(islice(reversed(self.values), len(self.values) - len(self._given)))
        return value

    def is_missing(self, *values: Value) -> bool:
        """Whether an operand has no value so far, and the reader has to be computed again to take it for unknown: what is
        concluded from a missing value would stay when the value comes, as in loops and recursions."""
        if self.says_what_is_missing or all(values):
            return False
        self._missing.add(self._current)
        return True

    def say_what_is_missing(self) -> None:
        """Take every operand without a value for unknown from now on."""
        self.says_what_is_missing = True
        for key in self._missing:
            self.requeue(key)
        self._missing.clear()
        self.solve()

    def stay_settled(self) -> None:
        """Say that nothing adds to values from now on: in debug mode a value that grows after it was given raises GrownError."""
        self._is_settled = True
        self._forget_readers()
        if self.watches:
            self._given = set(self.values)

    def _forget_readers(self) -> None:
        """Nothing grows any more: who has read a value is needed only while a question is computed."""
        self._readers, self._flows = {}, {}

    def _evaluate(self, key: Key) -> None:
        current, symbolic = self._current, self.is_symbolic
        self._current = key
        self.evaluations += 1
        value = self.compute(key)
        self._current, self.is_symbolic = current, symbolic
        old = self.values[key]
        if value and not value <= old:
            self._grow(key, old, value)

    @abstractmethod
    def compute(self, key: Key) -> Value:
        """The value of a key, from the values of others; sets the mode for its operands."""

    def solve(self) -> None:
        """Recompute the readers of grown values until nothing grows."""
        self._current = None
        batch: list[Key] = []
        while batch or self._pending:
            if not batch:
                batch, self._pending = self._pending, []
                batch.reverse()
            key = batch.pop()
            self._queued.discard(key)
            self._evaluate(key)
        self._current = None

    def _grow(self, key: Key, old: Value, more: Value) -> None:
        # Most values are the first of their key, and small.
        value = more if not old and len(more) <= WIDE else self._limited(key, old, more)
        if value == old:
            return
        if self._given is not None:
            self._stay(key)
        # There are few different values: each is kept once.
        value = self.values[key] = self._shared.setdefault(value, value)
        flows = self._flows.get(key)
        if flows:
            self._push(flows, value - old)
        self.wake(key)

    def _stay(self, key: Key) -> None:
        if self._given is not None and key in self._given:
            raise GrownError(f"the value of {key} grew after it was given")

    def wake(self, key: Key) -> None:
        """Queue the readers of a key; they read it again when they are computed again."""
        readers = self._readers.pop(key, None)
        if readers.__class__ is list:
            for reader in readers:
                self.requeue(reader)
        elif readers is not None:
            self.requeue(readers)

    def requeue(self, key: Key) -> None:
        """Queue a key."""
        if key not in self._queued:
            self._queued.add(key)
            self._pending.append(key)

    def _push(self, flows: dict[Key, bool], new: Value) -> None:
        for target, objects_only in flows.items():
            given = self.objects(new) if objects_only else new
            if given and not given <= self.values[target]:
                self._pushes.append((target, given))
        if self._pushing:
            return
        self._pushing = True
        while self._pushes:
            target, given = self._pushes.pop()
            old = self.values[target]
            if not given <= old:
                self._grow(target, old, given)
        self._pushing = False

    def _limited(self, key: Key, old: Value, more: Value) -> Value:
        """The union of two values; too large parts are dropped."""
        of = self.atoms.of
        if MANY_CONTAINERS in old:
            more = frozenset([one for one in more if one < FIRST or of[one][0] not in _CONTAINERS])
        if CROWD in old:
            more = frozenset([one for one in more if one < FIRST or of[one][0] in _CALLABLES])
        value = old | more
        if len(value) <= WIDE:
            return value
        if len(value) > CROWDED:
            others = [one for one in value if one >= FIRST and of[one][0] not in _CALLABLES]
            value = self._without(value, others, CROWDED // 2, (CROWD,), "objects")
        if key.__class__ is int or key[0] not in _CALLED:
            value = self._narrowed(value)
        return value

    def _narrowed(self, value: Value) -> Value:
        of = self.atoms.of
        unknown = self.atoms.constant("*")
        constants: list[int] = []
        containers: list[int] = []
        for one in value:
            kind = of[one][0]
            if kind == "k":
                constants.append(one)
            elif kind in _CONTAINERS:
                containers.append(one)
        value = self._without(value, constants, TEXTS, (unknown, HOST), "constants")
        value = self._without(value, containers, WIDE, (MANY_CONTAINERS,), "containers")
        if len(value) > WIDE:
            symbols = sorted(self._symbolic.intersection(value))
            if len(symbols) > WIDE:
                self.limited["symbols"] += 1
                value -= frozenset(symbols[WIDE:])
        return value

    def _without(self, value: Value, many: list[int], most: int, instead: tuple[int, ...], what: str) -> Value:
        if len(many) <= most:
            return value
        self.limited[what] += 1
        return value.difference(many).union(instead)

    def objects(self, value: Value) -> Value:
        """The parts of a value that are neither constants nor containers."""
        of = self.atoms.of
        return frozenset([one for one in value if (one < FIRST and one != HOST) or (one >= FIRST and of[one][0] in _FLOWING)])

    def take(self, target: Key, source: int, *, objects_only: bool = False) -> Value:
        """Let the closed value of an expression, and all that it gains, flow into a key; returns the current value."""
        current, self._current = self._current, None
        value = self.get(~source)
        self._current = current
        self._flows.setdefault(~source, {})[target] = objects_only
        return self.objects(value) if objects_only else value

    def put(self, key: Key, value: Value) -> None:
        """Add to a value from outside."""
        old = self.values.get(key)
        if old is None:
            old = self.values[key] = NOTHING
            self.requeue(key)
            if key.__class__ is int and key < 0:
                # Readers of the value that all callers share depend on this from now on.
                self.wake(~key)
        if not value <= old:
            self._stay(key)
            self.values[key] = old | value
            self.wake(key)

    def tensor_part(self, value: Value) -> Value:
        """The devices in a value; for symbolic values, their tensor part."""
        homes = NOTHING if value.isdisjoint(HOMES) else value & HOMES
        if self.is_symbolic and not self._symbolic.isdisjoint(value):
            atoms = self.atoms
            symbols = [one for one in value if one in self._symbolic]
            homes |= frozenset([one if atoms.of[one][0] == "t" else atoms.symbol("t", atoms.of[one][1]) for one in symbols])
        return homes

    def later(self, key: int, value: Value) -> Value:
        """A symbol for an expression that depends on a parameter in a way that a summary cannot express."""
        if self.is_symbolic and not self.atoms.opaque.isdisjoint(value):
            return frozenset([self.atoms.symbol("n", key if key >= 0 else ~key)])
        return NOTHING
