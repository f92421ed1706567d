"""unsharded-distributed-data: shuffling loaders without a sampler in trainings of several ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.checkers.data.passes_shown import TRAINS, related_to
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.model import Confidence, Consequence, Finding, Frequency, Reference, Rule
from ldlm_lint.vocabulary.loaders import DISTRIBUTED_SAMPLERS, LOADERS_OF_TORCH

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

_SAMPLER = Reference(
    "torch.utils.data.distributed.DistributedSampler",
    "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler",
)
_DDP = Reference(
    "Getting started with DistributedDataParallel", "https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html"
)
RULE = Rule(
    code="W7112",
    symbol="unsharded-distributed-data",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="this DataLoader shuffles without a `DistributedSampler`: each rank of this DDP training goes through the "
    "whole dataset, so every sample is used once per rank in an epoch; pass `sampler=DistributedSampler(...)` instead of "
    "`shuffle=True`",
    summary="A shuffling DataLoader without a sampler in a DDP training of several ranks.",
    rationale="A `DataLoader` does not know about ranks. Without a `DistributedSampler`, or a dataset that is split "
    "by rank, each rank draws from all samples: an epoch goes through the data once per rank, and with the same seed "
    "on every rank all ranks compute the same batches.",
    cost="An epoch costs as many passes over the data as there are ranks, or, with equal seeds, additional ranks "
    "contribute nothing. Not measured here.",
    exceptions="A dataset that reads only its rank's share, data that is drawn with replacement and counted in steps, "
    "an engine that inserts its own sampler (Accelerate, Lightning, the Hugging Face Trainer).",
    versions="All versions.",
    verification="Print the indices of the first batches on two ranks, and the length of the loader next to the size "
    "of the dataset.",
    references=(_SAMPLER, _DDP),
    reads=("py",),
    triggers=(b"DataLoader",),
    confidence=Confidence.LOW,
    default=False,
)


def find(code: ProjectCode) -> Iterator[Finding]:
    """The loaders that shuffle a whole dataset on each rank of a DDP training."""
    for loader in code[Loaders].shown:
        if loader.interface not in LOADERS_OF_TORCH or not _shuffles_alone(code, loader):
            continue
        path, found = code.path(loader.call.module), code[LoaderPasses].trains(loader.call)
        if found is None or not code.trainings.wrap_without_sharing(path):
            continue
        if code.trainings.mention_samplers(path) and not code[LoaderPasses].only_others_get(DISTRIBUTED_SAMPLERS):
            continue
        yield code.finding(RULE, loader.call.span, {}, related_to(loader, found, TRAINS), confidence=Confidence.LOW)


def _shuffles_alone(code: ProjectCode, loader: Loader) -> bool:
    samplers = [code[Loaders].option(loader, name) for name in ("sampler", "batch_sampler")]
    shuffle = code[Loaders].option(loader, "shuffle")
    alone = all(one.is_absent or (one.is_given and one.may_be().only is None) for one in samplers)
    return alone and shuffle.is_given and shuffle.may_be().only is True
