"""The options of loaders that need workers: which are passed, the error of torch without workers, and the fix."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.checkers.data.fixes import written_option
from ldlm_lint.checkers.data.repeats import as_operand, can_be_repeated
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.edits.written_parts import parts_of, without_keywords
from ldlm_lint.model import Applicability, Edit, Fix, Interface
from ldlm_lint.wording import enumerated

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

WITHOUT_WORKERS = {"prefetch_factor": "None", "persistent_workers": "False", "multiprocessing_context": "None", "timeout": "0"}
"""What each option is where there are no workers; the first three are checked by the constructor, the last when it is iterated."""


def worker_options_of(view: ProjectCode, loader: Loader) -> list[str]:
    """The options of a loader that certainly need workers."""
    return [name for name in WITHOUT_WORKERS if _needs(view, loader, name)]


def _needs(view: ProjectCode, loader: Loader, name: str) -> bool:
    given = view[Loaders].option(loader, name)
    if not given.is_given or not given.values:
        return False
    meaning = given.may_be()
    if name == "prefetch_factor" and 2 in meaning.constants and _accepts_two(view, loader):
        return False
    return meaning.is_complete and len(meaning.constants) == len(meaning.value) and _need_workers(name, meaning.constants)


def _accepts_two(view: ProjectCode, loader: Loader) -> bool:
    """Whether no torch of a loader rejects a factor of 2 without workers: it was the default before None was."""
    newest = view.torch_of(loader.call.module).newest
    return newest is not None and newest < tables.interface("DataLoader(prefetch_factor=None)").since


def _need_workers(name: str, values: tuple[object, ...]) -> bool:
    """Whether every possible value of an option needs workers."""
    if name == "persistent_workers":
        return all(value is True for value in values)
    if name == "multiprocessing_context":
        return all(isinstance(value, str) for value in values)
    least = 1 if name == "timeout" else 0
    return all(isinstance(value, (int, float)) and not isinstance(value, bool) and value >= least for value in values)


def error_of(options: Collection[str]) -> str:
    """The error of torch for the options without workers, and when it is raised."""
    return "AssertionError when it is iterated" if set(options) == {"timeout"} else "ValueError"


def removal_fix(view: ProjectCode, loader: Loader, options: Collection[str]) -> Fix | None:
    """Drop options that need workers; if a variable has the 0, the user may change it again."""
    workers = written_option(view, loader, "num_workers")
    if workers is not None and not workers.is_constant:
        return guard_fix(view, loader, options)
    edits = without_keywords(loader.call, options)
    return _mended(view, loader, f"drop {enumerated(list(options))}", edits) if edits else None


def guard_fix(view: ProjectCode, loader: Loader, options: Collection[str]) -> Fix | None:
    """Set the options only where there are workers; None if one of them is not in the call as a constant."""
    workers = written_option(view, loader, "num_workers")
    if workers is None or not can_be_repeated(loader.call, workers):
        return None
    count, edits = as_operand(workers), []
    for part in parts_of(loader.call):
        if part.name in options and part.is_constant:
            plain = part.name == "persistent_workers"
            text = f"{count} > 0" if plain else f"{part.text} if {count} > 0 else {WITHOUT_WORKERS[part.name]}"
            edits.append(Edit(part.span, text))
    if len(edits) != len(options):
        return None
    # Before, a factor of 2 was passed without workers, where None raises.
    needs = (tables.interface("DataLoader(prefetch_factor=None)"),) if "prefetch_factor" in options else ()
    return _mended(view, loader, f"set {enumerated(list(options))} only with workers", tuple(edits), needs)


def _mended(view: ProjectCode, loader: Loader, title: str, edits: tuple[Edit, ...], needs: tuple[Interface, ...] = ()) -> Fix:
    """A fix of a call that raises: safe, unless the function around it expects that."""
    caught = loader.call.is_caught
    reason = "code around the call catches the error and will no longer run its handler" if caught else ""
    return Fix(title, edits, Applicability.UNSAFE if caught else Applicability.SAFE, reason, needs=needs)
