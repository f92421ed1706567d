"""`dataloader-without-persistent-workers` for loaders of every make: subclasses, other packages' loaders, options by dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_datasets import is_changed_between_passes
from ldlm_lint.checkers.by_program.loader_fixes import persistent_fix
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.model import Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.rules.data import PERSISTENT_WORKERS

RULE = PERSISTENT_WORKERS
WORDS: tuple[bytes, ...] = (b"Loader",)
_ENDLESS = lazily(r"infinite|endless|forever|repeat|cycle", re.I)
_CACHES = frozenset({"cached_property", "lru_cache", "cache"})


def find(view: View) -> Iterator[Finding]:
    """All loaders with workers that a loop goes through again and again, and that start them anew each time."""
    for one in view.loaders.all:
        if one.has_workers and view.loaders.is_absent(one, "persistent_workers") and not _has_one_pass(view, one):
            yield from _finding(view, one)


def _finding(view: View, one: LoaderCall) -> Iterator[Finding]:
    note = "this iterates the DataLoader again and again"
    found = view.loaders.settled(one, view.loaders.repeated(one), note, "loader-is-reiterated")
    if found is None or is_changed_between_passes(view, one):
        return
    args = {"where": found.where, "how": "not set"}
    fix = persistent_fix(view, one)
    yield view.finding(
        RULE, view.call_span(one.call), args, found.related, claims=found.claims, fix=fix, confidence=one.confidence
    )


def _has_one_pass(view: View, one: LoaderCall) -> bool:
    """Whether each loader has one pass only: one for a test, one made at each access of a property, one whose sampler does not end."""
    if view.loaders.is_for_one_test(one):
        return True
    function = view.program.function_of(one.call)
    decorators = set(view.program.decorator_names(function)) if function & MASK else set()
    if "property" in decorators and decorators.isdisjoint(_CACHES):
        return True
    samplers = [source for name in ("sampler", "batch_sampler") for source in view.loaders.option(one, name).sources]
    return bool(samplers) and any(_ENDLESS.search(name) for name in _names(view, samplers))


def _names(view: View, sources: list[int]) -> Iterator[str]:
    meaning = view.ask.meaning(*sources)
    yield from (name.rpartition(".")[2] for name in meaning.names)
    for owner in meaning.classes:
        yield view.program.module_of(owner).scopes[owner & MASK].name
