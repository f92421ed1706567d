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
_MOST = 60
"""Values of one name that are looked at."""


class Series(NamedTuple):
    """A call whose argument is a name that counts: the call (key), the argument, the counters (keys), and the sink."""

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
        """The calls at which the name of a written file is made, and the expressions of it: those of callers where it is handed in."""
        if path in seen or len(seen) > _STEPS * 4:
            return
        seen.add(path)
        module = self.program.module_of(path)
        number = behind_paths(module, path & MASK)
        row = module.nodes[number]
        parameters = [row] if row[0] == "param" else []
        if not parameters and not self._counters(module.base | number):
            site = self.program.module_of(call).table.sites[call & MASK]
            # What is handed in from outside of a loop names one file in all of its rounds.
            parameters = self._parameters_of_name(module, number) if site.loop < 0 else []
        if not parameters:
            yield call, module.base | number
        for one in parameters:
            for caller, node in handed_in(self.program, module.base | one[1], one[2]):
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
        """What a name is put together of, or the cases of it."""
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
        """Whether a text that is formatted may have a field: ``"last.pt".format(step)`` is the same at every step."""
        texts = self.patterns.of(module.base | number)
        return any("{" in one or "*" in one.rpartition("/")[2] for one in texts)

    def _listed(self, module: Module, number: int) -> list[int]:
        """What a list holds: as it is written, and what is appended to it."""
        row = module.plain(number)
        if row[0] != "seq":
            return []
        added = [module.nodes[call] for call in module.table.named.get("append", ())]
        mine = (one for one in added if module.nodes[one[1]][0] == "attr" and module.plain(module.nodes[one[1]][1]) is row)
        return [*row[2], *(value for one in mine for value in one[2])]

    def _counters_of_helper(self, call: int, steps: int) -> list[int]:
        """The counters in what a function of the project returns: its own, and what this call gives for its parameters."""
        found = []
        for function, value in self._returned(call):
            for counter in self._counters(value, steps + 1):
                row = self.program.module_of(counter).nodes[counter & MASK]
                if row[0] != "param" or function != self.program.module_of(counter).base | row[1]:
                    found.append(counter)
                    continue
                given = [node for caller, node in handed_in(self.program, function, row[2]) if caller == call]
                found += [one for node in given for one in self._counters(node, steps + 1)]
        return found

    def _returned(self, call: int) -> list[tuple[int, int]]:
        """The functions of the project that a call goes to, with the expressions (keys) that they return."""
        self.program.ask(("to", call))
        found = []
        for function in sorted(self.program.targets_of.get(call, ())):
            module = self.program.module_of(function)
            scope = module.scopes[function & MASK]
            found += [(function, module.base | value) for value, _ in scope.returns if value and not scope.yields]
        return found

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
            return _adds_to_itself(module, key & MASK) or any(self.counts(module.base | one) for one in self._ways(module, row))
        if kind == "op":
            if any(isinstance(module.nodes[one][1], str) for one in row[2:4] if module.nodes[one][0] == "const"):
                return False
            if row[1] == "Div":
                # A path is divided as well, by a name.
                return self.counts(module.base | row[2])
            return row[1] in ("Add", "Sub", "Mult", "FloorDiv") and any(self.counts(module.base | one) for one in row[2:4])
        if kind == "choice":
            return any(self.counts(module.base | one) for one in row[2:4])
        if kind == "call":
            plain = row[2] and module.last_name(row[1]) in ("int", "str")
            return self.counts(module.base | row[2][0]) if plain else self._returns_count(key)
        if kind == "part" and row[2] == 0:
            element = module.nodes[row[1]]
            return element[0] == "elem" and self._is_call_of(module, element[1], "enumerate")
        if kind == "elem":
            return any(self._is_call_of(module, row[1], name) for name in ("range", "trange", "count"))
        if kind == "param":
            given = handed_in(self.program, module.base | row[1], row[2])
            return any(self.counts(one) for _, one in given)
        if kind == "free":
            return any(map(self.counts, self.ask.bound_to(module, row)))
        return (kind == "attr" and self._is_counted_attribute(module, row)) or (kind == "item" and self._is_counted_item(module, row))

    def _returns_count(self, call: int) -> bool:
        """Whether a method of the project gives what it counts: ``self.total_steps()``."""
        returned = self._returned(call)
        rows = [self.program.module_of(value).nodes[value & MASK] for _, value in returned]
        return bool(returned) and all(row[0] in ("attr", "op") and self.counts(value) for row, (_, value) in zip(rows, returned, strict=True))

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

    def _is_counted_item(self, module: Module, row: Node) -> bool:
        """What a program counts in a dictionary, in whichever of its functions."""
        key = module.nodes[row[2]]
        adding = self._added_items.get(key[1], set()) if key[0] == "const" and isinstance(key[1], str) else set()
        return bool(adding) and not adding.isdisjoint(self.program.together.programs_of(module))

    @cached_property
    def _added_items(self) -> dict[object, set[int]]:
        found: dict[object, set[int]] = {}
        for module in self.program.live:
            for key in _added_items(module):
                found.setdefault(key, set()).add(module.index)
        return found

    def _makes_room(self, path: int, series: Series) -> bool:
        """Whether what is removed is the very file that is written next: ``if os.path.exists(path): os.remove(path)``."""
        module = self.program.module_of(path)
        if module is not self.program.module_of(series.path):
            return False
        removed = behind_paths(module, path & MASK)
        if module.nodes[removed][0] in ("phi", "attr"):
            # What was kept from an earlier round is an earlier file.
            return False
        return removed == behind_paths(module, series.path & MASK) or not set(series.counters).isdisjoint(self._counters(module.base | removed))

    def _empties_the_new_one(self, path: int, series: Series) -> bool:
        """Whether what is removed stood in the very folder that is written: ``save_pretrained(folder)`` clears it of an earlier save's files."""
        module = self.program.module_of(path)
        parts = self._parts(module, behind_paths(module, path & MASK))
        folder = module.plain(parts[0]) if len(parts) > 1 else ("none",)
        if folder[0] != "param":
            return False
        home = self.program.module_of(series.call)
        called = home.last_name(home.nodes[series.call & MASK][1])
        return called == module.scopes[folder[1]].name

    def may_be_pruned(self, series: Series, near: frozenset[int]) -> bool | None:
        """Whether something in some modules removes files that a series may have written; None where nothing removes any file."""
        removals = [one for one in self._removals if self.program.module_of(one.call).index in near]
        if not removals:
            return None
        written = self.patterns.of(series.path)
        others = (one.names for one in removals if not (one.path and self._empties_the_new_one(one.path, series)))
        return any(not names or may_meet(names, written) for names in others)

    def is_surely_pruned(self, series: Series, near: frozenset[int]) -> bool:
        """Whether something in some modules removes files of names that a series writes, such as the one of a few saves ago."""
        written = self.patterns.of(series.path)
        return any(
            self.program.module_of(one.call).index in near
            and one.names
            and may_meet(one.names, written)
            and _may_share_a_folder(one.names, written)
            and not (one.path and (self._makes_room(one.path, series) or self._empties_the_new_one(one.path, series)))
            for one in self._removals
        )


