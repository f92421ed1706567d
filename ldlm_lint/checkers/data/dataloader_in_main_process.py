"""dataloader-in-main-process: loaders of every make, and defaults of 0 workers that another file declares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.checkers.by_program.written import Part, parts_of
from ldlm_lint.checkers.data.common import DATALOADER, MULTIPROCESS, TUNING, option_for
from ldlm_lint.checkers.data.fixes import fix_with_option, written_option
from ldlm_lint.checkers.data.passes_shown import TRAINS, related_to
from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers
from ldlm_lint.concepts.item_work import ItemWork
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import WORKERS_OF_TRAINER, Way, Workers
from ldlm_lint.frameworks.loaders import another_number, is_meant, loader_of, needing_workers, own_workers
from ldlm_lint.frameworks.sections import Section, in_force, integer, unsafe
from ldlm_lint.model import (
    Applicability,
    Claim,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Option,
    Probe,
    Related,
    Rule,
)
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.queries import destination
from ldlm_lint.vocabulary.purposes import says_evaluation, wants_no_workers
from ldlm_lint.wording import located, quoted, remark_at

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View

NUM_WORKERS = Option(
    "num-workers",
    4,
    "num_workers that the fix of dataloader-in-main-process writes, in workers per rank",
    minimum=1,
    below="workers-limit",
)

RULE = Rule(
    code="W7103",
    symbol="dataloader-in-main-process",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="this training DataLoader has no worker processes%(why)s: the training process loads and prepares every "
    "batch itself while the GPU waits; set `%(option)s`",
    summary="A training loader with `num_workers=0` or no `num_workers`, over a dataset that does work for each item.",
    rationale="With `num_workers=0`, torch's default, `next(loader)` reads, decodes, tokenizes and collates a batch "
    "in the training process, between two steps. Nothing overlaps: each step takes the loading time plus the "
    "computing time.",
    cost="The time to load a batch, in every step. Not measured here: it is nothing for tensors in memory and most of "
    "the step for images that are decoded. Measure it before and after.",
    exceptions="A dataset in memory (tensors, tokens, a memory map): workers would only add copies between processes. "
    "A dataset on the GPU, which workers cannot use; a stream that each worker would repeat; evaluation, tests, toy "
    "programs.",
    versions="All versions. On Windows and macOS workers are spawned: the dataset and `collate_fn` must be picklable, "
    "and the script needs `if __name__ == '__main__':`.",
    verification="Measure the share of step time that is spent waiting for `next(loader)`; with workers it should be "
    "near zero.",
    references=(DATALOADER, MULTIPROCESS, TUNING),
    reads=("py", "sh", "cfg"),
    triggers=(b"DataLoader", b"workers"),
    setting_triggers=(b"workers",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: workers take memory, get copies of the dataset, draw other random numbers than the main "
    "process would, and repeat the items of an iterable dataset that does not split them. They fail with objects that "
    "cannot be forked or pickled (open files, CUDA tensors, lambdas if processes are spawned).",
    options=(NUM_WORKERS,),
    probe=Probe("loader-wait-share", "the step waits for the loader", experiment="dataloader"),
)

_REASON = (
    "each worker holds a copy of the dataset and draws other random numbers, an `IterableDataset` that is not split by worker "
    "is repeated, and a dataset that cannot be pickled or forked raises"
)
_MORE = "each worker takes memory, holds a copy of the dataset and draws other random numbers"
_IS_WORKERS = re.compile(r"^(?:.*_)?(?:n|num|n_|num_|number_of_)?(?:data_?|data_?loader_)?workers$|^(?:.*_)?workers_per_\w+$", re.I)


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
    count = option_for(code, loader, NUM_WORKERS)
    claims = tuple(_in_force(code[Workers].ways(loader)))
    fix = _fix(code, loader, count) if call == loader.call else _fix_of_giver(code, call, count)
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


def _fix(code: View, loader: Loader, count: int) -> Fix | None:
    """Add workers if the call has none, or raise a 0 in it."""
    if code[Workers].given(loader).is_absent:
        fix = fix_with_option(code, loader, "num_workers", str(count), _REASON)
        return fix._replace(group="") if fix is not None else None
    return _raised(written_option(code, loader, "num_workers"), "num_workers", count)


def _fix_of_giver(code: View, call: Call, count: int) -> Fix | None:
    """Raise the 0 workers that a call of the project's function passes."""
    given = [one for one in parts_of(code, call.key) if _IS_WORKERS.match(one.name)]
    return _raised(given[0], given[0].name, count) if len(given) == 1 else None


def _raised(value: Part | None, name: str, count: int) -> Fix | None:
    if value is None or not value.is_constant or value.text != "0":
        return None
    return Fix(f"set {name}={count}", (Edit(value.span, str(count)),), Applicability.UNSAFE, _REASON)


def of_settings(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """0 workers of a Trainer, of a loader that a configuration creates, and in the project's own configuration."""
    count, loader = integer(options, NUM_WORKERS), loader_of(section)
    for path, setting in own_workers(section):
        if section.number(path) == 0 and not is_meant(section, path):
            wrong = [section.settings[one].name for one in needing_workers(section, path)]
            args = {"option": setting.name, "why": f" ({quoted(setting.name)} is 0 here)"}
            claim, fix = Claim("configured-value-reaches-call", " ".join(["no-workers", *wrong])), another_number(section, setting, count)
            yield section.report(RULE, setting, args, fix=fix, claims=(claim,), confidence=Confidence.MEDIUM)
    if loader is not None and loader.workers == 0 and loader.trains:
        setting = section.settings[loader.names.workers]
        args = {"why": f" ({quoted(setting.name)} is 0)", "option": section.written(loader.names.workers)}
        fix = unsafe(f"set {setting.name} to {count}", section.editor.replace(setting, count), _MORE)
        yield section.report(RULE, setting, args, fix=fix, claims=(in_force(setting),))
