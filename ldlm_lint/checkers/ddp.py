"""What DistributedDataParallel calls leave out or pass needlessly: the views and buffers that they share between ranks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.python.assigned_uses import taker_of, uses_behind
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.gradients import is_held
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.model_names import names_evaluation
from ldlm_lint.python.names import bindings, is_named, last_name
from ldlm_lint.python.places import function_of, scope_name
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.requirements import OLDEST_TORCH
from ldlm_lint.rules.ddp import BROADCAST_BUFFERS, GRADIENT_COPY
from ldlm_lint.source import Source

WRAPPER = "torch.nn.parallel.DistributedDataParallel"
# What follows differs between torch versions: 2.13 has `init_sync` where 2.0 has `process_group`.
_POSITIONAL = tables.positional(WRAPPER)
_DEPRECATING = (2, 13)
_FEW = 3
_LIGHT = frozenset(
    {
        *("Linear", "ReLU", "GELU", "Tanh", "Sigmoid", "Dropout", "Flatten", "Identity", "Sequential", "LayerNorm"),
        *("BatchNorm1d", "BatchNorm2d", "AvgPool2d", "MaxPool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d"),
    }
)
_DEPRECATED = (
    "`broadcast_buffers` is deprecated since torch 2.13: call it `forward_sync_buffers`, with which DDP always broadcasts buffers at construction"
)
VIEW_REASON = "`detach_()` on a gradient raises for a view, and a gradient that is kept beyond the step changes with the next one"
_DELETE_REASON = "buffers are then broadcast at construction and before each forward pass"
_RENAME_REASON = "torch before 2.13 has no `forward_sync_buffers`, and False no longer skips the broadcast at construction"


def check_gradient_copy(checker: LdlmChecker, node: nodes.Call) -> None:
    """Report a wrapper that keeps gradients and buckets apart."""
    arguments = Arguments(node, _POSITIONAL)
    if len(node.args) > len(_POSITIONAL) or arguments["gradient_as_bucket_view"].may_be_passed():
        return
    model = arguments["module"].node
    if _is_second_attempt(node) or _only_evaluates(function_of(node)) or _is_only_evaluated(node) or (model is not None and (_is_frozen(node, model) or _is_small(model))):
        return
    checker.report(
        GRADIENT_COPY,
        node,
        claims=(Claim("wrapped-model-trains", scope_name(function_of(node))), Claim("gradients-stay-attached")),
        fix=lambda source: _view_fix(source, node),
    )


def check_broadcast_buffers(checker: LdlmChecker, node: nodes.Call) -> None:
    """Report ``broadcast_buffers`` where it is deprecated, or where leaving out the first broadcast makes ranks differ."""
    arguments = Arguments(node, _POSITIONAL)
    argument = arguments["broadcast_buffers"]
    if argument.node is None or len(node.args) > len(_POSITIONAL):
        return
    place = next((keyword for keyword in node.keywords if keyword.arg == "broadcast_buffers"), node)
    if _is_recent(checker):
        checker.report(
            BROADCAST_BUFFERS,
            place,
            args={"problem": _DEPRECATED},
            claims=(Claim("stands-outside-tests"),),
            fix=lambda source: _rename_fix(source, place),
        )
        return
    model = arguments["module"].node
    origins = sorted(set(_origins(model))) if model is not None else []
    if origins and argument.is_only(False):
        checker.report(
            BROADCAST_BUFFERS,
            place,
            args={"problem": "`broadcast_buffers=False`"},
            claims=(Claim("wrapped-model-trains", scope_name(function_of(node))), Claim("model-draws-buffers", " ".join(origins))),
            fix=lambda source: _delete_fix(source, place),
        )


def _is_recent(checker: LdlmChecker) -> bool:
    """Whether torch 2.13 is the oldest version that the project runs on; pylint gets these findings from the engine."""
    options = getattr(checker.linter, "ldlm_options", None) or {}
    target = options.get(OLDEST_TORCH)
    return target is not None and target >= _DEPRECATING


def _only_evaluates(function: nodes.NodeNG) -> bool:
    """Whether a function runs without gradients, or is called after an evaluation."""
    return is_held(function) or names_evaluation(getattr(function, "name", ""))


def _is_only_evaluated(wrap: nodes.Call) -> bool:
    """Whether what a wrap is assigned to goes to nothing but evaluations behind it: ``evaluate(model, test_loader)``."""
    uses = uses_behind(wrap)
    return bool(uses) and all(map(_is_evaluated, uses))


def _is_evaluated(use: nodes.Name) -> bool:
    """``evaluate(model)`` or ``model.eval()``."""
    taker = taker_of(use)
    if taker is not None:
        return names_evaluation(last_name(taker.func))
    return isinstance(use.parent, nodes.Attribute) and use.parent.attrname == "eval"


def _is_second_attempt(node: nodes.Call) -> bool:
    """``except TypeError: DDP(model)``: the same wrap for another version, reported at the first attempt."""
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.ExceptHandler):
            attempts = (call for tried in parent.parent.body for call in nodes_of(tried, nodes.Call))
            return any(is_named(call.func, {WRAPPER}) for call in attempts)
    return False


def _is_frozen(wrap: nodes.Call, model: nodes.NodeNG) -> bool:
    """Whether the function that wraps a model switches its gradients off, as for a teacher, or to train a head only."""
    statement = wrap.statement()
    targets = statement.targets if isinstance(statement, nodes.Assign) else []
    names = {one.as_string() for one in (model, *targets)}
    names |= {f"{name}.module" for name in names}
    scope = wrap.scope()
    frozen = remembered(scope, ("frozen",), lambda: _frozen_in(scope))
    return any(text in names and all(branch.parent_of(wrap) for branch in branches) for text, branches in frozen)


def _frozen_in(scope: nodes.NodeNG) -> list[tuple[str, list[nodes.If]]]:
    """The texts of what a function switches the gradients off of, each with the branches in which it does: others train it."""
    calls = (one for one in nodes_of(scope, nodes.Call) if isinstance(one.func, nodes.Attribute) and _switches_off(one))
    return [(one.func.expr.as_string(), _branches_around(one, scope)) for one in calls]


def _branches_around(node: nodes.NodeNG, scope: nodes.NodeNG) -> list[nodes.If]:
    around = itertools.takewhile(lambda one: one is not scope, node.node_ancestors())
    return [one for one in around if isinstance(one, nodes.If)]


def _switches_off(call: nodes.Call) -> bool:
    if call.func.attrname == "requires_grad_":
        return bool(call.args) and call.args[0].as_string() == "False"
    return call.func.attrname in ("parameters", "named_parameters") and isinstance(call.parent, nodes.For) and _freezes(call.parent)


def _freezes(loop: nodes.For) -> bool:
    """Every parameter that the loop sees, not those of some name only."""
    text = [statement.as_string() for statement in loop.body]
    return any(one.endswith((".requires_grad = False", ".requires_grad_(False)")) for one in text)


def _is_small(model: nodes.NodeNG) -> bool:
    """A linear layer, or a class of this file that holds a few of them: a toy or a probe, whose gradients weigh nothing."""
    for name in _origins(model):
        if name == "Linear":
            return True
        local = next((one for one in model.root().locals.get(name, ()) if isinstance(one, nodes.ClassDef)), None)
        layers = _layers(local) if local is not None else []
        if layers and layers.count("Linear") <= _FEW and _LIGHT.issuperset(layers):
            return True
    return False


def _layers(model: nodes.ClassDef) -> list[str]:
    """The capitalised last names of what a class calls, which are those of its layers."""
    functions = (call.func for call in nodes_of(model, nodes.Call))
    names = (one.attrname if isinstance(one, nodes.Attribute) else getattr(one, "name", "") for one in functions)
    return [name for name in names if name[:1].isupper()]


def _origins(node: nodes.NodeNG, depth: int = 0) -> Iterator[str]:
    """The last names of the classes and functions of which an expression may be a result."""
    if depth > 4:
        return
    if isinstance(node, nodes.Call):
        if isinstance(node.func, nodes.Attribute):
            yield node.func.attrname
            yield from _origins(node.func.expr, depth + 1)
        elif isinstance(node.func, nodes.Name):
            yield node.func.name
            for argument in node.args:
                yield from _origins(argument, depth + 1)
    elif isinstance(node, nodes.Name):
        for binding in bindings(node):
            value = getattr(binding.parent, "value", None)
            if isinstance(binding, nodes.AssignName) and isinstance(value, nodes.Call):
                yield from _origins(value, depth + 1)
    elif isinstance(node, nodes.Attribute):
        for target in nodes_of(node.root(), nodes.AssignAttr):
            value = getattr(target.parent, "value", None)
            if target.attrname == node.attrname and isinstance(value, nodes.Call):
                yield from _origins(value, depth + 1)


def _view_fix(source: Source, call: nodes.Call) -> Fix | None:
    edit = add_keyword(source, span_of(source, call), "gradient_as_bucket_view", "True")
    needs = (tables.interface("DistributedDataParallel(gradient_as_bucket_view=)"),)
    return Fix("set gradient_as_bucket_view=True", (edit,), Applicability.UNSAFE, VIEW_REASON, needs=needs) if edit else None


def _rename_fix(source: Source, place: nodes.NodeNG) -> Fix | None:
    if not isinstance(place, nodes.Keyword):
        return None
    start = span_of(source, place).start
    edit = Edit(source.span(start, start + len("broadcast_buffers")), "forward_sync_buffers")
    needs = (tables.interface("DistributedDataParallel(forward_sync_buffers=)"),)
    return Fix("rename broadcast_buffers to forward_sync_buffers", (edit,), Applicability.UNSAFE, _RENAME_REASON, needs=needs)


def _delete_fix(source: Source, place: nodes.NodeNG) -> Fix | None:
    edits = remove_arguments(source, [span_of(source, place)]) if isinstance(place, nodes.Keyword) else None
    return Fix("leave broadcast_buffers at its default", edits, Applicability.UNSAFE, _DELETE_REASON) if edits else None


__all__ = ["VIEW_REASON", "WRAPPER", "check_broadcast_buffers", "check_gradient_copy"]
