"""Fixes of calls that create loaders, by their places in the program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.by_program.repeats import as_operand, can_be_repeated, is_positive
from ldlm_lint.checkers.by_program.written import UNPACKED, Part, parts_of, written_argument
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call
from ldlm_lint.vocabulary.loaders import GRAPHS

if TYPE_CHECKING:
    from ldlm_lint.checkers.by_program.view import View

PERSISTENT_REASON = "workers keep their copies of the dataset and their random streams between epochs"
PREFETCH_REASON = "more batches are buffered in host memory and /dev/shm"
WORKERS_REASON = (
    "each worker holds a copy of the dataset and draws other random numbers, an `IterableDataset` that is not split by worker "
    "is repeated, and a dataset that cannot be pickled or forked raises"
)
PIN_REASON = "pinned memory cannot be swapped out, and a batch that is on the GPU already cannot be pinned"
IS_WORKERS = lazily(r"^(?:.*_)?(?:n|num|n_|num_|number_of_)?(?:data_?|data_?loader_)?workers$|^(?:.*_)?workers_per_\w+$", re.I)
"""Names of settings that say how many workers a loader has."""


def persistent_fix(view: View, loader: Loader) -> Fix | None:
    """Add ``persistent_workers``, if there surely are workers or the call has their number."""
    fix = _keyword_fix(view, loader, "persistent_workers", ("True", "{} > 0"), PERSISTENT_REASON)
    return fix._replace(needs=(tables.interface("DataLoader(persistent_workers=)"),)) if fix else None


def prefetch_fix(view: View, loader: Loader, factor: int) -> Fix | None:
    """Add ``prefetch_factor``, likewise."""
    fix = _keyword_fix(view, loader, "prefetch_factor", (str(factor), f"{factor} if {{}} > 0 else None"), PREFETCH_REASON)
    guarded = fix is not None and "None" in fix.title
    return fix._replace(needs=(tables.interface("DataLoader(prefetch_factor=None)"),)) if fix is not None and guarded else fix


def pin_fix(view: View, loader: Loader) -> Fix | None:
    """Add ``pin_memory=True``."""
    return _added(view, loader, "pin_memory", "True", PIN_REASON)


def workers_fix(view: View, loader: Loader, count: int) -> Fix | None:
    """Add workers if the call has none, or raise a 0 in it."""
    if view[Workers].given(loader).is_absent:
        fix = _added(view, loader, "num_workers", str(count), WORKERS_REASON)
        return fix._replace(group="") if fix is not None else None
    return _raised(written_option(view, loader, "num_workers"), "num_workers", count)


def raised_fix(view: View, call: Call, count: int) -> Fix | None:
    """Raise the 0 workers that a call of the project's function returns."""
    given = [one for one in parts_of(view, call.key) if IS_WORKERS.match(one.name)]
    return _raised(given[0], given[0].name, count) if len(given) == 1 else None


def _raised(value: Part | None, name: str, count: int) -> Fix | None:
    if value is None or not value.is_constant or value.row[1] != 0:
        return None
    return Fix(f"set {name}={count}", (Edit(value.span, str(count)),), Applicability.UNSAFE, WORKERS_REASON)


def switched_on(view: View, loader: Loader, value: Part) -> Fix | None:
    """Write True instead of the call's own False; without workers the option raises, so their number must be written
    out."""
    workers = written_option(view, loader, "num_workers")
    own = value.is_constant and written_option(view, loader, "persistent_workers") == value
    if not own or workers is None or not is_positive(view, loader.call.module, workers):
        return None
    return Fix("set persistent_workers=True", (Edit(value.span, "True"),), Applicability.UNSAFE, PERSISTENT_REASON)


def _keyword_fix(view: View, loader: Loader, name: str, values: tuple[str, str], reason: str) -> Fix | None:
    """Add a keyword: plain if the workers are a positive literal, else guarded by their expression."""
    plain, guarded = values
    workers = written_option(view, loader, "num_workers")
    if workers is None:
        # A number in a dictionary that only some runs pass is not a number of the others, which would raise.
        ways = view[Workers].ways(loader)
        certain = view[Workers].given(loader).is_given and ways and all(way.number and not way.default for way in ways)
        return _added(view, loader, name, plain, reason) if certain else None
    if is_positive(view, loader.call.module, workers):
        return _added(view, loader, name, plain, reason)
    if any(part.name == UNPACKED for part in parts_of(view, loader.call.key)) or not can_be_repeated(view, loader.call.key, workers):
        # Next to a dictionary of options, where the author sets them, a condition would be misplaced.
        return None
    return _added(view, loader, name, guarded.format(as_operand(workers)), reason)


def _added(view: View, loader: Loader, name: str, value: str, reason: str) -> Fix | None:
    if view[Loaders].is_filled_by_files(loader) or not _takes_keywords(loader):
        # A keyword next to options from a user's file could be passed twice.
        return None
    edit = add_keyword(view.source(loader.call.module), loader.call.span, name, value)
    group = f"{view.path(loader.call.module)}:{loader.call.position}:workers"
    return Fix(f"set {name}={value}", (edit,), Applicability.UNSAFE, reason, group=group) if edit else None


def _takes_keywords(loader: Loader) -> bool:
    """Whether the loader's class forwards unknown keywords, without a partial in between."""
    if loader.interface in GRAPHS and "Sampler" in loader.interface:
        return False
    init = next(iter(loader.owner.methods("__init__")), None) if loader.owner is not None else None
    return init is None or init.takes_any_keyword


def written_option(view: View, loader: Loader, name: str) -> Part | None:
    """What the call that makes a loader writes for an option."""
    return written_argument(view, loader.call.key, name, view[Loaders].place_of(loader, name))
