"""The execution order of the waits of one training step, how often each runs, and which have nothing left to wait for
after an earlier one.

The order is that of evaluation: of the expressions of a function, and along the calls that lead from the step to a
function.
"""

from __future__ import annotations

from itertools import takewhile
from typing import NamedTuple

from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import DEVICE, HOST, HOST_TENSOR, MAY_BE_ON_DEVICE, PARAMETERS
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Loop
from ldlm_lint.program.spots import Spot
from ldlm_lint.vocabulary.tensors import HOST_BUILTINS, HOST_LIBRARIES, HOST_METHODS, ONE_PASS, TO_HOST

_ASKED_LATER = frozenset({"cmp", "op", "un"})
_MOST_OPEN = 40
"""Functions, each called by the one before, of which the last is not looked at: it is more than a log line."""
# These compute a result on the device; attributes, items and names only pass values on.
_COMPUTED = frozenset({"op", "un", "cmp"})
_READS = (TO_HOST | HOST_METHODS | frozenset({"cpu", "detach"})) - {"backward"}
_BUILTINS = HOST_BUILTINS | frozenset(["dict", "list", "tuple", "set", "zip", "enumerate", "getattr", "sorted", "super"])
# They write their arguments to a file, a terminal or a service.
_WRITERS = ("tqdm", "tensorboardX", "torch.utils.tensorboard", "swanlab", "mlflow", "rich", "absl", "loguru", "visdom")


class Placed(NamedTuple):
    """An expression at which a step waits, and where it runs."""

    expr: Expr
    spot: Spot


