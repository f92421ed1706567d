"""`dataloader-without-persistent-workers` for loaders of every make: subclasses, other packages' loaders, options by dictionary."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import line_span
from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_datasets import is_changed_between_passes
from ldlm_lint.checkers.by_program.loader_fixes import persistent_fix, switched_on
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import value_as_written
from ldlm_lint.code.table import line_of
from ldlm_lint.concepts.configured_numbers import ConfiguredNumbers
from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import State
from ldlm_lint.rules.data import PERSISTENT_WORKERS

RULE = PERSISTENT_WORKERS
WORDS: tuple[bytes, ...] = (b"Loader",)
_ENDLESS = lazily(r"infinite|endless|forever|repeat|cycle", re.I)
_OF_RUN = lazily(r"^(?:num|n|max|total)_?epochs$")
_STEPS = 6
_NAMES = {"option": "persistent_workers", "setting": "persistent_workers=True"}
_AGAIN = "this iterates the DataLoader repeatedly"
_CACHES = frozenset({"cached_property", "lru_cache", "cache"})


def find(view: View) -> Iterator[Finding]:
    """All loaders with workers over which a loop iterates repeatedly, and that start them again each time."""
    for one in view.loaders.all:
        how = _how_off(view, one) if view.loaders.may_have_workers(one) or _are_configured(view, one) else ""
        if how and not _has_one_pass(view, one):
            yield from _finding(view, one, how)
        elif not how and view.loaders.may_have_workers(one) and not _has_one_pass(view, one):
            yield from _switched_off(view, one)


def _are_configured(view: View, one: LoaderCall) -> bool:
    """Whether a configuration sets the workers, and those of the project set some."""
    return one.workers.state is not State.ABSENT and any(map(view[ConfiguredNumbers].are_positive, one.workers.sources))


def _how_off(view: View, one: LoaderCall) -> str:
    """Why workers do not persist: the option is missing, or a parameter's default is never replaced; empty for a
    choice."""
    given = view.loaders.option(one, "persistent_workers")
    if view.loaders.is_absent(one, "persistent_workers"):
        return "not set"
    is_default = given.state is State.GIVEN and all(_is_left_off(view, source, 0) for source in given.sources)
    return "off by default" if is_default and given.sources else ""


def _is_left_off(view: View, key: int, steps: int) -> bool:
    """Whether a parameter is False by its default, and all known callers leave it there, or forward another such
    parameter."""
    module = view.program.module_of(key)
    row = module.plain(key & MASK)
    if row[0] != "param" or steps > _STEPS:
        return False
    function, default = module.base | row[1], module.scopes[row[1]].defaults.get(row[2])
    callers, given = view.program.calls_of_function(function), view.program.given_for(function, row[2])
    if not callers or any(_unpacks(view, call) for call in callers):
        return False
    is_left = len(given) == len(callers) or (default is not None and module.nodes[default] == ("const", False))
    return is_left and all(_is_left_off(view, node, steps + 1) for _, node in given)


def _unpacks(view: View, call: int) -> bool:
    module = view.program.module_of(call)
    row = module.nodes[call & MASK]
    return any(name is None for name, _ in row[3]) or any(module.nodes[one][0] == "star" for one in row[2])


def _finding(view: View, one: LoaderCall, how: str) -> Iterator[Finding]:
    found = view.loaders.settled(one, view.loaders.repeated(one), _AGAIN)
    if found is None or is_changed_between_passes(view, one):
        return
    args = {"where": found.where, "how": how, **_NAMES}
    fix = persistent_fix(view, one) if how == "not set" else None
    yield view.finding(
        RULE, view.call_span(one.call), args, found.related, fix=fix, confidence=one.confidence
    )


def _switched_off(view: View, one: LoaderCall) -> Iterator[Finding]:
    """Workers whose persistence the author switched off: information, at that value."""
    given = view.loaders.option(one, "persistent_workers")
    if given.state is not State.GIVEN or len(given.sources) != 1 or view.ask.meaning(*given.sources).only is not False:
        return
    value = value_as_written(view, given.sources[0], given.given_by[0], "persistent_workers") if given.given_by else None
    found = view.loaders.settled(one, view.loaders.repeated(one), _AGAIN) if value is not None else None
    if value is None or found is None or is_changed_between_passes(view, one):
        return
    home, written = value
    elsewhere = home is not one.module or view.source(home).position(written.span.start)[0] != line_of(one.place)
    taker = (Related(line_span(view, one.call), "this DataLoader takes the value"),) if elsewhere else ()
    args = {"where": found.where, "how": "off", **_NAMES}
    fix = switched_on(view, one, written)
    yield view.finding(RULE, written.span, args, (*taker, *found.related), fix=fix).lowered("switched off on purpose")


def _has_one_pass(view: View, one: LoaderCall) -> bool:
    """Whether each loader has one pass only: one for a test, one created at each access of a property, one whose
    sampler does not end."""
    if view.loaders.is_for_one_test(one):
        return True
    function = view.program.function_of(one.call)
    decorators = set(view.program.decorator_names(function)) if function & MASK else set()
    if "property" in decorators and decorators.isdisjoint(_CACHES):
        return True
    return ends_never(view, one)


def ends_never(view: View, one: LoaderCall) -> bool:
    """Whether one pass through a loader goes through all epochs, because of its sampler."""
    samplers = [source for name in ("sampler", "batch_sampler") for source in view.loaders.option(one, name).sources]
    return bool(samplers) and (any(_ENDLESS.search(name) for name in _names(view, samplers)) or _covers_epochs(view, samplers))


def _covers_epochs(view: View, samplers: list[int]) -> bool:
    """Whether a sampler of the project's gets the number of epochs: one pass goes through all of them."""
    owners = view.ask.meaning(*samplers).classes
    constructors = (function for owner in owners for function in view.program.methods(owner, "__init__"))
    return any(_OF_RUN.search(name) for one in constructors for name in view.program.module_of(one).scopes[one & MASK].params)


def _names(view: View, sources: list[int]) -> Iterator[str]:
    meaning = view.ask.meaning(*sources)
    yield from (name.rpartition(".")[2] for name in meaning.names)
    for owner in meaning.classes:
        yield view.program.module_of(owner).scopes[owner & MASK].name
