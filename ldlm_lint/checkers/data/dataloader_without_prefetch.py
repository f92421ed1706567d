"""dataloader-without-prefetch: loaders of every make with a few workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.checkers.data.common import DATALOADER, TUNING, WORKERS_LIMIT, option_for
from ldlm_lint.checkers.data.fixes import fix_with_workers
from ldlm_lint.checkers.data.passes_shown import TRAINS, related_to
from ldlm_lint.concepts.item_work import ItemWork
from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.frameworks.loaders import loader_of
from ldlm_lint.frameworks.sections import Section, in_force, integer, unsafe
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Fix, Frequency, Option, Probe, Rule

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

_FACTOR = Option(
    "prefetch-factor",
    4,
    "prefetch_factor that the fix of dataloader-without-prefetch writes, in batches per worker",
    minimum=1,
)

RULE = Rule(
    code="I7102",
    symbol="dataloader-without-prefetch",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`%(option)s` is left at 2 batches per worker: when some batches load slowly this buffer can run empty "
    "and the GPU waits; try `%(setting)s` (uses more host memory)",
    summary="A training loader with workers that leaves `prefetch_factor` at its default of 2 batches per worker.",
    rationale="Each worker prepares `prefetch_factor` batches ahead (2 by default). If the time to load a batch "
    "varies, for example with files on a network disk, a deeper queue absorbs the slow batches. If loading is slower "
    "than the training step on average, no queue helps, only more or faster workers.",
    cost="Not measured in general, and often nothing: on a synthetic loader factors of 1, 2 and 4 made no difference. "
    "Therefore the finding is at level info and never fails CI.",
    exceptions="Large batches (prefetched batches take host memory or /dev/shm: workers x factor x batch size), or a "
    "loader that already keeps up. Not reported: a loader that may have more than 8 workers, or as many as the node "
    "has CPUs, because its queue is already long; a loader with too many workers (`dataloader-too-many-workers`), by "
    "its code, a launch or a configuration.",
    versions="In torch >= 2.0 the default is `prefetch_factor=None`, which means 2 with workers. A value with "
    "`num_workers=0` raises ValueError, so the fix adds a check unless the number of workers is a literal.",
    verification="Measure the share of step time that is spent waiting for the loader before and after; keep the "
    "default if it does not change.",
    references=(DATALOADER, TUNING),
    reads=("py", "cfg"),
    needs="DataLoader(prefetch_factor=)",
    triggers=(b"DataLoader",),
    setting_triggers=(b"DataLoader",),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it takes more host memory and shared memory (/dev/shm, 64 MB by default in Docker). If shared "
    "memory runs out, the workers end with a bus error.",
    options=(_FACTOR,),
    probe=Probe("loader-wait-share", "single batches came late, and the training waited for them at least 10 % of the time", experiment="dataloader"),
)

_OPTION = "prefetch_factor"
_REASON = "more batches are buffered in host memory and /dev/shm"
_MOST_WITH_DEEPER_QUEUE = 8
"""Workers up to which more prefetched batches are advised: with many, and with the CPU count of a node, they fill /dev/shm."""


def find(code: ProjectCode) -> Iterator[Finding]:
    """All loaders with a few workers that are trained on and leave the depth of their queue at its default."""
    for loader in code[Loaders].shown:
        if loader.call.is_in_handler or not _has_few_workers(code, loader) or not code[Loaders].lacks(loader, _OPTION):
            continue
        found = code[LoaderPasses].trains(loader.call) if not code[Loaders].is_for_evaluation(loader) else None
        if found is None or not code[ItemWork].may_be_there(loader):
            continue
        factor = option_for(code, loader, _FACTOR)
        args = {"option": _OPTION, "setting": f"{_OPTION}={factor}"}
        confidence = Confidence.HIGH if code[Workers].are_known(loader) else Confidence.MEDIUM
        fix = _fix(code, loader, factor)
        yield code.finding(RULE, loader.call.span, args, related_to(loader, found, TRAINS), fix=fix, confidence=confidence)


def _has_few_workers(code: ProjectCode, loader: Loader) -> bool:
    workers = code[Workers]
    limit = option_for(code, loader, WORKERS_LIMIT)
    most = min(_MOST_WITH_DEEPER_QUEUE, limit - 1)
    # The rule about configurations covers users who fill a file with the options.
    if code[Loaders].is_filled_by_files(loader) or not workers.may_be_there(loader):
        return False
    if any(way.number is not None and way.number > most for way in workers.ways(loader)):
        return False
    beyond = any(workers.may_exceed(one, most) for one in workers.given(loader).values)
    return not beyond and not code.trainings.configure_more_workers(code.path(loader.call.module), loader.call.position, most)


def _fix(code: ProjectCode, loader: Loader, factor: int) -> Fix | None:
    """Add the option, if there surely are workers or the call has their number."""
    fix = fix_with_workers(code, loader, _OPTION, (str(factor), f"{factor} if {{}} > 0 else None"), _REASON)
    guarded = fix is not None and "None" in fix.title
    return fix._replace(needs=(tables.interface("DataLoader(prefetch_factor=None)"),)) if fix is not None and guarded else fix


def of_settings(section: Section, options: Mapping[str, object]) -> Iterator[Finding]:
    """A loader that a configuration creates, its options written out in full, which shuffles as a training does."""
    loader, factor = loader_of(section), integer(options, _FACTOR)
    if loader is None or not loader.trains or not section.complete or section.has(loader.prefetch) or section.flag("shuffle") is not True:
        return
    if 0 < (loader.workers or 0) <= min(_MOST_WITH_DEEPER_QUEUE, integer(options, WORKERS_LIMIT) - 1):
        workers = section.settings[loader.names.workers]
        args = {"option": section.written(loader.prefetch), "setting": section.shown(loader.prefetch, factor)}
        fix = unsafe(f"set {loader.prefetch} to {factor}", section.editor.add(workers, loader.prefetch, factor), _REASON)
        yield section.report(RULE, workers, args, fix=fix, claims=(in_force(workers),), confidence=Confidence.MEDIUM)
