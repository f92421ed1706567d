"""Where the file that a load reads comes from: from outside, from the project itself, or unknown.

The origin decides the risk. A file from outside can run foreign code; a checkpoint of the user's own training can only
fail to load. The origin follows from the path and from the use of the content: a resumed training restores its
optimizer, and published checkpoints to start from have no optimizer state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.checkpoint_writes import CheckpointWrites
from ldlm_lint.concepts.file_paths import SHIPPED, FilePath, FilePaths, Home
from ldlm_lint.concepts.joined import Joined
from ldlm_lint.concepts.own_entries import OwnEntries
from ldlm_lint.concepts.payloads import Payloads
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.vocabulary.downloads import DOWNLOADS, SHELLS

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node, Scope
    from ldlm_lint.program.modules import Module

_RANDOM_STATE = frozenset({"torch.set_rng_state", "torch.cuda.set_rng_state", "torch.cuda.set_rng_state_all", "random.setstate", "numpy.random.set_state"})
_OF_A_RUN = ("torch.optim.", "torch.amp.", "torch.cuda.amp.", "torch.distributed.optim.", "apex.", "transformers.optimization.")
"""Where the classes come from whose state only a training has; what a factory makes goes by its name."""
_SOUNDS_LIKE_ONE = lazily(r"optim|sched|scaler|(^|_)opt(_|$)", re.I)
_STEPS = 8


class Origin(NamedTuple):
    """``fetched``: the call (key) or address that brings the file; ``written``: the call where the project writes it
    (0: none), ``only_tensors``: all calls that may write it write tensors and plain values only; ``resumes``: what is
    restored from it belongs to a resumed training; ``shipped``: the file is in the folder of the code.

    ``alike``: where no path says so, a call that writes the entries which are read (0: none): a file with these is the
    project's own if ``written`` says so, too. ``objects``: the entries that it or ``written`` writes and that torch refuses to
    read with ``weights_only=True``. All empty: unknown."""

    fetched: int | str = 0
    written: int = 0
    only_tensors: bool = False
    resumes: bool = False
    alike: int = 0
    objects: tuple[str, ...] = ()
    shipped: bool = False


class _Written(NamedTuple):
    call: int
    path: FilePath


class LoadOrigins(Concept):
    """Answers where the files come from that a program loads."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._paths = code[FilePaths]
        self._writes = code[CheckpointWrites]
        self._payloads = code[Payloads]
        self._joined = code[Joined]

    def of(self, call: int) -> Origin:
        """The origin of the file that a load (key) reads."""
        sources = self.ask.argument(call, "f", 0).sources
        if not sources:
            return Origin(resumes=self._resumes(call))
        known = self._paths.of(sources[0])
        fetched = min(known.fetched, key=lambda one: (isinstance(one, str), str(one)), default=0) or self._fetched_to(call, sources[0], known)
        if fetched:
            return Origin(fetched=fetched)
        near = self.program.module_of(call)
        matching = [one for one in self._written if known.is_one_of(one.path)]
        written = [one.call for one in matching]
        own = self.program.function_of(call)
        nearest = min(written, key=lambda one: (self.program.module_of(one) is not near, self._joined.path(own, self.program.function_of(one))), default=0)
        only = bool(matching) and self._are_all_of(near, known, matching) and self._hold_tensors_only(known, written)
        return self._with_entries(call, Origin(written=nearest, only_tensors=only, resumes=self._resumes(call), shipped=self._is_shipped(known)))

    def _with_entries(self, load: int, origin: Origin) -> Origin:
        """The same with what the entries of the file say: a training is resumed from a file that it has written."""
        if origin.written or origin.shipped:
            return origin._replace(objects=() if origin.only_tensors or not origin.written else self._entries.objects_in(origin.written))
        entries = self._entries
        own = entries.of_its_class(load) or (entries.alike(load) if origin.resumes else [])
        if own:
            objects = [set(entries.objects_in(one)) for one in own]
            return origin._replace(written=own[0], alike=own[0], objects=tuple(sorted(set.intersection(*objects))))
        found = ((one, entries.objects_in(one)) for one in entries.of_its_models(load))
        alike, named = next(((one, objects) for one, objects in found if objects), (0, ()))
        return origin._replace(alike=alike, objects=named)

    def _is_shipped(self, known: FilePath) -> bool:
        """Whether a path begins in a folder of the code, unless a caller passes another one."""
        return SHIPPED in known.homes and not any(self._is_given(home) and not self._is_left_out(home) for home in known.homes)

    def _is_left_out(self, home: Home) -> bool:
        """Whether a path begins with a parameter that has a default, which all known calls leave."""
        if home[0] != "parameter":
            return False
        _, function, name = home
        defaults = self.program.module_of(int(str(function))).scopes[int(str(function)) & MASK].defaults
        return name in defaults and bool(self.program.callers(int(str(function))))

    def _hold_tensors_only(self, known: FilePath, written: list[int]) -> bool:
        return not any(known.is_one_of(one.path) for one in self._by_engines) and all(self._payloads.are_tensors_only(Call(self.code, one)) for one in written)

    def _are_all_of(self, near: Module, known: FilePath, written: list[_Written]) -> bool:
        """Whether every source of a loaded path is one of a path that the same flow writes: a folder or a file that a
        user names is where others may have put a file of that name."""
        together = self.program.together.programs_of(near)
        same = [one.path for one in written if self.program.module_of(one.call).index in together]
        homes = {home for path in same for home in path.homes}
        if not all(home in homes for home in known.homes if self._is_given(home)):
            return False
        whole = not known.homes and known.names <= {name for one in written for name in one.path.names if not one.path.homes}
        return whole or (not known.homes.isdisjoint(homes))

    def _is_given(self, home: Home) -> bool:
        """Whether a user, or a caller that is not seen, decides what a path begins with."""
        if home[0] != "parameter":
            return home[0] == "setting"
        _, function, name = home
        return isinstance(function, int) and not self.program.given_for(function, str(name))

    @cached_property
    def _written(self) -> list[_Written]:
        return [_Written(one.call.key, self._paths.of(one.path.key)) for one in self._writes.of_files]

    @cached_property
    def _entries(self) -> OwnEntries:
        return OwnEntries(self.code, (one.call for one in self._written))

    @cached_property
    def _by_engines(self) -> list[_Written]:
        return [_Written(one.call.key, self._paths.of(one.path.key)) for one in self._writes.by_engines]

    def _fetched_to(self, load: int, read: int, known: FilePath) -> int:
        """The call that downloads to the path: a downloader in this file, or a function of the project that receives
        the same value."""
        module = self.program.module_of(load)
        for call, name in self.ask.calls_of(DOWNLOADS):
            place = DOWNLOADS[name]
            target = self.ask.argument(call, *place).sources[:1] if place and self.program.module_of(call) is module else ()
            if target and self._paths.of(target[0]).is_one_of(known):
                return call
        values = set(_held(module, read & MASK))
        named = {number for number in values if module.nodes[number][0] != "const"}
        for call, _ in self.ask.calls_of(SHELLS):
            if self.program.module_of(call) is module and self._paths.is_download(call) and not named.isdisjoint(self._told(call)):
                return call
        scope = module.scopes[module.table.sites[load & MASK].scope]
        for number in scope.calls:
            if number != load & MASK and not values.isdisjoint(module.nodes[number][2]) and self._paths.downloads(module.base | number):
                return module.base | number
        return 0

    def _told(self, call: int) -> set[int]:
        """The expressions in the command of a call that runs one: ``os.system(f"wget {address} -O {path}")``."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        return {one for given in row[2] for one in _held(module, given)}

    def _resumes(self, load: int) -> bool:
        """Whether the function that loads a file restores state from it that only a resumed training has."""
        module = self.program.module_of(load)
        scope = module.scopes[module.table.sites[load & MASK].scope]
        restoring = (one for one in scope.calls if self._restores(module, scope, module.nodes[one]))
        return any(_reaches(module, given, load & MASK) for one in restoring for given in module.nodes[one][2])

    def _restores(self, module: Module, scope: Scope, row: Node) -> bool:
        """Whether a call restores state that only a resumed training has."""
        function = module.nodes[row[1]]
        if function[0] == "attr" and function[2] == "load_state_dict":
            return self._is_of_a_run(module, scope, function[1])
        return not _RANDOM_STATE.isdisjoint(self.ask.names_of(self.program.ask(module.base | row[1])))

    def _is_of_a_run(self, module: Module, scope: Scope, receiver: int) -> bool:
        """Whether an object is an optimizer, a schedule or a scaler, by its constructor, or by its name, since a
        factory may have made it."""
        atoms, value = self.program.atoms, self.program.ask(module.base | receiver)
        names = {fields[1] for fields in atoms.kinds(value, "o")}
        for kind in ("i", "self"):
            for fields in atoms.kinds(value, kind):
                names |= self.program.outside_of(fields[1])
        return any(one.startswith(_OF_A_RUN) for one in names) or any(map(_SOUNDS_LIKE_ONE.search, _spelled(module, scope, receiver)))


def _spelled(module: Module, scope: Scope, number: int) -> Iterator[str]:
    """The names in an expression, ``self.optimizers[0]``, and of the variables of a function that hold it."""
    for _ in range(_STEPS):
        row = module.nodes[number]
        if row[0] in ("attr", "free", "param", "impf"):
            yield str(row[2])
        for bindings in (scope.bindings, module.scopes[0].bindings):
            yield from (name for name, values in bindings.items() if number in values)
        if row[0] not in ("attr", "item", "elem", "part", "copy", "call"):
            return
        number = row[1]


def _held(module: Module, number: int) -> Iterator[int]:
    """An expression and the parts of a path in it."""
    todo, seen = [number], {number}
    while todo:
        at = todo.pop()
        yield at
        row = module.nodes[at]
        inner = row[2] if row[0] == "call" else row[2:4] if row[0] == "op" else row[1] if row[0] in ("fstr", "phi") else row[1:2] if row[0] in ("copy", "enter") else ()
        fresh = [one for one in inner if one not in seen]
        seen.update(fresh)
        todo += fresh


def _reaches(module: Module, start: int, wanted: int) -> bool:
    """Whether a value is another one, or a part of it, on any path."""
    waiting, seen = [start], {start}
    while waiting:
        number = waiting.pop()
        if number == wanted:
            return True
        fresh = set(_came_from(module.nodes[number])) - seen
        seen |= fresh
        waiting.extend(fresh)
    return False


def _came_from(row: Node) -> tuple[int, ...]:
    """The sources of a value: itself, and the values it is taken out of."""
    kind = row[0]
    if kind in ("attr", "item", "part", "elem", "copy", "upd"):
        return (row[1],)
    if kind == "phi":
        return tuple(row[1])
    if kind == "choice":
        return tuple(row[2:4])
    # ``state.get("optimizer")``, ``to_device(state)``
    return (row[1], *row[2][:1]) if kind == "call" else ()


__all__ = ["LoadOrigins", "Origin"]
