"""How functions are entered: by which calls, what these pass, and which calls inside they let run.

    def forward(self, x, with_loss=False):
        if with_loss:
            return self.packed_loss(x)        # `net(x)` does not come here, `net(x, with_loss=True)` does
        return self.head(x)

The values of a program merge all calls of a function; here each call is looked at by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ldlm_lint.concepts.type_tests import Narrowed
from ldlm_lint.program.atoms import NOTHING, Value
from ldlm_lint.program.codebase import Codebase
from ldlm_lint.program.handles import Call, Expr, Function, Guard
from ldlm_lint.program.spots import Spot
from ldlm_lint.program.walks import reached

Masks = int
"""A set of programs, a bit for each."""


class Edge(NamedTuple):
    """A call and a function that it may go to; the programs in which it surely does, or why that is a guess."""

    call: Call
    target: Function
    programs: Masks
    guess: str = ""


class CallContexts:
    """The confirmed calls of functions; of steps, and of functions that lead to steps, all calls.

    ``programs_of`` gives the programs that a function is in.
    """

    def __init__(self, code: Codebase, programs_of: Callable[[Function], Masks]) -> None:
        self._code = code
        self.program = code.program
        self._narrowed = code[Narrowed]
        self._programs_of = programs_of
        self._by: dict[Function, dict[Call, Edge]] = defaultdict(dict)
        """The confirmed edges to a function, by their calls."""
        self._above: dict[Function, list[Edge]] = {}
        """The edges to the steps and to what leads to them."""
        self._given: dict[tuple[Expr, Masks], Value | None] = {}
        """What is passed for a parameter in a program; None if that is not known."""
        self._open: dict[Function, Masks] = {}
        """The programs in which a step may be entered by a call that is not visible."""
        self._asked: dict[tuple[Guard, Function], bool] = {}
        self._taken: dict[tuple[Call, Guard], bool] = {}

    def begin_with(self, steps: dict[Function, Masks]) -> None:
        """Take down the calls that lead to the steps, each with its programs."""
        made_in: dict[Function, list[Edge]] = defaultdict(list)
        todo = list(steps)
        while todo:
            function = todo.pop()
            if function in self._above or function.is_module:
                continue
            edges = [Edge(call, function, self._programs_of(call.function)) for call in function.callers]
            self._above[function] = [edge for edge in edges if edge.programs]
            for edge in self._above[function]:
                made_in[edge.call.function].append(edge)
            todo += [edge.call.function for edge in edges]
        for function, programs in steps.items():
            entered = 0
            for edge in self._above.get(function, ()):
                entered |= edge.programs
            self._open[function] = programs & ~entered
        todo = list(made_in)
        while todo:
            todo += [edge.target for edge in made_in.get(todo.pop(), ()) if self._hand_in(edge)]

    def of(self, function: Function) -> list[Edge]:
        """The edges to a function."""
        return [*self.confirmed(function), *self._above.get(function, ())]

    def confirmed(self, function: Function) -> list[Edge]:
        """The edges by which steps reach a function."""
        return list(self._by.get(function, {}).values())

    def add(self, edge: Edge) -> bool:
        """Take down a confirmed edge; returns whether its target may do more now."""
        known = self._by[edge.target].get(edge.call)
        more = edge if known is None else known._replace(programs=edge.programs | known.programs)
        self._by[edge.target][edge.call] = more
        return self._hand_in(more) or more != known

    def letting(self, call: Call, target: Function) -> Masks:
        """The programs in which a call can be made and go to a target, by what enters its function."""
        if _called(call) is None and not (call.guards and self._asks_for_parameter(call.guards[0], call.function)):
            return -1
        found = self._open.get(call.function, 0)
        for edge in self.of(call.function):
            if edge.programs & ~found:
                found |= self.let_by(edge, call, target)
        return found

    def let_by(self, edge: Edge, call: Call, target: Function) -> Masks:
        """Those of the programs of an edge to the function of a call."""
        if not self.may_run(edge, call.spot):
            return 0
        called = _called(call)
        return sum(bit for bit in _bits(edge.programs) if called is None or self._may_be(edge, called, bit, target, call))

    def may_run(self, edge: Edge, spot: Spot) -> bool:
        """Whether code can run when an edge has entered its function."""
        guard = spot.guard
        if guard is None or not self._asks_for_parameter(guard, edge.target):
            return True
        key = (edge.call, guard)
        if key not in self._taken:
            self._taken[key] = guard.may_be_passed(edge.call, edge.target)
        return self._taken[key]

    def is_open(self, function: Function, program: Masks) -> bool:
        """Whether a function is a step that a program may enter by a call that is not visible."""
        return bool(self._open.get(function, 0) & program)

    def _asks_for_parameter(self, guard: Guard, function: Function) -> bool:
        key = (guard, function)
        if key not in self._asked:
            parts = reached([guard.test], lambda one: one.operands) if guard.holds is not None else iter(())
            asks = any(one.kind == "param" and one.function == function for one in parts)
            self._asked[key] = asks or (guard.outer is not None and self._asks_for_parameter(guard.outer, function))
        return self._asked[key]

    def _may_be(self, edge: Edge, called: Expr, program: Masks, target: Function, call: Call) -> bool:
        """Whether what an edge passes for a parameter, or the attribute of it that is called, may be a function."""
        parameter = called.base.unnamed if called.base is not None else called
        given = self._passed(edge, parameter, program)
        if not given:
            return True
        value = self.program.attribute(given, called.name, called=True) if called is not parameter else given
        wanted = {Function(self._code, function) for function, _ in self.program.targets(value, None)[0]}
        return target in wanted or wanted.isdisjoint(call.targets)

    def _hand_in(self, edge: Edge) -> bool:
        """Take down what an edge passes for the parameters of its target; returns whether that was new."""
        grown = False
        for parameter in edge.target.parameters.values():
            for bit in _bits(edge.programs) if parameter.kind == "param" else ():
                old = self._given.get((parameter, bit), NOTHING)
                if old is None:
                    continue
                more = self._passed(edge, parameter, bit)
                new = None if not more else old | more
                if new != old:
                    self._given[parameter, bit] = new
                    grown = True
        return grown

    def _passed(self, edge: Edge, parameter: Expr, program: Masks) -> Value | None:
        """What an edge passes for a parameter in a program, as far as what leads there tells; None if unknown."""
        given = edge.call.given_for(parameter)
        if given is None:
            return None
        return self._narrowed.value(given, edge.call.spot, lambda one: self._known(one, edge.call.function, program)) or None

    def _known(self, expr: Expr, function: Function, program: Masks) -> Value:
        """What an expression in a function is in a program."""
        at = expr.unnamed
        if at.kind == "param" and at.function == function and (at, program) in self._given:
            return self._given[at, program] or NOTHING
        return expr.value


def _called(call: Call) -> Expr | None:
    """The parameter of its own function that a call calls, or the attribute of one."""
    callee = call.callee.unnamed
    base = callee.base.unnamed if callee.kind == "attr" and callee.base is not None else callee
    return callee if base.kind == "param" and base.function == call.function else None


def _bits(programs: Masks) -> Iterator[Masks]:
    """The single programs of a mask."""
    while programs > 0:
        bit = programs & -programs
        yield bit
        programs ^= bit


__all__ = ["CallContexts", "Edge", "Masks"]
