"""Bounds on the number of loader workers: from code, the machine, launches and configurations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ldlm_lint.code.table import Node
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Queries

CPU_COUNTS = frozenset(
    {"os.cpu_count", "os.process_cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "psutil.cpu_count"}
)
_OF_MACHINE = CPU_COUNTS | {"torch.cuda.device_count", "torch.accelerator.device_count"}
_ENVIRONMENT = frozenset({"os.environ.get", "os.getenv"})
# Batch systems provide the number of CPUs of a job: SLURM_CPUS_PER_TASK, PBS_NCPUS, LSB_DJOB_NUMPROC, NSLOTS.
_CPU_VARIABLE = lazily(r"cpus?(_|$)|cores?(_|$)|nprocs?(_|$)|numproc|nslots", re.I)
_CASTS = frozenset({"int", "round", "floor"})
_GROWS_WITH: dict[str, slice] = {
    "Add": slice(2, 4), "Mult": slice(2, 4), "Sub": slice(2, 3), "FloorDiv": slice(2, 3), "Div": slice(2, 3),
}  # fmt: skip
_LOOK_UPS = frozenset({"get", "getattr", "pop", "getenv"})
_AT_MOST = {"Lt": -1, "LtE": 0, "Eq": 0}
_AT_MOST_UNLESS = {"Gt": 0, "GtE": -1, "NotEq": 0}
_MOST_OPEN = 60
"""Expressions in a row behind a number that are looked at; beyond them it may be anything."""

Outside = Callable[[int, str, int], bool]
"""Whether a launch or a configuration may give more than a number to an expression (key) that reads the setting of a name."""


class WorkerCounts:
    """Answers for the expressions of a program."""

    def __init__(self, ask: Queries, outside: Outside) -> None:
        self.ask = ask
        self.program = ask.program
        self._outside = outside
        self._known: dict[tuple[int, int], bool] = {}
        self._open = 0

    def may_exceed(self, key: int, most: int) -> bool:
        """Whether an expression may be larger than a number of workers, judging by the whole project."""
        known = self._known.get((key, most))
        if known is not None:
            return known
        if self._open > _MOST_OPEN:
            return True
        # A self-reference adds nothing.
        self._known[key, most] = False
        self._open += 1
        self._known[key, most] = found = self._exceeds(key, most)
        self._open -= 1
        return found

    def _exceeds(self, key: int, most: int) -> bool:
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] == "const":
            return _number(row[1]) > most
        if row[0] == "call":
            return self._call_exceeds(module, key, row, most)
        if row[0] == "item" and "os.environ" in self._names(module, row[1]):
            return True
        if any(self.may_exceed(one, most) for one in self._parts(module, row, most)):
            return True
        return self._is_set_beyond(module, key, row, most)

    def _parts(self, module: Module, row: Node, most: int) -> Iterator[int]:
        """The alternatives of a number, and the operands it grows with."""
        kind, base = row[0], module.base
        if kind == "phi":
            yield from (base | one for one in row[1])
        elif kind in ("copy", "star"):
            yield base | row[1]
        elif kind == "bool" and row[1] == "Or":
            yield from (base | one for one in row[2])
        elif kind == "choice":
            arms = ((row[2], True), (row[3], False))
            yield from (base | arm for arm, holds in arms if not is_bounded(module, arm, row[1], holds, most))
        elif kind == "op" and row[1] in ("Div", "FloorDiv") and (rounded := _rounded_up(module, row[2], row[3])):
            yield from (base | one for one in rounded)
        elif kind == "op":
            yield from (base | one for one in row[_GROWS_WITH.get(row[1], slice(0, 0))])
        elif kind == "param":
            yield from self._given(module, row)
        elif kind == "free":
            yield from self.ask.bound_to(module, row)

    def _given(self, module: Module, row: Node) -> Iterator[int]:
        function, name = module.base | row[1], row[2]
        given = self.program.given_for(function, name)
        yield from (node for _, node in given)
        default = module.scopes[row[1]].defaults.get(name)
        if default is not None and len(given) <= len(self.program.callers(function)):
            yield module.base | default

    def _call_exceeds(self, module: Module, key: int, row: Node, most: int) -> bool:
        if self.is_of_machine(key):
            return True
        name, args = module.last_name(row[1]), [module.base | one for one in row[2]]
        if name in _CASTS or name == "max":
            return any(self.may_exceed(one, most) for one in args)
        if name == "min" and args:
            return all(self.may_exceed(one, most) for one in args)
        numbers = self.program.atoms.numbers(self.program.ask(key))
        if any(one > most for one in numbers):
            return True
        if name not in _LOOK_UPS:
            return False
        default = looked_up_default(module, row)
        return (default is not None and self.may_exceed(module.base | default, most)) or self._is_set_beyond(module, key, row, most)

    def is_of_machine(self, key: int) -> bool:
        """Whether a call counts CPUs or GPUs, or reads an environment variable that has no default or counts CPUs."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] != "call":
            return False
        if counts_affinity(self.ask, module, row):
            return True
        names = self._names(module, row[1])
        if not names or not names <= _OF_MACHINE | _ENVIRONMENT:
            return False
        if names <= _OF_MACHINE:
            return True
        variable: Node = module.nodes[row[2][0]] if row[2] else ("", "")
        counts = variable[0] == "const" and _CPU_VARIABLE.search(str(variable[1])) is not None
        return bool(row[2]) and (counts or looked_up_default(module, row) is None)

    def _names(self, module: Module, number: int) -> set[str]:
        return self.ask.names_of(self.program.ask(module.base | number))

    def _is_set_beyond(self, module: Module, key: int, row: Node, most: int) -> bool:
        """Whether a setting is set to more anywhere: the value itself, a default of a flag, an attribute, a launch, a
        configuration."""
        value = self.program.ask(key)
        if any(one > most for one in self.program.atoms.numbers(value)):
            return True
        name = setting_of(module, row)
        flags = [fields[1] for fields in self.program.atoms.kinds(value, "flag")] or (self.ask.flags_by_name(key) if row[0] == "attr" else [])
        defaults = [self.ask.flag(flag).default for flag in flags]
        if any(self.may_exceed(one, most) for one in defaults if one is not None):
            return True
        if not name:
            return False
        return self._is_written_beyond(module, name, most) or self._outside(key, name, most)

    def _is_written_beyond(self, module: Module, name: str, most: int) -> bool:
        """Whether some object's attribute, or a field of a class, of that name gets more in the programs of a module."""
        program = self.program
        fields = [one for classes in program.classes.values() for one in classes if program.is_field(one, name)]
        values = [source for one in fields for source in program.field_sources(one, name)]
        values += [value for _, value in program.other_writes.get(name, ())]
        near = program.together.programs_of(module) if values else ()
        return any(program.module_of(value).index in near and self.may_exceed(value, most) for value in values)


