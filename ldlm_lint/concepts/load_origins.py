"""Where the file that a load reads comes from: from outside, from the project itself, or unknown.

The origin decides the risk. A file from outside can run foreign code; a checkpoint of the user's own training can only
fail to load. The origin follows from the path and from the use of the content: a resumed training restores its
optimizer, and published checkpoints to start from have no optimizer state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.checkpoint_writes import CheckpointWrites
from ldlm_lint.concepts.file_paths import SHIPPED, FilePath, FilePaths, Home
from ldlm_lint.concepts.joined import Joined
from ldlm_lint.concepts.own_entries import OwnEntries
from ldlm_lint.concepts.payloads import Payloads
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.vocabulary.downloads import DOWNLOADS, SHELLS

_RANDOM_STATE = frozenset({"torch.set_rng_state", "torch.cuda.set_rng_state", "torch.cuda.set_rng_state_all", "random.setstate", "numpy.random.set_state"})
_OF_A_RUN = ("torch.optim.", "torch.amp.", "torch.cuda.amp.", "torch.distributed.optim.", "apex.", "transformers.optimization.")
"""Where the classes come from whose state only a training has; what a factory makes goes by its name."""
_SOUNDS_LIKE_ONE = lazily(r"optim|sched|scaler|(^|_)opt(_|$)", re.I)
_TAKEN = frozenset({"attr", "item", "part", "elem", "copy", "upd"})


class Origin(NamedTuple):
    """``fetched``: the call or address that brings the file; ``written``: the call where the project writes it,
    ``only_tensors``: all calls that may write it write tensors and plain values only; ``resumes``: what is
    restored from it belongs to a resumed training; ``shipped``: the file is in the folder of the code.

    ``alike``: where no path says so, a call that writes the entries which are read: a file with these is the
    project's own if ``written`` says so, too. ``objects``: the entries that it or ``written`` writes and that torch refuses to
    read with ``weights_only=True``. All empty: unknown."""

    fetched: Call | str | None = None
    written: Call | None = None
    only_tensors: bool = False
    resumes: bool = False
    alike: Call | None = None
    objects: tuple[str, ...] = ()
    shipped: bool = False


class _Written(NamedTuple):
    call: Call
    path: FilePath


class LoadOrigins(Concept):
    """Answers where the files come from that a program loads."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._paths = code[FilePaths]
        self._writes = code[CheckpointWrites]

    def of(self, load: Call) -> Origin:
        """The origin of the file that a load reads."""
        paths = load.argument("f", 0).values
        if not paths:
            return Origin(resumes=_resumes(load))
        known = self._paths.of(paths[0])
        fetched = min(known.fetched, key=_nearness, default=None) or self._fetched_to(load, paths[0], known)
        if fetched is not None:
            return Origin(fetched=fetched)
        matching = [one for one in self._written if known.is_one_of(one.path)]
        written = [one.call for one in matching]
        nearest = min(written, key=lambda one: (one.module is not load.module, self.code[Joined].path(load.function, one.function)), default=None)
        only = bool(matching) and self._are_all_of(load, known, matching) and self._hold_tensors_only(known, written)
        return self._with_entries(load, Origin(written=nearest, only_tensors=only, resumes=_resumes(load), shipped=self._is_shipped(known)))

    def _with_entries(self, load: Call, origin: Origin) -> Origin:
        """The same with what the entries of the file say: a training is resumed from a file that it has written."""
        entries = self.code[OwnEntries]
        if origin.written is not None or origin.shipped:
            return origin._replace(objects=() if origin.only_tensors or origin.written is None else entries.objects_in(origin.written))
        own = entries.of_its_class(load) or (entries.alike(load) if origin.resumes else [])
        if own:
            objects = [set(entries.objects_in(one)) for one in own]
            return origin._replace(written=own[0], alike=own[0], objects=tuple(sorted(set.intersection(*objects))))
        found = ((one, entries.objects_in(one)) for one in entries.of_its_models(load))
        alike, named = next(((one, objects) for one, objects in found if objects), (None, ()))
        return origin._replace(alike=alike, objects=named)

    def _is_shipped(self, known: FilePath) -> bool:
        """Whether a path begins in a folder of the code, unless a caller passes another one."""
        return SHIPPED in known.homes and not any(_is_given(home) and not _is_left_out(home) for home in known.homes)

    def _hold_tensors_only(self, known: FilePath, written: list[Call]) -> bool:
        return not any(known.is_one_of(one.path) for one in self._by_engines) and all(map(self.code[Payloads].are_tensors_only, written))

    def _are_all_of(self, load: Call, known: FilePath, written: list[_Written]) -> bool:
        """Whether every source of a loaded path is one of a path that the same flow writes: a folder or a file that a
        user names is where others may have put a file of that name."""
        same = [one.path for one in written if load.may_run_with(one.call)]
        homes = {home for path in same for home in path.homes}
        if not all(home in homes for home in known.homes if _is_given(home)):
            return False
        whole = not known.homes and known.names <= {name for one in written for name in one.path.names if not one.path.homes}
        return whole or (not known.homes.isdisjoint(homes))

    @cached_property
    def _written(self) -> list[_Written]:
        return [_Written(one.call, self._paths.of(one.path)) for one in self._writes.of_files]

    @cached_property
    def _by_engines(self) -> list[_Written]:
        return [_Written(one.call, self._paths.of(one.path)) for one in self._writes.by_engines]

    def _fetched_to(self, load: Call, read: Expr, known: FilePath) -> Call | None:
        """The call that downloads to the path: a downloader in this file, or a function of the project that receives
        the same value."""
        for name, place in DOWNLOADS.items():
            for call in (one for one in self.code.calls({name}) if one.module is load.module and place):
                target = call.argument(*place).values[:1] if place else []
                if target and self._paths.of(target[0]).is_one_of(known):
                    return call
        values = set(_held(read))
        named = {one for one in values if one.kind != "const"}
        for call in self.code.calls(SHELLS):
            told = (part for given in call.positional for part in _held(given))
            if call.module is load.module and self._paths.is_download(call) and not named.isdisjoint(told):
                return call
        return next((one for one in load.function.calls if one != load and not values.isdisjoint(one.positional) and self._paths.downloads(one)), None)


