"""Family 72: one process for many GPUs."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Frequency, Reference, Rule

WRAPPER, FUNCTION = "`nn.DataParallel`", "`nn.parallel.data_parallel`"
"""The two forms, as a message names them."""

DATA_PARALLEL = Rule(
    code="W7235",
    symbol="data-parallel",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(name)s drives all GPUs from one Python process and copies the model to them in every step, so the "
    "GPUs wait for that process: use `DistributedDataParallel` with one process per GPU",
    summary="`nn.DataParallel` in training.",
    rationale="In every forward pass the model is replicated from the first GPU to the others, the batch is "
    "scattered, and the outputs are gathered on the first GPU. Threads of one process do all this, and share Python's "
    "global interpreter lock. The first GPU also holds outputs, loss and optimizer, so it runs out of memory first. "
    "DistributedDataParallel keeps one process and one replica per GPU and overlaps the reduction of gradients with "
    "the backward pass; torch recommends it even on a single node.",
    cost="The copy of all parameters in each step, idle GPUs while the first one gathers, and uneven memory.",
    exceptions="Inference and evaluation, quick experiments on one machine. A program that also offers "
    "DistributedDataParallel is not reported, because DataParallel is then the user's choice; if DataParallel runs "
    "unless an option is given, it is reported at level info.",
    versions="torch 2.0 to 2.13.",
    verification="Watch the utilization and memory of all GPUs in `nvidia-smi dmon` during training. This needs GPUs.",
    references=(
        Reference("DataParallel", "https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html"),
        Reference(
            "CUDA semantics: use DistributedDataParallel instead of DataParallel",
            "https://docs.pytorch.org/docs/stable/notes/cuda.html",
        ),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: DistributedDataParallel needs a process group, one process per GPU and a sampler that shards the data.",
)

RULES = (DATA_PARALLEL,)
