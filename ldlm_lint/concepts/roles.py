"""What a file is to the trainings of a repository.

Tests have no tables: nothing in the program is one.
"""

from __future__ import annotations

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.modules import Module


class Roles(Concept):
    """Answers for the files of a program."""

    def trains(self, module: Module) -> bool:
        """Whether a file trains itself."""
        return self.code.trainings.train_in(self.code.path(module))

    def belong_to_training(self, module: Module) -> bool:
        """Whether a training is reached from the same files as this one; a script that only predicts reaches none."""
        return self.code.trainings.belong_to(self.code.path(module))

    def train_on_cuda(self, module: Module) -> bool:
        """Whether a training that a file belongs to may run on a GPU."""
        return self.code.trainings.run_on_cuda(self.code.path(module))

    def run_on_many_ranks(self, module: Module) -> bool:
        """Whether a training that a file belongs to may run on several ranks."""
        return self.code.trainings.run_on_many_ranks(self.code.path(module))


__all__ = ["Roles"]
