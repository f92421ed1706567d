"""What several rules about loaders share: references, and the option that says how many workers are too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.model import Option, Reference

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.concepts.loaders import Loader

DATALOADER = Reference("torch.utils.data.DataLoader", "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader")
MULTIPROCESS = Reference(
    "Multi-process data loading", "https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading"
)
TUNING = Reference(
    "PyTorch performance tuning guide",
    "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-asynchronous-data-loading-and-augmentation",
)
SOURCE = Reference(
    "torch/utils/data/dataloader.py, the checks of the constructor",
    "https://github.com/pytorch/pytorch/blob/v2.10.0/torch/utils/data/dataloader.py",
)
# Half of it is at least one worker.
WORKERS_LIMIT = Option(
    "workers-limit", 16, "smallest number of loader workers per rank that is too many; the fix writes half of it", minimum=2
)


def fewer_workers(limit: int) -> str:
    """The advice for a number of workers at the limit or above it."""
    return f"start with {max(limit // 2, 1)}"


def option_for(code: ProjectCode, loader: Loader, option: Option) -> int:
    """The value of an option of a rule for the file of a loader."""
    return int(str(code.facts(loader.call.module).get(option.name, option.default)))
