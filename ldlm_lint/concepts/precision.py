"""The precision that a program computes in: the dtypes of its autocasts, from the values of their arguments."""

from __future__ import annotations

import enum
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Guard
from ldlm_lint.program.identity import Identity

OLD_AUTOCASTS = frozenset({"torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast"})
AUTOCASTS = OLD_AUTOCASTS | {"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"}
_NAMES_BFLOAT16 = lazily(r"^(use_|is_|with_)?(bf16|bfloat16)$", re.I)
_CHOOSES_PRECISION = lazily(r"16|half|dtype|precision|scal", re.I)
_FULL = frozenset({"torch.float32", "torch.float"})
_BFLOAT16 = frozenset({"torch.bfloat16"})


class Precision(enum.Enum):
    """The dtype of an autocast."""

    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    OTHER = "other"


class Autocasts(Concept):
    """The autocasts of a program, by the files that they are in."""

    @cached_property
    def _all(self) -> dict[str, dict[Call, Precision]]:
        found: dict[str, dict[Call, Precision]] = defaultdict(dict)
        for name in sorted(AUTOCASTS):
            for call in self.code.calls({name}):
                found[self.code.path(call.module)][call] = self._precision(call, is_old=name in OLD_AUTOCASTS)
        return found

    def of(self, path: str) -> list[tuple[Call, Precision]]:
        """The autocasts in a file, each with its dtype."""
        return sorted(self._all.get(path, {}).items(), key=lambda one: one[0].key)

    def near(self, other: Call) -> Iterator[tuple[Call, Precision]]:
        """The autocasts that a program may run together with a call, each with its dtype."""
        return ((call, precision) for found in self._all.values() for call, precision in found.items() if other.may_run_with(call))

    def switches_of(self, autocast: Call) -> frozenset[Identity]:
        """The settings that switch an autocast: the origin of its own argument, and the tests around it."""
        enabled = autocast.argument("enabled", 0 if autocast.callee.interfaces <= OLD_AUTOCASTS else 2).values
        found = {enabled[0].identity} if len(enabled) == 1 else set()
        for test, holds in _tests_around(autocast):
            while test.operator == "Not":
                test, holds = test.operands[0], not holds
            if holds:
                found.add(test.identity)
        return frozenset(found - {()})

    @staticmethod
    def _precision(autocast: Call, *, is_old: bool) -> Precision:
        enabled = autocast.argument("enabled", 0 if is_old else 2)
        device, dtype = autocast.argument("device_type", 0), autocast.argument("dtype", 1)
        if enabled.is_given and all(one.is_just(False) for one in enabled.values):
            return Precision.FLOAT32
        if not is_old and device.is_given and all(one.may_be().only == "cpu" for one in device.values):
            return Precision.FLOAT32
        meanings = [one.may_be() for one in dtype.values] if dtype.is_given else []
        names = frozenset(name for one in meanings for name in one.names)
        if not names or not all(one.is_complete and len(one.value) == len(one.names) for one in meanings):
            return Precision.OTHER
        if names <= _BFLOAT16:
            return Precision.BFLOAT16
        return Precision.FLOAT32 if names <= _FULL else Precision.OTHER

    @staticmethod
    def choose(call: Call) -> bool:
        """Whether a condition around a call, or around the calls of its function, mentions the precision or scaling."""
        todo, seen = [call], {call}
        while todo:
            at = todo.pop()
            if _speaks_of_precision(at.guards):
                return True
            above = () if at.function.is_module else at.function.callers
            todo += [one for one in above if one not in seen]
            seen.update(above)
        return False


def _tests_around(call: Call) -> Iterator[tuple[Expr, bool]]:
    """The tests that decide whether a call is made, with their outcomes: those of blocks, and of ``a if test else b``."""
    yield from ((one.test, bool(one.holds)) for one in call.guards if one.is_test)
    for user in call.users:
        if user.test is not None and user.test != call:
            yield user.test, user.ways[0] == call


def _speaks_of_precision(guards: list[Guard]) -> bool:
    for one in guards:
        if _asks_for_bfloat16(one):
            return False
        if (one.is_test or one.kind == "case") and any(map(_CHOOSES_PRECISION.search, one.test.words)):
            return True
    return False


def _asks_for_bfloat16(guard: Guard) -> bool:
    """``GradScaler() if use_bfloat16 else None``: created for the precision that needs no scaler."""
    is_plain = guard.test.kind in ("free", "param", "attr")
    return is_plain and guard.holds is True and _NAMES_BFLOAT16.search(guard.test.name) is not None


__all__ = ["AUTOCASTS", "Autocasts", "Precision"]
