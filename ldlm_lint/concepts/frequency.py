"""How often something under a guard runs: tests that hold in some steps only, that distinguish training from
evaluation, that cannot hold."""

from __future__ import annotations

from ldlm_lint.code.table import Guard, Node, guards_above
from ldlm_lint.concepts.alike import is_alike
from ldlm_lint.concepts.intervals import Intervals
from ldlm_lint.concepts.left_out import LeftOut
from ldlm_lint.concepts.restarts import Restarts
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.training_tests import TrainingTests
from ldlm_lint.program.atoms import FALSY, MASK, NOTHING, TRUE, Value
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.details import DETAILS

_STEPS = frozenset({"step", "zero_grad", "clip_grad_norm_", "backward", "sync_gradients"})
_ALARMS = frozenset({"isnan", "isinf"})
_HEALTHY = frozenset({"isfinite"})
_OF_PARTS = frozenset({"any", "all", "item", "bool", "sum"})
_MIRRORED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}


class Frequency(Concept):
    """How often the guards of a program let code run."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._intervals = code[Intervals]
        self._restarts = code[Restarts]
        self._left_out = code[LeftOut]
        self._tests = code[TrainingTests]
        self._given_counts: dict[tuple[int, str, int], bool] = {}
        self._alarms: dict[int, bool | None] = {}

    def is_start(self, module: Module, number: int) -> bool | None:
        """Which outcome of a test is that of the first few steps alone, or of one step; None for any other test."""
        row = module.nodes[number]
        if row[0] == "not":
            inner = self.is_start(module, row[1])
            return None if inner is None else not inner
        if row[0] == "bool":
            # An ``and`` holds where all of its parts do, so that one rare part is enough; an ``or`` fails likewise.
            wanted = row[1] == "And"
            return wanted if any(self.is_start(module, one) is wanted for one in row[2]) else None
        if row[0] != "cmp" or len(row[1]) != 1:
            return None
        name, left, right = row[1][0], row[2], row[3][0]
        if self.counts_steps(module, right):
            name, left, right = _MIRRORED.get(name, name), right, left
        elif not self.counts_steps(module, left):
            return None
        if name in ("Eq", "NotEq"):
            return name == "Eq"
        few = module.plain(right)[0] == "const"
        return None if not few else {"Lt": True, "LtE": True, "Gt": False, "GtE": False}.get(name)

    def counts_steps(self, module: Module, number: int) -> bool:
        """Whether a number grows from step to step of one loop: a number from ``enumerate`` or ``range``, and sums with
        it."""
        row = module.nodes[number]
        kind = row[0]
        if kind == "copy":
            return self.counts_steps(module, row[1])
        if kind == "op":
            return row[1] in ("Add", "Sub") and any(self.counts_steps(module, one) for one in row[2:4])
        if kind == "param":
            return self._is_given_count(module, row)
        if kind == "part" and row[2] == 0:
            element = module.nodes[row[1]]
            return element[0] == "elem" and (module.base | element[1]) in self._steps.repeated and self._calls(module, element[1], "enumerate")
        return kind == "elem" and (module.base | row[1]) in self._steps.repeated and self._calls(module, row[1], "range")

    def _is_given_count(self, module: Module, row: Node) -> bool:
        """Whether all known callers pass such a number for a parameter."""
        edges = self.program.callers(module.base | row[1])
        # A function that passes a number on to itself does not count, and the result for these calls is reused.
        asked = (module.base | row[1], row[2], len(edges))
        if asked in self._given_counts:
            return self._given_counts[asked]
        self._given_counts[asked] = False
        nodes = [
            self.program.argument_node(edge.call, module.base | row[1], edge.how, row[2])
            for edge in edges
            if edge.how != UNKNOWN
        ]
        known = [
            self.counts_steps(self.program.module_of(one), one & MASK) for one in nodes if one is not None
        ]
        self._given_counts[asked] = bool(known) and len(known) == len(edges) and all(known)
        return self._given_counts[asked]

    def _calls(self, module: Module, number: int, name: str) -> bool:
        """Whether an iterable is the result of a builtin, or a progress bar around it."""
        row, seen = module.plain(number), {number}
        while row[0] == "call" and row[2] and module.last_name(row[1]) != name and row[2][0] not in seen:
            seen.add(row[2][0])
            row = module.plain(row[2][0])
        return bool(row[0] == "call" and row[2] and module.last_name(row[1]) == name)

    def is_alarm(self, module: Module, number: int) -> bool | None:
        """Which outcome of a test means that numbers have gone wrong; None for any other test."""
        key = module.base | number
        if key not in self._alarms:
            self._alarms[key] = None
            self._alarms[key] = self._alarm_of_row(module, number)
        return self._alarms[key]

    def _alarm_of_row(self, module: Module, number: int) -> bool | None:
        row = module.nodes[number]
        kind = row[0]
        if kind == "not":
            inner = self.is_alarm(module, row[1])
            return None if inner is None else not inner
        if kind == "bool":
            found = {self.is_alarm(module, one) for one in row[2]} - {None}
            # Of an ``and`` each part has to hold, so that one rare one is enough.
            return next(iter(found)) if len(found) == 1 else None
        if kind in ("copy", "phi"):
            return self.is_alarm(module, row[1] if kind == "copy" else row[1][0])
        if kind != "call":
            return None
        name = module.last_name(row[1])
        if name in _ALARMS:
            return True
        if name in _HEALTHY:
            return False
        receiver = module.nodes[row[1]]
        inside = [receiver[1]] if receiver[0] == "attr" and name in _OF_PARTS else list(row[2])[:1]
        return next((self.is_alarm(module, one) for one in inside if name in _OF_PARTS), None)

    def asks_for_details(self, module: Module, number: int) -> bool | None:
        """Which outcome of a test means that a user wants to look closer, ``opt.debug > 0``; None for any other test.

        A switch that the program itself turns on for everyone does not count.
        """
        row = module.nodes[number]
        kind = row[0]
        if self._value(module, number) == frozenset([TRUE]):
            return None
        if kind == "not":
            inner = self.asks_for_details(module, row[1])
            return None if inner is None else not inner
        if kind == "copy":
            return self.asks_for_details(module, row[1])
        if kind == "bool":
            wanted = row[1] == "And"
            parts = [self.asks_for_details(module, one) for one in row[2]]
            return wanted if any(one is wanted for one in parts) else None
        if kind == "cmp" and len(row[1]) == 1:
            limit = module.nodes[row[3][0]]
            if limit[0] != "const" or limit[1].__class__ is not int or self.asks_for_details(module, row[2]) is not True:
                return None
            return _above_nothing(row[1][0], limit[1])
        return True if kind in ("attr", "param", "free") and DETAILS.search(str(row[2])) else None

    def is_rare(self, call: Call) -> bool:
        """Whether a call is under a failure, an alarm or the test of one step."""
        module, guards = call.module, call.module.table.guards
        above = (guards[one] for one in guards_above(guards, module.table.sites[call.key & MASK].guard))
        return any(one.kind == "except" or self._is_exception(module, one) for one in above)

    def _is_exception(self, module: Module, guard: Guard) -> bool:
        asks = guard.kind in ("if", "rest") and bool(guard.test)
        return asks and guard.holds in (self.is_alarm(module, guard.test), self.is_start(module, guard.test))

    def passes(self, module: Module, guard: int, function: int) -> bool:
        """Whether the code under a guard runs in a usual training step."""
        guards = module.table.guards
        return all(self._passes(module, guards[one], one, function) for one in guards_above(guards, guard))

    def _passes(self, module: Module, guard: Guard, number: int, function: int) -> bool:
        if guard.ends == "raise" or guard.kind == "except":
            return False
        if guard.kind not in ("if", "rest") or not guard.test:
            return True
        if guard.holds is not None and self._tests.outcome(module, guard.test) is (not guard.holds):
            return False
        if guard.kind == "rest" and guard.ends == "after raise":
            return True
        if self.is_alarm(module, guard.test) is guard.holds or self.is_start(module, guard.test) is guard.holds:
            return False
        if guard.holds is not None and self.asks_for_details(module, guard.test) is guard.holds:
            return self.steps_under(module, number, function)
        is_rare = self._intervals.is_periodic(module, guard.test) and guard.holds is self._intervals.rare_outcome(module, guard.test)
        if (is_rare or self._restarts.of(module, guard.test, number, function)) and not self.steps_under(module, number, function):
            return False
        return self.can_hold(module, guard)

    def can_hold(self, module: Module, guard: Guard) -> bool:
        """Whether a known value of the test allows the guard's outcome."""
        if guard.holds is not None and self._left_out.decides(module, guard.test) not in (None, guard.holds):
            return False
        value = self._value(module, guard.test)
        if guard.holds is True and value and value <= FALSY:
            return False
        if guard.holds is False and value == frozenset([TRUE]):
            return False
        row = module.nodes[guard.test]
        if row[0] == "bool" and row[1] == "And" and guard.holds is True:
            return not any((one := self._value(module, part)) and one <= FALSY for part in row[2])
        if row[0] == "not":
            value = self._value(module, row[1])
            if guard.holds is True and value == frozenset([TRUE]):
                return False
            return not (guard.holds is False and value and value <= FALSY)
        if row[0] == "cmp" and row[1] in (("Eq",), ("NotEq",), ("Is",), ("IsNot",)) and guard.holds is not None:
            return self._may_compare(module, row, (row[1][0] in ("Eq", "Is")) == guard.holds)
        return True

    def _may_compare(self, module: Module, row: Node, equal: bool) -> bool:
        """Whether the known values allow a value to equal, or to differ from, a constant that it is compared with."""
        constant = module.nodes[row[3][0]]
        value = self._value(module, row[2])
        if constant[0] != "const" or not value:
            return True
        if not all(one in (*FALSY, TRUE) or self.program.atoms.of[one][0] == "k" for one in value):
            return True
        wanted = self.program.atoms.constant(constant[1])
        return wanted in value if equal else value != frozenset([wanted])

    def _value(self, module: Module, number: int) -> Value:
        """The possible values of a test; empty if a path that leads to it is unknown."""
        if any(not self._of_way(module, one) for one in _ways(module, number)):
            return NOTHING
        given = self._left_out.given_by_all(module, number)
        return self._of_way(module, number) if given is None else given

    def _of_way(self, module: Module, number: int) -> Value:
        value = self.program.values.get(~(module.base | number))
        return self.program.get(module.base | number) if value is None else value

    def steps_under(self, module: Module, guard: int, function: int) -> bool:
        """Whether an optimizer steps under a guard or an equal one: the guard ends an accumulation and is not a logging
        interval."""
        asked = module.table.guards[guard]
        guards = {module.table.sites[call].guard for call in module.scopes[function & MASK].calls} - {-1, guard}
        alike = (one for one in guards if self._asks_the_same(module, module.table.guards[one], asked))
        return any(self._steps_right_under(module, one, function) for one in (guard, *sorted(alike)))

    @staticmethod
    def _asks_the_same(module: Module, one: Guard, other: Guard) -> bool:
        return one.kind == other.kind and one.holds == other.holds and is_alike(module, one.test, other.test)

    def _steps_right_under(self, module: Module, guard: int, function: int) -> bool:
        inside: set[str] = set()
        outside: set[str] = set()
        for call in module.scopes[function & MASK].calls:
            row = module.nodes[module.nodes[call][1]]
            if (row[0] == "attr" and row[2] in _STEPS) or module.base | call in self._steps.leading:
                under = guard in guards_above(module.table.guards, module.table.sites[call].guard)
                (inside if under else outside).add("backward" if module.base | call in self._steps.leading else row[2])
        # While another optimizer clears its gradients and steps in each iteration, this one follows a schedule: a
        # regularization every 16 steps, a generator every fifth.
        is_scheduled = outside >= {"step", "zero_grad"} and (inside == {"step"} or "backward" in inside)
        return bool(inside) and not is_scheduled


def _ways(module: Module, number: int) -> list[int]:
    """The alternatives of an expression, including nested ones; empty if it has only one."""
    row = module.nodes[module.uncopied(number)]
    if row[0] == "choice":
        return [row[2], row[3]]
    return list(row[1]) if row[0] == "phi" else []


def _above_nothing(name: str, limit: int) -> bool | None:
    """Whether a verbosity level that is 0 by default exceeds a limit, by the comparison; None if that is undecided."""
    if name in ("Eq", "NotEq"):
        return (name == "Eq") == bool(limit)
    return {"Gt": True, "GtE": True if limit > 0 else None, "Lt": False if limit > 0 else None, "LtE": False}.get(name)
