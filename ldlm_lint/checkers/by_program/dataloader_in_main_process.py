"""`dataloader-in-main-process` for loaders of every make, and for defaults of 0 workers that another file declares."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_datasets import works_per_item
from ldlm_lint.checkers.by_program.loader_fixes import workers_fix
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.data_purposes import wants_no_workers
from ldlm_lint.concepts.loader_options import Way
from ldlm_lint.model import Claim, Confidence, Finding
from ldlm_lint.program.atoms import FALSY, MASK
from ldlm_lint.program.queries import State, destination
from ldlm_lint.rules.data import IN_MAIN_PROCESS, NUM_WORKERS
from ldlm_lint.rules.roles import remark_at
from ldlm_lint.wording import quoted

RULE = IN_MAIN_PROCESS
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(view: View) -> Iterator[Finding]:
    """All loaders that are trained on and have no workers on any way that the program shows."""
    for one in view.loaders.all:
        if _has_none(one) and not _asks_for_workers(view, one) and not _wants_none(view, one) and not view.loaders.is_tested(one):
            yield from _finding(view, one)


def _has_none(one: LoaderCall) -> bool:
    if one.workers.state is State.ABSENT:
        return True
    return one.workers.state is State.GIVEN and bool(one.ways) and all(way.number == 0 for way in one.ways)


def _asks_for_workers(view: View, one: LoaderCall) -> bool:
    """Whether options are given that need workers: a rule of its own says that they are missing.

    Those that ask for the number themselves, as in ``persistent_workers=num_workers > 0``, need none.
    """
    given = [view.loaders.option(one, name) for name in ("prefetch_factor", "persistent_workers")]
    sources = [source for argument in given for source in argument.sources]
    is_open = any(argument.state is State.OPEN for argument in given)
    return is_open or any(_asks(view, one, source) for source in sources)


def _asks(view: View, one: LoaderCall, source: int) -> bool:
    value = view.program.ask(source)
    return not (value and value <= FALSY) and not view.loaders.follows_workers(one, source)


def _finding(view: View, one: LoaderCall) -> Iterator[Finding]:
    found = view.loaders.trains(one)
    if found is None or not works_per_item(view, one):
        return
    default = next((way.default for way in one.ways if way.default), "")
    _, related = view.loaders.where(one, found, "this trains on its batches")
    place = _place(one)
    count = view.facts(one.module).get(NUM_WORKERS.name, NUM_WORKERS.default)
    yield view.finding(
        RULE,
        view.call_span(place),
        {"why": _why(default)},
        related,
        claims=(*_in_force(one.ways), *view.loaders.collation(one)),
        fix=workers_fix(view, one, int(str(count))) if place == one.call else None,
        confidence=Confidence.LOW if default else Confidence.MEDIUM,
    )


def _place(one: LoaderCall) -> int:
    """The call that is to be changed: the one that gives a wrapper its 0, or the one that makes the loader."""
    givers = {way.giver for way in one.ways if not way.default and way.giver}
    return min(givers) if givers and all(way.giver and not way.default for way in one.ways) else one.call


def _why(default: str) -> str:
    if not default:
        return ""
    return " by default" if default == "parameter" else f" unless {quoted(default)} is given"


def _in_force(ways: tuple[Way, ...]) -> Iterator[Claim]:
    """No launch gives another value."""
    for default in sorted({way.default for way in ways} - {"", "parameter"}):
        yield Claim("default-is-in-force", f"{destination(default)}|0")


def _wants_none(view: View, one: LoaderCall) -> bool:
    """Whether a remark says why there are no workers, beside the 0 that is written for it or above the call."""
    nodes = one.module.nodes
    for name, value in nodes[one.call & MASK][3]:
        if name == "num_workers" and nodes[value] == ("const", 0):
            # Constants have no places of their own.
            span = view.call_span(one.call)
            return wants_no_workers(remark_at(view.source(one.module), span.start, span.end))
    return False
