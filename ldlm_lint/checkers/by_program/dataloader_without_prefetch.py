"""`dataloader-without-prefetch` for loaders of every make."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_configured import are_configured_beyond
from ldlm_lint.checkers.by_program.loader_datasets import works_per_item
from ldlm_lint.checkers.by_program.loader_fixes import prefetch_fix
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Finding
from ldlm_lint.rules.data import MOST_WITH_DEEPER_QUEUE, PREFETCH, PREFETCH_FACTOR, WORKERS_LIMIT

RULE = PREFETCH
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(view: View) -> Iterator[Finding]:
    """All loaders with a few workers that are trained on and leave the depth of their queue at its default."""
    for one in view.loaders.all:
        if not view.program.stands_in_handler(one.call) and _has_few_workers(view, one) and view.loaders.is_absent(one, "prefetch_factor"):
            yield from _finding(view, one)


def _has_few_workers(view: View, one: LoaderCall) -> bool:
    limit = int(str(view.facts(one.module).get(WORKERS_LIMIT.name, WORKERS_LIMIT.default)))
    most = min(MOST_WITH_DEEPER_QUEUE, limit - 1)
    # The rule about configurations covers users who fill a file with the options.
    if one.from_file or not view.loaders.may_have_workers(one) or any(way.number is not None and way.number > most for way in one.ways):
        return False
    beyond = any(view.loaders.counts.may_exceed(source, most) for source in one.workers.sources)
    return not beyond and not are_configured_beyond(view, one, most)


def _finding(view: View, one: LoaderCall) -> Iterator[Finding]:
    found = view.loaders.settled_training(one)
    if found is None or not works_per_item(view, one):
        return
    factor = int(str(view.facts(one.module).get(PREFETCH_FACTOR.name, PREFETCH_FACTOR.default)))
    fix = prefetch_fix(view, one, factor)
    yield view.finding(
        RULE, view.call_span(one.call), {"option": "prefetch_factor", "setting": f"prefetch_factor={factor}"}, found.related, fix=fix, confidence=one.confidence
    )
