"""What a file is to the trainings of a repository.

Tests have no tables: nothing in the program is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.modules import Module

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.program.handles import Call, Expr
    from ldlm_lint.program.surroundings import LongWait, ScaledRead

_CONFIGURES = "configure_optimizers"


class Roles(Concept):
    """Answers for the files of a program."""

    def trains(self, module: Module) -> bool:
        """Whether a file trains itself."""
        return self.code.trainings.train_in(self.code.path(module))

    def belong_to_training(self, module: Module) -> bool:
        """Whether a training is reached from the same files as this one; a script that only predicts reaches none."""
        return self.code.trainings.belong_to(self.code.path(module))

    def handle_gradients(self, module: Module) -> bool:
        """Whether code of a training with a file handles gradients itself, so that they must exist."""
        return self.code.trainings.handle_gradients(self.code.path(module))

    def train_on_cuda(self, module: Module) -> bool:
        """Whether a training that a file belongs to may run on a GPU."""
        return self.code.trainings.run_on_cuda(self.code.path(module))

    def run_on_many_ranks(self, module: Module) -> bool:
        """Whether a training that a file belongs to may run on several ranks."""
        return self.code.trainings.run_on_many_ranks(self.code.path(module))

    def steps_on_cuda(self, optimizer: Expr) -> bool:
        """Whether what creates an optimizer belongs to a training that steps it on a GPU: no test, no example beside the
        project's training, no statements that only try something out."""
        path, code = self.code.path(optimizer.module), self.code
        if code.trainings.is_test_or_tutorial(path) or (optimizer.function.is_module and not code.trainings.start_in(path)):
            return False
        return code.trainings.step_on_cuda(path, self._callers(optimizer))

    def read_scaled_gradients(self, optimizer: Expr) -> ScaledRead | None:
        """Where a training that steps an optimizer reads gradients after a scaler's step."""
        return self.code.trainings.read_scaled_gradients(self.code.path(optimizer.module), self._callers(optimizer))

    def wait_for_one_rank(self, place: Span) -> LongWait | None:
        """Where ranks of a process group that is made at a place wait for long work of one of them."""
        return self.code.trainings.wait_for_one_rank(place)

    def may_be_clipped_by_lightning(self, optimizer: Call) -> bool:
        """Whether Lightning, which refuses to clip for a fused optimizer in mixed precision, may get it."""
        function, path = optimizer.function, self.code.path(optimizer.module)
        bases = function.owner.outside_bases if function.owner is not None else ()
        is_own = function.name == _CONFIGURES and any(one.endswith("LightningModule") or one.startswith("lightning.") for one in bases)
        if is_own and self.code.trainings.may_be_clipped_by_lightning(path, is_known=True):
            return True
        is_handed = any(call.function.name == _CONFIGURES for call in function.callers)
        return is_handed and self.code.trainings.may_be_clipped_by_lightning(path, is_known=False)

    def _callers(self, optimizer: Expr) -> set[str]:
        """The files above: links that no import shows, such as ``__import__(name)``, are known only to the program."""
        return {self.code.path(one) for one in self.program.modules_above(optimizer.key)}


__all__ = ["Roles"]
