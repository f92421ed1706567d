"""What the files of a project show of its trainings, by path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.project.training import runs_many_ranks, trains_on_cuda

if TYPE_CHECKING:
    from ldlm_lint.project.index import Project


class TrainingFiles:
    """Answers for the files of a project; see `ldlm_lint.program.codebase.Trainings`."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def train_in(self, path: str) -> bool:
        """Whether a file trains itself."""
        return path in self._project.training_files

    def belong_to(self, path: str) -> bool:
        """Whether a training is reached from the same files as this one; not for a test."""
        return not self._project.is_test(path) and bool(self._project.trainers_of(path))

    def run_on_cuda(self, path: str) -> bool:
        """Whether a training that a file belongs to may run on a GPU."""
        return trains_on_cuda(self._project, path)

    def run_on_many_ranks(self, path: str) -> bool:
        """Whether a training that a file belongs to may run on several ranks."""
        return runs_many_ranks(self._project, path)


__all__ = ["TrainingFiles"]
