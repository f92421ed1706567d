"""Places where one rank may leave a training step before its backward pass, while the others wait in theirs.

    if torch.isnan(loss): continue              # or: if torch.isfinite(loss): loss.backward()
    try: … loss.backward() except RuntimeError: continue

Each rank has a loss and errors of its own. A value that a collective has reduced is the same on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.concepts.agreement import Agreement, flag_tests
from ldlm_lint.concepts.losses import BackwardPasses, Losses
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard, Try
from ldlm_lint.program.spots import Event, Spot
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.losses import is_loss_name
from ldlm_lint.vocabulary.ranks import asks_for_ranks

_NOT_FINITE = lazily(r"^(is_?nan|is_?inf|is_?finite|isnan_?any|has_?(nan|inf)\w*|is_?(nan_?or_?inf|inf_?or_?nan)\w*)$")
_OF_PARTS = frozenset({"any", "all", "item", "bool", "cpu", "logical_or", "logical_not"})
_SAME_NUMBER = frozenset({"item", "detach", "cpu", "clone", "float", "abs"})
_ABOUT_GRADIENTS = lazily(r"(?i)norm|grad(?!ient_accum)")
_SCALER = lazily(r"(?i)scaler$")
_LEAVES = frozenset({"continue", "break", "return"})
_ERRORS = frozenset({"RuntimeError", "OutOfMemoryError", "Exception", "BaseException", "FloatingPointError", "ValueError", "ArithmeticError"})
_OF_DATA = frozenset({"StopIteration", "StopAsyncIteration", "KeyboardInterrupt", "SystemExit", "GeneratorExit"})
"""What ends a pass over the data, or the program: on all ranks as a rule."""


class Skip(NamedTuple):
    """What leaves a step: the condition, an ``if`` or an ``except``; the value that a test asks about; what is caught.
    ``leaves``: the step is left where the test holds. ``lightning``: Lightning runs the backward pass of the step."""

    guard: Guard
    value: Expr | None = None
    caught: tuple[str, ...] = ()
    leaves: bool = False
    lightning: bool = False


class LoneSkips(Concept):
    """The skips of a program."""

    def in_function(self, function: Function) -> Iterator[Skip]:
        """Those of a function by its tests, and by its handlers."""
        backward = list(filter(self._runs_backward, function.calls))
        if backward or _is_step_of_lightning(function):
            yield from self._by_tests(function, backward)
            yield from self._by_errors(backward, function)

    def _runs_backward(self, call: Call) -> bool:
        """Whether a call is a backward pass; ``loss_scaler(loss, optimizer)`` runs it inside, by its name."""
        is_one = self.code[BackwardPasses].has(call) or call.called_name in ("backward", "backward_step")
        return is_one or (_SCALER.search(call.called_name) is not None and any(map(self._is_loss, call.positional)))

    def _by_tests(self, function: Function, backward: list[Call]) -> Iterator[Skip]:
        for event, arms in _branches(function):
            then, otherwise = arms.get(True), arms.get(False)
            value = self._asked(event.expr, event.spot) if then is not None and not _is_for_one([event.expr, *_tests(event.spot.guards)]) else None
            if then is None or value is None or self._is_agreed(event.expr, function, then):
                continue
            under = {holds: [call for call in backward if arm in call.guards] for holds, arm in arms.items()}
            if then.ends in _LEAVES and not under[True] and (self._follow(event, then, backward) or _returns_nothing(then, function)):
                yield Skip(then, value, leaves=True, lightning=_returns_nothing(then, function))
            elif under[True] and not under.get(False) and (otherwise is None or otherwise.ends != "raise"):
                yield Skip(then, value)

    def _is_agreed(self, test: Expr, function: Function, then: Guard) -> bool:
        """Whether the ranks agreed on what a test asks about, or do so before the step is left."""
        return self.code[Agreement].is_behind(test) or any(then in call.guards and self.code[Agreement].is_reached_by(call) for call in function.calls)

    @staticmethod
    def _follow(event: Event, then: Guard, backward: list[Call]) -> bool:
        """Whether backward passes of the step come behind a test."""
        tests = {(guard.test, guard.holds) for guard in event.spot.guards if guard.is_test}
        step = event.spot.loops[:1] if then.ends != "return" else []
        behind = (call for call in backward if call.place > then.begin and all(loop in call.loops for loop in step))
        return any(not any((one.test, not one.holds) in tests for one in call.guards if one.is_test) and not _is_local(call) for call in behind)

    def _asked(self, test: Expr, spot: Spot) -> Expr | None:
        """The loss, or another result of the step, that a test asks whether it is finite, or too large."""
        return next(filter(None, (self._asked_by(one.unnamed, spot) for one in reached([test], _parts_of))), None)

    def _asked_by(self, test: Expr, spot: Spot) -> Expr | None:
        if test.kind == "cmp" and test.operator:
            left, right = test.operands
            is_one = (test.operator == "NotEq" and left.is_alike(right)) or (test.operator in ("Gt", "GtE") and not self._is_loss(right))
            return left if is_one and self._is_loss(left) else None
        value = _argument_of(test) if isinstance(test, Call) and _asks_if_finite(test) else None
        is_of_step = value is not None and not _is_about_gradients(value) and (self._is_loss(value) or _is_computed(value, spot))
        return value if is_of_step else None

    def _is_loss(self, value: Expr) -> bool:
        """Whether a value is a loss, or the number that one is."""
        value = value.unnamed
        if isinstance(value, Call) and value.called_name in _SAME_NUMBER:
            inner = value.receiver if not value.positional else value.positional[0]
            return inner is not None and self._is_loss(inner)
        return self.code[Losses].is_loss(value) or any(map(is_loss_name, (value.name, *value.names)))

    def _by_errors(self, backward: list[Call], function: Function) -> Iterator[Skip]:
        """The handlers that go on after an error of the forward or backward pass."""
        if not self.code[Steps].are_in(function) and not self.code[Steps].lead_from(function):
            return
        agreement = self.code[Agreement]
        for tried in dict.fromkeys(one for call in function.calls for one in call.tries):
            calls = tried.calls
            own = [call for call in backward if call in calls and not _is_local(call) and _is_beside(call, tried)]
            made = not own and any(self._is_made_in(calls, call) for call in backward)
            if (own or made) and not any(map(agreement.is_reached_by, calls)) and not any(under in call.guards for call in backward for under in tried.handlers):
                found = (one for one in tried.handlers if self._goes_on(one, function, bool(own)))
                yield from (Skip(one, caught=_caught(one)) for one in list(found)[:1])

    def _is_made_in(self, calls: list[Call], backward: Call) -> bool:
        """Whether a ``try`` computes the loss that runs backward behind it."""
        loss = self.code[BackwardPasses].loss(backward) if self.code[BackwardPasses].has(backward) else None
        return loss is not None and backward not in calls and any(one in calls for one in loss.within)

    def _goes_on(self, handler: Guard, function: Function, is_own: bool) -> bool:
        """Whether a handler goes on with the training after an error that one rank may have alone."""
        names, leaves = _caught(handler), _leaves_step(handler, function)
        wanted = not _ERRORS.isdisjoint(names) if is_own else _OF_DATA.isdisjoint(names) and leaves
        inside = [call for call in function.calls if handler in call.guards]
        tests = [event.expr for event in function.events if event.kind == "test" and event.spot.is_under(handler)]
        together = any(map(self.code[Agreement].is_reached_by, inside)) or _is_for_one([*tests, *_tests(handler.around)])
        return wanted and not together and (leaves or handler.ends != "raise")


def _branches(function: Function) -> Iterator[tuple[Event, dict[bool | None, Guard]]]:
    """The tests of a function with the branches of the ``if`` that each decides, by the outcome."""
    guards = [one for one in function.code.guards_in(function.module) if one.kind == "if" and one.is_test]
    for event in (one for one in function.events if one.kind == "test"):
        own = [one for one in guards if one.test == event.expr and one.outer == event.spot.guard and one.begin < event.spot.place]
        last = max((one.begin for one in own), default=0)
        yield event, {one.holds: one for one in own if one.begin == last}


def _tests(guards: list[Guard]) -> list[Expr]:
    return [one.test for one in guards if one.is_test]


def _is_for_one(tests: list[Expr]) -> bool:
    """Whether tests around a place tell one rank from several."""
    return any(asks_for_ranks(word) for test in tests for word in test.words)


def _is_local(call: Call) -> bool:
    """Whether gradients stay local in a scope around a backward pass."""
    entered = (guard.test for guard in call.guards if guard.kind == "with")
    return any(isinstance(one, Call) and one.called_name == "no_sync" for one in entered)


def _is_step_of_lightning(function: Function) -> bool:
    bases = function.owner.outside_bases if function.owner is not None else ()
    return function.name == "training_step" and any(base.startswith(("lightning.", "pytorch_lightning.")) for base in bases)


def _returns_nothing(then: Guard, function: Function) -> bool:
    """Whether a step of Lightning returns no loss in a branch: then Lightning runs no backward pass."""
    returned = (event.expr for event in function.events if event.kind == "return" and event.spot.guard == then)
    return _is_step_of_lightning(function) and then.ends == "return" and all(one.kind == "none" or one.constant is None for one in returned)


def _parts_of(test: Expr) -> Iterator[Expr]:
    """The tests that decide a test; ``bool(x)`` and ``x.any()`` are decided by their argument."""
    test = test.unnamed
    if test.kind == "phi":
        yield from (*flag_tests(test), *test.ways)
    elif test.kind in ("not", "bool") or test.operator in ("BitOr", "BitAnd", "Add"):
        yield from test.operands
    elif isinstance(test, Call) and test.called_name in _OF_PARTS:
        yield from (*test.positional, *([test.receiver] if test.receiver is not None else []))


def _argument_of(call: Call) -> Expr | None:
    return call.positional[0] if call.positional else call.receiver


def _asks_if_finite(call: Call) -> bool:
    """Whether a call asks whether its argument is finite, itself or in a function of the project."""
    inside = (one for target in call.targets for one in target.calls)
    return _NOT_FINITE.search(call.called_name) is not None or any(_NOT_FINITE.search(one.called_name) for one in inside)


def _is_about_gradients(value: Expr) -> bool:
    parts = [value, *value.unnamed.within]
    return any(_ABOUT_GRADIENTS.search(name) for one in parts for name in (one.last_name.removeprefix("()"), *one.names))


def _is_computed(value: Expr, spot: Spot) -> bool:
    """Whether a call of the same step has computed a value, such as the outputs of the model."""
    at = value.unnamed
    while at.kind in ("part", "attr") and at.base is not None:
        at = at.base.unnamed
    return isinstance(at, Call) and at.function == spot.function and all(loop in at.loops for loop in spot.loops[:1])


def _is_beside(call: Call, tried: Try) -> bool:
    """Whether a call is in the same loop as the ``try`` that it is in: a ``try`` around the loop ends the training."""
    return not call.loops or call.loops[0].line < tried.line


def _caught(handler: Guard) -> tuple[str, ...]:
    """The last names of the errors that a handler catches; a bare one catches every exception."""
    kinds = handler.test
    names = {one.last_name for one in (kinds.operands if kinds.kind == "seq" else [kinds])} if kinds.kind != "none" else {"Exception"}
    return tuple(sorted(names))


def _leaves_step(handler: Guard, function: Function) -> bool:
    """Whether a way through a handler goes on with the next step, or leaves the loop."""
    inner = ((event.spot, arm.ends) for event, arms in _branches(function) for arm in arms.values() if event.spot.is_under(handler))
    ways = {ends for spot, ends in inner if ends == "return" or not spot.loops or spot.loops[0].line < handler.line}
    return not _LEAVES.isdisjoint({handler.ends, *ways})


__all__ = ["LoneSkips", "Skip"]
