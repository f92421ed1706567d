"""Allow-lists of classes for `torch.load`: code that sets one relies on ``weights_only``, which is on by default."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.entered import Entered
from ldlm_lint.program.codebase import Codebase, Concept

if TYPE_CHECKING:
    from ldlm_lint.program import Program

_SCOPES = frozenset({"torch.serialization.safe_globals"})
_LISTS = frozenset({"torch.serialization.add_safe_globals"})


class SafeGlobals(Concept):
    """The lists of allowed classes of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.program: Program = code.ask.program

    def cover(self, call: int) -> bool:
        """Whether such a list applies to a call: inside its ``with``, in that of all its callers, or in a program that
        adds to the list."""
        module = self.program.module_of(call)
        if not self._adding.isdisjoint(self.program.together.programs_of(module)):
            return True
        return self._entered.covers(call)

    @cached_property
    def _adding(self) -> frozenset[int]:
        return frozenset(self.program.module_of(call).index for call, _ in self.ask.calls_of(_LISTS))

    @cached_property
    def _entered(self) -> Entered:
        return Entered(self.program, frozenset(call for call, _ in self.ask.calls_of(_SCOPES)))
