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

from ldlm_lint.code.table import Node
from ldlm_lint.concepts.narrowed import Narrowed
from ldlm_lint.program.arms import Arms, Entry
from ldlm_lint.program.atoms import MASK, NOTHING, Value
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase
from ldlm_lint.program.modules import Module
from ldlm_lint.program.operands import operands


class Edge(NamedTuple):
    """A call and a function that it may go to; the programs (a mask) in which it surely does, or why that is a guess."""

    call: int
    target: int
    programs: int
    guess: str = ""


class CallContexts:
    """The confirmed calls of functions; of steps, and of functions that lead to steps, all calls.

    ``programs_of`` gives the programs (a mask) that a function is in.
    """

    def __init__(self, code: Codebase, programs_of: Callable[[int], int]) -> None:
        self.program = code.program
        self._arms = Arms(code.ask)
        self._narrowed = Narrowed(code.program)
        self._programs_of = programs_of
        self._by: dict[int, dict[int, Edge]] = defaultdict(dict)
        """The confirmed edges to a function, by their calls."""
        self._above: dict[int, list[Edge]] = {}
        """The edges to the steps and to what leads to them."""
        self._given: dict[tuple[int, str, int], Value | None] = {}
        """What is passed for a parameter in a program; None if that is not known."""
        self._open: dict[int, int] = {}
        """The programs in which a step may be entered by a call that is not visible."""
        self._params: dict[tuple[int, int], bool] = {}
        self._taken: dict[tuple[int, int], bool] = {}

    def begin_with(self, steps: dict[int, int]) -> None:
        """Take down the calls that lead to the steps, each with its programs (a mask)."""
        made_in: dict[int, list[Edge]] = defaultdict(list)
        todo = sorted(steps)
        while todo:
            function = todo.pop()
            if function in self._above or function & MASK == 0:
                continue
            edges = [Edge(one.call, function, self._programs_of(self.program.function_of(one.call))) for one in self.program.callers(function)]
            self._above[function] = [edge for edge in edges if edge.programs]
            for edge in self._above[function]:
                made_in[self.program.function_of(edge.call)].append(edge)
            todo += [self.program.function_of(edge.call) for edge in edges]
        for function, programs in steps.items():
            entered = 0
            for edge in self._above.get(function, ()):
                entered |= edge.programs
            self._open[function] = programs & ~entered
        todo = list(made_in)
        while todo:
            todo += [edge.target for edge in made_in.get(todo.pop(), ()) if self._hand_in(edge)]

    def of(self, function: int) -> list[Edge]:
        """The edges to a function."""
        return [*self.confirmed(function), *self._above.get(function, ())]

    def confirmed(self, function: int) -> list[Edge]:
        """The edges by which steps reach a function."""
        return list(self._by.get(function, {}).values())

    def add(self, edge: Edge) -> bool:
        """Take down a confirmed edge; returns whether its target may do more now."""
        known = self._by[edge.target].get(edge.call)
        more = edge if known is None else known._replace(programs=edge.programs | known.programs)
        self._by[edge.target][edge.call] = more
        return self._hand_in(more) or more != known

    def letting(self, call: int, function: int, target: int) -> int:
        """The programs (a mask) in which a call of a function can be made and go to a target, by what enters the
        function."""
        if not self._depends(call, function):
            return -1
        found = self._open.get(function, 0)
        for edge in self.of(function):
            if edge.programs & ~found:
                found |= self.let_by(edge, call, target)
        return found

    def let_by(self, edge: Edge, call: int, target: int) -> int:
        """Those of the programs of an edge to the function of a call."""
        module = self.program.module_of(call)
        if not self.may_run(edge, module, module.table.sites[call & MASK].guard):
            return 0
        parameter, attribute = self._called(module, call)
        return sum(bit for bit in _bits(edge.programs) if not parameter or self._may_be(edge, parameter, attribute, bit, target, call))

    def may_run(self, edge: Edge, module: Module, guard: int) -> bool:
        """Whether code under a guard of a function can run when an edge has entered it."""
        if guard < 0 or not self._asks_for_parameter(module, guard, edge.target):
            return True
        key = (edge.call, module.base | guard)
        if key not in self._taken:
            self._taken[key] = self._arms.may_take(module, guard, (Entry(edge.target, edge.call, self._how(edge)),))
        return self._taken[key]

    def is_open(self, function: int, program: int) -> bool:
        """Whether a function is a step that a program may enter by a call that is not visible."""
        return bool(self._open.get(function, 0) & program)

    def _depends(self, call: int, function: int) -> bool:
        """Whether it depends on the parameters of a function if, and to what, a call in it is made."""
        module = self.program.module_of(call)
        return bool(self._called(module, call)[0]) or self._asks_for_parameter(module, module.table.sites[call & MASK].guard, function)

    @staticmethod
    def _called(module: Module, call: int) -> tuple[str, str]:
        """The parameter that is called, or has the attribute that is; empty for another function."""
        row = module.nodes[module.uncopied(module.nodes[call & MASK][1])]
        base = module.nodes[module.uncopied(row[1])] if row[0] == "attr" else row
        is_own = base[0] == "param" and base[1] == module.table.sites[call & MASK].scope
        return (base[2], row[2] if row[0] == "attr" else "") if is_own else ("", "")

    def _asks_for_parameter(self, module: Module, guard: int, function: int) -> bool:
        key = (module.base | guard, function)
        if guard < 0 or key in self._params:
            return guard >= 0 and self._params[key]
        one = module.table.guards[guard]
        asks = bool(one.test) and one.holds is not None and self._has_parameter(module, one.test, function)
        self._params[key] = asks or self._asks_for_parameter(module, one.parent, function)
        return self._params[key]

    @staticmethod
    def _has_parameter(module: Module, number: int, function: int) -> bool:
        """Whether a test is made of a parameter of a function."""
        todo, seen = [number], {number}
        while todo:
            row: Node = module.nodes[todo.pop()]
            if row[0] == "param" and module.base | row[1] == function:
                return True
            more = [one for one in operands(row) if one and one not in seen]
            seen.update(more)
            todo += more
        return False

    def _may_be(self, edge: Edge, parameter: str, attribute: str, program: int, target: int, call: int) -> bool:
        """Whether what an edge passes for a parameter, or an attribute of it, may be a function."""
        given = self._passed(edge, parameter, program)
        if not given:
            return True
        value = self.program.attribute(given, attribute, called=True) if attribute else given
        wanted = {function for function, _ in self.program.targets(value, None)[0]}
        return target in wanted or wanted.isdisjoint(self.program.targets_of.get(call, ()))

    def _hand_in(self, edge: Edge) -> bool:
        """Take down what an edge passes for the parameters of its target; returns whether that was new."""
        module = self.program.module_of(edge.target)
        grown = False
        for name in module.scopes[edge.target & MASK].params:
            for bit in _bits(edge.programs):
                key = (edge.target, name, bit)
                old = self._given.get(key, NOTHING)
                if old is None:
                    continue
                more = self._passed(edge, name, bit)
                new = None if not more else old | more
                if new != old:
                    self._given[key] = new
                    grown = True
        return grown

    def _passed(self, edge: Edge, name: str, program: int) -> Value | None:
        """What an edge passes for a parameter in a program, as far as what leads there tells; None if unknown."""
        how = self._how(edge)
        node = None if how == UNKNOWN else self.program.argument_node(edge.call, edge.target, how, name)
        if node is None:
            return None
        caller = self.program.module_of(edge.call)
        guard = caller.table.sites[edge.call & MASK].guard
        return self._narrowed.value(node, guard, lambda key: self._known(key, edge.call, program)) or None

    def _known(self, key: int, call: int, program: int) -> Value:
        """What an expression beside a call is in a program."""
        module = self.program.module_of(key)
        row = module.nodes[module.uncopied(key & MASK)]
        function = self.program.function_of(call)
        if row[0] == "param" and module.base | row[1] == function and (function, row[2], program) in self._given:
            return self._given[function, row[2], program] or NOTHING
        return self.program.get(key)

    def _how(self, edge: Edge) -> int:
        """How the arguments of an edge are bound to parameters, see `ldlm_lint.program.calls`."""
        return next((one.how for one in self.program.callers(edge.target) if one.call == edge.call), UNKNOWN)


def _bits(programs: int) -> Iterator[int]:
    """The single programs of a mask."""
    while programs > 0:
        bit = programs & -programs
        yield bit
        programs ^= bit


__all__ = ["CallContexts", "Edge"]
