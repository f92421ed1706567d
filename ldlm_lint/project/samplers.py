"""The trainings that iterate repeatedly over the loader of a DistributedSampler without calling set_epoch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.index import Project
from ldlm_lint.project.loaders import Site, Tracer
from ldlm_lint.project.optional_receivers import is_never_given
from ldlm_lint.project.text import call_text, class_text
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.slots import Slot

SAMPLER = "torch.utils.data.DistributedSampler"
_KEYS: frozenset[int | str] = frozenset({"sampler", 3, "batch_sampler", 4})
_WORD = b"DistributedSampler"
_CLASS = lazily(rb"^class[ \t]+(\w+)\b([^:]*)", re.M)
_UNSHUFFLED = lazily(rb"\bshuffle\s*=\s*False\b")
# A sampler of the project that counts epochs itself, or that has only one.
_COUNTS_ITSELF = lazily(rb"self\.(?:_?epoch|_?pass|_?round)\w*[ \t]*\+=|while[ \t]+True|super\(\)\.set_epoch|def set_epoch|shuffle[ \t]*(?::[^=,\n]*)?=[ \t]*False")
# Code that returns its own order, not its base's.
_OWN_ORDER = lazily(rb"def __iter__\b(?![\s\S]*\bsuper\()")
# ``get = getattr(sampler, "set_epoch", None)`` and ``sampler.epoch = 3`` come to the same as the call; the words of each are
# found much faster.
_SETS_OTHERWISE = (
    ((b"getattr(", b"set_epoch"), lazily(rb"getattr\([^()]*set_epoch")),
    ((b"sampler", b".epoch"), lazily(rb"sampler\w*\.epoch[ \t]*\+?=[^=]")),
)
_SET_EPOCH = b"set_epoch"
# Accelerate and Lightning call set_epoch on the samplers of their loaders.
_TAKES_OVER = Trait(
    lazily(
        rb"\bAccelerator\(|setup_dataloaders\(|StatefulDataLoader|prepare_dataloader\("
        rb"|^[ \t]*(?:import|from)[ \t]+(?:pytorch_lightning|lightning|composer|colossalai)\b",
        re.M,
    ),
    (b"Accelerator(", b"setup_dataloaders(", b"StatefulDataLoader", b"prepare_dataloader(", b"lightning", b"composer", b"colossalai"),
)
_STEPS = 200

Place = tuple[str, int]
"""A file and a line of it."""


class Neglect(NamedTuple):
    """A sampler (path, position of the call that makes it) and the training loops that never call set_epoch on it.

    ``everywhere`` is False if another training that uses the sampler does.
    """

    path: str
    position: str
    loops: tuple[Place, ...]
    everywhere: bool

    @property
    def line(self) -> int:
        """The line of the call that makes the sampler."""
        return int(self.position.partition(":")[0])


class Samplers:
    """Answers which samplers of a project are neglected, and by which trainings."""

    def __init__(
        self, project: Project, calls: Calls, tracer: Tracer, tells_constant: Callable[[str, str], bool] = lambda path, position: False
    ) -> None:
        self._tells_constant = tells_constant
        self._project = project
        self._calls = calls
        self._tracer = tracer
        self._told: dict[str, bool] = {}
        self._classes: dict[str, frozenset[str]] = {}

    @cached_property
    def neglected(self) -> tuple[Neglect, ...]:
        """All samplers of the project without set_epoch in a training, by path and position."""
        made = ((path, call) for path in sorted(self._project.files) for call in self._made_in(path))
        return tuple(found for path, call in made if (found := self._neglect(path, call)) is not None)

    def at(self, path: str, position: str) -> Neglect | None:
        """The sampler made at ``line:column`` of a file, if no training calls set_epoch on it."""
        return next((one for one in self.neglected if (one.path, one.position) == (path, position) and one.everywhere), None)

    def behind_loop(self, path: str, line: int) -> Neglect | None:
        """The sampler that a training loop, the first of its file, neglects although another training calls
        set_epoch.
        """
        for one in self.neglected:
            lines = [number for where, number in one.loops if where == path]
            if not one.everywhere and lines[:1] == [line]:
                return one
        return None

    def _made_in(self, path: str) -> Iterator[CallSite]:
        data = self._project.data(path)
        if _WORD not in data or self._project.is_test(path):
            return
        for call in self._project.flow(path).calls:
            if call.callee.kind in ("def", "import") and self._shuffles(path, call):
                yield call

    def _shuffles(self, path: str, call: CallSite) -> bool:
        if call.callee.name != SAMPLER and not self._derives(path, call):
            return False
        return not _UNSHUFFLED.search(call_text(self._project.data(path), call.position))

    def _derives(self, path: str, call: CallSite) -> bool:
        """Whether a call creates a sampler of the project that shuffles by an epoch from its caller, like torch's."""
        if call.callee.kind == "def":
            found: tuple[str, str] | None = (path, call.callee.name)
        else:
            found = self._project.resolve(path, call.callee.name) if call.callee.name.endswith("Sampler") else None
        if found is None or found[1] not in self._classes_of(found[0]):
            return False
        text = class_text(self._project.data(found[0]), found[1])
        header = text.partition(b":")[0]
        own = b"epoch" not in text and _OWN_ORDER.search(text) is not None
        return _WORD in header.partition(b"(")[2] and not own and not _COUNTS_ITSELF.search(text)

    def _classes_of(self, path: str) -> frozenset[str]:
        """The classes of a file whose headers name torch's sampler."""
        if path not in self._classes:
            headers = _CLASS.finditer(self._project.data(path)) if _WORD in self._project.data(path) else ()
            self._classes[path] = frozenset(one[1].decode() for one in headers if _WORD in one[2])
        return self._classes[path]

    def _neglect(self, path: str, call: CallSite) -> Neglect | None:
        told, untold = False, []
        for loader in set(self._tracer.loaders_given(path, Slot("out", "", call.position), _KEYS)):
            for site in self._training_passes(*loader):
                known = [self._is_told(entry, path, site) for entry in self._entries(site) if path in self._project.reach(entry)]
                told = told or any(known)
                if not all(known):
                    untold.append((site.path, site.line))
        return Neglect(path, call.position, tuple(sorted(set(untold))), not told) if untold else None

    def _training_passes(self, path: str, position: str) -> Iterator[Site]:
        """The loops that go through a loader repeatedly and train on it, or pass its batches to a loop that does."""
        sites = self._tracer.sites(path, position)
        trained = any(self._tracer.trains(one) for one in sites)
        for site in sites:
            if site.repeated and not site.framework and (self._tracer.trains(site) or (trained and self._yields(site))):
                yield site

    def _yields(self, site: Site) -> bool:
        function = self._calls.function(site.path, site.scope)
        return function is not None and function.yields

    def _entries(self, site: Site) -> set[str]:
        """The files whose top level ends in a loop, by its callers; without known callers, all importers of the loop's
        file."""
        waiting = self._trained_through(site) if self._yields(site) else []
        waiting = waiting or [(site.path, site.scope)]
        seen, found = set(waiting), set()
        while waiting and len(seen) < _STEPS:
            path, scope = waiting.pop()
            callers = [(one, call.scope) for one, call in self._calls.callers(path, scope) if not self._project.is_test(one)] if scope else []
            if not callers:
                found |= self._importers(path) if scope else {path}
            fresh = set(callers) - seen
            seen |= fresh
            waiting.extend(fresh)
        return found

    def _trained_through(self, site: Site) -> list[tuple[str, str]]:
        """The functions that train on a generator's elements: evaluations use it for their loaders, too."""
        callers = {(one, call.scope) for one, call in self._calls.callers(site.path, site.scope) if not self._project.is_test(one)}
        functions = ((one, self._calls.function(*one)) for one in sorted(callers))
        return [one for one, function in functions if function is not None and function.backward_lines]

    def _importers(self, path: str) -> set[str]:
        return {one for one in self._project.trainers_of(path) if path in self._project.reach(one)} | {path}

    def _is_told(self, entry: str, sampler: str, site: Site) -> bool:
        """Whether a training sets the epoch anywhere in its files, or leaves it to a framework."""
        if self._project.any_shows({entry, sampler, site.path}, _TAKES_OVER):
            return True
        return any(self._sets_epoch(one) for one in self._project.reach(entry))

    def _sets_epoch(self, path: str) -> bool:
        if path not in self._told:
            self._told[path] = self._looks_for_calls(path)
        return self._told[path]

    def _looks_for_calls(self, path: str) -> bool:
        data = self._project.data(path)
        if any(all(word in data for word in words) and pattern.search(data) for words, pattern in _SETS_OTHERWISE):
            return True
        if _SET_EPOCH not in data:
            return False
        flow = self._project.flow(path)
        # A wrapper's own set_epoch passes the epoch on; the wrapper's must still be called.
        calls = (call for call in flow.calls if call.callee.name.rpartition(".")[2] == "set_epoch" and call.scope.rpartition(".")[2] != "set_epoch")
        return not flow.complete or any(
            not is_never_given(self._calls, path, call) and not self._tells_constant(path, call.position) for call in calls
        )
