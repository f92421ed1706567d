"""Loops that add up gradients of several micro-batches; whether a DDP model computes them, the project knows.

There are two shapes. In the first the optimizer steps under a guard in the loop of the backward pass, or in a function
called by a loop elsewhere; in the second a loop over micro-batches has only the backward pass and the step follows it::

    if (i + 1) % n == 0: optimizer.step()
    for micro in range(n): loss.backward()
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ldlm_lint.checkers.accelerate_sync import is_backward_of_accelerator
from ldlm_lint.checkers.gradient_sync_boundaries import Boundary, micro_boundary, repeats
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import bindings
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.slots import Slot, slots_of
from ldlm_lint.python.walks import nodes_of

_OPTIMIZER = lazily(r"optim|(^|_)opt(_|\d|$)|adam|sgd", re.I)
# Helpers that do backward and step themselves take the guard as an argument.
_GUARD_ARGUMENTS = ("update_grad", "need_update")
# A function of another file that steps, by its name.
_STEPS = lazily(r"^_*(optim\w*_step|step_optim\w*|(update|apply)_(weights|params|parameters|gradients|grads))$")
SPLITS = {"chunk", "split", "tensor_split", "array_split"}
_PASS_ON = {"enumerate", "zip", "tqdm", "trange", "iter"}
# The ``if``, its meaning, and its test.
_Guard = tuple[nodes.If, Boundary, nodes.NodeNG]


@dataclass(frozen=True)
class Accumulation:
    """A backward pass that runs for every micro-batch.

    ``loop`` repeats it (or is the function that does, called for each micro-batch), ``count`` is the number of
    micro-batches to a step; ``guard`` decides when the optimizer steps, and ``boundary`` is its test, which is true
    (``last``) or false at the last micro-batch; None in the second shape. ``by_helper``: the backward pass is in a
    helper that gets the test and steps itself.
    """

    backward: nodes.Call
    loop: nodes.NodeNG
    count: nodes.NodeNG
    guard: nodes.NodeNG
    boundary: nodes.NodeNG | None
    last: bool = True
    by_helper: bool = False


def backward_names(module: nodes.Module) -> frozenset[str]:
    """The last names of the calls of a file that `accumulation_of` may recognise."""
    passes = [one for one in nodes_of(module, nodes.Call) if _is_backward(one)]
    functions = (function_of(one) for one in passes)
    return frozenset({"backward"} if passes else ()).union(getattr(one, "name", "") for one in functions)


def takes_guard(call: nodes.Call) -> bool:
    """Whether a call passes the guard of a helper's step."""
    return any(one.arg in _GUARD_ARGUMENTS for one in call.keywords)


def accumulation_of(call: nodes.Call) -> Accumulation | None:
    """The accumulation that a backward pass is part of; None if it is not part of one, or not repeated."""
    loop = next(iter(loops_around(call)), None) or function_of(call)
    if not isinstance(loop, (nodes.For, nodes.While, nodes.FunctionDef)):
        return None
    keyword = next((one for one in call.keywords if one.arg in _GUARD_ARGUMENTS), None)
    if keyword is not None and not isinstance(loop, nodes.FunctionDef):
        return _by_helper(call, loop, keyword.value)
    if not goes_back(call):
        return None
    steps = remembered(loop, ("steps",), lambda: [one for one in own_calls(loop) if is_step(one)])
    guards = _guards(steps, call, loop)
    found = _by_guard(call, loop, guards) if guards is None or guards else _by_micro_loop(call, loop)
    return found if found is not None and repeats(found.count) else None


def called_slots(found: Accumulation) -> list[Slot]:
    """The variables and attributes that are called, or passed to calls, up to the backward pass."""
    slots: list[Slot] = []
    end = found.backward.end_lineno or 0
    for call in own_calls(found.loop):
        if (call.lineno or 0) > end or (found.guard is not found.loop and _stands_in(call, found.guard)):
            continue
        for node in _touched(call):
            slots += [slot for slot in slots_of(node) if slot not in slots]
    return [slot for slot in slots if slot.kind in ("var", "attr")]


def _touched(call: nodes.Call) -> Iterator[nodes.NodeNG]:
    """The callee and arguments of a call, and the same for a function or method of this file that it calls."""
    yield from _parts(call)
    inner = local_function(call)
    for one in own_calls(inner) if inner is not None else ():
        yield from _parts(one)


