"""`dataloader-worker-count-may-be-zero` for loaders of every make, and for numbers that other functions and files decide."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_worker_options import error_of, guard_fix, worker_options_of
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.loader_options import ROUNDED_DOWN, Way
from ldlm_lint.model import Finding, Related
from ldlm_lint.program.queries import State
from ldlm_lint.rules.data import WORKERS_MAY_BE_ZERO
from ldlm_lint.wording import listed, quoted

RULE = WORKERS_MAY_BE_ZERO
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(view: View) -> Iterator[Finding]:
    """All loaders with options that need workers, which they do not have on one of the ways that the program shows."""
    for one in view.loaders.all:
        zero = next((way for way in one.ways if way.number == 0), None)
        if zero is None or one.workers.state is not State.GIVEN or _is_always_zero(one):
            continue
        options = worker_options_of(view, one)
        if options and not view.loaders.is_tested(one):
            yield _finding(view, one, zero, options)


def _is_always_zero(one: LoaderCall) -> bool:
    return all(way.number == 0 and not way.default for way in one.ways)


def _finding(view: View, one: LoaderCall, zero: Way, options: list[str]) -> Finding:
    args = {"options": listed(options), "error": error_of(options), "why": _why(zero)}
    related = (Related(view.call_span(zero.giver), "this decides it"),) if zero.giver else ()
    fix = guard_fix(view, one, options)
    return view.finding(RULE, view.call_span(one.call), args, related, fix=fix)


def _why(zero: Way) -> str:
    if not zero.default:
        return "the code sets it to 0"
    if zero.default == ROUNDED_DOWN:
        return "the floor division gives 0 if the divisor is larger"
    return "its default is 0" if zero.default == "parameter" else f"the default of {quoted(zero.default)} is 0"
