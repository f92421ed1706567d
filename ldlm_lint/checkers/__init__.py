"""pylint checkers on astroid, one class per room of rules; `CHECKERS` is the one list both hosts use."""

from __future__ import annotations

from ldlm_lint.checkers.amp import AmpChecker
from ldlm_lint.checkers.attention import AttentionChecker
from ldlm_lint.checkers.autograd import AutogradChecker
from ldlm_lint.checkers.backends import BackendsChecker
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.batch_size import BatchSizeChecker
from ldlm_lint.checkers.checkpoint_files import CheckpointFilesChecker
from ldlm_lint.checkers.checkpoint_loading import CheckpointLoadingChecker
from ldlm_lint.checkers.checkpoint_saving import CheckpointSavingChecker
from ldlm_lint.checkers.compilation import CompilationChecker
from ldlm_lint.checkers.copies import CopiesChecker
from ldlm_lint.checkers.data import DataChecker
from ldlm_lint.checkers.data_parallel import DataParallelChecker
from ldlm_lint.checkers.ddp_graph import DdpGraphChecker
from ldlm_lint.checkers.distributed import DistributedChecker
from ldlm_lint.checkers.evaluation import EvaluationChecker
from ldlm_lint.checkers.fused import FusedChecker
from ldlm_lint.checkers.gradient_scaling import GradientScalingChecker
from ldlm_lint.checkers.gradient_zeroing import GradientZeroingChecker
from ldlm_lint.checkers.host_time import HostTimeChecker
from ldlm_lint.checkers.loss import LossChecker
from ldlm_lint.checkers.memory import MemoryChecker
from ldlm_lint.checkers.no_sync import NoSyncChecker
from ldlm_lint.checkers.optimizer import OptimizerChecker
from ldlm_lint.checkers.process_groups import ProcessGroupsChecker
from ldlm_lint.checkers.rank_divergence import RankDivergenceChecker
from ldlm_lint.checkers.schedule import ScheduleChecker
from ldlm_lint.checkers.segments import SegmentsChecker
from ldlm_lint.checkers.sharded_data import ShardedDataChecker

CHECKERS: tuple[type[LdlmChecker], ...] = (
    DataChecker,
    DistributedChecker,
    OptimizerChecker,
    BatchSizeChecker,
    MemoryChecker,
    CheckpointFilesChecker,
    LossChecker,
    HostTimeChecker,
    AutogradChecker,
    EvaluationChecker,
    GradientZeroingChecker,
    CheckpointSavingChecker,
    CheckpointLoadingChecker,
    AmpChecker,
    BackendsChecker,
    CompilationChecker,
    AttentionChecker,
    FusedChecker,
    GradientScalingChecker,
    ScheduleChecker,
    CopiesChecker,
    ShardedDataChecker,
    ProcessGroupsChecker,
    DdpGraphChecker,
    NoSyncChecker,
    RankDivergenceChecker,
    DataParallelChecker,
    SegmentsChecker,
)
