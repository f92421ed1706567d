"""Calls of other packages' objects that run a loss backward and step the optimizer: ``loss_scaler(loss,
optimizer)``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.program import Program
from ldlm_lint.program.atoms import MASK
from ldlm_lint.vocabulary.losses import STEPPERS


class OutsideSteps:
    """Answers for the calls of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def calls(self) -> Iterator[int]:
        """The calls (keys) of such objects, by their names where they are created and passed on."""
        program = self.program
        made = [call for name in sorted({one.rpartition(".")[2] for one in STEPPERS}) for call in program.calls.get(name, ())]
        names = {name for call in made if self._is_one(call) for name in program.names_of(call)}
        for name in sorted(names):
            for call in program.calls.get(name, ()):
                module = program.module_of(call)
                if module.nodes[call & MASK][2] and self._is_one(module.base | module.nodes[call & MASK][1]):
                    yield call

    def _is_one(self, key: int) -> bool:
        return any(fields[1] in STEPPERS for fields in self.program.atoms.kinds(self.program.ask(key), "o"))


__all__ = ["OutsideSteps"]
