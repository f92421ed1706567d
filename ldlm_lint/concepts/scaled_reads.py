"""Reads of gradients behind the step of a scaler, which unscales them there: a fused optimizer would leave them scaled.

    scaler.step(optimizer)
    norm = sum(p.grad.norm() for p in model.parameters())       # until they are cleared
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.gradient_scalers import GradientScalers
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.modules import Module

_CLEARS = frozenset({"zero_", "detach_", "requires_grad_"})
_NORMS = ("get_total_norm",)


class ScaledRead(NamedTuple):
    """A read, or a call that leads to one, and the step of the scaler before it."""

    step: Call
    read: Expr


class ScaledReads(Concept):
    """Those of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._scalers = code[GradientScalers]

    def loaded_by(self, module: Module) -> ScaledRead | None:
        """The first one in a file, or in those that it imports."""
        loaded = self.code.imported_by(module) | {module}
        return next((one for one in self._every if one.step.module in loaded), None)

    @cached_property
    def _every(self) -> list[ScaledRead]:
        found = (self._behind(step) for step in self._scalers.all_steps)
        return sorted((one for one in found if one is not None), key=lambda one: (one.step.module.path, one.step.place))

    def _behind(self, step: Call) -> ScaledRead | None:
        calls = step.function.calls
        if any("unscale" in call.called_name and call.place <= step.place for call in calls):
            return None
        until = min((call.place for call in calls if call.called_name == "zero_grad" and call.place > step.place), default=None)
        read = (*_gradients_in(step.function), *(call for call in calls if self._reads(call)))
        behind = [one for one in read if one.place > step.end and (until is None or one.place < until)]
        return ScaledRead(step, min(behind, key=lambda one: one.place)) if behind else None

    def _reads(self, call: Call) -> bool:
        return call in self._norms or not self._reading.isdisjoint(call.targets)

    @cached_property
    def _norms(self) -> frozenset[Call]:
        return self._scalers.clips | frozenset(self.code.calls_named(*_NORMS))

    @cached_property
    def _reading(self) -> frozenset[Function]:
        """The functions that read gradients themselves."""
        own = (one.function for module in self.code.modules for one in self.code.reads_in(module, "grad") if _is_read(one))
        return frozenset([*own, *(call.function for call in self._norms)])


def _gradients_in(function: Function) -> Iterator[Expr]:
    return (one for one in function.code.reads_in(function.module, "grad") if one.function == function and _is_read(one))


def _is_read(gradient: Expr) -> bool:
    """Whether a value of an attribute ``grad`` is used: not only asked for, cleared, or called."""
    users = gradient.users
    return bool(users) and not all(
        user.operator in ("Is", "IsNot") or (user.kind == "attr" and user.name in _CLEARS) or (isinstance(user, Call) and user.callee == gradient)
        for user in users
    )
