"""Checkpoint series: writes of files with numbered names, these names, and the removal of such files.

A *pattern* is a text in which ``*`` stands for an unknown or counting part. A writer and a pruner belong together if
their patterns can name the same file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.checkpoint_writes import CheckpointWrites
from ldlm_lint.concepts.counting import Counting
from ldlm_lint.concepts.path_patterns import JOINS, OF_PATHS, PathPatterns, behind_paths, may_meet, meet
from ldlm_lint.concepts.payloads import Payloads
from ldlm_lint.concepts.removals import OWN_ROTATION, Removal, Removals
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr


class Series(NamedTuple):
    """A call whose argument is a numbered name: the call, the name, what counts in it, and the call that writes the files."""

    call: Call
    path: Expr
    counters: tuple[Expr, ...]
    write: Call


class Checkpoints(Concept):
    """The checkpoint series of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._counting = code[Counting]
        self._patterns = code[PathPatterns]
        self._counters: dict[Expr, list[Expr]] = {}

    @cached_property
    def series(self) -> list[Series]:
        """Every series, at the call that receives the numbered name."""
        found: dict[Call, Series] = {}
        for write in self.code[CheckpointWrites].of_states:
            # Moving a numbered file is not a separate write.
            if write.source is None or not self.counters(write.source):
                for call, name in self._named_at(write.call, write.path, set()):
                    counters = tuple(self.counters(name))
                    if counters:
                        found.setdefault(call, Series(call, name, counters, write.call))
        return list(found.values())

    def _named_at(self, call: Call, path: Expr, seen: set[Expr]) -> Iterator[tuple[Call, Expr]]:
        """The calls that build the name of a written file, with its expressions: in callers if the name is a
        parameter."""
        if path in seen:
            return
        seen.add(path)
        name = behind_paths(path)
        parameters = [name] if name.kind == "param" else []
        # A name passed in from outside of a loop is the same in all iterations.
        if not parameters and not call.loops and not self.counters(name):
            parameters = self._parameters_of_name(name, set())
        if not parameters:
            yield call, name
        for one in parameters:
            for caller in one.function.callers:
                given = caller.given_for(one)
                if given is not None:
                    yield from self._named_at(caller, given, seen)

    def _parameters_of_name(self, name: Expr, seen: set[Expr]) -> list[Expr]:
        """The parameters in the components of a path, and of the last one those in a text: ``os.path.join(folder, f"{name}.pt")``."""
        if name.kind == "param" or name in seen:
            return [name] if name.kind == "param" else []
        seen.add(name)
        parts = self._parts(name)
        is_path = name.operator == "Div" or (isinstance(name, Call) and name.called_name in JOINS)
        inner = parts if is_path else _behind_slash(parts)
        return [one for part in inner for one in self._parameters_of_name(part, seen)]

    def counters(self, name: Expr) -> list[Expr]:
        """The parts of a name that count steps, epochs or saves."""
        if name not in self._counters:
            # What is made of itself counts by its other parts.
            self._counters[name] = []
            self._counters[name] = self._counters_in(name)
        return self._counters[name]

    def _counters_in(self, name: Expr) -> list[Expr]:
        if self._counting.counts(name):
            return [name]
        parts = self._parts(name)
        if not parts and isinstance(name, Call):
            return self._counters_of_helper(name)
        return [found for one in parts for found in self.counters(one)]

    def _counters_of_helper(self, call: Call) -> list[Expr]:
        """The counters in the result of a project function: its own, and those in this call's arguments."""
        found: list[Expr] = []
        for target in call.targets:
            for counter in (one for value in target.returned if not target.is_generator for one in self.counters(value)):
                given = call.given_for(counter) if counter.kind == "param" and counter.function == target else counter
                found += [counter] if given is counter else self.counters(given) if given is not None else []
        return found

    def _parts(self, name: Expr) -> list[Expr]:
        """The parts of a name, or its alternatives."""
        kind = name.kind
        if kind == "op":
            # ``step % 2`` names two files in turn; ``"%d.pt" % step`` is a text.
            is_text = name.operator in ("Add", "Div") or (name.operator == "Mod" and _is_written_text(name.operands[0]))
            return name.operands if is_text else []
        if kind == "elem":
            return self._listed(name.base.plain) if name.base is not None else []
        if isinstance(name, Call):
            return self._parts_of_call(name)
        if kind in ("fstr", "seq"):
            return name.operands
        return self._counting.ways(name) if kind == "phi" else name.ways if kind in ("copy", "choice") else []

    def _parts_of_call(self, call: Call) -> list[Expr]:
        name, receiver = call.called_name, call.receiver
        is_text = name in JOINS or name in OF_PATHS or name == "zfill" or (name == "format" and receiver is not None and self._has_fields(receiver))
        return [*(call.arguments if is_text else []), *([receiver] if name == "zfill" and receiver is not None else [])]

    def _has_fields(self, template: Expr) -> bool:
        """Whether a format string may have a field: ``"last.pt".format(step)`` is the same at every step."""
        return any("{" in one or "*" in one.rpartition("/")[2] for one in self._patterns.of(template))

    def _listed(self, container: Expr) -> list[Expr]:
        """The elements of a list: literal ones and appended ones."""
        return [*container.operands, *self.code[Payloads].filled(container)] if container.kind == "seq" else []

    def is_pruned(self, series: Series) -> bool:
        """Whether code in the programs of a series may remove its files, by the program's values or the words in the
        files."""
        near = [one for one in self.code[Removals].all if series.call.may_run_with(one.call)]
        if self._is_kept_short(series) or any(self._surely_removes(one, series) for one in near):
            return True
        if not self.code.trainings.may_delete_checkpoints(self.code.path(series.call.module)):
            return False
        written = self._patterns.of(series.path)
        others = [one for one in near if one.path is None or not self._empties_the_new_one(one.path, series)]
        return not near or any(not one.names or may_meet(one.names, written) for one in others)

    def _is_kept_short(self, series: Series) -> bool:
        """Whether the function that the fix writes is called after the save, with its path."""
        calls = self.code.calls_in(series.call.module, OWN_ROTATION)
        behind = (one for one in calls if one.function == series.call.function and one.spot.place > series.call.spot.place)
        paths = [one.positional[0] for one in behind if one.positional]
        return any(one == series.path or self._patterns.of(one) == self._patterns.of(series.path) for one in paths)

    def _surely_removes(self, removal: Removal, series: Series) -> bool:
        """Whether a call surely removes files with names of a series, such as the one from a few saves ago."""
        written = self._patterns.of(series.path)
        if not may_meet(removal.names, written) or not _may_share_a_folder(removal.names, written):
            return False
        return removal.path is None or not (self._makes_room(removal.path, series) or self._empties_the_new_one(removal.path, series))

    def _makes_room(self, path: Expr, series: Series) -> bool:
        """Whether the removed file is the one that is written next: ``if os.path.exists(path): os.remove(path)``."""
        removed = behind_paths(path)
        # A name kept from an earlier iteration is an earlier file.
        if path.module is not series.path.module or removed.kind in ("phi", "attr"):
            return False
        return removed == behind_paths(series.path) or not set(series.counters).isdisjoint(self.counters(removed))

    def _empties_the_new_one(self, path: Expr, series: Series) -> bool:
        """Whether the removed files were in the folder that is written: ``save_pretrained(folder)`` clears it of an
        earlier save's files."""
        parts = self._parts(behind_paths(path))
        folder = parts[0].plain if len(parts) > 1 else path
        return len(parts) > 1 and folder.kind == "param" and series.call.called_name == folder.function.name

    def are_milestones(self, series: Series) -> bool:
        """Whether few are written, at steps that are named: ``step in MILESTONES``, ``epoch == last``."""
        counters = {one.unnamed for one in series.counters}
        return any(one.kind == "if" and one.holds is True and _names_steps(one.test, counters) for one in series.call.guards)

    def interval(self, series: Series) -> Expr | None:
        """The outermost test of a counter around a save, inside of its loop."""
        call = series.call
        begin = call.spot.loop.spot.place if call.spot.loop is not None else call.function.spot.place
        # The other branch of the same test has the same one.
        tests = [one.test for one in call.guards if one.is_test and one.begin >= begin]
        return next((one for one in reversed(tests) if self._counting.is_asked_in(one)), None)

    def file_names(self, series: Series) -> list[str]:
        """The patterns of the last component of a series' names."""
        return sorted({posixpath.basename(one) for one in self._patterns.of(series.path)})


