"""The mode of models: the last call that sets them to training or to evaluation, before a place in a function, or anywhere in
their class or file.

    model.train()
    for net in (encoder, decoder):
        net.train(False)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function
from ldlm_lint.program.walks import Through, reached, steps_back
from ldlm_lint.vocabulary.modules import RETURN_THEMSELVES

_SELF = ("self",)
_NAMED = Through.NAMES | Through.CHOICES | Through.OUTSIDE


class Mode(NamedTuple):
    """A call that sets the mode of models, and which one."""

    call: Call
    models: frozenset[Hashable]
    trains: bool


class Modes(Concept):
    """Answers for the models of a program."""

    def set_in(self, function: Function) -> list[Mode]:
        """The calls of a function that set a mode which they show, in order."""
        return self._set.get(function, [])

    @cached_property
    def _set(self) -> dict[Function, list[Mode]]:
        found: dict[Function, list[Mode]] = defaultdict(list)
        for call in sorted(self.code.calls_named("eval", "train"), key=lambda one: one.key):
            trains = mode_set_by(call)
            if trains is not None and call.receiver is not None:
                found[call.function].append(Mode(call, frozenset({call, *things(call.receiver)}), trains))
        return found

    def last_before(self, call: Call, model: Expr) -> Mode | None:
        """The last one for a model before a call in its function, in the order of the text."""
        wanted = frozenset(with_owners(model))
        before = [one for one in self.set_in(call.function) if one.call.spot.place < call.spot.place and not wanted.isdisjoint(one.models)]
        return before[-1] if before else None

    def evaluation_before(self, call: Call, model: Expr) -> Call | None:
        """The call that set a model to evaluation last before another call; None if it trains, or if that depends on a test."""
        last = self.last_before(call, model)
        if last is None or last.trains:
            return None
        is_one_of_two = any(one.trains and one.call.excludes(last.call) and not one.call.excludes(call) for one in self.set_in(call.function))
        return None if is_one_of_two else last.call

    def evaluation_elsewhere(self, call: Call, model: Expr) -> Call | None:
        """The call that sets an attribute of the object, or a variable of the module, to evaluation for good: nothing in the
        class or the module sets it to training, or computes gradients."""
        function, wanted = call.function, frozenset(with_owners(model))
        if function.owner is not None and _SELF in wanted:
            places = function.owner.functions
        else:
            top = Function(self.code, function.module.base)
            places = [top] if function != top else []
        found = [one for place in places for one in self.set_in(place) if not wanted.isdisjoint(one.models)]
        # The owner of an object puts it back: its own `self.eval()` lasts only for the calling method.
        lasting = [one.call for one in found if _SELF not in one.models or one.call.function.name == "__init__"]
        if not lasting or any(one.trains for one in found):
            return None
        calls = self.code.calls_in(function.module) if places[0].is_module else (one for place in places for one in place.calls)
        return None if any(map(self.code[BackwardPasses].lead_to_gradients, calls)) else lasting[0]


def mode_set_by(call: Call) -> bool | None:
    """True for ``model.train()``, False for ``model.eval()`` and ``model.train(False)``; None for what sets no mode, or
    one that is not known: the method of an object that trains or evaluates with data."""
    if call.receiver is None or any(one.owner is None or not one.owner.is_module for one in call.targets):
        return None
    if call.called_name == "eval":
        return None if call.arguments else False
    if call.called_name != "train" or not call.arguments:
        return True if call.called_name == "train" else None
    mode = call.arguments[0].constant
    return mode if len(call.arguments) == 1 and isinstance(mode, bool) else None


def things(model: Expr) -> Iterator[Hashable]:
    """What a model is by any of its names, to be compared with those of others: a parameter, the call that makes it, the
    attribute of an object."""
    yield from (_thing(one) for one in reached([model.unnamed], _same))


def with_owners(model: Expr) -> Iterator[Hashable]:
    """The same with the objects that it is a part of: their mode is its own."""
    at: Expr | None = model
    while at is not None:
        yield from things(at)
        at = next((one.base for one in reached([at.unnamed], _same) if one.kind == "attr"), None)


def _same(expr: Expr) -> Iterable[Expr]:
    """The same model one step back; for a list that a loop goes through, each of its models."""
    if isinstance(expr, Call):
        is_itself = expr.called_name in RETURN_THEMSELVES and expr.receiver is not None
        return [expr.receiver.unnamed] if is_itself and expr.receiver is not None else []
    inner = expr.base if expr.kind in ("item", "elem") or (expr.kind == "attr" and expr.name == "module") else None
    if inner is not None:
        made = inner.unnamed
        return made.operands if made.kind == "seq" else [made]
    return [one.unnamed for one in steps_back(expr, _NAMED)]


def _thing(expr: Expr) -> Hashable:
    if expr.owner_if_self is not None:
        return _SELF
    if expr.kind == "attr" and expr.base is not None:
        return ("attr", expr.name, _thing(expr.base.unnamed))
    return ("free", expr.module.path, expr.name) if expr.kind == "free" else expr


__all__ = ["Mode", "Modes", "mode_set_by", "things", "with_owners"]
