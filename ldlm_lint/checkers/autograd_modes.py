"""Checks of autograd that are switched on for good, and graphs that a backward pass keeps unnecessarily."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.autofix.edits import delete_line
from ldlm_lint.autofix.lines import block_of, stands_alone
from ldlm_lint.checkers.autograd_graphs import backward_passes
from ldlm_lint.checkers.base import span_of
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.gradients import text_of
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import is_named, last_name, qualified
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_SWITCHES = frozenset(
    {
        "torch.autograd.set_detect_anomaly",
        "torch.autograd.anomaly_mode.set_detect_anomaly",
        "torch.autograd.grad_mode.set_detect_anomaly",
    }
)
_CONTEXTS = frozenset({"torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly"})
_TRAINERS = frozenset({"lightning.Trainer", "lightning.trainer.Trainer", "lightning.trainer.trainer.Trainer"})
_DEBUGGING = lazily(r"debug|anomal|nan|sanity|smoke|test|check|diagnos|overfit|profil", re.I)
_MAIN = lazily(r"__name__")
_ANOMALY_REASON = "a NaN in a backward pass no longer raises"


def switched_on(call: nodes.Call) -> nodes.NodeNG | None:
    """The expression that switches the detection of anomalies on, where a call does so for all of a training."""
    if is_named(call.func, _TRAINERS):
        value = Arguments(call)["detect_anomaly"]
        return value.node if value.is_only(True) else None
    if is_named(call.func, _SWITCHES):
        mode = Arguments(call, ("mode", "check_nan"))["mode"]
        return call if mode.is_only(True) and not _is_switched_off(call) else None
    if is_named(call.func, _CONTEXTS):
        return call if isinstance(call.parent, nodes.With) else None
    return None


def is_deliberate(call: nodes.Call) -> bool:
    """Whether a switch is under a condition, or in code that looks for errors."""
    child: nodes.NodeNG = call
    for parent in call.node_ancestors():
        if (
            isinstance(parent, (nodes.If, nodes.IfExp))
            and child is not parent.test
            and not _MAIN.search(parent.test.as_string())
        ):
            return True
        if isinstance(parent, (nodes.FunctionDef, nodes.ClassDef)) and _DEBUGGING.search(parent.name):
            return True
        if isinstance(parent, nodes.ExceptHandler):
            return True
        child = parent
    return False


def is_started(call: nodes.Call) -> bool:
    """Whether a switch is under ``if __name__ == "__main__"``: it is on only when the file itself is run."""
    return any(isinstance(one, nodes.If) and _MAIN.search(one.test.as_string()) for one in call.node_ancestors())


def _is_switched_off(call: nodes.Call) -> bool:
    """Whether the file switches the detection off again somewhere."""
    module = call.root()
    return remembered(module, ("switches detection off",), lambda: _switches_off(module))


def _switches_off(module: nodes.Module) -> bool:
    switches = (one for one in nodes_of(module, nodes.Call) if is_named(one.func, _SWITCHES))
    return any(not Arguments(one, ("mode",))["mode"].is_only(True) for one in switches)


def anomaly_fix(source: Source, call: nodes.Call) -> Fix | None:
    """Delete the statement if it is alone; otherwise replace True by False."""
    if is_named(call.func, _CONTEXTS):
        return None
    statement = call.parent
    if isinstance(statement, nodes.Expr) and len(block_of(statement)) > 1 and stands_alone(source, statement):
        edit = delete_line(source, span_of(source, statement))
        return Fix("remove anomaly detection", (edit,), Applicability.UNSAFE, _ANOMALY_REASON)
    value = Arguments(call, ("mode",))["detect_anomaly" if is_named(call.func, _TRAINERS) else "mode"].node
    if not isinstance(value, nodes.Const):
        return None
    edit = Edit(span_of(source, value), "False")
    return Fix("switch anomaly detection off", (edit,), Applicability.UNSAFE, _ANOMALY_REASON)


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


def mode_text(call: nodes.Call) -> str:
    """The name of the call that switches the detection on, as a message shows it."""
    if is_named(call.func, _TRAINERS):
        return "Trainer(detect_anomaly=True)"
    name = next(iter(qualified(call.func))).rpartition(".")[2]
    known = constant(call.args[0]) if call.args else None
    return f"{name}({known})" if known is not None else f"{name}()"
