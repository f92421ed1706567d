"""Fixes of calls that create loaders, by their places in the program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.repeats import as_operand, can_be_repeated, is_positive
from ldlm_lint.checkers.by_program.written import UNPACKED, Part, parts_of
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import State
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


def persistent_fix(view: View, one: LoaderCall) -> Fix | None:
    """Add ``persistent_workers``, if there surely are workers or the call has their number."""
    fix = _keyword_fix(view, one, "persistent_workers", ("True", "{} > 0"), PERSISTENT_REASON)
    return fix._replace(needs=(tables.interface("DataLoader(persistent_workers=)"),)) if fix else None


def prefetch_fix(view: View, one: LoaderCall, factor: int) -> Fix | None:
    """Add ``prefetch_factor``, likewise."""
    fix = _keyword_fix(view, one, "prefetch_factor", (str(factor), f"{factor} if {{}} > 0 else None"), PREFETCH_REASON)
    guarded = fix is not None and "None" in fix.title
    return fix._replace(needs=(tables.interface("DataLoader(prefetch_factor=None)"),)) if fix is not None and guarded else fix


def pin_fix(view: View, one: LoaderCall) -> Fix | None:
    """Add ``pin_memory=True``."""
    return _added(view, one, "pin_memory", "True", PIN_REASON)


def workers_fix(view: View, one: LoaderCall, count: int) -> Fix | None:
    """Add workers if the call has none, or raise a 0 in it."""
    if one.workers.state is State.ABSENT:
        fix = _added(view, one, "num_workers", str(count), WORKERS_REASON)
        return fix._replace(group="") if fix is not None else None
    return _raised(view.loaders.written(one, "num_workers"), "num_workers", count)


def raised_fix(view: View, call: int, count: int) -> Fix | None:
    """Raise the 0 workers that a call of the project's function returns."""
    given = [one for one in parts_of(view, call) if IS_WORKERS.match(one.name)]
    return _raised(given[0], given[0].name, count) if len(given) == 1 else None


def _raised(value: Part | None, name: str, count: int) -> Fix | None:
    if value is None or not value.is_constant or value.row[1] != 0:
        return None
    return Fix(f"set {name}={count}", (Edit(value.span, str(count)),), Applicability.UNSAFE, WORKERS_REASON)


def switched_on(view: View, one: LoaderCall, value: Part) -> Fix | None:
    """Write True instead of the call's own False; without workers the option raises, so their number must be written
    out."""
    workers = view.loaders.written(one, "num_workers")
    own = value.is_constant and view.loaders.written(one, "persistent_workers") == value
    if not own or workers is None or not is_positive(view, one.module, workers):
        return None
    return Fix("set persistent_workers=True", (Edit(value.span, "True"),), Applicability.UNSAFE, PERSISTENT_REASON)


def _keyword_fix(view: View, one: LoaderCall, name: str, values: tuple[str, str], reason: str) -> Fix | None:
    """Add a keyword: plain if the workers are a positive literal, else guarded by their expression."""
    plain, guarded = values
    workers = view.loaders.written(one, "num_workers")
    if workers is None:
        # A number in a dictionary that only some runs pass is not a number of the others, which would raise.
        certain = one.workers.state is State.GIVEN and one.ways and all(way.number and not way.default for way in one.ways)
        return _added(view, one, name, plain, reason) if certain else None
    if is_positive(view, one.module, workers):
        return _added(view, one, name, plain, reason)
    if any(part.name == UNPACKED for part in parts_of(view, one.call)) or not can_be_repeated(view, one.call, workers):
        # Next to a dictionary of options, where the author sets them, a condition would be misplaced.
        return None
    return _added(view, one, name, guarded.format(as_operand(workers)), reason)


def _added(view: View, one: LoaderCall, name: str, value: str, reason: str) -> Fix | None:
    if one.from_file or not _takes_keywords(view, one):
        # A keyword next to options from a user's file could be passed twice.
        return None
    edit = add_keyword(view.source(one.module), view.call_span(one.call), name, value)
    group = f"{view.path(one.module)}:{one.position}:workers"
    return Fix(f"set {name}={value}", (edit,), Applicability.UNSAFE, reason, group=group) if edit else None


def _takes_keywords(view: View, one: LoaderCall) -> bool:
    """Whether the loader's class forwards unknown keywords, without a partial in between."""
    if one.loader.name in GRAPHS and "Sampler" in one.loader.name:
        return False
    program = view.program
    init = next(iter(program.methods(one.loader.owner, "__init__")), 0) if one.loader.owner else 0
    return not init or bool(program.module_of(init).scopes[init & MASK].kwarg)
