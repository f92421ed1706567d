"""`dataloader-worker-options-without-workers` for loaders of every make."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_worker_options import error_of, removal_fix, worker_options_of
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.loaders import Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.model import Confidence, Finding
from ldlm_lint.rules.data import OPTIONS_WITHOUT_WORKERS
from ldlm_lint.wording import listed

RULE = OPTIONS_WITHOUT_WORKERS
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(code: View) -> Iterator[Finding]:
    """All loaders that certainly have no workers and options that need some."""
    for loader in code[Loaders].shown:
        if not code[Workers].are_surely_none(loader):
            continue
        options = worker_options_of(code, loader)
        if options and not code[Workers].are_tested(loader):
            args = {"options": listed(options), "error": error_of(options), "option": "num_workers"}
            yield code.finding(RULE, loader.call.span, args, fix=removal_fix(code, loader, options), confidence=Confidence.HIGH)
