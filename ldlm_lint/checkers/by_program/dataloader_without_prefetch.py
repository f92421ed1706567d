"""`dataloader-without-prefetch` for loaders of every make."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_configured import are_configured_beyond
from ldlm_lint.checkers.by_program.loader_fixes import prefetch_fix
from ldlm_lint.checkers.by_program.loader_places import TRAINS, related_to
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.item_work import ItemWork
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.model import Confidence, Finding
from ldlm_lint.rules.data import MOST_WITH_DEEPER_QUEUE, PREFETCH, PREFETCH_FACTOR, WORKERS_LIMIT

RULE = PREFETCH
WORDS: tuple[bytes, ...] = (b"Loader",)
_OPTION = "prefetch_factor"


def find(code: View) -> Iterator[Finding]:
    """All loaders with a few workers that are trained on and leave the depth of their queue at its default."""
    for loader in code[Loaders].shown:
        if loader.call.is_in_handler or not _has_few_workers(code, loader) or not code[Loaders].lacks(loader, _OPTION):
            continue
        found = code[LoaderPasses].trains(loader.call) if not code[Loaders].is_for_evaluation(loader) else None
        if found is None or not code[ItemWork].may_be_there(loader):
            continue
        factor = int(str(code.facts(loader.call.module).get(PREFETCH_FACTOR.name, PREFETCH_FACTOR.default)))
        args = {"option": _OPTION, "setting": f"{_OPTION}={factor}"}
        confidence = Confidence.HIGH if code[Workers].are_known(loader) else Confidence.MEDIUM
        fix = prefetch_fix(code, loader, factor)
        yield code.finding(RULE, loader.call.span, args, related_to(loader, found, TRAINS), fix=fix, confidence=confidence)


def _has_few_workers(code: View, loader: Loader) -> bool:
    workers = code[Workers]
    limit = int(str(code.facts(loader.call.module).get(WORKERS_LIMIT.name, WORKERS_LIMIT.default)))
    most = min(MOST_WITH_DEEPER_QUEUE, limit - 1)
    # The rule about configurations covers users who fill a file with the options.
    if code[Loaders].is_filled_by_files(loader) or not workers.may_be_there(loader):
        return False
    if any(way.number is not None and way.number > most for way in workers.ways(loader)):
        return False
    beyond = any(workers.may_exceed(one, most) for one in workers.given(loader).values)
    return not beyond and not are_configured_beyond(code, loader, most)
