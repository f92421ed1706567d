"""Checkpoint series: who writes files under names that count, which names these are, and what removes files of such names.

A *pattern* is a text in which ``*`` stands for what is not known or counts. A writer and a pruner belong together where their patterns
may name one file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.checkpoint_sinks import Sinks, behind_paths
from ldlm_lint.concepts.frequency import Frequency
from ldlm_lint.concepts.handed import callers_of, handed_in
from ldlm_lint.concepts.path_patterns import JOINS, OF_PATHS, PathPatterns, may_meet, meet
from ldlm_lint.concepts.removals import Removal, Removals
from ldlm_lint.program.atoms import MASK, NONE

if TYPE_CHECKING:
    from ldlm_lint.code.table import Guard, Node
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.queries import Queries

_COUNTS = frozenset({"global_step", "current_epoch", "global_steps"})
"""What Lightning, DeepSpeed and the Trainer count in objects of their own."""
_STEPS = 12


class Series(NamedTuple):
    """A call whose argument is a name that counts: the call (key), the argument, the counters as rows of its module, and the sink."""

    call: int
    path: int
    counters: tuple[int, ...]
    sink: int


class Checkpoints:
    """The checkpoint series of a program."""

    def __init__(self, program: Program, ask: Queries) -> None:
        self.program = program
        self.ask = ask
        self.patterns = PathPatterns(program)
        self._counting: dict[int, bool] = {}
        self._frequency = Frequency(program)

    @cached_property
    def all(self) -> list[Series]:
        """Every series, at the call that is given the name that counts."""
        found: dict[int, Series] = {}
        for sink, path, source in Sinks(self.ask, self.patterns).all():
            # What moves a counted file on is no writer of its own.
            if not source or not self._counters(self.program.module_of(source), source & MASK):
                for call, name in self._named_at(sink, path, set()):
                    counters = tuple(self._counters(self.program.module_of(name), name & MASK))
                    if counters:
                        found.setdefault(call, Series(call, name, counters, sink))
        return list(found.values())

    @cached_property
    def _removals(self) -> list[Removal]:
        return list(Removals(self.program, self.patterns).all())

    def _named_at(self, call: int, path: int, seen: set[int]) -> Iterator[tuple[int, int]]:
        """The calls at which the name of a written file is made, and the expressions of it: those of callers where it is handed in."""
        if path in seen or len(seen) > _STEPS * 4:
            return
        seen.add(path)
        module = self.program.module_of(path)
        number = behind_paths(module, path & MASK)
        row = module.nodes[number]
        if row[0] != "param":
            yield call, module.base | number
            return
        for caller, node in handed_in(self.program, module.base | row[1], row[2]):
            yield from self._named_at(caller, node, seen)

    def _counters(self, module: Module, number: int, steps: int = 0) -> list[int]:
        """The parts of a name that count steps, epochs or saves."""
        row = module.nodes[number]
        kind = row[0]
        if steps > _STEPS:
            return []
        if self.counts(module.base | number):
            return [number]
        if kind == "fstr":
            parts = list(row[1])
        elif kind == "op":
            # ``step % 2`` names two files in turn; ``"%d.pt" % step`` is a text.
            is_text = row[1] in ("Add", "Div") or (module.nodes[row[2]][0] in ("fstr", "const") and isinstance(module.nodes[row[2]][1], (str, tuple)))
            parts = [row[2], row[3]] if is_text and row[1] in ("Add", "Div", "Mod") else []
        elif kind == "seq":
            parts = list(row[2])
        elif kind in ("phi", "copy"):
            parts = self._ways(module, row) if kind == "phi" else [row[1]]
        elif kind == "choice":
            parts = [row[2], row[3]]
        elif kind == "call":
            name = module.last_name(row[1])
            is_text = name in (*JOINS, *OF_PATHS, "format", "zfill")
            function = module.nodes[row[1]]
            parts = [*row[2], *(value for _, value in row[3])] if is_text else []
            parts += [function[1]] if name == "zfill" and function[0] == "attr" else []
        else:
            parts = []
        return [found for one in parts for found in self._counters(module, one, steps + 1)]

    def _ways(self, module: Module, row: Node) -> list[int]:
        """The cases of a ``phi`` that may come about."""
        return [one for one in row[1] if self._may_be_taken(module, one)]

    def _may_be_taken(self, module: Module, number: int) -> bool:
        """Whether what is called in one of several cases can be called, by what callers give: ``if name is None: name = str(epoch)``."""
        site = module.table.sites.get(number)
        guard = -1 if site is None else site.guard
        while guard >= 0:
            one = module.table.guards[guard]
            if one.kind in ("if", "rest") and one.test and not (self._frequency.can_hold(module, one) and self._may_be_left_out(module, one)):
                return False
            guard = one.parent
        return True

    def _may_be_left_out(self, module: Module, guard: Guard) -> bool:
        """Whether ``parameter is None`` can hold: not where all known callers give something else."""
        row = module.nodes[guard.test]
        if row[0] != "cmp" or row[1] != ("Is",) or guard.holds is not True or module.nodes[row[3][0]] != ("const", None):
            return True
        parameter = module.plain(row[2])
        if parameter[0] != "param":
            return True
        function = module.base | parameter[1]
        given = handed_in(self.program, function, parameter[2])
        values = [self.program.ask(node) for _, node in given]
        return len(given) < len(callers_of(self.program, function)) or any(not value or NONE in value for value in values) or not given

    def counts(self, key: int) -> bool:
        """Whether a value differs from step to step or epoch to epoch: what a loop counts, what is added up, or what a framework counts."""
        known = self._counting.get(key)
        if known is None:
            self._counting[key] = False
            known = self._counting[key] = self._counts(key)
        return known

    def _counts(self, key: int) -> bool:
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if kind == "copy":
            return self.counts(module.base | row[1])
        if kind == "phi":
            return any(self.counts(module.base | one) or self._adds_to(module, one, key & MASK) for one in self._ways(module, row))
        if kind == "op":
            if any(isinstance(module.nodes[one][1], str) for one in row[2:4] if module.nodes[one][0] == "const"):
                return False
            return row[1] in ("Add", "Sub", "Mult", "FloorDiv") and any(self.counts(module.base | one) for one in row[2:4])
        if kind == "choice":
            return any(self.counts(module.base | one) for one in row[2:4])
        if kind == "call" and row[2] and module.last_name(row[1]) in ("int", "str"):
            return self.counts(module.base | row[2][0])
        if kind == "part" and row[2] == 0:
            element = module.nodes[row[1]]
            return element[0] == "elem" and self._is_call_of(module, element[1], "enumerate")
        if kind == "elem":
            return self._is_call_of(module, row[1], "range") or self._is_call_of(module, row[1], "count")
        if kind == "param":
            given = handed_in(self.program, module.base | row[1], row[2])
            return any(self.counts(one) for _, one in given)
        return kind == "attr" and self._is_counted_attribute(module, row)

    @staticmethod
    def _adds_to(module: Module, number: int, phi: int) -> bool:
        """``step += 1`` in a loop: an operation on the value that the loop began with."""
        row = module.nodes[number]
        return row[0] == "op" and row[1] == "Add" and (row[2] == phi or module.nodes[row[2]][:2] == ("copy", phi))

    @staticmethod
    def _is_call_of(module: Module, number: int, name: str) -> bool:
        row = module.plain(number)
        for _ in range(3):
            if row[0] != "call":
                return False
            if module.last_name(row[1]) == name:
                return True
            if not row[2]:
                return False
            row = module.plain(row[2][0])
        return False

    def _is_counted_attribute(self, module: Module, row: tuple[object, ...]) -> bool:
        base, name = int(str(row[1])), str(row[2])
        owner = self.program.class_of_self(module, base)
        if owner is not None:
            written = self.program.own_writes.get((owner, name), [])
            for key in written:
                home = self.program.module_of(key)
                one = home.nodes[key & MASK]
                if one[0] == "op" and one[1] == "Add" and home.plain(one[2])[0] == "attr" and home.plain(one[2])[2] == name:
                    return True
            return bool(written) and any(map(self.counts, written))
        return name in _COUNTS and not self.program.ask(module.base | base)

    def may_be_pruned(self, series: Series, near: frozenset[int]) -> bool | None:
        """Whether something in some modules removes files that a series may have written; None where nothing removes any file."""
        removals = [one.names for one in self._removals if self.program.module_of(one.call).index in near]
        if not removals:
            return None
        written = self.patterns.of(series.path)
        return any(not names or may_meet(names, written) for names in removals)

    def is_surely_pruned(self, series: Series, near: frozenset[int]) -> bool:
        """Whether something in some modules removes files of names that a series writes; one that it is about to write again is none."""
        written = self.patterns.of(series.path)
        mine = self.program.module_of(series.path).nodes[series.path & MASK]
        return any(
            self.program.module_of(one.call).index in near
            and not (one.path and self.program.module_of(one.path).plain(one.path & MASK) == mine)
            and one.names
            and may_meet(one.names, written)
            and _may_share_a_folder(one.names, written)
            for one in self._removals
        )


def _may_share_a_folder(names: Iterable[str], others: Iterable[str]) -> bool:
    """Whether the folders of what is removed and of what is written may be one.

    Of a path without a folder nothing is known. Where all of a known folder goes, it has to be the one that is written to.
    """
    theirs = {posixpath.dirname(one) for one in others}
    return any(_may_be_folder(name, folder) for name in names for folder in theirs)


def _may_be_folder(name: str, folder: str) -> bool:
    mine, last = posixpath.split(name)
    if not last.strip("*") and mine.strip("*") and not folder.strip("*"):
        return False
    return not mine or not folder or meet(mine, folder)
