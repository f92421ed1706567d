"""What happens to a value, one step forward: who takes it as an operand, which name gets it, who returns or tests it.

A read of a local name stands for the row of its value, so that the uses of a name are those of what it holds there.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Expr, Function, event_of, expression
from ldlm_lint.program.operands import users_in

if TYPE_CHECKING:
    from ldlm_lint.code import table
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.spots import Event


class How(enum.Enum):
    """How a value is used."""

    OPERAND = "operand"
    """Another expression is made of it."""
    NAMED = "named"
    """A name of a module or class gets it, or one that an inner function reads: others may read it from there. What a
    decorator gives is always named."""
    SET = "set"
    """An attribute gets it."""
    DEFAULT = "default"
    """A parameter has it unless a call passes another one."""
    RETURNED = "returned"
    """A function gives it back, by ``return`` or ``yield``, or a lambda."""
    TESTED = "tested"
    """Its truth is asked for."""
    OTHER = "other"
    """It is formatted, raised, deleted or changed in place."""


_LOOKS_UP = frozenset({"eval", "exec", "locals", "vars"})
"""Functions of Python that find the names of the function they are called in."""
_HANDS_ON = frozenset({"copy", "phi", "seq", "comp"})
_EVENTS = {"write": How.SET, "return": How.RETURNED, "yield": How.RETURNED, "test": How.TESTED, "bind": How.NAMED}


_Other = tuple[How, int, str]
"""How a value is used, in which scope, and the name that gets it."""


@dataclass(frozen=True)
class Use:
    """A use of a value.

    ``by`` is the expression that is made of it; all other uses have the ``function`` that they are in, and the ``name`` of
    the variable or attribute that gets it.
    """

    how: How
    by: Expr | None = None
    function: Function | None = None
    name: str = ""


class ValueUses:
    """The uses of the values of a codebase; each file is indexed on first need."""

    def __init__(self, code: Codebase) -> None:
        self._code = code
        self._files: dict[int, _File] = {}

    def _file(self, module: Module) -> _File:
        file = self._files.get(module.index)
        if file is None:
            file = self._files[module.index] = _File(module)
        return file

    def events_of(self, expr: Expr) -> list[Event]:
        """What happens to an expression's value in its file, in the order of evaluation in each function."""
        found = self._file(expr.module).events.get(expr.key & MASK, ())
        return [event_of(Function(self._code, expr.module.base | scope), row) for scope, row in found]

    def of(self, expr: Expr) -> list[Use]:
        """The uses of an expression's value in its file; none if it is dropped."""
        module = expr.module
        file = self._file(module)
        number = expr.key & MASK
        operands = [Use(How.OPERAND, expression(self._code, module.base | user)) for user in file.users.get(number, ())]
        others = file.other.get(number, ())
        return operands + [Use(how, None, Function(self._code, module.base | scope), name) for how, scope, name in others]

    def is_dropped(self, expr: Expr) -> bool:
        """Whether no code gets an expression's value, neither itself nor through a choice, or a list that is dropped."""
        seen: set[int] = set()
        todo = [expr]
        while todo:
            at = todo.pop()
            for use in self.of(at):
                if use.by is None or not _hands_on(use.by.row, at.key & MASK):
                    return False
                if use.by.key not in seen:
                    seen.add(use.by.key)
                    todo.append(use.by)
        return True


def _hands_on(row: Node, value: int) -> bool:
    """Whether a row only hands a value on: a name on several ways, a choice that it is not the test of, a list."""
    if row[0] == "choice":
        return bool(row[1] != value)
    if row[0] == "bool":
        return value not in row[2][:-1]
    return row[0] in _HANDS_ON


class _File:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.users = users_in(module)

    @cached_property
    def other(self) -> dict[int, list[_Other]]:
        """All other uses, by rows."""
        found: dict[int, list[_Other]] = defaultdict(list)
        for number, scope in enumerate(self.module.scopes):
            for event in scope.events:
                how = _EVENTS.get(event[0], How.OTHER)
                if how is not How.NAMED or scope.kind != "def" or number in self._looking_up or (number, event[5]) in self._read_from_inside:
                    found[event[1]].append((how, number, event[5] if isinstance(event[5], str) else ""))
            own = {event[1] for event in scope.events if event[0] == "bind"}
            for name, held in scope.bindings.items():
                # Names that another scope declares global or nonlocal are bound without an event of this one.
                for one in set(held) - own:
                    found[one].append((How.NAMED, number, name))
            for name, one in scope.defaults.items():
                found[one].append((How.DEFAULT, number, name))
            if scope.name == "<lambda>":
                for value, _ in scope.returns:
                    found[value].append((How.RETURNED, number, ""))
        for call, _, _ in self.module.table.decorations:
            found[call].append((How.NAMED, self.module.table.sites[call].scope, ""))
        return found

    @cached_property
    def events(self) -> dict[int, list[tuple[int, table.Event]]]:
        """What happens to each value, with the scope in which it does; of a sum also to what is added."""
        found: dict[int, list[tuple[int, table.Event]]] = defaultdict(list)
        for number, scope in enumerate(self.module.scopes):
            for event in scope.events:
                for one in {event[1], event[5]} if event[0] == "add" else (event[1],):
                    found[one].append((number, event))
        return found

    @cached_property
    def _looking_up(self) -> set[int]:
        """The scopes that look up their own names by texts."""
        nodes, sites = self.module.nodes, self.module.table.sites
        callees = ((site.scope, nodes[nodes[call][1]], nodes[call][2]) for call, site in sites.items())
        named = ((scope, callee[2], given) for scope, callee, given in callees if callee[0] == "free" and callee[2] in _LOOKS_UP)
        return {scope for scope, name, given in named if name != "vars" or not given}

    @cached_property
    def _read_from_inside(self) -> set[tuple[int, str]]:
        """The scopes and names that inner scopes read."""
        scopes = self.module.scopes
        found: set[tuple[int, str]] = set()
        for row in self.module.nodes:
            at = scopes[row[1]].parent if row[0] == "free" else -1
            while at > 0:
                found.add((at, row[2]))
                at = scopes[at].parent
        return found


__all__ = ["How", "Use", "ValueUses"]
