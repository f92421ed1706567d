"""Compact encoding of flows: as plain tuples, which takes a third of the pickling time.

Slots, callees and arguments are in tables, each once: most are named repeatedly.
"""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from ldlm_lint.python.flow import Callee, CallSite, Function, ModuleFlow, Passed
from ldlm_lint.python.iterations import Iteration
from ldlm_lint.python.slots import Slot

_FAST = 1

T = TypeVar("T", bound=tuple[object, ...])


class _Table(dict[T, int]):
    """Numbers for values, in the order of first use."""

    def __missing__(self, value: T) -> int:
        number = self[value] = len(self)
        return number


def packed(flow: ModuleFlow) -> bytes:
    """A flow as bytes that only this process reads."""
    slots: _Table[Slot] = _Table()
    callees: _Table[Callee] = _Table()
    given: _Table[tuple[int | str, int, tuple[int, ...]]] = _Table()
    calls = [
        (callees[callee], scope, position, loops, [given[key, slots[slot], around] for key, slot, around in passed], *rest)
        for callee, scope, position, loops, passed, *rest in flow.calls
    ]
    moves = [(slots[source], slots[target]) for source, target in flow.moves]
    iterations = [(slots[slot], *rest) for slot, *rest in flow.iterations]
    tables = _plain(slots), _plain(callees), list(given)
    whole: Any = flow.path, tables, _plain(flow.functions), calls, moves, iterations, flow.complete
    return zlib.compress(marshal.dumps(whole), _FAST)


def unpacked(data: bytes) -> ModuleFlow:
    """The flow encoded by `packed`."""
    # Packed by this process: no untrusted data.
    path, tables, functions, calls, moves, iterations, complete = marshal.loads(zlib.decompress(data))
    slots, callees = list(map(_made(Slot), tables[0])), list(map(_made(Callee), tables[1]))
    passed, call_site = _made(Passed), _made(CallSite)
    given = [passed((key, slots[slot], loops)) for key, slot, loops in tables[2]]
    return ModuleFlow(
        path,
        tuple(map(_made(Function), functions)),
        tuple([
            call_site((callees[callee], scope, position, loops, tuple([given[one] for one in arguments]), *rest))
            for callee, scope, position, loops, arguments, *rest in calls
        ]),
        tuple([(slots[source], slots[target]) for source, target in moves]),
        tuple([Iteration(slots[slot], *rest) for slot, *rest in iterations]),
        complete,
    )


def _plain(values: Iterable[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return list(map(tuple, values))


def _made(kind: type[T]) -> Callable[[Sequence[Any]], T]:
    """A function that creates a named tuple from its values without its slow constructor."""
    return partial(tuple.__new__, kind)