class WaitOrder(Concept):
    """Answers for the expressions at which a project's steps wait."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._reach = code[Reach]
        self._launching = Launching(code)

    @staticmethod
    def placed(expr: Expr) -> Placed:
        """An expression with the place at which its value is read."""
        if isinstance(expr, Call):
            return Placed(expr, expr.spot)
        function = expr.function
        spots = [event.spot for event in expr.events if event.kind != "write" and event.spot.function == function]
        return Placed(expr, spots[-1] if spots else Spot(function, None, None, expr.place))

    def way(self, wait: Placed) -> list[Placed]:
        """The calls that lead from the step to a wait, the one in the step first, and the wait itself; waits of a step run in
        the order of their ways."""
        return [*(Placed(call, call.spot) for call in self._reach.way_to(wait.spot.function)), wait]

    def step(self, wait: Placed) -> Spot | None:
        """The beginning of the step that a wait runs in: its loop, or the function that is a step; None if no step is
        known."""
        top = self.way(wait)[0].spot
        loop = next((one for one in top.loops if self._steps.are_loops(one)), None)
        if loop is not None:
            return loop.spot
        return top.function.spot if self._steps.is_whole(top.function) else None

    def frequency(self, wait: Placed) -> tuple[str, Loop | None]:
        """The unit per which a wait runs once in a step, and the loop that repeats it: the innermost one decides."""
        for one in reversed(self.way(wait)):
            for loop in takewhile(lambda loop: not self._steps.are_loops(loop), one.spot.loops):
                return _kind(loop), loop
        return "step", None

    def follows(self, earlier: Placed, later: Placed) -> bool:
        """Whether Python has nothing left to wait for at ``later`` after waiting at ``earlier`` in the same iteration:
        both are in one function and loop, the earlier one runs whenever the later one does, and all that is launched between
        them reads its tensors once, ``losses["a"].mean().item()``: there is no work that Python had queued ahead."""
        first, second = earlier.spot, later.spot
        if first.function != second.function or first.loop != second.loop or not earlier.expr.precedes(later.expr):
            return False
        if first.guard is not None and not second.is_under(first.guard):
            return False
        # A comparison is launched before its truth value is read; the selection by a mask is copied after the wait.
        is_asked_later = earlier.expr.kind in _ASKED_LATER
        between = (one for one in self.code.expressions_between(earlier.expr, later.expr) if one != earlier.expr or not is_asked_later)
        return all(_is_small(one) for one in between if self._launching.launches(one))


def _kind(loop: Loop) -> str:
    """The kind of a loop's iterable, by its values: the layers of a model, parameters, the samples of a tensor, or
    anything else."""
    if loop.kind == "while" or loop.value.kind == "none":
        return "pass"
    if PARAMETERS in loop.value.value:
        return "parameter"
    if DEVICE in loop.value.value:
        return "sample"
    element = next((one for one in loop.value.users if one.kind == "elem"), None)
    owners = element.classes_of if element is not None else []
    if owners and all(owner.is_module for owner in owners):
        return "layer"
    return "sample" if _counts_samples(loop.value.plain) else "pass"


def _counts_samples(iterable: Expr) -> bool:
    """Whether a loop runs over ``range(len(tensor))``, ``range(x.shape[0])`` or ``range(x.size(0))``."""
    if not isinstance(iterable, Call) or iterable.called_name != "range" or len(iterable.positional) != 1:
        return False
    count = iterable.positional[0].plain
    counted: Expr | None = None
    if count.kind == "item" and count.base is not None and count.index is not None and count.index.plain.constant == 0:
        shape = count.base.plain
        counted = shape.base if shape.kind == "attr" and shape.name == "shape" else None
    elif isinstance(count, Call) and count.positional:
        function = count.callee.plain
        if function.kind == "attr" and function.name == "size" and count.positional[0].plain.constant == 0:
            counted = function.base
        elif function.kind == "free" and function.name == "len":
            counted = count.positional[0]
    return counted is not None and _is_on_device(counted)


def _is_on_device(*exprs: Expr) -> bool:
    return any(one.value & MAY_BE_ON_DEVICE for one in exprs)


def _is_small(expr: Expr) -> bool:
    """Whether all that an expression launches reads its tensors once: ``loss.mean()``, ``x > 0``, and no product.

    What ``self.norm(x)`` computes is not known, for a module may have any name.
    """
    if not isinstance(expr, Call):
        return expr.kind in ("cmp", "un", "item") or (expr.kind == "op" and expr.operator != "MatMult")
    if expr.called_name not in ONE_PASS or expr.targets:
        return False
    receiver = expr.callee.plain.base if expr.callee.plain.kind == "attr" else None
    is_method = receiver is not None and _is_on_device(receiver)
    return is_method or any(name.startswith("torch.") for name in expr.callee.outside_names)


class Launching:
    """Expressions that may launch kernels; the opposite is plain Python work: reading, formatting, logging, filling
    containers. Unknown ones may launch."""

    def __init__(self, code: Codebase) -> None:
        self._atoms = code.program.atoms
        self._functions: dict[Function, bool] = {}
        self._calls_open = 0

    def launches(self, expr: Expr) -> bool:
        """Whether evaluating an expression without its operands may launch kernels."""
        if isinstance(expr, Call):
            return self._call_launches(expr)
        if expr.kind == "upd" and expr.base is not None and expr.index is not None:
            # Only a container has texts as keys.
            return not isinstance(expr.index.constant, str) and _is_on_device(expr.base)
        if expr.kind == "item" and expr.index is not None:
            # A tensor as an index selects on the device; a number or a slice only looks at a part.
            return _is_on_device(expr.index)
        return expr.kind in ("def", "class") or (expr.kind in _COMPUTED and _is_on_device(expr, *expr.operands))

    def _call_launches(self, call: Call) -> bool:
        function = call.callee.plain
        if (function.kind == "free" and function.name in _BUILTINS) or (function.kind == "attr" and function.name in _READS):
            return False
        if call.targets:
            return any(map(self._function_launches, call.targets))
        called = call.callee.outside_names
        if called:
            return not all(map(_is_of_the_host, called))
        return function.kind != "attr" or function.base is None or not self._is_of_python(function.base)

    def _is_of_python(self, receiver: Expr) -> bool:
        """Whether an object is a container, a plain Python object, or made by a library that does not compute on a
        device."""
        value = receiver.value
        if not value or value & MAY_BE_ON_DEVICE or HOST_TENSOR in value:
            return False
        known = sum(len(self._atoms.kinds(value, kind)) for kind in ("d", "view", "k", "o"))
        return len(value - {HOST}) == known and all(map(_is_of_the_host, receiver.made_by))

    def _function_launches(self, function: Function) -> bool:
        """Whether a function of the project may launch kernels: one of its own expressions does."""
        if function not in self._functions and self._calls_open >= _MOST_OPEN:
            return True
        if function not in self._functions:
            # A function that calls itself adds nothing to its other expressions.
            self._functions[function] = False
            self._calls_open += 1
            self._functions[function] = any(map(self.launches, function.expressions))
            self._calls_open -= 1
        return self._functions[function]


def _is_of_the_host(name: str) -> bool:
    return name.partition(".")[0] in HOST_LIBRARIES or name.startswith(_WRITERS)


__all__ = ["Placed", "WaitOrder"]
