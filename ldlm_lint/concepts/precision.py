"""What the autocasts of a program compute in, by the values of their arguments wherever these come from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.checkers.autocasts import AUTOCASTS, OLD_AUTOCASTS, Precision
from ldlm_lint.program.atoms import FALSE
from ldlm_lint.program.queries import Queries, State

_FULL = frozenset({"torch.float32", "torch.float"})
_BFLOAT16 = frozenset({"torch.bfloat16"})


class Autocasts:
    """The autocasts of a program, by the modules that they stand in."""

    def __init__(self, ask: Queries) -> None:
        self.ask = ask

    @cached_property
    def _all(self) -> dict[int, dict[int, Precision]]:
        found: dict[int, dict[int, Precision]] = defaultdict(dict)
        for call, name in self.ask.calls_of(AUTOCASTS):
            found[self.ask.program.module_of(call).index][call] = self._precision(call, name)
        return found

    def of(self, index: int) -> Iterator[tuple[int, Precision]]:
        """The calls in a module, and what each computes in."""
        yield from sorted(self._all.get(index, {}).items())

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
