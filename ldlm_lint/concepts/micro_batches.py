"""How many micro-batches make a step: the numbers that decide it, wherever they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.vocabulary.batch_sizes import is_accumulation, is_world_size

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_RANKS = frozenset({"torch.distributed.get_world_size", "torch.distributed.distributed_c10d.get_world_size", "torch.cuda.device_count"})
_VARIABLE = "WORLD_SIZE"
_PASSES_ON = frozenset({"max", "int", "abs"})
_ASKS = frozenset({"cmp", "bool", "not", "copy", "op"})


class MicroBatches(Concept):
    """Answers for a program, starting from the steps of optimizers."""

    def quotients(self) -> list[Expr]:
        """The floor divisions that determine how many micro-batches make a step, each once."""
        steps = (call for call in self.code.calls_named("step") if self.code[OptimizerSteps].is_one(call))
        made = (_made(count) for step in steps for count in _counts_above(step))
        return list(dict.fromkeys(one for one in made if one is not None and one.operator == "FloorDiv"))

    def counts_ranks(self, number: Expr) -> bool:
        """Whether the number of ranks or GPUs is a factor of an expression."""
        todo = [number]
        for one in todo:
            made = _made(one)
            if made is None:
                continue
            if made.operator in ("Mult", "FloorDiv"):
                todo += [part for part in made.operands if part not in todo]
            elif (isinstance(made, Call) and made.callee.outside_names & _RANKS) or _is_of_environment(made):
                return True
        return False

    def are_divided_in(self, module: Module) -> bool:
        """Whether a file divides accumulation steps, or makes them by a division by the number of ranks.

        In many files only the name of a value is known.
        """
        for division in self.code.operations_in(module, "FloorDiv", "Div"):
            left, right = division.operands
            if division.operator == "FloorDiv" and any(map(_accumulates, _names(left))):
                return True
            results = [division, *(one for one in division.users if isinstance(one, Call) and one.called_name in _PASSES_ON)]
            if any(_accumulates(name) for one in results for name in _bound_names(one)) and self._has_ranks(right):
                return True
        return False

    def _has_ranks(self, divisor: Expr) -> bool:
        if self.counts_ranks(divisor):
            return True
        todo = [divisor]
        for one in todo:
            if any(map(is_world_size, _names(one))):
                return True
            todo += one.operands if one.kind == "op" else one.positional if isinstance(one, Call) else []
        return False


def _counts_above(step: Call) -> Iterator[Expr]:
    """The divisors of remainders in the tests around a step, up to the enclosing loop."""
    todo = [step]
    for call in todo:
        for guard in call.guards:
            if guard.kind == "if" and guard.holds:
                yield from _divisors(guard.test)
        callers = call.function.callers if not call.loops and not call.function.is_module else ()
        todo += [one for one in callers if len(callers) == 1 and one not in todo]


def _divisors(test: Expr) -> list[Expr]:
    parts = [test]
    for part in parts:
        parts += [one for one in part.operands if part.kind in _ASKS and part.operator != "Mod" and one not in parts]
    return [part.operands[1] for part in parts if part.operator == "Mod"]


def _made(number: Expr) -> Expr | None:
    """Where a number is computed: after names, attributes of ``self``, and parameters of functions with one caller."""
    seen: list[Expr] = []
    at: Expr | None = number
    while at is not None and at not in seen:
        seen.append(at)
        at = _following(at)
    return at


def _following(expr: Expr) -> Expr | None:
    """The expression that one takes its value from; itself if it computes it, None if unknown."""
    if expr.kind == "copy":
        return expr.unnamed
    if expr.kind in ("free", "param", "attr"):
        passed = [one.value for one in expr.passed if one.is_visible] if len(expr.passed) == 1 else []
        found = passed if expr.kind == "param" else expr.bound_outside if expr.kind == "free" else expr.set_to
        return found[0] if len(found) == 1 else None
    if isinstance(expr, Call) and expr.called_name in _PASSES_ON and expr.callee.kind == "free":
        computed = [one for one in expr.positional if one.kind != "const"]
        return computed[0] if len(computed) == 1 else None
    return expr


def _is_of_environment(expr: Expr) -> bool:
    """``os.environ["WORLD_SIZE"]``, ``os.environ.get("WORLD_SIZE", 1)``, ``os.getenv("WORLD_SIZE")``."""
    if isinstance(expr, Call):
        return expr.called_name in ("get", "getenv") and any(one.constant == _VARIABLE for one in expr.positional[:1])
    return expr.kind == "item" and expr.index is not None and expr.index.constant == _VARIABLE


def _bound_names(expr: Expr) -> set[str]:
    """The names and attributes that hold a value."""
    return {event.name for event in expr.events if event.kind in ("bind", "write")}


def _names(expr: Expr) -> set[str]:
    """The names of an expression: its last name, its key, or the variables that hold it."""
    key = expr.index.constant if expr.kind == "item" and expr.index is not None else ""
    return {expr.last_name.strip("()"), str(key) if isinstance(key, str) else "", *_bound_names(expr)} - {""}


def _accumulates(name: str) -> bool:
    return is_accumulation(name) or "accum" in name.lower()


__all__ = ["MicroBatches"]
