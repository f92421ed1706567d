"""Where gradients of DDP models stay local: `no_sync()` calls, and engines configured to accumulate."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import bindings, is_named, last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.slots import Slot, slots_of
from ldlm_lint.python.values import constant, only_binding
from ldlm_lint.python.walks import nodes_of

_ENGINES = {
    "accelerate": ("accelerate.Accelerator", "gradient_accumulation_steps"),
    "lightning": ("lightning.Trainer", "accumulate_grad_batches"),
}
_PLUGIN = "gradient_accumulation_plugin"
_PLUGINS = frozenset({"accelerate.utils.GradientAccumulationPlugin", "accelerate.utils.dataclasses.GradientAccumulationPlugin", "accelerate.GradientAccumulationPlugin"})
_WITHOUT_GRADIENTS = {"no_grad", "inference_mode"}
_EVALUATES = lazily(r"(^|_)(eval|evaluate|valid|validate|validation|test|sample|generate|predict)(_|$)")
# ``accum_steps > 1`` says how many micro-batches there are, ``step > 1`` which one this is.
_COUNTERS = lazily(r"step|iter|epoch|batch|idx|index|count|^[ijkn]$|^it$", re.I)
_SETTINGS = lazily(r"accum|steps$|iters$|batches$|every|freq|interval|num_|size|per_", re.I)


def local_passes(module: nodes.Module) -> Iterator[tuple[nodes.Call, list[Slot]]]:
    """The calls of ``no_sync()`` that the first training step makes, and the places of their models."""
    for call in nodes_of(module, nodes.Call):
        if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "no_sync" or call.args:
            continue
        if not _evaluates(call) and not _spares_first(call):
            yield call, slots_of(call.func.expr)


def engine_accumulates(module: nodes.Module, engine: str) -> tuple[nodes.Call, str] | None:
    """The call that makes an engine accumulate more than one micro-batch, and the setting as written."""
    name, setting = _ENGINES[engine]
    for call in nodes_of(module, nodes.Call):
        if not is_named(call.func, {name}):
            continue
        argument = Arguments(call)[setting]
        if argument.node is not None and not argument.is_only(1):
            return call, f"{setting}={argument.node.as_string()}"
        if (steps := _steps_of_plugin(Arguments(call)[_PLUGIN].node)) is not None:
            return call, f"{_PLUGIN}=GradientAccumulationPlugin(num_steps={steps.as_string()})"
    return None


def _steps_of_plugin(node: nodes.NodeNG | None) -> nodes.NodeNG | None:
    """The number of micro-batches that Accelerate's plugin accumulates without reducing; None if it is one, or each is
    reduced."""
    made = only_binding(node) if isinstance(node, nodes.Name) else node
    if not isinstance(made, nodes.Call) or not is_named(made.func, _PLUGINS):
        return None
    arguments = Arguments(made, ("num_steps",))
    steps, each = arguments["num_steps"], arguments["sync_each_batch"]
    return steps.node if not steps.is_only(1) and (each.absent or each.is_only(False)) else None


def _evaluates(call: nodes.Call) -> bool:
    """Whether no gradients are computed around a call."""
    for parent in call.node_ancestors():
        if isinstance(parent, nodes.With):
            names = {last_name(item.func) for item, _ in parent.items if isinstance(item, nodes.Call)}
            if names & _WITHOUT_GRADIENTS:
                return True
        if isinstance(parent, nodes.FunctionDef):
            decorators = parent.decorators.nodes if parent.decorators else []
            named = {last_name(one.func if isinstance(one, nodes.Call) else one) for one in decorators}
            return bool(named & _WITHOUT_GRADIENTS) or _EVALUATES.search(parent.name) is not None
    return False


def _spares_first(call: nodes.NodeNG) -> bool:
    """Whether a test around a call prevents it in the first step."""
    child, function = call, function_of(call)
    while child is not function and child.parent is not None:
        parent = child.parent
        if isinstance(parent, (nodes.If, nodes.IfExp)) and child is not parent.test:
            bodies = parent.body if isinstance(parent, nodes.If) else [parent.body]
            if _false_at_first(parent.test, negated=child not in bodies):
                return True
        child = parent
    return False


def _false_at_first(test: nodes.NodeNG, *, negated: bool, depth: int = 0) -> bool:
    """Whether a test (or its contrary) fails where the counters of steps and micro-batches are 0."""
    if depth > 4:
        return False
    if isinstance(test, nodes.Name) and (value := only_binding(test)) is not None:
        return _false_at_first(value, negated=negated, depth=depth + 1)
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        return _false_at_first(test.operand, negated=not negated, depth=depth + 1)
    if isinstance(test, nodes.BoolOp) and test.op == ("or" if negated else "and"):
        return any(_false_at_first(one, negated=negated, depth=depth + 1) for one in test.values)
    if isinstance(test, nodes.BinOp):
        return not negated and _is_remainder(test)
    if isinstance(test, nodes.Compare) and len(test.ops) == 1:
        return _comparison_fails(test, negated)
    return False


def _comparison_fails(test: nodes.Compare, negated: bool) -> bool:
    operator, right = test.ops[0]
    if _is_remainder(test.left):
        return constant(right) == 0 and operator in (("==",) if negated else ("!=", ">"))
    if negated or not _starts_at_zero(test.left):
        return False
    return operator in (">", ">=", "!=") and constant(right) != (0 if operator == ">=" else None)


def _is_remainder(node: nodes.NodeNG) -> bool:
    """``step % n``, which is 0 in the first step; ``(step + 1) % n`` is not."""
    return isinstance(node, nodes.BinOp) and node.op == "%" and _starts_at_zero(node.left)


def _starts_at_zero(node: nodes.NodeNG) -> bool:
    """A counter that no loop starts elsewhere."""
    name = last_name(node)
    if not isinstance(node, (nodes.Name, nodes.Attribute)) or not _COUNTERS.search(name) or _SETTINGS.search(name):
        return False
    return not (isinstance(node, nodes.Name) and any(map(_starts_late, bindings(node))))


def _starts_late(binding: nodes.NodeNG) -> bool:
    owner = binding.parent.parent if isinstance(binding.parent, nodes.Tuple) else binding.parent
    iterable = owner.iter if isinstance(owner, nodes.For) else None
    if not isinstance(iterable, nodes.Call):
        return False
    start = Arguments(iterable, ("iterable", "start"))["start"].node if last_name(iterable.func) == "enumerate" else None
    if last_name(iterable.func) == "range" and len(iterable.args) > 1:
        start = iterable.args[0]
    return start is not None and constant(start) != 0


__all__ = ["engine_accumulates", "local_passes"]
