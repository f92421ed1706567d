"""Graphs that a backward pass keeps unnecessarily."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.autograd_graphs import backward_passes
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.gradients import text_of
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.walks import nodes_of


def retained_for_nobody(call: nodes.Call) -> bool:
    """Whether a backward pass retains the graph although its step has no other one.

    Known only where the step shows: the same loop body, or function, resets the gradients or lets the optimizer step.
    """
    if not (last_name(call.func) == "backward" and isinstance(call.func, nodes.Attribute)):
        return False
    if not Arguments(call)["retain_graph"].is_only(True) or Arguments(call)["create_graph"].may_be_passed():
        return False
    owner = function_of(call)
    loops = loops_around(call)
    step = loops[0] if loops else owner
    if isinstance(step, nodes.Module) or not isinstance(step, (nodes.For, nodes.While, nodes.FunctionDef)):
        return False
    names = {last_name(one.func) for one in nodes_of(step, nodes.Call)}
    others = [one for one, _ in backward_passes(owner) if one is not call]
    gradients = any(name in names for name in ("grad", "scale_loss", "register_hook", "vjp"))
    if others or gradients or not ({"step", "zero_grad"} & names):
        return False
    if qualified(call.func) <= {"torch.autograd.backward"}:
        return True
    loss = text_of(call.func.expr)
    bound = {text_of(target) for one in nodes_of(step, nodes.Assign) for target in one.targets}
    tuples = {text_of(part) for one in nodes_of(step, nodes.Tuple) for part in one.elts}
    iterated = getattr(step, "target", None)
    computed = loss in bound | tuples or not isinstance(call.func.expr, (nodes.Name, nodes.Attribute))
    return computed and not (iterated is not None and loss in {text_of(one) for one in [iterated]})
