"""Epochs: the numbers that samplers and datasets get, whether these are constants, and the loops that count them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Loop
from ldlm_lint.program.spots import Event, Write

_EPOCH = re.compile(r"epoch|^ep$|^e$", re.I)
_WRITTEN = frozenset({"const", "copy", "phi", "free", "param", "impf", "un"})


class Epochs(Concept):
    """The calls of ``set_epoch`` of a codebase."""

    @cached_property
    def constant(self) -> frozenset[Call]:
        """The calls that pass the same number each time."""
        return frozenset(call for call in self.code.calls_named("set_epoch") if _is_constant(call))


def _is_constant(call: Call) -> bool:
    given = call.argument("epoch", 0)
    return len(given.values) == 1 and given.values[0].kind in _WRITTEN and type(given.may_be().only) is int


def _others(bound: Event | Write) -> list[Event | Write]:
    """All places that bind a variable, or an attribute of the same objects."""
    function = bound.spot.function
    if isinstance(bound, Event):
        return [one for one in function.events if one.kind == "bind" and one.name == bound.name]
    methods = function.owner.own_methods if function.owner is not None else [function]
    return [one for method in methods for one in method.writes if one.name == bound.name and one.base.is_self]


def is_only_binding(bound: Event | Write) -> bool:
    """Whether a variable has no other binding, under any condition."""
    return len(_others(bound)) == 1 and not any(guard.is_test for guard in bound.spot.guards) and bound.spot.loop is None


def loops_in_reach(bound: Event | Write) -> list[Loop]:
    """The loops that can use a variable behind its bindings, or an attribute from any method of its class."""
    function = bound.spot.function
    if isinstance(bound, Write):
        return [loop for method in (function.owner.own_methods if function.owner is not None else []) for loop in method.loops]
    tests = [guard for guard in bound.spot.guards if guard.is_test]
    arms = [(guard.test, guard.holds) for one in _others(bound) for guard in one.spot.guards if guard.is_test]
    is_bound = not tests or (tests[0].test, not tests[0].holds) in arms
    return [loop for loop in function.loops if is_bound and loop.line > bound.spot.line]


def epoch_of(loop: Loop) -> str:
    """The variable that counts the epochs of a loop; empty for another loop."""
    counted = [loop.value, *(loop.value.arguments if isinstance(loop.value, Call) else [])]
    if loop.kind != "for" or not any(isinstance(one, Call) and one.called_name in ("range", "trange") for one in counted):
        return ""
    bound = (one.name for one in loop.function.events if one.kind == "bind" and one.expr.kind == "elem" and one.expr.base == loop.value)
    return next((name for name in bound if _EPOCH.search(name)), "")


def lines_in(loop: Loop) -> Iterator[int]:
    """The lines on which something happens in a loop."""
    yield from (call.line for call in loop.calls)
    yield from (one.line for one in loop.function.loops if loop in one.loops)
    yield from (one.spot.line for one in loop.function.events if one.spot.is_in(loop))


__all__ = ["Epochs", "epoch_of", "is_only_binding", "lines_in", "loops_in_reach"]
