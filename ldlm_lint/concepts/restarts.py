"""Branches that reset a value that their own test compares, such as the count or the clock time of the last report.

    if time.time() - shown > 10:  # this code runs occasionally
        shown = time.time()

The next steps compare with the new value, so the branch runs in few steps, like one under the remainder of a count.
"""

from __future__ import annotations

from ldlm_lint.code.table import guards_above
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Expr, Function, Guard
from ldlm_lint.program.modules import Module
from ldlm_lint.program.spots import Spot

_MISSING = (("const", None), ("const", False))
_ORDERED = frozenset({"Lt", "LtE", "Gt", "GtE"})


class Restarts(Concept):
    """The guards of such branches."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._bound: dict[int, dict[int, list[int]]] = {}
        self._known: dict[Guard, bool] = {}
        self._flags: dict[int, dict[int, list[tuple[int, list[int]]]]] = {}

    def is_one(self, guard: Guard, function: Function) -> bool:
        """Whether a comparison in the test of a guard reads a value that its own branch sets for the next iteration of a
        loop."""
        known = self._known.get(guard)
        if known is None:
            known = self._known[guard] = self._of(guard.module, guard.test.key & MASK, guard.key & MASK, function.key)
        return known

    def _of(self, module: Module, test: int, guard: int, function: int) -> bool:
        carried = {number for one in _compared(module, test) for number in _carried(module, one)}
        if not carried:
            return False
        bound = self._bound_in(module, function)
        return any(guard in guards_above(module.table.guards, at) for number in carried for at in bound.get(number, ()))

    def is_deadline(self, guard: Guard, function: Function) -> bool:
        """Whether a count or a clock is compared with its value at the last time: ``seen >= reported + every``.

        Also for attributes that their branch resets: ``if self.seen >= self.every: self.seen = 0``.
        """
        module = guard.module
        compared = {one for one in _compared(module, guard.test.key & MASK) if module.nodes[one][0] != "const"}
        for number in compared:
            if module.nodes[number][0] == "phi" and not compared.isdisjoint(_carried(module, number)):
                return True
        names = {module.nodes[one][2] for one in compared if module.nodes[one][0] == "attr"}
        return any(name in names for name, place in self._written_under(module, guard.key & MASK, function.key))

    def is_set_once(self, guard: Guard, function: Function) -> bool:
        """Whether a branch runs as long as a value is missing, and creates it: ``if first is None: first =
        loss.item()``."""
        module, number, test = guard.module, guard.key & MASK, guard.test.key & MASK
        asked = _missing(module, test, guard.holds)
        if asked is None:
            is_flag = guard.holds is True and guard.test.kind == "phi"
            return is_flag and self._is_bound_under(module, test, number, function.key, turned=True)
        row = module.nodes[asked]
        if row[0] in ("attr", "const"):
            name = row[2] if row[0] == "attr" else row[1]
            written = module.scopes[function.key & MASK].writes
            return any(one == name and place > guard.begin for _, one, _, place in written)
        return self._is_bound_under(module, asked, number, function.key)

    def _is_bound_under(self, module: Module, asked: int, guard: int, function: int, turned: bool = False) -> bool:
        """Whether a branch sets what its test misses (``turned``: removes what it finds), and no other code in the loop
        undoes that."""
        carried = _carried(module, asked)
        events = [event for event in module.scopes[function & MASK].events if event[0] in ("bind", "add") and event[1] in carried]
        inside = [event for event in events if guard in guards_above(module.table.guards, event[3])]
        loops = {event[2] for event in inside}
        others = [event for event in events if event not in inside and event[2] in loops]
        makes = any((module.nodes[event[1]] in _MISSING) is turned for event in inside)
        return makes and all((module.nodes[event[1]] in _MISSING) is turned for event in others)

    def _written_under(self, module: Module, guard: int, function: int) -> list[tuple[str, int]]:
        """The attributes that are set to a constant in a branch, with their places: up to where the next guard around it begins."""
        begins = module.table.guards[guard].place
        written = module.scopes[function & MASK].writes
        return [(name, place) for _, name, value, place in written if place > begins and module.nodes[value][0] == "const"]

    def settles(self, part: Expr, spot: Spot) -> bool:
        """Whether a part of a test is evaluated only until its own branch sets the flag before it: ``if full or not
        queue.all(): full = True``."""
        module, function = part.module, spot.function.key
        for test, flags in self._behind_flags(module).get(part.key & MASK, ()):
            guards = [at for at, guard in enumerate(module.table.guards) if guard.test == test and guard.holds is True]
            if any(self._sets(module, flag, guard, function) for flag in flags for guard in guards):
                return True
        return False

    def _sets(self, module: Module, flag: int, guard: int, function: int) -> bool:
        """Whether a branch sets a flag to True."""
        row = module.nodes[flag]
        if row[0] == "attr":
            begins = module.table.guards[guard].place
            writes = module.scopes[function & MASK].writes
            return any(name == row[2] and module.nodes[value] == ("const", True) and place > begins for _, name, value, place in writes)
        bound = self._bound_in(module, function)
        carried = (one for one in _carried(module, flag) if module.nodes[one] == ("const", True))
        return any(guard in guards_above(module.table.guards, at) for one in carried for at in bound.get(one, ()))

    def _behind_flags(self, module: Module) -> dict[int, list[tuple[int, list[int]]]]:
        """The parts of each ``or`` by their rows, with the test and the parts before."""
        if module.index not in self._flags:
            found: dict[int, list[tuple[int, list[int]]]] = {}
            for number, row in enumerate(module.nodes):
                if row[0] == "bool" and row[1] == "Or":
                    for at, part in enumerate(row[2][1:], 1):
                        inner = module.nodes[part][1] if module.nodes[part][0] == "not" else part
                        for one in {part, inner}:
                            found.setdefault(one, []).append((number, list(row[2][:at])))
            self._flags[module.index] = found
        return self._flags[module.index]

    def _bound_in(self, module: Module, function: int) -> dict[int, list[int]]:
        """The guards under which the values of a function's names are bound, by their nodes."""
        found = self._bound.get(function)
        if found is None:
            found = self._bound[function] = {}
            for kind, node, _, guard, _, _ in module.scopes[function & MASK].events:
                if kind in ("bind", "add"):
                    found.setdefault(node, []).append(guard)
        return found


