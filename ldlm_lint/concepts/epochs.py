"""Epochs passed to samplers and datasets: a constant is not an epoch."""

from __future__ import annotations

from functools import cached_property

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call

_WRITTEN = frozenset({"const", "copy", "phi", "free", "param", "impf", "un"})


class Epochs(Concept):
    """The calls of ``set_epoch`` of a codebase."""

    @cached_property
    def constant(self) -> frozenset[Call]:
        """The calls that pass the same number each time."""
        return frozenset(call for call in self.code.calls_named("set_epoch") if _is_constant(call))


def _is_constant(call: Call) -> bool:
    given = call.argument("epoch", 0)
    return len(given.values) == 1 and given.values[0].kind in _WRITTEN and type(given.may_be().only) is int


__all__ = ["Epochs"]
