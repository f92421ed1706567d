"""The values of names within a scope: SSA form built in one pass, with phis where paths join."""

from __future__ import annotations

import ast
from typing import Any

from ldlm_lint.code.table import COLUMNS, Scope, Table

Environment = dict[str, int]
"""What the names hold that a branch or loop body has bound."""


class Round:
    """A loop being read: the values of names before it, its phis, and the values when it is left or continued."""

    __slots__ = ("before", "breaks", "continues", "phis")

    def __init__(self, before: Environment) -> None:
        self.before = before
        self.phis: Environment = {}
        self.breaks: list[Environment] = []
        self.continues: list[Environment] = []


class Names:
    """The names of the scope that is being read; expressions and statements build on it."""

    def __init__(self) -> None:
        self.table = Table()
        self.nodes = self.table.nodes
        self.places = self.table.places
        self.ends = self.table.ends
        self.current = Scope("module", "", -1, 0, 0)
        self.table.scopes.append(self.current)
        self.scope = 0
        self.loop = -1
        self.guard = -1
        self.names: Environment = {}
        self.rounds: list[Round] = []
        self.free: Environment = {}
        self.constants: dict[tuple[type, object], int] = {}
        self.walruses: list[tuple[str, int | None, int]] = []
        """Names that expressions have bound in this scope: the name, what it held before, and what it holds."""
        self.taken: dict[int, Environment] = {}
        """What names hold where all operands of an ``and`` or ``or`` were evaluated, if that differs from what they may hold behind it."""
        self.last: dict[int, tuple[int, int, ast.expr]] = {}
        """The last operand of an ``and`` or ``or`` that was not tested so far: what it is, the guard that it is under, its node."""
        self.outer: list[tuple[Scope, int, int, int, Environment, list[Round], Environment, list[tuple[str, int | None, int]]]] = []

    def add(self, node: Any, *row: object) -> int:
        """The number of a new expression, which is written as a node of the syntax tree; None: nowhere."""
        self.nodes.append(row)
        if node is None:
            self.places.append(0)
            self.ends.append(0)
        else:
            line = node.lineno
            self.places.append((line << COLUMNS) | node.col_offset)
            self.ends.append(((node.end_lineno - line) << COLUMNS) | node.end_col_offset)
        return len(self.nodes) - 1

    def note(self, kind: str, node: int, place: int, other: object = 0) -> None:
        """Keep an event of the scope."""
        self.current.events.append((kind, node, self.loop, self.guard, place, other))

    def read(self, name: str) -> int:
        """The value of a name here."""
        known = self.names.get(name)
        return known if known is not None else self._before(len(self.rounds) - 1, name)

    def _before(self, index: int, name: str) -> int:
        """The value of a name at the head of a loop: a phi, which the end of the loop completes."""
        if index < 0:
            return self.outside(name)
        head = self.rounds[index]
        known = head.phis.get(name)
        if known is None:
            outer = head.before.get(name)
            if outer is None:
                outer = self._before(index - 1, name)
            known = head.phis[name] = self.add(None, "phi", [outer])
        return known

    def outside(self, name: str) -> int:
        """A name as the scope has it from elsewhere."""
        known = self.free.get(name)
        if known is None:
            known = self.free[name] = self.add(None, "free", self.scope, name)
        return known

    def bind(self, name: str, node: int, place: int) -> None:
        """Let a name hold an expression from here on; a global or nonlocal one belongs to its own scope."""
        if name in self.current.globals:
            self._owner(name).bindings.setdefault(name, []).append(node)
            return
        self.names[name] = node
        scope = self.current
        bound = scope.bindings.get(name)
        if bound is None:
            scope.bindings[name] = [node]
        else:
            bound.append(node)
        scope.events.append(("bind", node, self.loop, self.guard, place, name))

    def _owner(self, name: str) -> Scope:
        """The scope that a ``nonlocal`` name belongs to; the module for a ``global`` one."""
        scopes = self.table.scopes
        at = self.current.parent
        while at > 0:
            if scopes[at].kind == "def" and (name in scopes[at].bindings):
                return scopes[at]
            at = scopes[at].parent
        return scopes[0]

    def meet(self, ways: list[Environment | None]) -> Environment:
        """The values of names where several paths join; None is a path that does not continue."""
        open_ways = [way for way in ways if way is not None]
        if not open_ways:
            return {}
        first = open_ways[0]
        if len(open_ways) == 1:
            return first
        differing = set()
        for way in open_ways[1:]:
            differing.update([name for name, node in way.items() if first.get(name) != node])
            if len(first) != len(way) or differing:
                differing.update(first.keys() - way.keys())
        joined = dict(first)
        # The order of a set of strings differs between runs, and numbers depend on it.
        for name in sorted(differing):
            joined[name] = self._joined(name, open_ways)
        return joined

    def _joined(self, name: str, ways: list[Environment]) -> int:
        held: list[int] = []
        for way in ways:
            node = way.get(name)
            if node is None:
                node = self._before(len(self.rounds) - 1, name)
            if node not in held:
                held.append(node)
        return held[0] if len(held) == 1 else self.add(None, "phi", held)

    def may_have_bound(self, first: int) -> None:
        """Merge the earlier values of names with those bound by expressions since event number ``first``."""
        held: dict[str, list[int]] = {}
        for name, before, node in self.walruses[first:]:
            if name not in held:
                held[name] = [before if before is not None else self._before(len(self.rounds) - 1, name)]
            held[name].append(node)
        for name, ways in held.items():
            differing = list(dict.fromkeys(ways))
            self.names[name] = differing[0] if len(differing) == 1 else self.add(None, "phi", differing)

    def close(self, head: Round, ends: list[Environment], others: list[Environment]) -> Environment:
        """Complete the phis of a loop from the ends of its body; returns the values of names after it.

        ``others`` are further exits of the body to elsewhere: their values are not included.
        """
        assigned: set[str] = set()
        for end in (*ends, *head.breaks, *others):
            assigned |= end.keys()
        self.names = {}
        ordered = sorted(assigned)
        for name in ordered:
            self.read(name)
        for name, phi in head.phis.items():
            held = self.nodes[phi][1]
            for end in ends:
                node = end.get(name)
                if node is not None and node != phi and node not in held:
                    held.append(node)
            if len(held) == 1:
                self.nodes[phi] = ("copy", held[0])
        self.rounds.pop()
        after = dict(head.before)
        for name in ordered:
            phi = head.phis[name]
            held = [phi]
            for end in head.breaks:
                node = end.get(name)
                if node is not None and node not in held:
                    held.append(node)
            after[name] = phi if len(held) == 1 else self.add(None, "phi", held)
        return after

    def enter(self, scope: Scope) -> int:
        """Begin an inner scope; returns its number."""
        number = len(self.table.scopes)
        self.outer.append((self.current, self.scope, self.loop, self.guard, self.names, self.rounds, self.free, self.walruses))
        self.table.scopes.append(scope)
        self.scope = number
        self.current = scope
        self.loop = self.guard = -1
        self.names, self.rounds, self.free, self.walruses = {}, [], {}, []
        return number

    def leave(self) -> None:
        """Go on with the scope around this one."""
        self.current, self.scope, self.loop, self.guard, self.names, self.rounds, self.free, self.walruses = self.outer.pop()
