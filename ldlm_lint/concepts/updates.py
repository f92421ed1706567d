"""Updates of parameters: calls that step an optimizer, and code that reads the gradients of trained values.

A gradient that only changes the input (guidance of a sampler, an attack, a saliency map) updates nothing:

    probe = latents.detach().requires_grad_()
    energy(model(probe)).backward()
    latents = scheduler.step(latents - probe.grad, t, latents)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr
from ldlm_lint.program.walks import Through, origins
from ldlm_lint.vocabulary.tensors import TO_HOST

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Function, Loop
    from ldlm_lint.program.modules import Module

_WRAPS = ("Parameter", "Variable")
_TO_HOST = TO_HOST | frozenset({"cpu", "is_cuda", "shape", "dtype"})
_DECIDES = frozenset({"cmp", "bool", "not"})
_HANDS_ON = frozenset({"copy", "phi"})


class Updates(Concept):
    """The updates of a program's parameters."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._schedules: dict[Class, bool] = {}
        self._calls = self._updating()
        self.functions = set(self._calls)
        """The functions that call something by whose name parameters change."""

    def _updating(self) -> dict[Function, list[Call]]:
        """The calls by whose name parameters change, by the functions that they are in."""
        found: dict[Function, list[Call]] = defaultdict(list)
        for call in self.code.calls_named(*filter(_changes, self.program.calls)):
            if self._updates(call):
                found[call.function].append(call)
        return dict(found)

    def follow(self, function: Function, loop: Loop | None, leading: Collection[Call]) -> bool:
        """Whether a function updates parameters by the gradients of a call in it, in one of its loops or in none.

        What is updated in a loop with backward passes of its own (``leading`` has all calls that lead to one) belongs
        to these, if the call is outside of it.
        """
        own = [one.loops for one in leading if one.function == function]
        for call in self._calls.get(function, ()):
            around = call.loops
            is_beside = not around or (loop is not None and (around[0] in loop.around or loop in around))
            if is_beside or not any(around[0] in loops for loops in own):
                return True
        return False

    def _updates(self, call: Call) -> bool:
        """Whether a call of such a name may update: a step of an optimizer takes a closure at most."""
        if call.receiver is None or call.called_name != "step":
            return True
        made = call.receiver.plain
        if len(call.positional) > 1 or (isinstance(made, Call) and (_is_made_for(made, call) or _steps_inputs(made))):
            return False
        return not self.steps_schedule(call)

    def steps_schedule(self, call: Call) -> bool:
        """Whether a call of ``step`` only steps a schedule, such as that of the learning rate: parameters do not
        change."""
        if call.receiver is None:
            return False
        owners, made = call.receiver.classes_of, call.receiver.made_by
        if owners and not made:
            return all(map(self._only_schedules, owners))
        return bool(made) and not owners and all(map(_is_schedule, made))

    def _only_schedules(self, owner: Class) -> bool:
        """Whether the class of the project is a schedule: its ``step`` neither reads gradients nor steps anything else."""
        if owner not in self._schedules:
            # One whose step leads to itself holds others of its kind.
            self._schedules[owner] = True
            steps = owner.methods("step")
            is_plain = not owner.is_module and all(map(_is_schedule, owner.outside_bases - {"builtins.object"}))
            self._schedules[owner] = is_plain and bool(steps) and not any(map(self._touches_parameters, steps))
        return self._schedules[owner]

    def _touches_parameters(self, function: Function) -> bool:
        if any(_changes(call.called_name) and self._updates(call) for call in function.calls):
            return True
        return any(one.name == "grad" and one.place and one.function == function for one in self.code.expressions_in(function.module, "attr"))

    def reads_gradients(self, functions: Iterable[Function]) -> bool:
        """Whether the files of functions compute with gradients, as those that change parameters by hand do; to test them
        and to collect them on the host changes nothing."""
        return any(map(self._are_gradients_read_in, dict.fromkeys(one.module for one in functions)))

    def _are_gradients_read_in(self, module: Module) -> bool:
        gradients = [one for one in self.code.expressions_in(module, "attr") if one.name == "grad"]
        return any(one.base is not None and not _is_made_in_step(one.base) and _computes_with(one) for one in gradients)


def _is_made_for(optimizer: Call, step: Call) -> bool:
    """Whether an optimizer is created again in the iteration that steps it: it changes an input of that iteration."""
    return bool(step.loops) and optimizer.function == step.function and optimizer.loops[:1] == step.loops[:1]


def _steps_inputs(optimizer: Call) -> bool:
    """Whether an optimizer only gets arguments of its function: ``Adam([image.detach().requires_grad_()])``."""
    names = optimizer.callee.outside_names
    if not optimizer.positional or not names or not all(name.startswith("torch.optim.") for name in names):
        return False
    steps = optimizer.positional[0].plain
    return steps.kind == "seq" and bool(steps.operands) and all(map(_is_given, steps.operands))


def _computes_with(gradient: Expr) -> bool:
    """Whether a gradient is used for more than tests and copies to the host."""
    todo, seen = [gradient], {gradient}
    for at in todo:
        users = at.users
        for user in users:
            reads = user.kind == "attr" and user.name in _TO_HOST
            if user.kind in _DECIDES or reads or user in seen:
                continue
            if user.kind not in _HANDS_ON:
                return True
            seen.add(user)
            todo.append(user)
        if at != gradient and not users:
            return True
    return False


def _is_made_in_step(value: Expr) -> bool:
    """Whether a value is marked as requiring gradients in each iteration again: an input, not a trained value."""
    return any(_is_marked(one) for one in origins(value, Through.NAMES))


def _is_marked(value: Expr) -> bool:
    """Whether a loop creates a value that requires gradients, or marks one that it carries or creates."""
    if isinstance(value, Call) and value.loops:
        marks = value.receiver is not None and value.called_name == "requires_grad_"
        if marks or any(name == "requires_grad" for name, _ in value.keywords):
            return True
    is_of_loop = value.kind == "phi" or (isinstance(value, Call) and bool(value.loops))
    return is_of_loop and any(target == value for target, _ in value.code.writes_of("requires_grad"))


def _is_given(value: Expr) -> bool:
    """Whether an expression is a parameter of its function, or derived from one by methods and by marking it as
    trained."""
    at, seen = value.plain, set[Expr]()
    while isinstance(at, Call) and at not in seen:
        seen.add(at)
        if at.called_name in _WRAPS and at.positional:
            at = at.positional[0].plain
        elif at.receiver is not None:
            at = at.receiver.plain
    return at.kind == "param"


def _changes(name: str) -> bool:
    """Whether a function changes parameters, by its name: the ``step`` of optimizers and of their wrappers."""
    words = name.strip("_").split("_")
    # ``create_optimizer`` returns an object that may change them later.
    return "step" in (words[0], words[-1]) or ("optimi" in name and not name.lower().endswith(("optimizer", "optimizers", "optimiser", "optim")))


def _is_schedule(name: str) -> bool:
    """Whether a class or function of another package returns a learning rate schedule (torch, timm, transformers,
    diffusers)."""
    return "schedule" in name.rpartition(".")[2].lower() or ".lr_scheduler." in name or name.endswith("ABC")


__all__ = ["Updates"]