def _missing(module: Module, test: int, holds: bool | None) -> int | None:
    """The value that a test finds missing, as the row of a name, an attribute or (for ``hasattr``) a text: it is None,
    false or absent."""
    row = module.nodes[test]
    if row[0] == "not":
        return _missing(module, row[1], None if holds is None else not holds)
    if row[0] == "bool" and row[1] == "And" and holds:
        return next((found for one in row[2] if (found := _missing(module, one, True)) is not None), None)
    if row[0] == "cmp" and row[1] in (("Is",), ("IsNot",)) and module.nodes[row[3][0]] == ("const", None):
        return row[2] if (row[1] == ("Is",)) is holds else None
    if row[0] == "call" and module.last_name(row[1]) == "hasattr" and len(row[2]) == 2:
        return row[2][1] if holds is False else None
    return test if row[0] in ("attr", "phi") and holds is False else None


def _compared(module: Module, test: int) -> set[int]:
    """The operands of a test's ordering comparisons, through ``and``, ``or``, ``not`` and arithmetic."""
    found: set[int] = set()
    seen: set[int] = set()
    todo = [(test, False)]
    while todo:
        number, is_compared = todo.pop()
        if number in (found if is_compared else seen):
            continue
        (found if is_compared else seen).add(number)
        row = module.nodes[number]
        if is_compared:
            todo += [(one, True) for one in row[2:4]] if row[0] == "op" else []
        elif row[0] == "bool":
            todo += [(one, False) for one in row[2]]
        elif row[0] in ("not", "copy"):
            todo.append((row[1], False))
        elif row[0] == "cmp" and _ORDERED.issuperset(row[1]):
            todo += [(one, True) for one in (row[2], *row[3])]
    return found


def _carried(module: Module, number: int) -> set[int]:
    """The values that a name may keep from an earlier iteration, including through other branches."""
    if module.nodes[number][0] not in ("phi", "copy"):
        return set()
    found: set[int] = set()
    todo = [number]
    while todo:
        row = module.nodes[todo.pop()]
        for one in row[1] if row[0] == "phi" else (row[1],) if row[0] == "copy" else ():
            if one not in found:
                found.add(one)
                todo.append(one)
    return found
