"""`dataloader-worker-count-may-be-zero` for loaders of every make, and for numbers that other functions and files decide."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_worker_options import error_of, guard_fix, worker_options_of
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.loaders import Loaders
from ldlm_lint.concepts.workers import ROUNDED_DOWN, Way, Workers
from ldlm_lint.model import Finding, Related
from ldlm_lint.rules.data import WORKERS_MAY_BE_ZERO
from ldlm_lint.wording import listed, quoted

RULE = WORKERS_MAY_BE_ZERO
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(code: View) -> Iterator[Finding]:
    """All loaders with options that need workers, which they do not have on one of the ways that the program shows."""
    workers = code[Workers]
    for loader in code[Loaders].shown:
        zero = next((way for way in workers.ways(loader) if way.number == 0), None)
        if zero is None or not workers.given(loader).is_given or workers.are_surely_none(loader):
            continue
        options = worker_options_of(code, loader)
        if options and not workers.are_tested(loader):
            args = {"options": listed(options), "error": error_of(options), "why": _why(zero)}
            related = (Related(zero.giver.span, "this decides it"),) if zero.giver is not None else ()
            yield code.finding(RULE, loader.call.span, args, related, fix=guard_fix(code, loader, options))


def _why(zero: Way) -> str:
    if not zero.default:
        return "the code sets it to 0"
    if zero.default == ROUNDED_DOWN:
        return "the floor division gives 0 if the divisor is larger"
    return "its default is 0" if zero.default == "parameter" else f"the default of {quoted(zero.default)} is 0"
