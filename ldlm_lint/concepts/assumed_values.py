"""What is assumed of values that no visible code gives: the only concept that adds to the values of a program.

It is built before the first question of a rule, in one order: losses are on the device; frameworks call their hooks in each
step, with batches; so does unseen code with losses; and functions that nothing calls get batches as loaders yield them.
"""

from __future__ import annotations

from ldlm_lint.concepts.framework_hooks import OF_LIGHTNING, OF_MM, FrameworkHooks
from ldlm_lint.concepts.left_out import LeftOut
from ldlm_lint.concepts.losses import Losses, UnseenLosses
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import IF_TENSOR, ON_DEVICE, Value
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Function

_A_TENSOR_IS_ON_DEVICE = frozenset([IF_TENSOR])


class AssumedValues(Concept):
    """The assumptions about a program; afterwards its steps, what they reach and all values are known."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._put_losses_on_device()
        self._call_hooks()
        self.program.solve()
        reach = code[Reach]
        self.unseen_losses = list(UnseenLosses(code, reach.has).functions())
        """Losses that no visible code calls: who trains with them is not visible."""
        for function in self.unseen_losses:
            self._steps.add(function)
            self._give(function, {"*": _A_TENSOR_IS_ON_DEVICE})
        self.program.solve()
        reach.follow()
        for function in reach.functions:
            if self._gets_batches(function):
                self._give(function, {"*": _A_TENSOR_IS_ON_DEVICE})
        self.program.solve()
        reach.follow()
        code[LeftOut].know(reach.has, self._steps.are_in)

    def _put_losses_on_device(self) -> None:
        losses = self.code[Losses]
        for one in losses.containers:
            self._put(one.key, _A_TENSOR_IS_ON_DEVICE)
        for one in losses.on_device:
            self._put(one.key, ON_DEVICE)

    def _put(self, key: int, value: Value) -> None:
        """Add to an expression, as it is evaluated and as its own tests narrow it."""
        self.program.put(~key, value)
        self.program.put(key, value)

    def _call_hooks(self) -> None:
        """The functions that a framework calls in each step, with tensors on the device."""
        frameworks = self.code[FrameworkHooks]
        for owner in self.code.classes:
            for name, home in frameworks.of(owner):
                for function in owner.own_methods_named(name):
                    self._steps.add(function)
                    self._give(function, _arguments(function, name, home))

    def _give(self, function: Function, given: dict[str, Value]) -> None:
        """Set the parameters of a function to the arguments of an unknown caller; ``*`` stands for all others."""
        program = self.program
        program.hooks[function.key] = given
        for name in function.parameter_names:
            if ("hook", function.key, name) in program.values:
                program.requeue(("hook", function.key, name))

    def _gets_batches(self, function: Function) -> bool:
        """Whether a function that a step reaches has the loop of the steps, or no visible code calls it: it gets batches
        as loaders yield them."""
        is_unseen = self._is_called_by_mm(function) or not function.callers
        return is_unseen and function.key not in self.program.hooks and not self._steps.are_in(function)

    def _is_called_by_mm(self, function: Function) -> bool:
        """Whether a function is only called by OpenMMLab, which receives it: ``multi_apply(self.loss_single, …)``."""
        callers = function.callers
        return bool(callers) and function.is_called_from_outside_only and all(any(name.partition(".")[0] in OF_MM for name in one.callee.outside_names) for one in callers)


def _arguments(function: Function, name: str, home: Value) -> dict[str, Value]:
    """What a framework gives for the parameters of a hook of a name, if it has its tensors somewhere."""
    # After the batch Lightning passes indices: of the batch, of the optimizer.
    given = {one: home for one in function.parameter_names[1:2]} if name in OF_LIGHTNING else {"*": home}
    if name == "forward":
        # Training code moves its batches: a declared tensor is on the device.
        given |= {one: ON_DEVICE for one, type_ in function.annotations.items() if type_.endswith("Tensor")}
    return given
