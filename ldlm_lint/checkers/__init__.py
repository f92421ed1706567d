"""pylint checkers on astroid, one class per family of rules; `CHECKERS` is the one list both hosts use."""

from __future__ import annotations

from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.checkpoint_files import CheckpointFilesChecker
from ldlm_lint.checkers.data import DataChecker
from ldlm_lint.checkers.distributed import DistributedChecker
from ldlm_lint.checkers.memory import MemoryChecker
from ldlm_lint.checkers.optimizer import OptimizerChecker
from ldlm_lint.checkers.precision import PrecisionChecker

CHECKERS: tuple[type[LdlmChecker], ...] = (
    DataChecker,
    DistributedChecker,
    OptimizerChecker,
    MemoryChecker,
    CheckpointFilesChecker,
    PrecisionChecker,
)
