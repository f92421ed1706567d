"""Checkpoint series: writers of files with numbered names, these names, and the removal of such files.

A *pattern* is a text in which ``*`` stands for an unknown or counting part. A writer and a pruner belong together if
their patterns can name the same file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.concepts.checkpoint_sinks import Sinks, behind_paths
from ldlm_lint.concepts.counting import Counting
from ldlm_lint.concepts.path_patterns import JOINS, OF_PATHS, PathPatterns, may_meet, meet
from ldlm_lint.concepts.removals import Removal, Removals
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module

_STEPS = 12


class Series(NamedTuple):
    """A call whose argument is a numbered name: the call (key), the argument, the counters (keys), and the sink."""

    call: int
    path: int
    counters: tuple[int, ...]
    sink: int


class Checkpoints(Counting):
    """The checkpoint series of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self.patterns = PathPatterns(code.program)

    @cached_property
    def all(self) -> list[Series]:
        """Every series, at the call that receives the numbered name."""
        found: dict[int, Series] = {}
        for sink, path, source in Sinks(self.ask, self.patterns).all():
            # Moving a numbered file is not a separate write.
            if not source or not self._counters(source):
                for call, name in self._named_at(sink, path, set()):
                    counters = tuple(self._counters(name))
                    if counters:
                        found.setdefault(call, Series(call, name, counters, sink))
        return list(found.values())

    @cached_property
    def _removals(self) -> list[Removal]:
        return list(Removals(self.program, self.patterns).all())

    def _named_at(self, call: int, path: int, seen: set[int]) -> Iterator[tuple[int, int]]:
        """The calls that build the name of a written file, with its expressions: in callers if the name is a
        parameter.
        """
        if path in seen or len(seen) > _STEPS * 4:
            return
        seen.add(path)
        module = self.program.module_of(path)
        number = behind_paths(module, path & MASK)
        row = module.nodes[number]
        parameters = [row] if row[0] == "param" else []
        if not parameters and not self._counters(module.base | number):
            site = self.program.module_of(call).table.sites[call & MASK]
            # A name passed in from outside of a loop is the same in all iterations.
            parameters = self._parameters_of_name(module, number) if site.loop < 0 else []
        if not parameters:
            yield call, module.base | number
        for one in parameters:
            for caller, node in self.program.given_for(module.base | one[1], one[2]):
                yield from self._named_at(caller, node, seen)

    def _parameters_of_name(self, module: Module, number: int, steps: int = 0) -> list[Node]:
        """The parameters in the components of a path, and of the last one those in a text: ``os.path.join(folder, f"{name}.pt")``."""
        row = module.nodes[number]
        if row[0] == "param":
            return [row]
        parts = self._parts(module, number) if steps < _STEPS else []
        is_path = (row[0] == "call" and module.last_name(row[1]) in JOINS) or row[:2] == ("op", "Div")
        inner = parts if is_path else _behind_slash(module, parts)
        return [one for part in inner for one in self._parameters_of_name(module, part, steps + 1)]

    def _counters(self, key: int, steps: int = 0) -> list[int]:
        """The parts of a name (keys) that count steps, epochs or saves."""
        if steps > _STEPS:
            return []
        if self.counts(key):
            return [key]
        module = self.program.module_of(key)
        parts = self._parts(module, key & MASK)
        if not parts and module.nodes[key & MASK][0] == "call":
            return self._counters_of_helper(key, steps)
        return [found for one in parts for found in self._counters(module.base | one, steps + 1)]

    def _parts(self, module: Module, number: int) -> list[int]:
        """The parts of a name, or its alternatives."""
        row = module.nodes[number]
        kind = row[0]
        if kind == "fstr":
            return list(row[1])
        if kind == "op":
            # ``step % 2`` names two files in turn; ``"%d.pt" % step`` is a text.
            is_text = row[1] in ("Add", "Div") or (module.nodes[row[2]][0] in ("fstr", "const") and isinstance(module.nodes[row[2]][1], (str, tuple)))
            return [row[2], row[3]] if is_text and row[1] in ("Add", "Div", "Mod") else []
        if kind == "seq":
            return list(row[2])
        if kind in ("phi", "copy"):
            return self._ways(module, row) if kind == "phi" else [row[1]]
        if kind == "choice":
            return [row[2], row[3]]
        if kind == "elem":
            return self._listed(module, row[1])
        if kind != "call":
            return []
        name = module.last_name(row[1])
        function = module.nodes[row[1]]
        is_text = name in (*JOINS, *OF_PATHS, "zfill") or (name == "format" and function[0] == "attr" and self._has_fields(module, function[1]))
        parts = [*row[2], *(value for _, value in row[3])] if is_text else []
        return parts + ([function[1]] if name == "zfill" and function[0] == "attr" else [])

    def _has_fields(self, module: Module, number: int) -> bool:
        """Whether a format string may have a field: ``"last.pt".format(step)`` is the same at every step."""
        texts = self.patterns.of(module.base | number)
        return any("{" in one or "*" in one.rpartition("/")[2] for one in texts)

    def _listed(self, module: Module, number: int) -> list[int]:
        """The elements of a list: literal ones and appended ones."""
        row = module.plain(number)
        if row[0] != "seq":
            return []
        added = [module.nodes[call] for call in module.table.named.get("append", ())]
        mine = (one for one in added if module.nodes[one[1]][0] == "attr" and module.plain(module.nodes[one[1]][1]) is row)
        return [*row[2], *(value for one in mine for value in one[2])]

    def _counters_of_helper(self, call: int, steps: int) -> list[int]:
        """The counters in the result of a project function: its own, and those in this call's arguments."""
        found = []
        for function, value in self._returned(call):
            for counter in self._counters(value, steps + 1):
                row = self.program.module_of(counter).nodes[counter & MASK]
                if row[0] != "param" or function != self.program.module_of(counter).base | row[1]:
                    found.append(counter)
                    continue
                given = [node for caller, node in self.program.given_for(function, row[2]) if caller == call]
                found += [one for node in given for one in self._counters(node, steps + 1)]
        return found

    def _makes_room(self, path: int, series: Series) -> bool:
        """Whether the removed file is the one that is written next: ``if os.path.exists(path): os.remove(path)``."""
        module = self.program.module_of(path)
        if module is not self.program.module_of(series.path):
            return False
        removed = behind_paths(module, path & MASK)
        if module.nodes[removed][0] in ("phi", "attr"):
            # A name kept from an earlier iteration is an earlier file.
            return False
        return removed == behind_paths(module, series.path & MASK) or not set(series.counters).isdisjoint(self._counters(module.base | removed))

    def _empties_the_new_one(self, path: int, series: Series) -> bool:
        """Whether the removed files were in the folder that is written: ``save_pretrained(folder)`` clears it of an
        earlier save's files."""
        module = self.program.module_of(path)
        parts = self._parts(module, behind_paths(module, path & MASK))
        folder = module.plain(parts[0]) if len(parts) > 1 else ("none",)
        if folder[0] != "param":
            return False
        home = self.program.module_of(series.call)
        called = home.last_name(home.nodes[series.call & MASK][1])
        return called == module.scopes[folder[1]].name

    def may_be_pruned(self, series: Series, near: frozenset[int]) -> bool | None:
        """Whether code in these modules removes files that a series may have written; None if no code removes any
        file.
        """
        removals = [one for one in self._removals if self.program.module_of(one.call).index in near]
        if not removals:
            return None
        written = self.patterns.of(series.path)
        others = (one.names for one in removals if not (one.path and self._empties_the_new_one(one.path, series)))
        return any(not names or may_meet(names, written) for names in others)

    def is_surely_pruned(self, series: Series, near: frozenset[int]) -> bool:
        """Whether code in these modules surely removes files with names of a series, such as the one from a few saves
        ago."""
        written = self.patterns.of(series.path)
        return any(
            self.program.module_of(one.call).index in near
            and one.names
            and may_meet(one.names, written)
            and _may_share_a_folder(one.names, written)
            and not (one.path and (self._makes_room(one.path, series) or self._empties_the_new_one(one.path, series)))
            for one in self._removals
        )


def _behind_slash(module: Module, parts: list[int]) -> list[int]:
    """The parts of a text after the last slash that is written in it."""
    for index in range(len(parts) - 1, -1, -1):
        row = module.nodes[parts[index]]
        if row[0] == "const" and "/" in str(row[1]):
            return parts[index + 1 :]
    return parts


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
