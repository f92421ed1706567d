"""Where gradients of a wrapped model's parts are switched after DDP has read which ones it has to average.

DDP registers the parameters that require gradients when it wraps a model. A part that is frozen later is waited for in vain;
one that was frozen then and is unfrozen later is never averaged. A model that is frozen as a whole computes no gradients,
and DDP waits for none: a teacher, an adversary out of turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.freezing import Freezing, Switch
from ldlm_lint.concepts.replicas import Replicas
from ldlm_lint.concepts.whole_models import WholeModels, WrappedPart
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Function
from ldlm_lint.vocabulary.freezing import freezes_a_part


class LateSwitch(NamedTuple):
    """A switch of a model, or a part of it, that a call has wrapped."""

    switch: Switch
    part: WrappedPart

    @property
    def is_of_whole(self) -> bool:
        """Whether it switches all parameters of the model."""
        return not self.part.names and not self.switch.is_of_some

    @property
    def function(self) -> Function:
        """The function that it is in."""
        return self.switch.spot.function


class LateFreezing(Concept):
    """The late switches of a program."""

    @cached_property
    def left_waiting(self) -> list[LateSwitch]:
        """Those that freeze parts whose gradients DDP waits for; a computed value may freeze."""
        return [one for one in self._late if one.switch.flag is not True and self._waits(one)]

    @cached_property
    def left_apart(self) -> list[LateSwitch]:
        """Those that unfreeze what was frozen when DDP wrapped the model."""
        return [one for one in self._late if one.switch.flag is True and self._was_frozen(one)]

    @cached_property
    def _late(self) -> list[LateSwitch]:
        """Those that come after the wrapper and in no training step: these are another matter."""
        trained = (one for one in self._of_wrapped if self._is_late(one) and self.code[Replicas].train(one.part.wrapper))
        return [one for one in trained if self.code[Freezing].step_of(one.switch) is None]

    @cached_property
    def _of_wrapped(self) -> list[LateSwitch]:
        parts = self.code[WholeModels].parts
        every = (one for function in self.code.functions for one in (*self.code[Freezing].in_function(function), *self._by_methods(function)))
        found = [LateSwitch(one, part) for one in every if one.is_decided for model in one.models for part in parts(model)]
        return sorted(found, key=lambda one: (one.function.key, one.switch.spot.place))

    def _by_methods(self, function: Function) -> Iterator[Switch]:
        """``model.module.freeze_encoder()``: the method freezes parts of its object; by its name if nothing shows it."""
        for call in function.calls:
            if call.receiver is not None and call.called_name != "requires_grad_":
                own = [one.as_called(call) for target in call.targets for one in self.code[Freezing].in_function(target) if one.is_of_self]
                is_named = not call.targets and not call.arguments and freezes_a_part(call.called_name)
                if is_named or (own and all(one.flag is False for one in own)):
                    some = is_named or not any(model.is_self for one in own for model in one.models)
                    yield Switch(call.receiver, call.receiver, call.spot, own[0].values if own else (), call, some)

    def _is_late(self, one: LateSwitch) -> bool:
        """Whether the model is wrapped by then, and nothing wraps it again later."""
        spot, wrapper = one.switch.spot, one.part.wrapper
        beside = [part.wrapper for part in self.code[WholeModels].parts(wrapper) if part.wrapper.function == spot.function]
        if any(other.place > spot.place for other in beside):
            return False
        tests = {(guard.test, guard.holds) for guard in wrapper.guards if guard.is_test}
        is_apart = any((guard.test, not guard.holds) in tests for guard in spot.guards if guard.is_test)
        return one.part.is_wrapped or (wrapper.function == spot.function and wrapper.place < spot.place and not is_apart)

    def _waits(self, one: LateSwitch) -> bool:
        """Whether DDP waits for gradients of what is frozen: it neither looks for unused parameters nor keeps one graph, and
        the model still trains some other part."""
        options = (one.part.wrapper.argument(name) for name in ("find_unused_parameters", "static_graph"))
        return all(given.is_absent or given.only is False for given in options) and (not one.is_of_whole or self._keeps_a_part(one))

    def _keeps_a_part(self, one: LateSwitch) -> bool:
        """Whether a part is unfrozen after the whole model was frozen, such as its head."""
        behind = (other for other in self._beside(one) if other.switch.flag is True and other.function == one.function)
        return any(not other.is_of_whole and other.switch.spot.place > one.switch.spot.place for other in behind)

    def _was_frozen(self, one: LateSwitch) -> bool:
        """Whether the function that wraps the model has frozen the same before."""
        wrapper = one.part.wrapper
        before = (other for other in self._beside(one) if other.function == wrapper.function and other.switch.spot.place < wrapper.place)
        return any(other.switch.flag is False and (other.part.names == one.part.names or other.is_of_whole) for other in before)

    def _beside(self, one: LateSwitch) -> Iterator[LateSwitch]:
        return (other for other in self._of_wrapped if other.part.wrapper == one.part.wrapper)


__all__ = ["LateFreezing", "LateSwitch"]
