"""Fixes of calls that make loaders: options that are added to them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ldlm_lint.checkers.data.repeats import as_operand, can_be_repeated, is_positive
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.edits.written_parts import UNPACKED, Part, parts_of, written_argument
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.program.handles import Call
from ldlm_lint.vocabulary.loaders import GRAPHS

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

_WORKERS_REASON = (
    "each worker holds a copy of the dataset and draws other random numbers, an `IterableDataset` that is not split by worker "
    "is repeated, and a dataset that cannot be pickled or forked raises"
)
_IS_WORKERS = re.compile(r"^(?:.*_)?(?:n|num|n_|num_|number_of_)?(?:data_?|data_?loader_)?workers$|^(?:.*_)?workers_per_\w+$", re.I)
"""Names of settings that say how many workers a loader has."""


def fix_with_workers(view: ProjectCode, loader: Loader, name: str, values: tuple[str, str], reason: str) -> Fix | None:
    """Add an option that needs workers: plain if they are a positive literal, else guarded by their number."""
    plain, guarded = values
    workers = written_option(view, loader, "num_workers")
    if workers is None:
        # A number in a dictionary that only some runs pass is not a number of the others, which would raise.
        ways = view[Workers].ways(loader)
        certain = view[Workers].given(loader).is_given and ways and all(way.number and not way.default for way in ways)
        return fix_with_option(view, loader, name, plain, reason) if certain else None
    if are_positive(loader, workers):
        return fix_with_option(view, loader, name, plain, reason)
    if any(part.name == UNPACKED for part in parts_of(loader.call)) or not can_be_repeated(loader.call, workers):
        # Next to a dictionary of options, where the author sets them, a condition would be misplaced.
        return None
    return fix_with_option(view, loader, name, guarded.format(as_operand(workers)), reason)


def fix_with_option(view: ProjectCode, loader: Loader, name: str, value: str, reason: str) -> Fix | None:
    """Add an option to the call that makes a loader."""
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


def fix_of_none(view: ProjectCode, loader: Loader, call: Call, count: int) -> Fix | None:
    """Add workers to the call that makes a loader, or raise the 0 that it or another ``call`` passes."""
    if call == loader.call and view[Workers].given(loader).is_absent:
        fix = fix_with_option(view, loader, "num_workers", str(count), _WORKERS_REASON)
        return fix._replace(group="") if fix is not None else None
    own = written_option(view, loader, "num_workers")
    given = [one for one in parts_of(call) if _IS_WORKERS.match(one.name)] if call != loader.call else [own] if own is not None else []
    if len(given) != 1 or not given[0].is_constant or given[0].text != "0":
        return None
    name = given[0].name if call != loader.call else "num_workers"
    return Fix(f"set {name}={count}", (Edit(given[0].span, str(count)),), Applicability.UNSAFE, _WORKERS_REASON)


def are_positive(loader: Loader, workers: Part) -> bool:
    """Whether a number of workers is above 0 by its own text in the call that makes a loader."""
    return not workers.is_name and any(is_positive(one) for one in loader.call.arguments if one.row is workers.row)


def written_option(view: ProjectCode, loader: Loader, name: str) -> Part | None:
    """What the call that makes a loader writes for an option."""
    return written_argument(loader.call, name, view[Loaders].place_of(loader, name))


__all__ = ["are_positive", "fix_of_none", "fix_with_option", "fix_with_workers", "written_option"]
