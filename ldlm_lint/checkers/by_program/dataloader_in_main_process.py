"""`dataloader-in-main-process` for loaders of every make, and for defaults of 0 workers that another file declares."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_fixes import raised_fix, workers_fix, written_option
from ldlm_lint.checkers.by_program.loader_places import TRAINS, related_to
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers
from ldlm_lint.concepts.item_work import ItemWork
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import WORKERS_OF_TRAINER, Way, Workers
from ldlm_lint.model import Claim, Confidence, Finding, Related
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.queries import destination
from ldlm_lint.rules.data import IN_MAIN_PROCESS, NUM_WORKERS
from ldlm_lint.rules.roles import remark_at
from ldlm_lint.vocabulary.purposes import says_evaluation, wants_no_workers
from ldlm_lint.wording import located, quoted

RULE = IN_MAIN_PROCESS
WORDS: tuple[bytes, ...] = (b"Loader",)


def find(code: View) -> Iterator[Finding]:
    """All loaders that are trained on and have no workers: on any way that the program shows, or on the way from one call."""
    workers = code[Workers]
    for loader in code[Loaders].shown:
        given, ways = workers.given(loader), workers.ways(loader)
        if not (given.is_absent or any(way.number == 0 for way in ways)):
            continue
        if _asks_for_workers(code, loader) or _wants_none(code, loader) or _has_thought_of_none(code, loader):
            continue
        if any(way.setting and code[ConfiguredNumbers].are_given(way.setting) for way in ways) or code[ItemWork].is_collated_on_device(loader):
            # Another rule reports the numbers in configurations.
            continue
        if not code[ItemWork].may_be_there(loader) or code[Loaders].is_for_evaluation(loader):
            continue
        if given.is_absent or (given.is_given and all(way.number == 0 and way.default != WORKERS_OF_TRAINER for way in ways)):
            yield from _finding(code, loader)
        elif given.is_given and not all(way.number == 0 for way in ways):
            yield from _findings_of_calls(code, loader)


def _has_thought_of_none(code: View, loader: Loader) -> bool:
    """Whether a function whose parameter is 0 by default tests it."""
    return any(way.default == "parameter" for way in code[Workers].ways(loader)) and code[Workers].are_tested(loader)


def _asks_for_workers(code: View, loader: Loader) -> bool:
    """Whether options are given that need workers: a separate rule reports that they are missing.

    Options that test the number themselves, as in ``persistent_workers=num_workers > 0``, need none.
    """
    given = [code[Loaders].option(loader, name) for name in ("prefetch_factor", "persistent_workers")]
    return any(one.is_open for one in given) or any(_asks(code, loader, value) for argument in given for value in argument.values)


def _asks(code: View, loader: Loader, option: Expr) -> bool:
    return not option.is_falsy and not code[Workers].decide(loader, option)


def _finding(code: View, loader: Loader) -> Iterator[Finding]:
    found, ways = code[LoaderPasses].trains(loader.call), code[Workers].ways(loader)
    if found is None:
        return
    default = next((way for way in ways if way.default), None)
    if default is not None and default.left is not None:
        yield _left_finding(code, loader, default.left)
        return
    why = _why(default.default) if default is not None else ""
    confidence = Confidence.LOW if default is not None else Confidence.MEDIUM
    yield _at(code, loader, _place(loader, ways), why, related_to(loader, found, TRAINS), confidence)


def _findings_of_calls(code: View, loader: Loader) -> Iterator[Finding]:
    """Some calls pass workers: those without, or with a default of 0, are reported if a training uses their loader."""
    is_told = False
    for way in code[Workers].ways(loader):
        giver = way.left or way.giver
        if way.number != 0 or giver is None or says_evaluation(sorted(giver.names), "", ()):
            continue
        found = code[LoaderPasses].trains_through(loader.call, giver)
        if found is not None and way.left is not None and way.default == "parameter" and not is_told:
            is_told = True
            yield _left_finding(code, loader, way.left)
        elif found is not None and way.giver is not None and not way.default:
            yield _at(code, loader, way.giver, "", related_to(loader, found, TRAINS))


def _left_finding(code: View, loader: Loader, left: Call) -> Finding:
    """The loader of a function whose number of workers is 0 by default, which a call leaves so."""
    related = (Related(left.spot.line_span, "this call leaves the number of workers at its default"),)
    parameter = code[Workers].given(loader).values[0].plain.name
    where = located(code.path(left.module), left.line, code.path(loader.call.module))
    return _at(code, loader, loader.call, f" when `{loader.call.function.name}()` is called without `{parameter}` ({where})", related)


def _at(
    code: View, loader: Loader, call: Call, why: str, related: tuple[Related, ...], confidence: Confidence = Confidence.MEDIUM
) -> Finding:
    count = int(str(code.facts(loader.call.module).get(NUM_WORKERS.name, NUM_WORKERS.default)))
    claims = tuple(_in_force(code[Workers].ways(loader)))
    fix = workers_fix(code, loader, count) if call == loader.call else raised_fix(code, call, count)
    return code.finding(RULE, call.span, {"why": why, "option": "num_workers"}, related, claims=claims, fix=fix, confidence=confidence)


def _place(loader: Loader, ways: tuple[Way, ...]) -> Call:
    """The call to change: the one that passes 0 to a wrapper, or the one that creates the loader."""
    givers = [way.giver for way in ways if way.giver is not None and not way.default]
    return min(givers, key=lambda one: (one.module.path, one.spot.place)) if givers and len(givers) == len(ways) else loader.call


def _why(default: str) -> str:
    if not default:
        return ""
    return " by default" if default == "parameter" else f" unless {quoted(default)} is given"


def _in_force(ways: tuple[Way, ...]) -> Iterator[Claim]:
    """No launch sets another value."""
    for default in sorted({way.default for way in ways} - {"", "parameter"}):
        yield Claim("default-is-in-force", f"{destination(default)}|0")


def _wants_none(code: View, loader: Loader) -> bool:
    """Whether a comment next to or above the 0 says why there are no workers."""
    workers, source = written_option(code, loader, "num_workers"), code.source(loader.call.module)
    return workers is not None and workers.is_constant and wants_no_workers(remark_at(source, workers.span.start, workers.span.end))
