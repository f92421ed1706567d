"""dataloader-without-pin-memory: loaders of every make that feed a training on CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.checkers.data.fixes import fix_with_option
from ldlm_lint.checkers.data.passes_shown import TRAINS, related_to
from ldlm_lint.concepts.devices import PinnedBatches
from ldlm_lint.concepts.item_work import ItemWork
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Fix, Frequency, Probe, Reference, Rule
from ldlm_lint.rules.measured import H100

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

_PINNED = Reference("CUDA semantics: pinned memory buffers", "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers")

RULE = Rule(
    code="R7107",
    symbol="dataloader-without-pin-memory",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="this training DataLoader returns batches in pageable memory, because `pin_memory` is not set: their copies to "
    "the GPU cannot overlap with computation; set `pin_memory=True`",
    summary="A loader with workers that feeds a training on CUDA without `pin_memory`.",
    rationale="A copy from pageable host memory goes through a staging buffer of the driver and blocks the host. With "
    "`pin_memory=True` a thread of the loader moves each batch to page-locked memory while the step runs, and "
    "`batch.to(device, non_blocking=True)` can then copy asynchronously.",
    cost="The copy of each batch to the GPU, in every step; it matters for large batches such as images. "
    "On an H100 a copy of 64 MiB took 3.79 ms from pageable memory and 1.25 ms from pinned memory.",
    exceptions="Not reported: `pin_memory=False`, wherever it is written, because it is a choice; training on a CPU; "
    "a Ray driver that passes its batches to other processes; batches of a class of the project without a "
    "`pin_memory()` method, which are not pinned. If the host has little memory to lock, leave it off. Without "
    "workers, pinning would run in the training process and can cost more than it gains: there only "
    "dataloader-in-main-process is reported.",
    versions="All versions. Without an accelerator, torch >= 2.7 warns and pins nothing.",
    verification="Measure the time of the batch's `.to(device)` in a profile before and after, with `non_blocking=True`.",
    references=(
        _PINNED,
        Reference(
            "A guide on good usage of non_blocking and pin_memory()",
            "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        ),
        Reference("Memory pinning in DataLoader", "https://docs.pytorch.org/docs/stable/data.html#memory-pinning"),
        H100,
    ),
    reads=("py",),
    triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: page-locked memory cannot be swapped out, and a batch that already contains CUDA tensors "
    "cannot be pinned.",
    probe=Probe(
        "host-to-device-copies",
        "batches were copied to the device from pageable memory",
        device_bound=True,
        experiment="dataloader",
    ),
)



def find(code: ProjectCode) -> Iterator[Finding]:
    """All loaders with workers that are used for training on CUDA and leave their batches in pageable memory."""
    loaders, workers = code[Loaders], code[Workers]
    for loader in loaders.shown:
        if not workers.may_be_there(loader) or not loaders.lacks(loader, "pin_memory", "pin_memory_device"):
            continue
        if loader.call.is_in_handler or _is_of_driver(loader) or loaders.is_for_evaluation(loader):
            continue
        found = code[LoaderPasses].trains(loader.call)
        if found is None or _cannot_be_pinned(code, loader) or not code[Roles].train_on_cuda(loader.call.module):
            continue
        confidence = Confidence.HIGH if workers.are_known(loader) else Confidence.MEDIUM
        related = related_to(loader, found, TRAINS)
        yield code.finding(RULE, loader.call.span, {"how": "not set"}, related, fix=_fix(code, loader), confidence=confidence)


def _is_of_driver(loader: Loader) -> bool:
    """A Ray driver passes its batches to other processes and has no GPU."""
    return any(name.partition(".")[0] == "ray" for name, _, _, _ in loader.call.module.table.imports)


def _cannot_be_pinned(code: ProjectCode, loader: Loader) -> bool:
    """Whether the collate function makes batches on the GPU, or of a class that torch leaves as it is."""
    collates = code[Loaders].option(loader, "collate_fn").values
    return code[ItemWork].is_collated_on_device(loader) or any(code[PinnedBatches].are_unpinnable(one) for one in collates)


def _fix(code: ProjectCode, loader: Loader) -> Fix | None:
    return fix_with_option(code, loader, "pin_memory", "True", "pinned memory cannot be swapped out, and a batch that is on the GPU already cannot be pinned")
