"""Checkpoint series: who writes files under names that count, which names these are, and what removes files of such names.

A *pattern* is a text in which ``*`` stands for what is not known or counts. A writer and a pruner belong together where their patterns
may name one file.
"""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.queries import Queries

_SINKS = {
    "torch.save": ("f", 1),
    "safetensors.torch.save_file": ("filename", 1),
    "safetensors.torch.save_model": ("filename", 1),
    "pickle.dump": ("file", 1),
    "joblib.dump": ("filename", 1),
    "torch.distributed.checkpoint.save": ("checkpoint_id", 9),
    "torch.distributed.checkpoint.state_dict_saver.save": ("checkpoint_id", 9),
}
"""Functions that write what they are given, with the parameter of the path and its place."""
_METHODS = {"save_pretrained": ("save_directory", 0), "save_state": ("output_dir", 0), "save_checkpoint": ("filepath", 0)}
"""Methods of models, Accelerate and trainers that write to a path of their own."""
_MEMORY = frozenset({"io.BytesIO", "io.StringIO"})
_REMOVES = {"remove": 0, "unlink": 0, "rmtree": 0, "removedirs": 0, "rmdir": 0}
_OF_PATHS = frozenset({"str", "Path", "PurePath", "fspath", "abspath", "expanduser", "realpath", "normpath"})
_JOINS = frozenset({"join", "joinpath"})
_COUNTS = frozenset({"global_step", "current_epoch", "global_steps"})
"""What Lightning, DeepSpeed and the Trainer count in objects of their own."""
_STEPS = 12
_COPIES = frozenset({"dict", "OrderedDict", "deepcopy", "copy"})
_HANDS_ON = frozenset({"cpu", "detach", "clone", "to", "half", "items", "values", "copy", "contiguous"})
"""Methods of tensors and dictionaries that give the same in another form."""


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
        self._counting: dict[int, bool] = {}

    def all(self) -> Iterator[Series]:
        """Every series, at the call that is given the name that counts."""
        seen: set[int] = set()
        for sink, path in self._sinks():
            for call, name in self._named_at(sink, path, set()):
                counters = tuple(self._counters(self.program.module_of(name), name & MASK))
                if counters and call not in seen:
                    seen.add(call)
                    yield Series(call, name, counters, sink)

    def _sinks(self) -> Iterator[tuple[int, int]]:
        """The calls that write a model or a training's state, and the expressions of their paths."""
        for call, name in self.ask.calls_of(_SINKS):
            parameter, place = _SINKS[name]
            argument = self.ask.argument(call, parameter, place)
            for source in argument.sources[:1]:
                if self._holds_weights(call):
                    yield call, self._opened(source)
        for name, (parameter, place) in _METHODS.items():
            for call in self.program.calls.get(name, ()):
                argument = self.ask.argument(call, parameter, place)
                for source in argument.sources[:1] if self._is_of_others(call) else ():
                    yield call, source

    def _is_of_others(self, call: int) -> bool:
        """Whether a method is no function of the project, which takes what it likes and writes by a call of its own."""
        module = self.program.module_of(call)
        self.program.ask(("to", call))
        return module.nodes[module.nodes[call & MASK][1]][0] == "attr" and not self.program.targets_of.get(call)

    def _holds_weights(self, call: int) -> bool:
        """Whether what is written holds a state: ``state_dict()`` or a module stands in it, or it is handed in and named by nobody."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        first = row[2][0] if row[2] else next((value for name, value in row[3] if name in ("obj", "tensors", "model")), 0)
        return bool(first) and self._is_state(module, first, set())

    def _is_state(self, module: Module, number: int, seen: set[int]) -> bool:
        key = module.base | number
        if key in seen or len(seen) > 60:
            return False
        seen.add(key)
        row = module.nodes[number]
        kind = row[0]
        if kind == "call":
            name = module.last_name(row[1])
            if name.endswith("state_dict") or name in ("get_model", "unwrap_model"):
                return True
            parts = [*row[2], *(value for _, value in row[3])] if name in _COPIES else []
            function = module.nodes[row[1]]
            parts += [function[1]] if function[0] == "attr" and name in _HANDS_ON else []
            return any(self._is_state(module, one, seen) for one in parts) or self._returns_state(key, seen)
        if kind == "param":
            return self._is_given_state(module, row, seen)
        if kind == "free":
            return any(self._is_state(module, one, seen) for one in module.scopes[0].bindings.get(row[2], []))
        return any(self._is_state(module, one, seen) for one in _held(row))

    def _returns_state(self, call: int, seen: set[int]) -> bool:
        self.program.ask(("to", call))
        for function in sorted(self.program.targets_of.get(call, ())):
            module = self.program.module_of(function)
            if any(value and self._is_state(module, value, seen) for value, _ in module.scopes[function & MASK].returns):
                return True
        return False

    def _is_given_state(self, module: Module, row: tuple[object, ...], seen: set[int]) -> bool:
        function = module.base | int(str(row[1]))
        return any(self._is_state(self.program.module_of(one), one & MASK, seen) for one in self._given(function, str(row[2])))

    def _given(self, function: int, name: str) -> list[int]:
        """What the known callers give for a parameter."""
        return [node for _, node in self._given_at(function, name)]

    def _given_at(self, function: int, name: str) -> list[tuple[int, int]]:
        program = self.program
        program.ask(("callers", function))
        found = []
        for edge in sorted(program.ask(("edges", function))):
            node = None if edge & 3 == UNKNOWN else program.argument_node(edge >> 2, function, edge & 3, name)
            if node is not None:
                found.append((edge >> 2, node))
        return found

    def _opened(self, key: int) -> int:
        """The path of a file that ``open`` opened; else the expression itself."""
        module = self.program.module_of(key)
        row = module.plain(key & MASK)
        if row[0] == "enter":
            row = module.plain(row[1])
        if row[0] == "call" and row[2] and module.last_name(row[1]) in ("open", "File"):
            return module.base | row[2][0]
        return key

    def _named_at(self, call: int, path: int, seen: set[int]) -> Iterator[tuple[int, int]]:
        """The calls at which the name of a written file is made, and the expressions of it: those of callers where it is handed in."""
        if path in seen or len(seen) > _STEPS * 4:
            return
        seen.add(path)
        module = self.program.module_of(path)
        number = self._behind_paths(module, path & MASK)
        row = module.nodes[number]
        if row[0] != "param":
            yield call, module.base | number
            return
        for caller, node in self._given_at(module.base | row[1], row[2]):
            yield from self._named_at(caller, node, seen)

    def _behind_paths(self, module: Module, number: int) -> int:
        """An expression without what only makes a path of it."""
        for _ in range(_STEPS):
            row = module.nodes[number]
            if row[0] == "copy":
                number = row[1]
            elif row[0] == "call" and len(row[2]) == 1 and not row[3] and module.last_name(row[1]) in _OF_PATHS:
                number = row[2][0]
            else:
                break
        return number

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
            parts = list(row[1]) if kind == "phi" else [row[1]]
        elif kind == "choice":
            parts = [row[2], row[3]]
        elif kind == "call":
            name = module.last_name(row[1])
            is_text = name in (*_JOINS, *_OF_PATHS, "format", "zfill")
            function = module.nodes[row[1]]
            parts = [*row[2], *(value for _, value in row[3])] if is_text else []
            parts += [function[1]] if name == "zfill" and function[0] == "attr" else []
        else:
            parts = []
        return [found for one in parts for found in self._counters(module, one, steps + 1)]

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
            return any(self.counts(module.base | one) or self._adds_to(module, one, key & MASK) for one in row[1])
        if kind == "op":
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
            given = self._given(module.base | row[1], row[2])
            return bool(given) and any(map(self.counts, given))
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

    def pattern(self, key: int) -> set[str]:
        """The texts that a path may be, with ``*`` for what is not known."""
        found = self.program.ask(key)
        return self.program.atoms.texts(found)

    def may_be_pruned(self, series: Series, near: frozenset[int]) -> bool | None:
        """Whether something in some modules removes files that a series may have written; None where nothing removes any file."""
        removals = [one for one in self._removals() if self.program.module_of(one[0]).index in near]
        if not removals:
            return None
        written = self.pattern(series.path)
        return any(not names or _may_meet(names, written) for _, names in removals)

    def is_named_by_removal(self, series: Series, near: frozenset[int]) -> bool:
        """Whether something in some modules removes files of names that are known, and that a series writes."""
        written = self.pattern(series.path)
        removed = (names for call, names in self._removals() if self.program.module_of(call).index in near)
        return bool(written) and any(_may_meet({one for one in names if posixpath.basename(one).strip("*")}, written) for names in removed)

    def _removals(self) -> Iterator[tuple[int, set[str]]]:
        """The calls that remove files, and the names of what they remove; no names where these are not known."""
        for name in _REMOVES:
            for call in self.program.calls.get(name, ()):
                module = self.program.module_of(call)
                row = module.nodes[call & MASK]
                function = module.nodes[row[1]]
                if function[0] == "attr" and not row[2]:
                    yield call, self._names(module, function[1], 0)
                elif row[2] and self._removes_files(module, row):
                    yield call, self._names(module, row[2][0], 0)

    def _removes_files(self, module: Module, row: tuple[object, ...]) -> bool:
        """Whether the function is one of Python's own: lists have a ``remove``, too."""
        functions = self.program.ask(module.base | int(str(row[1])))
        return any(fields[1].partition(".")[0] in ("os", "shutil", "pathlib") for fields in self.program.atoms.kinds(functions, "x"))

    def _names(self, module: Module, number: int, steps: int) -> set[str]:
        """The names that a removed path may be: what it is by itself, or what was looked for where it comes from."""
        texts = self.program.atoms.texts(self.program.ask(module.base | number))
        if texts - {"*"}:
            return texts
        row = module.nodes[number]
        kind = row[0]
        if steps > _STEPS:
            return set()
        if kind == "call":
            name = module.last_name(row[1])
            if name in ("glob", "iglob", "rglob") and row[2]:
                found = self.program.atoms.texts(self.program.ask(module.base | row[2][0]))
                # ``folder.glob("step_*.pt")`` looks below a folder that the text does not name.
                return {text if "/" in text else f"*/{text}" for text in found}
            inner = row[2][-1] if name in _JOINS and row[2] else row[2][0] if row[2] else 0
            return self._names(module, inner, steps + 1) if inner else set()
        if kind == "param":
            given = self._given(module.base | row[1], row[2])
            return set().union(*(self._names(self.program.module_of(one), one & MASK, steps + 1) for one in given))
        if kind == "phi":
            return set().union(*(self._names(module, one, steps + 1) for one in row[1]))
        inner = row[2] if kind == "op" and row[1] == "Div" else row[1] if kind in ("copy", "elem", "item", "part", "star") else 0
        if kind == "comp":
            inner = row[1]
        return self._names(module, inner, steps + 1) if inner else set()


def _held(row: Node) -> list[int]:
    """The expressions that one holds, or that it takes something from."""
    kind = row[0]
    if kind in ("map", "seq"):
        return list(row[2])
    if kind == "phi":
        return list(row[1])
    if kind == "upd":
        return [row[1], row[3]]
    if kind in ("dcomp", "choice"):
        return list(row[2:])
    return [row[1]] if kind in ("copy", "comp", "part", "elem", "attr") else []


def _may_meet(names: set[str], written: set[str]) -> bool:
    """Whether one of some removed names may be one of the written ones; so it may where nothing is known of these."""
    if not written:
        return True
    return any(_fits(posixpath.basename(one), posixpath.basename(two)) for one in names for two in written)


def _fits(one: str, other: str) -> bool:
    if not one.strip("*") or not other.strip("*"):
        return True
    return fnmatch.fnmatchcase(one.replace("*", "0"), other) or fnmatch.fnmatchcase(other.replace("*", "0"), one)
