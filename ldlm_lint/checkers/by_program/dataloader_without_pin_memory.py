"""`dataloader-without-pin-memory` for loaders of every make."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_fixes import pin_fix
from ldlm_lint.checkers.by_program.loader_places import TRAINS, related_to
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.item_work import ItemWork
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.pinned_batches import PinnedBatches
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.model import Confidence, Finding
from ldlm_lint.rules.data import WITHOUT_PIN_MEMORY

RULE = WITHOUT_PIN_MEMORY
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(code: View) -> Iterator[Finding]:
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
        yield code.finding(RULE, loader.call.span, {"how": "not set"}, related, fix=pin_fix(code, loader), confidence=confidence)


def _is_of_driver(loader: Loader) -> bool:
    """A Ray driver passes its batches to other processes and has no GPU."""
    return any(name.partition(".")[0] == "ray" for name, _, _, _ in loader.call.module.table.imports)


def _cannot_be_pinned(code: View, loader: Loader) -> bool:
    """Whether the collate function makes batches on the GPU, or of a class that torch leaves as it is."""
    collates = code[Loaders].option(loader, "collate_fn").values
    return code[ItemWork].is_collated_on_device(loader) or any(code[PinnedBatches].are_unpinnable(one) for one in collates)