def _rounded_up(module: Module, left: int, right: int) -> list[int]:
    """``workers`` of ``(workers + ranks - 1) / ranks``, which is not larger; empty for another division."""
    terms, todo = [], [left]
    while todo:
        row = module.plain(todo[-1])
        number = todo.pop()
        if row[0] == "op" and row[1] in ("Add", "Sub"):
            todo += row[2:4]
        else:
            terms.append(number)
    others = [one for one in terms if not _same(module, one, right, 0)]
    return [one for one in others if module.nodes[one][0] != "const"] if len(others) < len(terms) else []


def setting_of(module: Module, row: Node) -> str:
    """The name of the setting that an expression reads: ``told["workers"]``, ``told.workers``, ``told.get("workers")``, a parameter's."""
    if row[0] in ("attr", "param"):
        return str(row[2])
    key = row[2] if row[0] == "item" else _key_of_look_up(module, row)
    text = module.nodes[key]
    return text[1] if text[0] == "const" and isinstance(text[1], str) else ""


def _key_of_look_up(module: Module, row: Node) -> int:
    if row[0] != "call" or module.last_name(row[1]) not in _LOOK_UPS or not row[2]:
        return 0
    return int(row[2][1] if module.last_name(row[1]) == "getattr" and len(row[2]) > 1 else row[2][0])


def looked_up_default(module: Module, row: Node) -> int | None:
    """The default of ``cfg.get(name, default)``, ``os.getenv(…)``, ``getattr(cfg, name, default)``."""
    wanted = 3 if module.last_name(row[1]) == "getattr" else 2
    named = next((value for keyword, value in row[3] if keyword == "default"), None)
    return row[2][-1] if len(row[2]) == wanted else named


def counts_affinity(ask: Queries, module: Module, row: Node) -> bool:
    """``len(os.sched_getaffinity(0))``."""
    inner: Node = module.nodes[row[2][0]] if len(row[2]) == 1 else ("",)
    if inner[0] != "call" or module.last_name(row[1]) != "len":
        return False
    return "os.sched_getaffinity" in ask.names_of(ask.program.ask(module.base | inner[1]))


def _number(value: object) -> float:
    if isinstance(value, str) and value.isdecimal() and len(value) < 7:
        return int(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def is_bounded(module: Module, arm: int, test: int, holds: bool, most: int) -> bool:
    """Whether a condition keeps a number below a limit: ``5 if os.cpu_count() > 4 else os.cpu_count()``."""
    row = module.nodes[test]
    if row[0] != "cmp" or len(row[1]) != 1 or not _same(module, row[2], arm, 0):
        return False
    right = module.nodes[row[3][0]]
    bound = (_AT_MOST if holds else _AT_MOST_UNLESS).get(row[1][0])
    return right[0] == "const" and bound is not None and isinstance(right[1], (int, float)) and right[1] + bound <= most


def _same(module: Module, one: int, other: int, depth: int) -> bool:
    """Whether two expressions are written alike."""
    left, right = module.nodes[one], module.nodes[other]
    if one == other or left == right:
        return True
    if depth > 4 or left[0] != right[0] or left[0] not in ("call", "attr"):
        return False
    if left[0] == "attr":
        return left[2] == right[2] and _same(module, left[1], right[1], depth + 1)
    same = len(left[2]) == len(right[2]) and not left[3] and not right[3]
    return same and all(_same(module, a, b, depth + 1) for a, b in ((left[1], right[1]), *zip(left[2], right[2], strict=False)))
