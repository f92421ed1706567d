"""`dataloader-in-main-process` for loaders of every make, and for defaults of 0 workers that another file declares."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_datasets import works_per_item
from ldlm_lint.checkers.by_program.loader_fixes import raised_fix, workers_fix
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.data_purposes import wants_no_workers
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers
from ldlm_lint.concepts.loader_options import WORKERS_OF_TRAINER, Way
from ldlm_lint.model import Claim, Confidence, Finding, Related
from ldlm_lint.program.atoms import FALSY, MASK
from ldlm_lint.program.queries import State, destination
from ldlm_lint.rules.data import IN_MAIN_PROCESS, NUM_WORKERS
from ldlm_lint.rules.roles import remark_at
from ldlm_lint.wording import located, quoted

RULE = IN_MAIN_PROCESS
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(view: View) -> Iterator[Finding]:
    """All loaders that are trained on and have no workers: on any way that the program shows, or on the way from one call."""
    for one in view.loaders.all:
        if not any(way.number == 0 for way in one.ways) and one.workers.state is not State.ABSENT:
            continue
        if _asks_for_workers(view, one) or _wants_none(view, one) or _has_thought_of_none(view, one):
            continue
        if any(way.setting and view[ConfiguredNumbers].are_given(way.setting) for way in one.ways):
            # Another rule reports the numbers in configurations.
            continue
        if _has_none(one):
            yield from _finding(view, one)
        elif one.workers.state is State.GIVEN and works_per_item(view, one):
            yield from _findings_of_calls(view, one)


def _has_none(one: LoaderCall) -> bool:
    if one.workers.state is State.ABSENT:
        return True
    if any(way.default == WORKERS_OF_TRAINER for way in one.ways):
        # The user passes it as an option of the Trainer.
        return False
    return one.workers.state is State.GIVEN and bool(one.ways) and all(way.number == 0 for way in one.ways)


def _has_thought_of_none(view: View, one: LoaderCall) -> bool:
    """Whether a function whose parameter is 0 by default tests it."""
    return any(way.default == "parameter" for way in one.ways) and view.loaders.is_tested(one)


def _asks_for_workers(view: View, one: LoaderCall) -> bool:
    """Whether options are given that need workers: a separate rule reports that they are missing.

    Options that test the number themselves, as in ``persistent_workers=num_workers > 0``, need none.
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
    default = next((way for way in one.ways if way.default), None)
    if default is not None and default.left:
        yield _left_finding(view, one, default.left)
        return
    _, related = view.loaders.where(one, found, "this trains on its batches")
    why = _why(default.default) if default is not None else ""
    yield _at(view, one, _place(one), why, related, confidence=Confidence.LOW if default is not None else Confidence.MEDIUM)


def _findings_of_calls(view: View, one: LoaderCall) -> Iterator[Finding]:
    """Some calls pass workers: those without, or with a default of 0, are reported if a training uses their loader."""
    is_told = False
    for way in one.ways:
        if way.number != 0 or not (way.left or way.giver):
            continue
        found = view.loaders.trains_through(one, way.left or way.giver)
        if found is None:
            continue
        if way.left and way.default == "parameter" and not is_told:
            is_told = True
            yield _left_finding(view, one, way.left)
        elif way.giver and not way.default:
            yield _at(view, one, way.giver, "", view.loaders.where(one, found, "this trains on its batches")[1])


def _left_finding(view: View, one: LoaderCall, left: int) -> Finding:
    """The loader of a function whose number of workers is 0 by default, which a call leaves so."""
    module = view.program.module_of(left)
    place = module.table.sites[left & MASK].place
    related = (Related(view.context.line_span(view.path(module), line_of(place)), "this call leaves the number of workers at its default"),)
    name = one.module.scopes[one.module.table.sites[one.call & MASK].scope].name
    parameter = one.module.plain(one.workers.sources[0] & MASK)[-1]
    where = located(view.path(module), line_of(place), view.path(one.module))
    return _at(view, one, one.call, f" when `{name}()` is called without `{parameter}` ({where})", related)


def _at(
    view: View, one: LoaderCall, place: int, why: str, related: tuple[Related, ...], confidence: Confidence = Confidence.MEDIUM
) -> Finding:
    count = int(str(view.facts(one.module).get(NUM_WORKERS.name, NUM_WORKERS.default)))
    claims = (*_in_force(one.ways), *view.loaders.collation(one))
    fix = workers_fix(view, one, count) if place == one.call else raised_fix(view, place, count)
    return view.finding(RULE, view.call_span(place), {"why": why, "option": "num_workers"}, related, claims=claims, fix=fix, confidence=confidence)


def _place(one: LoaderCall) -> int:
    """The call to change: the one that passes 0 to a wrapper, or the one that creates the loader."""
    givers = {way.giver for way in one.ways if not way.default and way.giver}
    return min(givers) if givers and all(way.giver and not way.default for way in one.ways) else one.call


def _why(default: str) -> str:
    if not default:
        return ""
    return " by default" if default == "parameter" else f" unless {quoted(default)} is given"


def _in_force(ways: tuple[Way, ...]) -> Iterator[Claim]:
    """No launch sets another value."""
    for default in sorted({way.default for way in ways} - {"", "parameter"}):
        yield Claim("default-is-in-force", f"{destination(default)}|0")


def _wants_none(view: View, one: LoaderCall) -> bool:
    """Whether a comment next to or above the 0 says why there are no workers."""
    workers, source = view.loaders.written(one, "num_workers"), view.source(one.module)
    return workers is not None and workers.is_constant and wants_no_workers(remark_at(source, workers.span.start, workers.span.end))