def _nearness(fetched: Call | str) -> tuple[int, str, int]:
    """What to name of all that brings a file: a downloader itself, else a function that calls one, else an address."""
    return (2, fetched, 0) if isinstance(fetched, str) else (int(bool(fetched.targets)), fetched.module.path, fetched.line)


def _is_left_out(home: Home) -> bool:
    """Whether a path begins with a parameter that has a default, which all known calls leave."""
    parameter = home.owner.parameters.get(home.name) if home.kind == "parameter" and isinstance(home.owner, Function) else None
    return parameter is not None and parameter.default is not None and bool(parameter.function.callers)


def _is_given(home: Home) -> bool:
    """Whether a user, or a caller that is not seen, decides what a path begins with."""
    if home.kind != "parameter":
        return home.kind == "setting"
    parameter = home.owner.parameters.get(home.name) if isinstance(home.owner, Function) else None
    return parameter is not None and not parameter.given


def _resumes(load: Call) -> bool:
    """Whether the function that loads a file restores state from it that only a resumed training has."""
    return any(_reaches(given, load) for one in load.function.calls if _restores(one) for given in one.positional)


def _restores(call: Call) -> bool:
    """Whether a call restores state that only a resumed training has."""
    if call.receiver is not None and call.called_name == "load_state_dict":
        return _is_of_a_run(call.receiver)
    return not _RANDOM_STATE.isdisjoint(call.callee.interfaces)


def _is_of_a_run(obj: Expr) -> bool:
    """Whether an object is an optimizer, a schedule or a scaler, by its constructor, or by its name, since a
    factory may have made it."""
    names = obj.made_by.union(*(owner.outside_bases for owner in obj.classes_of))
    return any(one.startswith(_OF_A_RUN) for one in names) or any(map(_SOUNDS_LIKE_ONE.search, _spelled(obj)))


def _spelled(obj: Expr) -> Iterator[str]:
    """The names in an expression, ``self.optimizers[0]``, and of the variables that hold it."""
    at: Expr | None = obj
    while at is not None:
        yield at.name
        yield from at.variables
        at = at.callee if isinstance(at, Call) else at.ways[0] if at.kind == "copy" else at.base if at.kind in _TAKEN else None


def _held(path: Expr) -> Iterator[Expr]:
    """An expression and the parts of a path in it."""
    todo, seen = [path], {path}
    while todo:
        at = todo.pop()
        yield at
        inner = at.positional if isinstance(at, Call) else at.operands if at.kind in ("op", "fstr", "phi", "copy", "enter") else []
        fresh = [one for one in inner if one not in seen]
        seen.update(fresh)
        todo += fresh


def _reaches(start: Expr, wanted: Call) -> bool:
    """Whether a value is another one, or a part of it, on any path."""
    todo, seen = [start], {start}
    while todo:
        at = todo.pop()
        if at == wanted:
            return True
        # ``state.get("optimizer")``, ``to_device(state)``
        taken = [at.callee, *at.positional[:1]] if isinstance(at, Call) else [at.base] if at.kind in _TAKEN - {"copy"} else at.ways if at.kind != "bool" else []
        fresh = {one for one in taken if one is not None} - seen
        seen |= fresh
        todo += fresh
    return False


__all__ = ["LoadOrigins", "Origin"]
