"""Whether an optimizer can step on gradients that `no_sync()` left local: the fix must not make that happen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from astroid import nodes

from ldlm_lint.checkers.gradient_sync import (
    Accumulation,
    exclude,
    goes_back,
    guard_of,
    is_step,
    local_function,
    own_calls,
)
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.walks import nodes_of

_LEAVES = (nodes.Break, nodes.Continue, nodes.Return, nodes.Raise, nodes.Try)


def steps_only_at(found: Accumulation, block: Sequence[nodes.NodeNG]) -> bool:
    """Whether every step is under the very test that ends ``no_sync()``, and no gradients are dropped before."""
    calls = list(own_calls(found.loop))
    steps = [one for one in calls if is_step(one) and not exclude(one, found.backward)]
    # The other branch of a test in the block would step on gradients that this one left local.
    others = [one for one in calls if is_step(one) and one not in steps and _is_in(block, one)]
    if not all(_is_under(one, found) for one in others):
        return False
    clips = [one for one in calls if last_name(one.func).startswith("clip_grad") and not exclude(one, found.backward)]
    if found.boundary is None or found.guard is found.loop:
        leaves = any(True for statement in found.loop.body for _ in nodes_of(statement, _LEAVES))
        return not steps and not clips and not leaves and not getattr(found.loop, "orelse", None)
    if found.by_helper:
        return not steps and not clips and not _flushes(found)
    one_optimizer = len({_receiver(one) for one in steps}) == 1
    return one_optimizer and all(_is_under(one, found) for one in (*steps, *clips)) and not _flushes(found)


def _is_under(call: nodes.Call, found: Accumulation) -> bool:
    """Whether a call runs only where the very test of the accumulation selects the last micro-batch."""
    guard = guard_of(call, found.loop)
    return (
        guard is not None
        and found.boundary is not None
        and guard[2].as_string() == found.boundary.as_string()
        and guard[1].last is found.last
    )


def _is_in(block: Sequence[nodes.NodeNG], node: nodes.NodeNG) -> bool:
    return any(one in block for one in (node, *node.node_ancestors()))


def _receiver(step: nodes.Call) -> str:
    """The optimizer of a step, as written."""
    if not isinstance(step.func, nodes.Attribute) or step.func.attrname != "step":
        return step.func.as_string()
    return (step.args[0] if step.args else step.func.expr).as_string()


def _flushes(found: Accumulation) -> bool:
    """Whether gradients left over at the end of a loop, or between two calls, are used by a step elsewhere."""
    return any(is_step(call) and not exclude(call, found.backward) for call in _elsewhere(found))


def _elsewhere(found: Accumulation) -> Iterator[nodes.Call]:
    """The calls outside of the loop that follow it: in its function, or in the class of a function for each micro-batch."""
    loop = found.loop
    if isinstance(loop, nodes.FunctionDef):
        around = loop.parent
        helpers = {local_function(call) for call in own_calls(loop)}
        for function in nodes_of(around, nodes.FunctionDef):
            if function is not loop and function not in helpers:
                yield from (one for one in own_calls(function) if local_function(one) is not loop)
        return
    outer = set(loops_around(loop))
    for call in own_calls(function_of(loop)):
        if any(parent is loop for parent in call.node_ancestors()):
            continue
        others = [one for one in loops_around(call) if one not in outer]
        # A loop of its own, with its own backward pass, is a separate training.
        if not any(goes_back(one) for other in others for one in own_calls(other)):
            yield call


__all__ = ["steps_only_at"]
