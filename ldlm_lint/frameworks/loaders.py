"""Findings about the settings of a DataLoader created by a framework: workers, and the options that need them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ldlm_lint.frameworks.sections import Section, in_force, integer, unsafe, vocabulary
from ldlm_lint.model import Claim, Confidence, Finding
from ldlm_lint.rules.data import (
    DATALOADER_TOO_MANY_WORKERS,
    IN_MAIN_PROCESS,
    MOST_WITH_DEEPER_QUEUE,
    NUM_WORKERS,
    OPTIONS_WITHOUT_WORKERS,
    PERSISTENT_WORKERS,
    PREFETCH,
    PREFETCH_FACTOR,
    WORKERS_LIMIT,
    fewer_workers,
)
from ldlm_lint.wording import enumerated, listed, quoted

_FEWER = "fewer workers can be too few for a slow dataset"
_MORE = "each worker takes memory, holds a copy of the dataset and draws other random numbers"
_KEPT = "workers keep their copies of the dataset and their random streams between epochs"
_KEPT_SINCE = f"{_KEPT}, and transformers before 4.36 does not know the setting"
_QUEUED = "more batches are buffered in host memory and /dev/shm"
_GIVEN_LATER = "a launch can pass workers on its command line"


class Names(NamedTuple):
    """A framework's names of its loader options, and its error for ``prefetch_factor`` without workers."""

    workers: str
    persistent: str
    prefetch: str
    error_of_prefetch: str = "ValueError"


def loader_findings(
    section: Section, names: Names, options: Mapping[str, object], *, epochs: float | None = None, trains: bool = True
) -> Iterator[Finding]:
    """The findings about one loader; ``epochs`` of the run, None if unknown.

    ``trains``: its batches feed a training; a loader of an evaluation may have no workers.
    """
    workers = section.number(names.workers)
    if workers is not None and not section.from_command:
        # Options for any program are already checked by the launch rules.
        yield from _too_many(section, names, workers, integer(options, WORKERS_LIMIT))
    if workers == 0 and trains:
        yield from _no_workers(section, names, integer(options, NUM_WORKERS))
    yield from _useless_options(section, names, workers)
    if workers is not None and workers > 0:
        yield from _started_anew(section, names, epochs)
        most = min(MOST_WITH_DEEPER_QUEUE, integer(options, WORKERS_LIMIT) - 1)
        yield from _short_queue(section, names, integer(options, PREFETCH_FACTOR), most, trains)


def _too_many(section: Section, names: Names, workers: float, limit: int) -> Iterator[Finding]:
    if workers < limit:
        return
    setting, fewer = section.settings[names.workers], limit // 2
    yield section.report(
        DATALOADER_TOO_MANY_WORKERS,
        setting,
        {"workers": int(workers), "advice": fewer_workers(limit)},
        fix=unsafe(f"set {setting.name} to {fewer}", section.editor.replace(setting, fewer), _FEWER) if fewer else None,
        claims=(in_force(setting),),
    )


def _no_workers(section: Section, names: Names, workers: int) -> Iterator[Finding]:
    setting = section.settings[names.workers]
    yield section.report(
        IN_MAIN_PROCESS,
        setting,
        {"why": f" ({quoted(setting.name)} is 0)", "option": section.written(names.workers)},
        fix=unsafe(f"set {setting.name} to {workers}", section.editor.replace(setting, workers), _MORE),
        claims=(in_force(setting),),
    )


def _useless_options(section: Section, names: Names, workers: float | None) -> Iterator[Finding]:
    """Options that raise without workers; without a setting the framework has no workers."""
    absent = names.workers not in section.settings and section.complete
    if workers != 0 and not absent:
        return
    given = [name for name in (names.prefetch, names.persistent) if section.has(name) and _speaks_to_workers(section, name)]
    if not given:
        return
    first = section.settings[given[0]]
    raises = {name: names.error_of_prefetch if name == names.prefetch else "ValueError" for name in given}
    edits = [section.editor.remove(section.settings[name]) for name in given]
    fix = unsafe(
        f"remove {enumerated([section.written(name) for name in given])}",
        tuple(edit for one in edits for edit in one or ()) if all(edits) else None,
        _GIVEN_LATER,
    )
    claims = [in_force(first)]
    if absent:
        claims.append(Claim("trainer-setting-is-unset", section.written(names.workers)))
    yield section.report(
        OPTIONS_WITHOUT_WORKERS,
        first,
        {"options": listed(section.written(name) for name in given), "error": raises[given[0]], "option": section.written(names.workers)},
        fix=fix,
        claims=claims,
        confidence=Confidence.MEDIUM if absent else None,
    )


def _speaks_to_workers(section: Section, name: str) -> bool:
    return section.flag(name) is True or (section.number(name) or 0) > 0


def _started_anew(section: Section, names: Names, epochs: float | None) -> Iterator[Finding]:
    """Options switched off manually, or left off if the section shows repeated iteration of the loader."""
    if names.persistent not in section.settings:
        yield from _left_off(section, names, epochs)
        return
    if section.flag(names.persistent) is not False or (epochs is not None and epochs <= 1):
        return
    setting = section.settings[names.persistent]
    where = f"{epochs:g} epochs" if epochs is not None else "once per epoch"
    yield section.report(
        PERSISTENT_WORKERS,
        setting,
        {"where": where, "how": "off", **_named(section, names)},
        fix=unsafe(f"set {setting.name} to {section.spelled(True)}", section.editor.replace(setting, True), _KEPT),
        claims=(in_force(setting), Claim("no-dataset-takes-epochs")),
        confidence=Confidence.MEDIUM,
    ).lowered("switched off on purpose")


def _left_off(section: Section, names: Names, epochs: float | None) -> Iterator[Finding]:
    """The framework's default applies if the same place sets workers and more than one epoch, and no other place
    can.
    """
    if epochs is None or epochs <= 1 or not section.complete or vocabulary(section.framework).defaults.get(names.persistent) is not False:
        return
    workers = section.settings[names.workers]
    yield section.report(
        PERSISTENT_WORKERS,
        workers,
        {"where": f"{epochs:g} epochs", "how": "not set", **_named(section, names)},
        fix=unsafe(f"set {section.written(names.persistent)} to {section.spelled(True)}", section.editor.add(workers, names.persistent, True), _KEPT_SINCE),
        claims=(in_force(workers), Claim("trainer-setting-is-unset", section.written(names.persistent)), Claim("no-dataset-takes-epochs")),
        confidence=Confidence.MEDIUM,
    )


def _named(section: Section, names: Names) -> dict[str, object]:
    """The option that keeps workers, by the framework's name of it."""
    return {"option": section.written(names.persistent), "setting": section.shown(names.persistent, True)}


def _short_queue(section: Section, names: Names, factor: int, most: int, trains: bool) -> Iterator[Finding]:
    """Only where the options are the loader's own, written out in full, and it shuffles as a training does."""
    if (section.number(names.workers) or 0) > most or not (trains and section.complete) or section.has(names.prefetch) or section.flag("shuffle") is not True:
        return
    workers = section.settings[names.workers]
    yield section.report(
        PREFETCH,
        workers,
        {"option": section.written(names.prefetch), "setting": section.shown(names.prefetch, factor)},
        fix=unsafe(f"set {names.prefetch} to {factor}", section.editor.add(workers, names.prefetch, factor), _QUEUED),
        claims=(in_force(workers),),
        confidence=Confidence.MEDIUM,
    )
