"""dataloader-in-main-process: loaders of every make, and defaults of 0 workers that another file declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint.checkers.data.common import DATALOADER, MULTIPROCESS, TUNING, option_for
from ldlm_lint.checkers.data.fixes import fix_of_none, written_option
from ldlm_lint.checkers.data.passes_shown import TRAINS, related_to
from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers
from ldlm_lint.concepts.item_work import ItemWork
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import WORKERS_OF_TRAINER, Workers
from ldlm_lint.frameworks.loaders import another_number, is_meant, loader_of, needing_workers, own_workers
from ldlm_lint.frameworks.sections import Section, in_force, integer, unsafe
from ldlm_lint.model import (
    Applicability,
    Claim,
    Confidence,
    Consequence,
    Finding,
    Frequency,
    Option,
    Probe,
    Related,
    Rule,
)
from ldlm_lint.program.handles import Call
from ldlm_lint.program.queries import destination
from ldlm_lint.vocabulary.purposes import says_evaluation, wants_no_workers
from ldlm_lint.wording import located, quoted, remark_at

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

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

_SHOWN = 3
"""Launches that are named for a default."""
_MORE = "each worker takes memory, holds a copy of the dataset and draws other random numbers"


def find(code: ProjectCode) -> Iterator[Finding]:
    """All loaders that are trained on and have no workers: on any way that the program shows, or on the way from one call."""
    workers = code[Workers]
    for loader in code[Loaders].shown:
        given, ways = workers.given(loader), workers.ways(loader)
        if not (given.is_absent or any(way.number == 0 for way in ways)):
            continue
        if workers.are_asked_for(loader) or workers.are_left_to_callers(loader) or _wants_none(code, loader):
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


def _finding(code: ProjectCode, loader: Loader) -> Iterator[Finding]:
    found, ways = code[LoaderPasses].trains(loader.call), code[Workers].ways(loader)
    if found is None:
        return
    default = next((way for way in ways if way.default), None)
    if default is not None and default.left is not None:
        yield from _at_left(code, loader, default.left)
        return
    why = _why(default.default) if default is not None else ""
    confidence = Confidence.LOW if default is not None else Confidence.MEDIUM
    yield from _at(code, loader, code[Workers].decided_at(loader), why, related_to(loader, found, TRAINS), confidence)


def _findings_of_calls(code: ProjectCode, loader: Loader) -> Iterator[Finding]:
    """Some calls pass workers: those without, or with a default of 0, are reported if a training uses their loader."""
    is_told = False
    for way in code[Workers].ways(loader):
        giver = way.left or way.giver
        if way.number != 0 or giver is None or says_evaluation(sorted(giver.names), "", ()):
            continue
        found = code[LoaderPasses].trains_through(loader.call, giver)
        if found is not None and way.left is not None and way.default == "parameter" and not is_told:
            is_told = True
            yield from _at_left(code, loader, way.left)
        elif found is not None and way.giver is not None and not way.default:
            yield from _at(code, loader, way.giver, "", related_to(loader, found, TRAINS))


def _at_left(code: ProjectCode, loader: Loader, left: Call) -> Iterator[Finding]:
    """The loader of a function whose number of workers is 0 by default, which a call leaves so."""
    related = (Related(left.spot.line_span, "this call leaves the number of workers at its default"),)
    parameter = code[Workers].given(loader).values[0].plain.name
    where = located(code.path(left.module), left.line, code.path(loader.call.module))
    yield from _at(code, loader, loader.call, f" when `{loader.call.function.name}()` is called without `{parameter}` ({where})", related)


def _at(
    code: ProjectCode, loader: Loader, call: Call, why: str, related: tuple[Related, ...], confidence: Confidence = Confidence.MEDIUM
) -> Iterator[Finding]:
    defaults = sorted({way.default for way in code[Workers].ways(loader)} - {"", "parameter"})
    launches = [code.trainings.launches_keeping(code.path(call.module), destination(one), "0") for one in defaults]
    if None not in launches:
        kept = [Related(span, "this launch passes 0 too") for spans in launches for span in (spans or [])[:_SHOWN]]
        fix = fix_of_none(code, loader, call, option_for(code, loader, NUM_WORKERS))
        yield code.finding(RULE, call.span, {"why": why, "option": "num_workers"}, (*related, *kept), fix=fix, confidence=confidence)


def _why(default: str) -> str:
    if not default:
        return ""
    return " by default" if default == "parameter" else f" unless {quoted(default)} is given"


def _wants_none(code: ProjectCode, loader: Loader) -> bool:
    """Whether a comment next to or above the 0 says why there are no workers."""
    workers, source = written_option(code, loader, "num_workers"), code.source(loader.call.module)
    return workers is not None and workers.is_constant and wants_no_workers(remark_at(source, workers.span.start, workers.span.end))


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