def _adds_to_itself(module: Module, phi: int) -> bool:
    """``step += 1`` in a loop, in some branch of it: an operation on the value that the round began with."""
    todo, seen = [phi], {phi}
    while todo and len(seen) < _MOST:
        row = module.nodes[todo.pop()]
        inner = list(row[1]) if row[0] == "phi" else [row[1]] if row[0] == "copy" else []
        for one in inner:
            added = module.nodes[one]
            if added[:2] == ("op", "Add") and (added[2] == phi or module.nodes[added[2]] == ("copy", phi)):
                return True
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return False


def _added_items(module: Module) -> set[object]:
    """The keys of which a module adds something to what stands there: ``state["step"] += 1``."""
    found: set[object] = set()
    for update in module.table.updates:
        _, _, name, value = module.nodes[update]
        added = module.nodes[value]
        old = module.nodes[added[2]] if added[:2] == ("op", "Add") else ("none",)
        if old[0] == "item" and module.nodes[name][0] == "const" and module.nodes[old[2]] == module.nodes[name]:
            found.add(module.nodes[name][1])
    return found


def _behind_slash(module: Module, parts: list[int]) -> list[int]:
    """The parts of a text behind the last slash that is written in it."""
    for index in range(len(parts) - 1, -1, -1):
        row = module.nodes[parts[index]]
        if row[0] == "const" and "/" in str(row[1]):
            return parts[index + 1 :]
    return parts


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
