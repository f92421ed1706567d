"""`dataloader-worker-options-without-workers` for loaders of every make."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_worker_options import error_of, removal_fix, worker_options_of
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Confidence, Finding
from ldlm_lint.program.queries import State
from ldlm_lint.rules.data import OPTIONS_WITHOUT_WORKERS
from ldlm_lint.wording import listed

RULE = OPTIONS_WITHOUT_WORKERS
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(view: View) -> Iterator[Finding]:
    """All loaders that certainly have no workers and options that need some."""
    for one in view.loaders.all:
        if not _has_none(one):
            continue
        options = worker_options_of(view, one)
        if options and not view.loaders.is_tested(one):
            args = {"options": listed(options), "error": error_of(options), "option": "num_workers"}
            fix = removal_fix(view, one, options)
            yield view.finding(RULE, view.call_span(one.call), args, fix=fix, confidence=Confidence.HIGH)


def _has_none(one: LoaderCall) -> bool:
    if one.workers.state is State.ABSENT:
        return True
    return one.workers.state is State.GIVEN and bool(one.ways) and all(way.number == 0 and not way.default for way in one.ways)
