"""Values that the ranks have just agreed on: a tensor that a collective has reduced, whose value decides what all of
them do next.

    dist.all_reduce(bad, op=dist.ReduceOp.MAX)
    if bad > 0:  # no rank can continue before it knows
        continue
"""

from __future__ import annotations

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function

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


__all__ = ["Agreement"]
