"""Loops that add up gradients of several micro-batches; whether a DDP model computes them, the project knows.

Two shapes count. In the first the optimizer steps under a guard in the loop of the backward pass, in the second
a loop over ``range(n)`` has only the backward pass and the step follows it::

    if (i + 1) % n == 0: optimizer.step()
    for micro in range(n): loss.backward()
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from astroid import nodes

from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import bindings
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.slots import Slot, slots_of
from ldlm_lint.python.values import constant, evaluate, only_binding

_OPTIMIZER = re.compile(r"optim|(^|_)opt(_|\d|$)|adam|sgd", re.I)
# Helpers that do backward and step themselves take the guard as an argument.
_GUARD_ARGUMENTS = ("update_grad", "need_update")
_DEPTH = 4


@dataclass(frozen=True)
class Accumulation:
    """A backward pass that runs for every micro-batch.

    ``loop`` repeats it, ``count`` is the number of micro-batches to a step; ``guard`` decides when the optimizer
    steps, and ``boundary`` is its test, as it reads where it is true at the last micro-batch; None in the second shape.
    """

    backward: nodes.Call
    loop: nodes.NodeNG
    count: nodes.NodeNG
    guard: nodes.NodeNG
    boundary: nodes.NodeNG | None


@dataclass(frozen=True)
class _Boundary:
    """A test that tells the last micro-batch from the others: true (``last``) or false for it."""

    last: bool
    count: nodes.NodeNG


def accumulation_of(call: nodes.Call) -> Accumulation | None:
    """The accumulation that a backward pass is part of; None where it is none, or nothing is repeated."""
    loops = loops_around(call)
    if not loops or not isinstance(loops[0], (nodes.For, nodes.While)):
        return None
    keyword = next((one for one in call.keywords if one.arg in _GUARD_ARGUMENTS), None)
    if keyword is not None:
        return _by_helper(call, loops[0], keyword.value)
    if not _is_backward(call):
        return None
    steps = [one for one in _own_calls(loops[0]) if _is_optimizer_step(one) and not _exclude(one, call)]
    found = _by_guard(call, loops[0], steps) if steps else _by_micro_loop(call, loops[0])
    return found if found is not None and _repeats(found.count) else None


def called_slots(found: Accumulation) -> list[Slot]:
    """The variables and attributes that are called, or handed to what is called, before the backward pass is done."""
    slots: list[Slot] = []
    end = found.backward.end_lineno or 0
    for call in _own_calls(found.loop):
        if (call.lineno or 0) > end or (found.guard is not found.loop and _stands_in(call, found.guard)):
            continue
        for node in _touched(call):
            slots += [slot for slot in slots_of(node) if slot not in slots]
    return [slot for slot in slots if slot.kind in ("var", "attr")]


def _touched(call: nodes.Call) -> Iterator[nodes.NodeNG]:
    """What a call calls and is given, and the same of a function or method of this file that it goes to."""
    yield from _parts(call)
    inner = _local_function(call)
    for one in _own_calls(inner) if inner is not None else ():
        yield from _parts(one)


def _parts(call: nodes.Call) -> Iterator[nodes.NodeNG]:
    for node in (call.func, *call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(node, (nodes.Name, nodes.Attribute)):
            yield node


def _local_function(call: nodes.Call) -> nodes.FunctionDef | None:
    if isinstance(call.func, nodes.Name):
        return next((one for one in bindings(call.func) if isinstance(one, nodes.FunctionDef)), None)
    if isinstance(call.func, nodes.Attribute) and call.func.expr.as_string() == "self":
        owner = next((one for one in call.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        methods = owner.mymethods() if owner is not None else ()
        return next((one for one in methods if one.name == call.func.attrname), None)
    return None


def _by_helper(call: nodes.Call, loop: nodes.NodeNG, test: nodes.NodeNG) -> Accumulation | None:
    boundary = _boundary(test)
    if boundary is None or not boundary.last or not _repeats(boundary.count):
        return None
    if not any(_OPTIMIZER.search(_last_name(one)) for one in call.args):
        return None
    return Accumulation(call, loop, boundary.count, test, test)


def _by_guard(call: nodes.Call, loop: nodes.NodeNG, steps: list[nodes.Call]) -> Accumulation | None:
    """Every step of an optimizer, and every reset of gradients, stands under a guard that the backward pass is not under."""
    guards = [_guard_of(step, loop) for step in steps]
    resets = [one for one in _own_calls(loop) if _last_name(one.func) == "zero_grad" and not _exclude(one, call)]
    if None in guards or any(_guard_of(one, loop) is None for one in resets):
        return None
    guard, boundary, test = guards[0] or (loop, None, None)
    if boundary is None or _stands_in(call, guard) or (_leaves_early(guard) and call.lineno > guard.lineno):
        return None
    return Accumulation(call, loop, boundary.count, guard, test if boundary.last else None)


def _by_micro_loop(call: nodes.Call, loop: nodes.NodeNG) -> Accumulation | None:
    """A loop over ``range(n)`` without step and reset, and a step of an optimizer right behind it."""
    if not isinstance(loop, nodes.For) or not isinstance(loop.iter, nodes.Call) or loop.iter.as_string().count("range(") != 1:
        return None
    if _last_name(loop.iter.func) != "range" or len(loop.iter.args) != 1:
        return None
    if any(_last_name(one.func) == "zero_grad" for one in _own_calls(loop)):
        return None
    following = _behind(loop)
    if not any(_is_optimizer_step(one) for statement in following for one in _own_calls(statement)):
        return None
    return Accumulation(call, loop, loop.iter.args[0], loop, None)


def _behind(loop: nodes.For) -> list[nodes.NodeNG]:
    suite = _suite_of(loop)
    return suite[suite.index(loop) + 1 :]


def _suite_of(statement: nodes.NodeNG) -> list[nodes.NodeNG]:
    """The block of statements that a statement stands in."""
    parent = statement.parent
    for name in ("body", "orelse", "handlers", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and statement in block:
            return block
    return [statement]


def _guard_of(call: nodes.Call, loop: nodes.NodeNG) -> tuple[nodes.If, _Boundary, nodes.NodeNG] | None:
    """The ``if`` that lets a call of a loop run only at the last micro-batch."""
    child: nodes.NodeNG = call
    while child is not loop:
        parent = child.parent
        if isinstance(parent, nodes.If) and child is not parent.test:
            boundary = _boundary(parent.test, body=parent)
            if boundary is not None and boundary.last == (child in parent.body):
                return parent, boundary, parent.test
        for before in _suite_of(child) if isinstance(child, nodes.NodeNG) and child.is_statement else ():
            if before is child:
                break
            boundary = _boundary(before.test) if _leaves_early(before) else None
            if boundary is not None and not boundary.last:
                return before, boundary, before.test
        child = parent
    return None


def _leaves_early(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.If) and isinstance(node.body[-1], nodes.Continue)


def _boundary(test: nodes.NodeNG, body: nodes.If | None = None, depth: int = 0) -> _Boundary | None:
    """What a test says of micro-batches: ``(i + 1) % n == 0``, ``i % n != 0``, or a counter that its body resets."""
    if depth > _DEPTH:
        return None
    if isinstance(test, nodes.Name) and (value := only_binding(test)) is not None:
        return _boundary(value, body, depth + 1)
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        inner = _boundary(test.operand, body, depth + 1)
        return _Boundary(not inner.last, inner.count) if inner else None
    if isinstance(test, nodes.BoolOp):
        return next(filter(None, (_boundary(value, body, depth + 1) for value in test.values)), None)
    if isinstance(test, nodes.BinOp) and test.op == "%":
        return _Boundary(False, test.right)
    if isinstance(test, nodes.Compare) and len(test.ops) == 1:
        return _comparison(test, body)
    return None


def _comparison(test: nodes.Compare, body: nodes.If | None) -> _Boundary | None:
    operator, right = test.ops[0]
    left = test.left
    if isinstance(right, nodes.BinOp) and right.op == "%":
        left, right = right, left
    if isinstance(left, nodes.BinOp) and left.op == "%":
        if operator == "==":
            return _Boundary(True, left.right)
        return _Boundary(False, left.right) if operator in ("!=", ">") and constant(right) == 0 else None
    if operator in ("==", ">=") and body is not None and isinstance(left, (nodes.Name, nodes.Attribute)):
        return _Boundary(True, right) if _resets(body, left.as_string()) else None
    return None


def _resets(body: nodes.If, counter: str) -> bool:
    assigned = (one for statement in body.body for one in statement.nodes_of_class(nodes.Assign))
    return any(
        constant(one.value) == 0 and any(target.as_string() == counter for target in one.targets) for one in assigned
    )


def _repeats(count: nodes.NodeNG) -> bool:
    """Whether a step may have more than one micro-batch."""
    values = evaluate(count)
    return values is None or any(isinstance(value, int) and value > 1 for value in values)


def _is_backward(call: nodes.Call) -> bool:
    """``loss.backward()``; engines take the loss as an argument and synchronise on their own terms."""
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "backward" or call.args:
        return False
    function = function_of(call)
    return Arguments(call)["loss"].absent and getattr(function, "name", "") != "backward"


def _is_optimizer_step(call: nodes.Call) -> bool:
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "step":
        return False
    receiver = _last_name(call.func.expr)
    return bool(_OPTIMIZER.search(receiver)) or ("scaler" in receiver.lower() and len(call.args) == 1)


def _last_name(node: nodes.NodeNG) -> str:
    while isinstance(node, nodes.Subscript):
        node = node.value
    return node.attrname if isinstance(node, nodes.Attribute) else getattr(node, "name", "")


def _own_calls(node: nodes.NodeNG) -> Iterator[nodes.Call]:
    """The calls below a node, those of functions defined in it left out."""
    owner = node if isinstance(node, nodes.FunctionDef) else function_of(node)
    return (call for call in node.nodes_of_class(nodes.Call) if function_of(call) is owner)


def _exclude(one: nodes.NodeNG, other: nodes.NodeNG) -> bool:
    """Whether two nodes stand in the two branches of one ``if``."""
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


__all__ = ["Accumulation", "accumulation_of", "called_slots"]
