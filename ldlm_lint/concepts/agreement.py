"""Values that the ranks have just agreed on: a tensor that a collective has reduced, whose value decides what all of
them do next.

    dist.all_reduce(bad, op=dist.ReduceOp.MAX)
    if bad > 0:  # no rank can continue before it knows
        continue
"""

from __future__ import annotations

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Expr, Function
from ldlm_lint.program.modules import Module

_REDUCES = frozenset(f"torch.distributed.{name}" for name in ("all_reduce", "broadcast", "reduce", "all_gather_into_tensor"))
_DEPTH = 8


class Agreement(Concept):
    """The agreed values of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._reduced: dict[int, frozenset[int]] = {}

    def decides(self, read: Expr, inside: Function) -> bool:
        """Whether an expression reads an agreed value, and a condition or the function's result depends on it."""
        module, number, function = read.module, read.key & MASK, inside.key
        reduced = self._reduced_in(module, function)
        if not reduced or reduced.isdisjoint(self._read_by(module, number)):
            return False
        scope = module.scopes[function & MASK]
        asked = [event[1] for event in scope.events if event[0] == "test"]
        asked += [value for value, _ in scope.returns if module.plain(value)[0] == "cmp"]
        return any(number in self._read_by(module, one) for one in asked)

    def _reduced_in(self, module: Module, function: int) -> frozenset[int]:
        """The rows that collectives of a function reduce."""
        if function not in self._reduced:
            calls = module.scopes[function & MASK].calls
            args = {module.nodes[call][2][0] for call in calls if module.nodes[call][2] and self._reduces(module, call)}
            self._reduced[function] = frozenset(args)
        return self._reduced[function]

    def _reduces(self, module: Module, call: int) -> bool:
        functions = self.program.ask(module.base | module.nodes[call][1])
        return any(fields[1] in _REDUCES for fields in self.program.atoms.kinds(functions, "x"))

    @staticmethod
    def _read_by(module: Module, number: int) -> set[int]:
        """The rows that an expression reads, through conversions, comparisons and logic."""
        found: set[int] = set()
        todo = [(number, 0)]
        while todo:
            one, depth = todo.pop()
            if one in found or depth > _DEPTH:
                continue
            found.add(one)
            row = module.nodes[one]
            inner: list[int] = []
            if row[0] == "cmp":
                inner = [row[2], *row[3]]
            elif row[0] in ("not", "copy"):
                inner = [row[1]]
            elif row[0] in ("bool", "op", "un"):
                inner = list(row[2]) if row[0] == "bool" else [part for part in row[2:] if part.__class__ is int]
            elif row[0] == "call":
                function = module.nodes[row[1]]
                # ``flag.item()``, ``int(…)``
                inner = [function[1]] if function[0] == "attr" and not row[2] else list(row[2][:1]) if function[0] != "attr" else []
            todo += [(part, depth + 1) for part in inner]
        return found


__all__ = ["Agreement"]
