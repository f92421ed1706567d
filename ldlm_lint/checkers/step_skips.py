"""Finds code that leaves a training step before its backward pass because of a condition on a single rank.

There are two shapes. In the first a test of the loss decides, in the second a caught error does::

    if torch.isnan(loss): continue            # or: if torch.isfinite(loss): loss.backward()
    try: … loss.backward() except RuntimeError: continue
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.loss_traces import REDUCES, Trace, calls_below, is_loss_value, reduces, step_of
from ldlm_lint.checkers.losses import trains as gradients_flow
from ldlm_lint.patterns import lazily
from ldlm_lint.python.guards import block_of
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.wording import any_of, quoted

_ALONE = lazily(r"world_size|num_process|n_?gpus?\b|distributed|\bddp\b|is_dist|single", re.I)
_ENDS = {"exit", "_exit", "abort", "quit", "kill"}
_ERRORS = lazily(r"^(RuntimeError|OutOfMemoryError|Exception|BaseException|FloatingPointError|ValueError|ArithmeticError)$")
_OF_DATA = frozenset({"StopIteration", "StopAsyncIteration", "KeyboardInterrupt", "SystemExit", "GeneratorExit"})
"""What ends a pass over the data, or the program: on all ranks as a rule."""
_BACKWARD = {"backward", "manual_backward", "backward_step"}
_SCALER = lazily(r"scaler$", re.I)
_HARMLESS = {"no_sync"}


class Skip(NamedTuple):
    """A place that leaves a step: the node to report, the condition as text, and its place.

    ``reducers`` are the calls through which the deciding value went; ``test`` is the test that leaves the step when
    true. ``lightning``: the backward pass of the step is Lightning's.
    """

    node: nodes.NodeNG
    cause: str
    where: nodes.NodeNG
    reducers: tuple[nodes.Call, ...] = ()
    test: nodes.NodeNG | None = None
    lightning: bool = False


def skips_of(module: nodes.Module) -> Iterator[Skip]:
    """Every place of a file that may leave a training step on one rank alone."""
    for node in nodes_of(module, (nodes.If, nodes.Try)):
        if not gradients_flow(node) or _is_guarded(node):
            continue
        found = _by_test(node) if isinstance(node, nodes.If) else _by_error(node)
        if found is not None:
            yield found


def _by_test(node: nodes.If) -> Skip | None:
    trace = Trace(node)
    if not trace.is_about_loss(node.test) or trace.is_shared():
        return None
    leaves = _leaves(node.body) and not _leaves_cleanly(node.body)
    if leaves and _returns_to_lightning(node):
        return Skip(node.test, f"the test of {quoted(trace.loss)}", node, tuple(trace.calls), lightning=True)
    negative = leaves and _follows(node)
    positive = any(map(_is_backward, calls_below(node.body))) and not any(map(_is_backward, calls_below(node.orelse))) and _repeats(node)
    if not (negative or positive):
        return None
    return Skip(node.test, f"the test of {quoted(trace.loss)}", node, tuple(trace.calls), node.test if negative else None)


def _by_error(node: nodes.Try) -> Skip | None:
    """A handler that continues after an error of the forward or backward pass."""
    loops = loops_around(node)
    # A handler around the whole loop ends the training instead of a step.
    own = [call for call in calls_below(node.body) if _is_backward(call) and loops_around(call) == loops]
    before = not own and _makes_loss(node)
    if not _repeats(node) or not (own or before) or any(map(reduces, calls_below(node.body))):
        return None
    # A backward pass without an optimizer measures or checks something.
    if not any(last_name(call.func) in ("step", "zero_grad") or _SCALER.search(last_name(call.func)) for call in calls_below(step_of(node))):
        return None
    for handler in node.handlers:
        names = _caught(handler)
        text = handler.as_string()
        wanted = names.isdisjoint(_OF_DATA) and _leaves_step(handler) if before else any(map(_ERRORS.search, names))
        if not wanted or REDUCES.search(text) or _ALONE.search(text):
            continue
        if (_always_ends(handler.body) and not _leaves_step(handler)) or any(map(_is_backward, calls_below(handler.body))):
            return None
        place = handler.type or handler
        return Skip(place, f"{any_of(sorted(names))}, which can occur on one rank alone,", node)
    return None


def _makes_loss(node: nodes.Try) -> bool:
    """Whether a ``try`` computes the loss that runs backward right after it: ``try: loss = model(batch) except Empty:
    continue``."""
    block = block_of(node)
    made = {one.name for statement in node.body for one in nodes_of(statement, nodes.AssignName)}
    behind = [call for statement in block[block.index(node) + 1 :] for call in calls_below([statement])] if block else []
    return any(one.name in made for call in behind if _is_backward(call) for one in nodes_of(call, nodes.Name))


def _leaves_step(handler: nodes.ExceptHandler) -> bool:
    """Whether a path through a handler continues with the next step, or leaves the loop, before it raises."""
    for one in nodes_of(handler, (nodes.Continue, nodes.Break, nodes.Return)):
        loops = loops_around(one)
        if function_of(one) is function_of(handler) and (isinstance(one, nodes.Return) or loops == loops_around(handler)):
            return True
    return False


def _caught(handler: nodes.ExceptHandler) -> set[str]:
    """The last names of the errors that a handler catches; a bare one catches every exception."""
    if handler.type is None:
        return {"Exception"}
    parts = handler.type.elts if isinstance(handler.type, nodes.Tuple) else [handler.type]
    return {last_name(part) for part in parts}


def _is_backward(call: nodes.Call) -> bool:
    name = last_name(call.func)
    if name in _BACKWARD:
        return True
    # ``loss_scaler(loss, optimizer, …)`` runs the backward pass inside.
    return _SCALER.search(name) is not None and any(is_loss_value(argument) for argument in call.args)


def _leaves(body: list[nodes.NodeNG]) -> bool:
    return isinstance(body[-1], (nodes.Continue, nodes.Break, nodes.Return))


def _leaves_cleanly(body: list[nodes.NodeNG]) -> bool:
    """Whether the process ends there, which ends the job on all ranks, or the ranks communicate first."""
    return any(last_name(call.func) in _ENDS or reduces(call) for call in calls_below(body)) or any(
        isinstance(statement, nodes.Raise) for statement in body
    )


def _always_ends(body: list[nodes.NodeNG]) -> bool:
    """Whether every path through statements raises or ends the process."""
    last = body[-1]
    if isinstance(last, nodes.If):
        return bool(last.orelse) and _always_ends(last.body) and _always_ends(last.orelse)
    if isinstance(last, nodes.With):
        return _always_ends(last.body)
    if isinstance(last, nodes.Expr) and isinstance(last.value, nodes.Call):
        return last_name(last.value.func) in _ENDS
    return isinstance(last, nodes.Raise)


def _follows(node: nodes.If) -> bool:
    """Whether the step that is left has a backward pass later, and none before it for the same loss."""
    step = function_of(node) if isinstance(node.body[-1], nodes.Return) else step_of(node)
    end = node.end_lineno or 0
    later = [call for call in calls_below(step) if (call.lineno or 0) > end and _is_backward(call) and not _apart(call, node)]
    return bool(later) and _repeats(node)


def _returns_to_lightning(node: nodes.If) -> bool:
    """Whether a Lightning module returns no loss there, which skips the backward pass that Lightning runs."""
    function, left = function_of(node), node.body[-1]
    owner = function.parent
    if not isinstance(left, nodes.Return) or getattr(function, "name", "") != "training_step" or not isinstance(owner, nodes.ClassDef):
        return False
    nothing = left.value is None or (isinstance(left.value, nodes.Const) and left.value.value is None)
    return nothing and any(name.startswith("lightning.") for base in owner.bases for name in qualified(base))


def _apart(call: nodes.Call, node: nodes.If) -> bool:
    """Whether a call is in another branch of an ``if`` around the node."""
    child: nodes.NodeNG = node
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.If):
            away = parent.orelse if child in parent.body else parent.body
            if any(call is one or statement is one for statement in away for one in call.node_ancestors()):
                return True
        child = parent
    return False


def _repeats(node: nodes.NodeNG) -> bool:
    """A step is in a loop, or is a function that may be called in one."""
    return bool(loops_around(node)) or isinstance(function_of(node), nodes.FunctionDef)


def _is_guarded(node: nodes.NodeNG) -> bool:
    """Whether only single-process training reaches this place, or a backward pass that is not synchronised."""
    tests = [parent.test for parent in node.node_ancestors() if isinstance(parent, nodes.If)]
    tests += [node.test] if isinstance(node, nodes.If) else []
    if any(_ALONE.search(test.as_string()) for test in tests):
        return True
    contexts = (context for parent in node.node_ancestors() if isinstance(parent, nodes.With) for context, _ in parent.items)
    return any(last_name(context.func) in _HARMLESS for context in contexts if isinstance(context, nodes.Call))
