"""The conditions and loops around places, and what happens there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code import table
from ldlm_lint.code.table import guards_above, line_of
from ldlm_lint.program import handles
from ldlm_lint.program.arms import Entry
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.handles.base import Handle
from ldlm_lint.program.spots import Event, Spot

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.program.handles.calls import Call
    from ldlm_lint.program.handles.expressions import Expr
    from ldlm_lint.program.handles.functions import Function

_POSITIVE = {"NotEq": "Eq", "IsNot": "Is", "NotIn": "In"}


class Fact(NamedTuple):
    """What is known where a condition holds: a relation between values, ``""`` for the truth of one, and whether it holds."""

    relation: str
    values: tuple[Expr, ...]
    holds: bool

    def contradicts(self, other: Fact) -> bool:
        """Whether another fact is the opposite of it."""
        is_opposite = self.holds is not other.holds and (self.relation, len(self.values)) == (other.relation, len(other.values))
        return is_opposite and all(_are_same(one, two) for one, two in zip(self.values, other.values, strict=True))


def _are_same(one: Expr, other: Expr) -> bool:
    """Whether two expressions read one value: the same expression, one that is written alike, or the same setting."""
    return one == other or one.is_alike(other) or (one.identity != () and one.identity == other.identity)


def _facts(test: Expr, holds: bool) -> list[Fact]:
    """The facts in an outcome of a test: both of ``a and b``; ``x is not None`` is ``x``."""
    found, todo = list[Fact](), [(test.unnamed, holds)]
    for one, truth in todo:
        relation = _POSITIVE.get(one.operator, one.operator) if one.kind == "cmp" else ""
        if one.operator == "Not":
            todo.append((one.operands[0].unnamed, not truth))
            continue
        if not relation:
            found.append(Fact("", (one,), truth))
            todo += [(part.unnamed, truth) for part in one.operands if one.kind == "bool" and (one.operator == "And") is truth]
            continue
        truth = truth is (relation == one.operator)
        left, right = one.operands
        if relation in ("Eq", "Is") and (right.constant is None or isinstance(right.constant, bool)):
            todo.append((left.unnamed, truth is bool(right.constant)))
        else:
            found.append(Fact(relation, (left, right), truth))
    return found


class Guard(Handle):
    """A condition on a place: an ``if``, the code behind one that leaves its block, a ``with``, an ``except``, a ``case``."""

    __slots__ = ()

    @property
    def _row(self) -> table.Guard:
        return self.module.table.guards[self.key & MASK]

    @property
    def kind(self) -> str:
        """Its kind, see `ldlm_lint.code.table.Guard`."""
        return self._row.kind

    @property
    def test(self) -> Expr:
        """What is asked, or entered by a ``with``."""
        return handles.expression(self.code, self.module.base | self._row.test, self.module)

    @property
    def holds(self) -> bool | None:
        """The outcome of the test that leads to the place; None for all other conditions."""
        return self._row.holds

    @property
    def ends(self) -> str:
        """How its block ends: ``raise``, ``return``, ``break`` or ``continue``; ``after raise`` of the code behind a block that
        ends so; empty for all else."""
        return self._row.ends

    @property
    def may_raise(self) -> bool:
        """Whether the code under it leaves it by a ``raise`` or by ending the process, in whichever case."""
        guards, own = self.module.table.guards, self.key & MASK
        return any(row.ends == "raise" and own in guards_above(guards, one) for one, row in enumerate(guards) if one >= own)

    def may_be_passed(self, call: Call, function: Function) -> bool:
        """Whether the code under it may run when a call has entered the function that it is in."""
        how = next((one.how for one in self.code.program.callers(function.key) if one.call == call.key), UNKNOWN)
        return self.code.arms.may_take(self.module, self.key & MASK, (Entry(function.key, call.key, how),))

    @property
    def outer(self) -> Guard | None:
        """The condition around it."""
        return Guard(self.code, self.module.base | self._row.parent) if self._row.parent >= 0 else None

    @property
    def around(self) -> list[Guard]:
        """The condition itself and those around it, innermost first."""
        return guards_at(self, self.key & MASK)

    @property
    def begin(self) -> int:
        """Where it begins, for comparisons with other places of its file."""
        return self._row.place

    @property
    def is_test(self) -> bool:
        """Whether it is an ``if``, or the code behind one that leaves its block."""
        return self._row.kind in ("if", "rest") and self._row.holds is not None

    @property
    def facts(self) -> list[Fact]:
        """What is known where it holds."""
        return _facts(self.test, bool(self.holds)) if self.is_test else []

    @property
    def test_span(self) -> Span:
        """Where what is asked or entered is written, or the name that stands for it."""
        if self.test.line == self.line:
            return self.test.span
        start = self._row.place + len(f"{self.kind} ")
        return self.code.span(self.module, start, 0)

    @property
    def line(self) -> int:
        """The line of the statement, from 1."""
        return line_of(self._row.place)

    @property
    def line_span(self) -> Span:
        """The whole line of the statement."""
        return self.code.line_span(self.module, self._row.place)


class Try(Handle):
    """A block whose exceptions an ``except`` catches."""

    __slots__ = ()

    @property
    def _row(self) -> table.Try:
        return self.module.table.tries[self.key & MASK]

    @property
    def line(self) -> int:
        """The line of ``try``, from 1."""
        return line_of(self._row.begin)

    @property
    def handlers(self) -> list[Guard]:
        """Its ``except`` clauses, in order; the test of one is what it catches."""
        return [Guard(self.code, self.module.base | one, self.module) for one in self._row.handlers]

    @property
    def calls(self) -> list[Call]:
        """The calls that it makes itself, in the order of evaluation."""
        row = self._row
        function = handles.Function(self.code, self.module.base | row.scope, self.module)
        return [call for call in function.calls if row.begin <= call.place < row.end]

    @property
    def imports(self) -> bool:
        """Whether it imports something."""
        return any(self._row.begin <= one < self._row.end for *_, one in self.module.table.imports)

    @property
    def raises(self) -> bool:
        """Whether it has a ``raise`` of its own."""
        row = self._row
        return any(kind == "raise" and row.begin <= place < row.end for kind, _, _, _, place, _ in self.module.scopes[row.scope].events)


class Loop(Handle):
    """A loop: ``for``, ``while`` or a comprehension."""

    __slots__ = ()

    @property
    def _row(self) -> table.Loop:
        return self.module.table.loops[self.key & MASK]

    @property
    def kind(self) -> str:
        """``for``, ``while`` or ``comp``."""
        return self._row.kind

    @property
    def value(self) -> Expr:
        """What it iterates over, or the test of a ``while``."""
        return handles.expression(self.code, self.module.base | self._row.value)

    @property
    def function(self) -> Function:
        """The function that it is in."""
        return handles.Function(self.code, self.module.base | self._row.scope)

    @property
    def guards(self) -> list[Guard]:
        """The conditions around it in its function, innermost first."""
        return guards_at(self, self._row.guard)

    @property
    def loops(self) -> list[Loop]:
        """The loops around it in its function, innermost first."""
        return loops_at(self, self._row.parent)

    @property
    def around(self) -> list[Loop]:
        """The loop itself and those around it in its function, innermost first."""
        return loops_at(self, self.key & MASK)

    @property
    def spot(self) -> Spot:
        """Where the loop as a whole runs."""
        row = self._row
        return spot_at(self, row.scope, row.parent, row.guard, row.place)

    @property
    def line(self) -> int:
        """The line on which it begins, from 1."""
        return line_of(self._row.place)

    @property
    def calls(self) -> list[Call]:
        """The calls in it, in the order of evaluation."""
        return [call for call in self.function.calls if self in call.loops]


def event_of(function: Function, row: table.Event) -> Event:
    """The handle of an event of a function."""
    kind, number, loop, guard, place, rest = row
    code, base = function.code, function.module.base
    added = handles.expression(code, base | rest) if kind == "add" else None
    spot = spot_at(function, function.key & MASK, loop, guard, place)
    return Event(kind, handles.expression(code, base | number), spot, str(rest or "") if added is None else "", added)


def spot_at(at: Handle, scope: int, loop: int, guard: int, place: int) -> Spot:
    """A place by its numbers in the table of a file."""
    code, module = at.code, at.module
    function = handles.Function(code, module.base | scope, module)
    condition = Guard(code, module.base | guard, module) if guard >= 0 else None
    return Spot(function, condition, Loop(code, module.base | loop, module) if loop >= 0 else None, place)


def guards_at(at: Handle, guard: int) -> list[Guard]:
    """A condition of a file by its number, and those around it, innermost first."""
    module = at.module
    return [Guard(at.code, module.base | one, module) for one in guards_above(module.table.guards, guard)]


def loops_at(at: Handle, loop: int) -> list[Loop]:
    """A loop of a file by its number, and those around it, innermost first."""
    module = at.module
    return [Loop(at.code, module.base | one, module) for one in table.loops_above(module.table.loops, loop)]
