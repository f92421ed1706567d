"""Values that the ranks have just agreed on: a tensor that a collective has reduced, whose value decides what all of
them do next.

    dist.all_reduce(bad, op=dist.ReduceOp.MAX)
    if bad > 0:  # no rank can continue before it knows
        continue
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.ranks import communicates, is_local

_REDUCES = frozenset(f"torch.distributed.{name}" for name in ("all_reduce", "broadcast", "reduce", "all_gather_into_tensor"))
_LOGIC = frozenset({"cmp", "not", "copy", "bool", "op", "un"})


class Agreement(Concept):
    """The agreed values of a program."""

    def decides(self, read: Expr, inside: Function) -> bool:
        """Whether an expression reads an agreed value, and a condition or the function's result depends on it."""
        reduced = {call.positional[0] for call in inside.calls if call.positional and call.callee.outside_names & _REDUCES}
        if not reduced or reduced.isdisjoint(_read_by(read)):
            return False
        asked = [event.expr for event in inside.events if event.kind == "test"]
        asked += [value for value in inside.returned if value.plain.kind == "cmp"]
        return any(read in _read_by(one) for one in asked)

    def is_behind(self, value: Expr) -> bool:
        """Whether a value is made of what the ranks know together: a call has reduced or gathered it, or does so in place."""
        return any(one in self._reduced or (isinstance(one, Call) and self.is_reached_by(one)) for one in reached([value], _made_of))

    @staticmethod
    def is_reached_by(call: Call) -> bool:
        """Whether a call communicates with the other ranks, by its name; ``reduce(x, "b n -> b", "mean")`` does not."""
        is_pattern = any(isinstance(one.constant, str) and "->" in one.constant for one in call.positional)
        return communicates(call.called_name) and not is_pattern and not any(map(is_local, call.callee.outside_names))

    @cached_property
    def _reduced(self) -> frozenset[Expr]:
        """What calls reduce in place: they return nothing that is used."""
        named = self.code.calls_named(*filter(communicates, self.program.calls))
        return frozenset(given for call in named if self.is_reached_by(call) and call.is_dropped for given in call.arguments)


def _made_of(expr: Expr) -> Iterator[Expr]:
    """The parts of a value, and what the functions return that compute it; of a call with several arguments nothing more."""
    yield from expr.results
    yield from expr.ways
    yield from flag_tests(expr)
    given = [*expr.positional, *([expr.receiver] if expr.receiver is not None else [])] if isinstance(expr, Call) else expr.operands
    if not isinstance(expr, Call) or len(expr.positional) <= 1:
        yield from given


def flag_tests(expr: Expr) -> Iterator[Expr]:
    """The tests under which a flag of several ways becomes true: ``if not isfinite(loss): skip = True``."""
    for way in expr.ways if expr.kind == "phi" else []:
        if way.constant is True:
            bound = (event.spot.guard for event in way.events if event.kind == "bind")
            yield from (guard.test for guard in bound if guard is not None and guard.is_test)


def _read_by(expr: Expr) -> list[Expr]:
    """What an expression reads, through conversions, comparisons and logic."""
    found = [expr]
    for one in found:
        inner = one.operands if one.kind in _LOGIC else []
        if isinstance(one, Call):
            # ``flag.item()``, ``int(…)``
            receiver = one.receiver
            inner = one.positional[:1] if receiver is None else [] if one.positional else [receiver]
        found += [part for part in inner if part not in found]
    return found


__all__ = ["Agreement", "flag_tests"]
