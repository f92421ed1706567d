"""`dataloader-without-pin-memory` for loaders of every make."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_fixes import pin_fix
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.pinned_batches import PinnedBatches
from ldlm_lint.concepts.roles import Roles
from ldlm_lint.model import Finding
from ldlm_lint.rules.data import WITHOUT_PIN_MEMORY

RULE = WITHOUT_PIN_MEMORY
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(view: View) -> Iterator[Finding]:
    """All loaders with workers that are used for training on CUDA and leave their batches in pageable memory."""
    for one in view.loaders.all:
        if view.loaders.may_have_workers(one) and view.loaders.is_absent(one, "pin_memory", "pin_memory_device") and not _is_of_driver(view, one) and not view.program.stands_in_handler(one.call):
            yield from _finding(view, one)


def _is_of_driver(view: View, one: LoaderCall) -> bool:
    """A Ray driver passes its batches to other processes and has no GPU."""
    return any(name.partition(".")[0] == "ray" for name, _, _, _ in one.module.table.imports)


def _finding(view: View, one: LoaderCall) -> Iterator[Finding]:
    found = view.loaders.settled_training(one)
    if found is None or any(view[PinnedBatches].are_unpinnable(source) for source in view.loaders.option(one, "collate_fn").sources):
        return
    if not view[Roles].train_on_cuda(one.module):
        return
    args = {"how": "not set"}
    yield view.finding(
        RULE, view.call_span(one.call), args, found.related, claims=view.loaders.collation(one), fix=pin_fix(view, one), confidence=one.confidence
    )