def _names_steps(test: Expr, counters: set[Expr]) -> bool:
    """Whether a counter itself is compared, not a remainder of it."""
    if test.kind == "bool":
        return (any if test.operator == "And" else all)(_names_steps(one, counters) for one in test.operands)
    return test.operator in ("In", "Eq") and not counters.isdisjoint(one.unnamed for one in test.operands)


def _is_written_text(expr: Expr) -> bool:
    return expr.kind == "fstr" or isinstance(expr.constant, str)


def _behind_slash(parts: list[Expr]) -> list[Expr]:
    """The parts of a text after the last slash that is written in it."""
    slashes = [index for index, one in enumerate(parts) if isinstance(one.constant, str) and "/" in one.constant]
    return parts[slashes[-1] + 1 :] if slashes else parts


def _may_share_a_folder(names: Iterable[str], others: Iterable[str]) -> bool:
    """Whether the folders of the removed and the written files may be the same.

    A path without a folder may be in any folder. If a whole known folder is removed, it must be the written one.
    """
    theirs = {posixpath.dirname(one) for one in others}
    return any(_may_be_folder(name, folder) for name in names for folder in theirs)


def _may_be_folder(name: str, folder: str) -> bool:
    mine, last = posixpath.split(name)
    if not last.strip("*") and mine.strip("*") and not folder.strip("*"):
        return False
    return not mine or not folder or meet(mine, folder)


__all__ = ["Checkpoints", "Series"]
