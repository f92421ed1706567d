"""Losses: the values that backward passes run, what they are made of, and the functions that compute them.

    loss = ratio * F.mse_loss(output, target) + losses["shape"].mean()    # the output, the target and the shape loss are on the device, too
    loss.backward()    engine.backward(loss)    fabric.manual_backward(loss)    loss_scaler(loss, optimizer)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function, leading_to
from ldlm_lint.program.value_uses import How, Use
from ldlm_lint.vocabulary.losses import (
    ABOUT,
    CALLED_AS_LOSS,
    CLASS_WORDS,
    ENDS,
    FUNCTIONS,
    LOSS_FUNCTIONS,
    OPERATIONS,
    STEPPERS,
    is_loss_name,
)

BACKWARD = ("backward", "manual_backward")
_COMPUTES = ("grad", "vjp")
DIFFERENTIATES = (*_COMPUTES, "register_hook")
"""What computes gradients besides backward passes, or gets them in the middle of one."""
_FABRIC = frozenset({"lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric"})
_MEANS = frozenset({"mean", "sum", "float", "div"})
_FORMS = frozenset(
    ["mean", "sum", "float", "squeeze", "view", "reshape", "flatten", "to", "double", "nan_to_num", "nanmean", "clamp", "clamp_", "clip", "clip_", "clamp_max", "clamp_max_"]
)
"""Operations whose result is a form of the same loss."""
_LOSES_GRADIENT = frozenset(["item", "detach", "exp", "float", "tolist", "numpy", "isnan", "isinf", "isfinite", "len", "str", "print", "cpu", "round"])
_COLLECTS = frozenset({"append", "extend", "add", "update", "setdefault"})
_STOPS = frozenset({"no_grad", "inference_mode"})
_NO_TENSORS = frozenset({"const", "none"})
_BOUND_ELSEWHERE = frozenset({"const", "none", "free", "def", "class"})


class BackwardPasses(Concept):
    """The backward passes of a program."""

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """All of them, without those in methods of that name, which only hand on."""
        return (*(call for call in self.code.calls_named(*BACKWARD) if self._is_one(call)), *self._stepping)

    def steps_itself(self, call: Call) -> bool:
        """Whether a backward pass also steps the optimizer: an object of another package runs it."""
        return call in self._stepping

    def has(self, call: Call) -> bool:
        """Whether a call is a backward pass."""
        return call in self._every

    def lead_to_one(self, call: Call) -> bool:
        """Whether a call is a backward pass, or goes to a function that leads to one."""
        return call in self._every or not self._leading.isdisjoint(call.targets)

    def lead_to_gradients(self, call: Call) -> bool:
        """Whether a call computes gradients in any way, or goes to a function that leads to one that does."""
        return self.lead_to_one(call) or call.called_name in _COMPUTES or not self._differentiating.isdisjoint(call.targets)

    @cached_property
    def _differentiating(self) -> frozenset[Function]:
        return leading_to(call.function for call in self.code.calls_named(*_COMPUTES))

    @cached_property
    def _every(self) -> frozenset[Call]:
        return frozenset(self.calls)

    @cached_property
    def _leading(self) -> frozenset[Function]:
        return leading_to(call.function for call in self.calls)

    def is_of_engine(self, call: Call) -> bool:
        """Whether an object of another package gets the loss, and may divide it: Lightning and its Fabric leave that to the
        caller."""
        receiver, is_given = call.receiver, bool(call.positional or "loss" in dict(call.keywords))
        is_plain = call.called_name == "manual_backward" or (receiver is not None and not receiver.made_by.isdisjoint(_FABRIC))
        return self.steps_itself(call) or (is_given and not is_plain)

    def handed_on_by(self, call: Call) -> list[Call]:
        """The passes in a method called like one that a pass goes to: ``self.backward(batch)``."""
        return [one for target in call.targets for one in target.calls if one.called_name in BACKWARD and one.receiver is not None]

    def loss(self, call: Call) -> Expr | None:
        """What is run backward: the receiver, or the argument of an engine."""
        if self.steps_itself(call):
            return call.positional[0]
        receiver = call.receiver
        assert receiver is not None
        if not call.positional:
            return receiver if not self._is_of_own_object(call) else None
        is_engine = call.callee.last_name == "manual_backward" or not receiver.may_be_tensor
        return call.positional[0] if is_engine and call.positional[0].kind != "const" else None

    @staticmethod
    def _is_one(call: Call) -> bool:
        """Whether a call is no method called like a backward pass that only hands on: callers of the method run backward."""
        hands_on = call.function.name in BACKWARD and call.function.owner is not None
        return call.receiver is not None and call.receiver.last_name != "()super" and not hands_on

    @cached_property
    def _stepping(self) -> dict[Call, None]:
        """The calls of objects of other packages that run a loss backward and step the optimizer, by their names where they
        are created and passed on."""
        made = self.code.calls_named(*sorted({one.rpartition(".")[2] for one in STEPPERS}))
        names = sorted({name for call in made if call.made_by & STEPPERS for name in call.names})
        return dict.fromkeys(call for call in self.code.calls_named(*names) if call.positional and call.callee.made_by & STEPPERS)

    @staticmethod
    def _is_of_own_object(call: Call) -> bool:
        """Whether a call is of a method of an object of the project: the object is not a loss."""
        return call.callee.owner_of_self is not None or bool(call.receiver is not None and call.receiver.classes_of)


class Losses(Concept):
    """What backward passes run, what that is made of, and what happens to a loss."""

    @cached_property
    def on_device(self) -> list[Expr]:
        """All values that are on the device because a loss made of them is run backward, with every other reading of the
        same entry or attribute in the file."""
        made = (one for one in self._made if one.kind not in _BOUND_ELSEWHERE)
        return [again for one in made for again in (one.readings if _is_read(one) else [one])]

    @cached_property
    def containers(self) -> list[Expr]:
        """The containers of losses; they have other values computed with them: ``results["loss"].backward()``."""
        bases = [one.base for one in self._made if one.kind == "item"]
        return [one for one in bases if one is not None and one.plain.kind in ("call", "dcomp", "param")]

    @cached_property
    def run_backward(self) -> list[Expr]:
        """What backward passes run."""
        passes = self.code[BackwardPasses]
        return [loss for call in passes.calls if (loss := passes.loss(call)) is not None]

    @cached_property
    def _made(self) -> list[Expr]:
        """The losses, and what each is made of."""
        todo = list(self.run_backward)
        found = dict.fromkeys(todo)
        while todo:
            for source in _operands_of(todo.pop()):
                if source not in found and source.kind not in _NO_TENSORS:
                    found[source] = None
                    todo.append(source)
        return list(found)

    def is_loss(self, value: Expr) -> bool:
        """Whether a value is a loss with its gradient: a loss function computed it, or what it is a part, a mean or a
        multiple of; where nothing shows what computed it, it is called a loss."""
        todo, seen = [value], {value}
        while todo:
            one = todo.pop()
            names = _names_of(one)
            if _comes_from_loss_function(one) or any(map(is_loss_name, names)):
                return True
            is_about_one = any("loss" in name.lower() for name in names)
            for other in [] if is_about_one else _same_quantity(one):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return False

    def may_run_backward(self, value: Expr) -> bool:
        """Whether a backward pass runs a value or what is made of it; what is given to callers that are not known, or kept
        on an object as a loss, may be run by others."""
        return self._is_run(value, by_others=True)

    def is_run_backward(self, value: Expr) -> bool:
        """Whether code that the program shows differentiates a value or what is made of it."""
        return self._is_run(value, by_others=False)

    def _is_run(self, value: Expr, *, by_others: bool) -> bool:
        backward = self._every
        todo, seen = [value], {value}
        while todo:
            one = todo.pop()
            if one in backward:
                return True
            for use in one.uses():
                if by_others and use.how is How.SET and is_loss_name(use.name):
                    return True
                if by_others and use.how is How.RETURNED and (use.function is None or not use.function.callers or use.function.has_unknown_callers):
                    return True
                name = use.by.callee.last_name if isinstance(use.by, Call) and one in use.by.operands[1:] else ""
                if "backward" in name or (name in DIFFERENTIATES and not by_others):
                    return True
                after = use.function.callers if use.how is How.RETURNED and use.function is not None else _made_with(one, use.by)
                for other in after if by_others or use.how is not How.SET else self._readings(use):
                    if other not in seen:
                        seen.add(other)
                        todo.append(other)
        return False

    @cached_property
    def _every(self) -> frozenset[Expr]:
        return frozenset(self.run_backward)

    def _readings(self, use: Use) -> Iterator[Expr]:
        """Where the methods of a class read the attribute of their object that gets a value."""
        function = use.function
        if function is not None and function.owner is not None:
            yield from (one for one in self.code.reads_in(function.module, use.name) if one.owner_of_self == function.owner)


def _is_read(value: Expr) -> bool:
    """Whether a value is read from an attribute, or from an entry with a known key."""
    return value.kind == "attr" or (value.kind == "item" and value.operands[1].constant is not ...)


def _operands_of(loss: Expr) -> list[Expr]:
    """What has to be on the device because a value is."""
    if loss.kind == "param":
        return loss.given
    if loss.kind in ("phi", "copy"):
        return loss.ways
    if loss.kind == "un":
        return loss.operands
    if loss.kind == "op":
        left, right = loss.operands
        return [left, right] if loss.operator in ("Add", "Sub") else [right if _is_factor(left) else left]
    return _operands_of_call(loss) if isinstance(loss, Call) else []


def _operands_of_call(call: Call) -> list[Expr]:
    """Of a call whose result is on the device the arguments that have to be there, too."""
    callee, given = call.callee.plain, call.positional
    if callee.kind == "free" and callee.name == "sum" and given:
        summed = given[0].plain
        return summed.operands if summed.kind in ("comp", "seq") else []
    if callee.kind == "attr" and callee.name == "scale" and given:
        return given[:1]
    if callee.kind == "attr" and callee.name in _MEANS and not given:
        return callee.operands
    # torch computes on one device: the operands of a loss are on the same device.
    is_loss = any(name.startswith("torch.nn.") for name in call.callee.outside_names | call.callee.made_by)
    return [one for one in given[:2] if one.kind not in ("const", "star")] if is_loss else []


def _is_factor(operand: Expr) -> bool:
    """Whether an operand is written as a number that a loss is weighed with: ``(1 - self.ratio) * loss``."""
    if operand.kind == "op":
        return all(map(_is_factor, operand.operands))
    return operand.kind in ("const", "attr")


def _names_of(value: Expr) -> set[str]:
    """What a value is called: the names that it is bound to, or read by; of an entry its key, or else its container."""
    if value.kind != "item":
        return {*value.names, value.name}
    container, key = value.operands
    text = key.constant if isinstance(key.constant, str) else ""
    is_about = ABOUT.search(text.lower().rpartition("_")[2])
    return {*value.names, text} if is_about else {*value.names, text, *container.names, container.name}


def _comes_from_loss_function(value: Expr) -> bool:
    """Whether a call is one of a loss function: one of torch, or one that is called so."""
    if not isinstance(value, Call):
        return False
    callee = value.callee
    known = callee.outside_names | callee.made_by
    return any(map(LOSS_FUNCTIONS.search, known)) or callee.name in CALLED_AS_LOSS or is_loss_name(callee.name)


def _same_quantity(value: Expr) -> list[Expr]:
    """The operands of which a value is a sum, a multiple, a mean or another form."""
    if value.kind == "op":
        return {"Add": value.operands, "Sub": value.operands, "Mult": value.operands, "Div": value.operands[:1]}.get(value.operator, [])
    if value.kind == "un":
        return value.operands
    if not isinstance(value, Call):
        return value.ways
    if value.callee.last_name not in _FORMS:
        return []
    of_torch = any(name.startswith("torch.") for name in value.callee.outside_names)
    return value.positional[:1] if of_torch or value.receiver is None else [value.receiver]


def _made_with(value: Expr, by: Expr | None) -> list[Expr]:
    """What holds a value, or what is computed from it with its gradient, where it is used in another expression."""
    if by is None or by.kind in ("cmp", "fstr", "not") or (by.kind == "choice" and value not in by.operands[1:]):
        return []
    if not isinstance(by, Call):
        return [by]
    if by.callee.last_name in _LOSES_GRADIENT:
        return []
    if by.callee.last_name in _COLLECTS and by.is_dropped and by.receiver is not None and value != by.callee:
        return [by.receiver]
    return [by, *by.parameters_for(value)]


class UnseenLosses:
    """Losses that no visible call computes: modules of a library, or of a training whose configuration names them. A step
    calls them.

        class Objective(nn.Module):
            def forward(self, logits, target):
                return F.cross_entropy(logits, target)  # who trains with it calls it in each step
    """

    def __init__(self, code: Codebase, is_reached: Callable[[Function], bool]) -> None:
        self._code = code
        self._is_reached = is_reached

    def functions(self) -> Iterator[Function]:
        """The methods that compute such a loss."""
        for owner in [Class(self._code, one) for classes in self._code.program.classes.values() for one in classes]:
            for name in ("forward", "__call__"):
                yield from (one for one in owner.methods(name) if one.owner == owner and self._is_loss(owner, one))

    def _is_loss(self, owner: Class, function: Function) -> bool:
        if self._is_reached(function) or not _STOPS.isdisjoint(one.last_name.removeprefix("()") for one in function.decorators):
            return False
        # An operation with a gradient of its own is needed by a training only.
        is_operation = owner.changes("backward") and not OPERATIONS.isdisjoint(owner.outside_bases)
        if is_operation:
            return not self._is_called(function)
        computes = any(word in owner.name for word in CLASS_WORDS) or self._computes_loss(owner, function)
        return computes and not function.callers

    def _is_called(self, function: Function) -> bool:
        """Whether calls lead to an operation from a step or from a module's own code: its users call the function that
        applies it, and nothing in a library does."""
        todo, seen = [function], {function}
        while todo:
            for one in {call.function for call in todo.pop().callers} - seen:
                if one.is_module or self._is_reached(one):
                    return True
                seen.add(one)
                todo.append(one)
        return False

    @staticmethod
    def _computes_loss(owner: Class, function: Function) -> bool:
        """Whether a module calls a loss of torch in its ``forward``."""
        calls = function.calls if function.name == "forward" and owner.is_module else []
        named = (call.callee for call in calls if call.callee.last_name.endswith(ENDS))
        return any(name.startswith(FUNCTIONS) for callee in named for name in callee.outside_names)


__all__ = ["BACKWARD", "DIFFERENTIATES", "BackwardPasses", "Losses", "UnseenLosses"]
