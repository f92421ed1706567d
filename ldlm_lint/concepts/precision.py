"""The dtypes of a program's autocasts, from the values of their arguments."""

from __future__ import annotations

import enum
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.code.table import Guard
from ldlm_lint.patterns import lazily
from ldlm_lint.program import Program
from ldlm_lint.program.atoms import FALSE, MASK, Value
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.conditions import words_below
from ldlm_lint.program.identity import Identity, identity_of
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import State

OLD_AUTOCASTS = frozenset({"torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast"})
AUTOCASTS = OLD_AUTOCASTS | {"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"}
OLD_SCALERS = frozenset({"torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"})
SCALERS = OLD_SCALERS | {"torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler", "torch.GradScaler"}
_NAMES_BFLOAT16 = lazily(r"^(use_|is_|with_)?(bf16|bfloat16)$", re.I)
_CHOOSES_PRECISION = lazily(r"16|half|dtype|precision|scal", re.I)
_FULL = frozenset({"torch.float32", "torch.float"})
_CALLERS = 16
"""Calls through which something is asked for that are looked at."""
_BFLOAT16 = frozenset({"torch.bfloat16"})


class Precision(enum.Enum):
    """The dtype of an autocast."""

    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    OTHER = "other"


class Autocasts(Concept):
    """The autocasts of a program, by the modules that they are in."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)


    @cached_property
    def _all(self) -> dict[int, dict[int, Precision]]:
        found: dict[int, dict[int, Precision]] = defaultdict(dict)
        for call, name in self.ask.calls_of(AUTOCASTS):
            found[self.ask.program.module_of(call).index][call] = self._precision(call, name)
        return found

    def of(self, index: int) -> Iterator[tuple[int, Precision]]:
        """The autocasts in a module, each with its dtype."""
        yield from sorted(self._all.get(index, {}).items())

    def switches_of(self, call: int) -> frozenset[Identity]:
        """The switches of an autocast: the origin of its own argument, and the tests around it."""
        program = self.ask.program
        module = program.module_of(call)
        old = not self.ask.names_of(self._function_of(call)) - OLD_AUTOCASTS
        enabled = self.ask.argument(call, "enabled", 0 if old else 2)
        found = {identity_of(program, enabled.sources[0])} if len(enabled.sources) == 1 else set()
        for test, holds in _tests_around(module, call & MASK):
            while module.nodes[test][0] == "not":
                test, holds = module.nodes[test][1], not holds
            if holds:
                found.add(identity_of(program, module.base | test))
        return frozenset(found - {()})

    def _function_of(self, call: int) -> Value:
        module = self.ask.program.module_of(call)
        return self.ask.program.ask(module.base | module.nodes[call & MASK][1])

    def _precision(self, call: int, name: str) -> Precision:
        old = name in OLD_AUTOCASTS
        if self._is_only_false(call, 0 if old else 2) or (not old and self._is_for_cpu(call)):
            return Precision.FLOAT32
        dtype = self.ask.argument(call, "dtype", 1)
        if dtype.state is not State.GIVEN:
            return Precision.OTHER
        meaning = self.ask.meaning(*dtype.sources)
        names = frozenset(meaning.names)
        if not names or not meaning.is_complete or len(meaning.value) != len(names):
            return Precision.OTHER
        if names <= _BFLOAT16:
            return Precision.BFLOAT16
        return Precision.FLOAT32 if names <= _FULL else Precision.OTHER

    def _is_only_false(self, call: int, position: int) -> bool:
        enabled = self.ask.argument(call, "enabled", position)
        return enabled.state is State.GIVEN and all(self.ask.program.ask(one) == frozenset([FALSE]) for one in enabled.sources)

    def _is_for_cpu(self, call: int) -> bool:
        device = self.ask.argument(call, "device_type", 0)
        return device.state is State.GIVEN and self.ask.meaning(*device.sources).only == "cpu"


def _tests_around(module: Module, call: int) -> Iterator[tuple[int, bool]]:
    """The tests that decide whether a call is made, with their outcomes: those of blocks, and of ``a if test else b``."""
    guard = module.table.sites[call].guard
    while guard >= 0:
        row = module.table.guards[guard]
        if row.kind in ("if", "rest") and row.test and row.holds is not None:
            yield row.test, row.holds
        guard = row.parent
    yield from ((row[1], row[2] == call) for row in module.nodes if row[0] == "choice" and call in row[2:4])


def is_chosen_by_precision(program: Program, call: int) -> bool:
    """Whether a condition around a call, or around the calls of its function, mentions the precision or scaling."""
    todo, seen = [call], set[int]()
    while todo and len(seen) < _CALLERS:
        at = todo.pop()
        seen.add(at)
        module = program.module_of(at)
        site = module.table.sites[at & MASK]
        if _speaks_of_precision(module, site.guard):
            return True
        function = module.base | site.scope
        edges = program.callers(function) if site.scope else ()
        todo += [edge.call for edge in edges if edge.how != UNKNOWN and edge.call not in seen]
    return False


def _speaks_of_precision(module: Module, guard: int) -> bool:
    while guard >= 0:
        row = module.table.guards[guard]
        if _asks_for_bfloat16(module, row):
            return False
        if row.kind in ("if", "rest", "case") and any(_CHOOSES_PRECISION.search(word) for word in words_below(module, row.test)):
            return True
        guard = row.parent
    return False


def _asks_for_bfloat16(module: Module, guard: Guard) -> bool:
    """``GradScaler() if use_bfloat16 else None``: created for the precision that needs no scaler."""
    plain = module.nodes[guard.test][0] in ("free", "param", "attr") if guard.test else False
    return plain and guard.holds is True and _NAMES_BFLOAT16.search(module.last_name(guard.test)) is not None