def _parts(call: nodes.Call) -> Iterator[nodes.NodeNG]:
    for node in (call.func, *call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(node, (nodes.Name, nodes.Attribute, nodes.Subscript)):
            yield node


def local_function(call: nodes.Call) -> nodes.FunctionDef | None:
    """The function or method of this file that a call calls."""
    if isinstance(call.func, nodes.Name):
        return next((one for one in bindings(call.func) if isinstance(one, nodes.FunctionDef)), None)
    if isinstance(call.func, nodes.Attribute) and call.func.expr.as_string() == "self":
        owner = next((one for one in call.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        methods = owner.mymethods() if owner is not None else ()
        return next((one for one in methods if one.name == call.func.attrname), None)
    return None


def _by_helper(call: nodes.Call, loop: nodes.NodeNG, test: nodes.NodeNG) -> Accumulation | None:
    boundary = micro_boundary(test, [])
    if boundary is None or not boundary.last or not repeats(boundary.count):
        return None
    if not any(_OPTIMIZER.search(_last_name(one)) for one in call.args):
        return None
    return Accumulation(call, loop, boundary.count, test, test, by_helper=True)


def _guards(calls: list[nodes.Call], backward: nodes.Call, loop: nodes.NodeNG) -> list[_Guard] | None:
    """The guards of those calls of a loop that may run in the iteration of a backward pass; None as soon as one has
    none."""
    found: list[_Guard] = []
    for call in calls:
        if exclude(call, backward):
            continue
        guard = remembered(call, ("guard", loop), functools.partial(guard_of, call, loop))
        if guard is None:
            return None
        found.append(guard)
    return found


def _by_guard(call: nodes.Call, loop: nodes.NodeNG, guards: list[_Guard] | None) -> Accumulation | None:
    """Every step of an optimizer, and every reset of gradients, is under a guard that the backward pass is not
    under.
    """
    resets = remembered(loop, ("resets",), lambda: [one for one in own_calls(loop) if _last_name(one.func) == "zero_grad"])
    if guards is None or _guards(resets, call, loop) is None:
        return None
    guard, boundary, test = guards[0]
    if _stands_in(call, guard) or (_leaves_early(guard) and call.lineno > guard.lineno):
        return None
    return Accumulation(call, loop, boundary.count, guard, test, boundary.last)


def _by_micro_loop(call: nodes.Call, loop: nodes.NodeNG) -> Accumulation | None:
    """A loop over micro-batches without step and reset, and a step of an optimizer right after it."""
    count = _number_of(loop.iter) if isinstance(loop, nodes.For) else None
    if count is None or not remembered(loop, ("micro-batches",), lambda: _is_stepped_behind(loop)):
        return None
    return Accumulation(call, loop, count, loop, None)


def _is_stepped_behind(loop: nodes.NodeNG) -> bool:
    """Whether gradients are used after a loop, and not reset in it."""
    if any(_last_name(one.func) == "zero_grad" for one in own_calls(loop)):
        return False
    return any(remembered(one, ("steps inside",), functools.partial(_steps_inside, one)) for one in _behind(loop))


def _steps_inside(statement: nodes.NodeNG) -> bool:
    return any(map(is_step, own_calls(statement)))


def _number_of(iterable: nodes.NodeNG) -> nodes.NodeNG | None:
    """The number of micro-batches of a loop; a literal list contains parts of one loss."""
    if isinstance(iterable, (nodes.Name, nodes.Attribute)):
        return iterable
    if not isinstance(iterable, nodes.Call) or not iterable.args:
        return None
    name = _last_name(iterable.func)
    if name == "range":
        return iterable.args[0] if len(iterable.args) == 1 else iterable
    if name in _PASS_ON:
        return _number_of(iterable.args[0])
    return iterable.args[-1] if name in SPLITS else None


def _behind(loop: nodes.For) -> Iterator[nodes.NodeNG]:
    """The statements that follow a loop in its block and, within the next loop, in the blocks around it."""
    child: nodes.NodeNG = loop
    while True:
        suite = _suite_of(child)
        yield from suite[suite.index(child) + 1 :]
        child = child.parent
        if not isinstance(child, (nodes.If, nodes.With, nodes.Try)):
            return


def _suite_of(statement: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The block of statements that a statement is in."""
    parent = statement.parent
    for name in ("body", "orelse", "handlers", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def guard_of(call: nodes.Call, loop: nodes.NodeNG) -> _Guard | None:
    """The ``if`` that lets a call of a loop run only at the last micro-batch."""
    child: nodes.NodeNG = call
    while child is not loop:
        parent = child.parent
        if isinstance(parent, nodes.If) and child is not parent.test:
            boundary = micro_boundary(parent.test, parent.body)
            if boundary is not None and boundary.last == (child in parent.body):
                return parent, boundary, parent.test
        suite = _suite_of(child) if child.is_statement else []
        for at, before in enumerate(suite):
            if before is child:
                break
            boundary = micro_boundary(before.test, suite[at + 1 :]) if _leaves_early(before) else None
            if boundary is not None and not boundary.last:
                return before, boundary, before.test
        child = parent
    return None


def _leaves_early(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.If) and isinstance(node.body[-1], (nodes.Continue, nodes.Return))


def goes_back(call: nodes.Call) -> bool:
    """Whether a call is a backward pass, or calls a function of this file that does it."""
    return _is_backward(call) or _is_backward_helper(call)


def _is_backward(call: nodes.Call) -> bool:
    """``loss.backward()``; other engines than Accelerate take the loss as an argument and synchronise on their own terms."""
    if is_backward_of_accelerator(call):
        return True
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "backward" or call.args:
        return False
    return Arguments(call)["loss"].absent and not _is_of_autograd(function_of(call))


def _is_of_autograd(function: nodes.NodeNG) -> bool:
    """``backward(ctx, …)`` of a custom function."""
    arguments = function.args.args if isinstance(function, nodes.FunctionDef) and function.name == "backward" else []
    return bool(arguments) and (arguments[0].name == "ctx" or function.decorators is not None)


def _is_backward_helper(call: nodes.Call) -> bool:
    """A call of a function of this file that does the backward pass, once, and leaves the step to its caller."""
    inner = local_function(call)
    if inner is None or inner is function_of(call):
        return False
    calls = list(own_calls(inner))
    passes = [one for one in calls if _is_backward(one)]
    return bool(passes) and not any(map(_is_optimizer_step, calls)) and not any(map(loops_around, passes))


def is_step(call: nodes.Call) -> bool:
    """A step of an optimizer, or a call of a function that takes it and does no backward pass."""
    if _is_optimizer_step(call) or _STEPS.search(_last_name(call.func)):
        return True
    inner = local_function(call)
    if inner is None or inner is function_of(call):
        return False
    calls = list(own_calls(inner))
    return any(map(_is_optimizer_step, calls)) and not any(map(_is_backward, calls))


def _is_optimizer_step(call: nodes.Call) -> bool:
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "step":
        return False
    receiver = _last_name(call.func.expr)
    return bool(_OPTIMIZER.search(receiver)) or ("scaler" in receiver.lower() and len(call.args) == 1)


def _last_name(node: nodes.NodeNG) -> str:
    while isinstance(node, nodes.Subscript):
        node = node.value
    return node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "")


def own_calls(node: nodes.NodeNG) -> Iterator[nodes.Call]:
    """The calls below a node, without those in functions defined in it."""
    owner = node if isinstance(node, nodes.FunctionDef) else function_of(node)
    return (call for call in nodes_of(node, nodes.Call) if function_of(call) is owner)


def exclude(one: nodes.NodeNG, other: nodes.NodeNG) -> bool:
    """Whether two nodes are in the two branches of one ``if``."""
    child = one
    for parent in one.node_ancestors():
        if isinstance(parent, nodes.If) and child is not parent.test:
            away = parent.orelse if child in parent.body else parent.body
            if any(_stands_in(other, statement) for statement in away):
                return True
        child = parent
    return False


def _stands_in(node: nodes.NodeNG, other: nodes.NodeNG) -> bool:
    return other is node or any(parent is other for parent in node.node_ancestors())


__all__ = [
    "SPLITS",
    "Accumulation",
    "accumulation_of",
    "backward_names",
    "called_slots",
    "exclude",
    "goes_back",
    "guard_of",
    "is_step",
    "local_function",
    "own_calls",
    "takes_guard",
]
