"""Finds `no_sync()` around a backward pass whose forward pass ran outside of it."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.autofix.lines import indentation
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.gradient_sync import guard_of, is_step, own_calls
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, last_name, qualified
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.slots import slots_of
from ldlm_lint.python.values import only_binding
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.no_sync import NO_SYNC_OUTSIDE_FORWARD, RULES
from ldlm_lint.source import Source

# Calls around a backward pass that do not run a model.
_HARMLESS = {
    *("backward", "scale", "item", "detach", "mean", "sum", "unscale_", "clip_grad_norm_", "step", "update", "zero_grad", "get_scale"),
    *("print", "float", "int", "len", "isinstance", "hasattr", "append", "info", "debug", "log", "isnan", "isfinite", "any", "all"),
    *("autocast", "nullcontext", "no_sync", "synchronize", "scale_loss", "cpu", "numpy", "tolist", "update_meter", "record_function"),
}
_TORCH = lazily(r"^torch\.(nn\.functional\.\w+|mean|sum|stack|cat|autocast|cuda\.amp\.\w+|amp\.\w+|isnan|isfinite)$")
_LOSSES = lazily(r"^torch\.nn\.\w*Loss$")
_REASON = "gradients of these micro-batches then stay local until one is synchronized"
_COMPARE = f"{_REASON}: compare the condition with that of every optimizer step first"


class NoSyncChecker(LdlmChecker):
    """The scope of `no_sync`."""

    rules = RULES

    def visit_with(self, node: nodes.With) -> None:
        """Look at every ``with`` statement whose body has a backward pass and no forward pass."""
        if not any(isinstance(call.func, nodes.Attribute) and _is_backward(call) for call in nodes_of(node, nodes.Call)):
            return
        found = next(filter(None, (_local_scope(item) for item, _ in node.items)), None)
        if found is None:
            return
        backward = next((call for call in _calls(node.body) if _is_backward(call)), None)
        if backward is None or any(_may_call_a_model(call) for call in _calls(node.body)) or _is_covered(node):
            return
        claims: tuple[Claim, ...]
        if found.args:
            claims = (Claim("nothing-shards"), Claim("belongs-to-training"))
            model = found.args[0]
        else:
            model = found.func.expr
            slots = ";".join("|".join((one.kind, one.scope, one.name, one.index)) for one in slots_of(model))
            claims = (Claim("no-sync-is-of-ddp", slots),)
        forward = _forward(node, model)
        if forward is None and not _loss_is_given(backward):
            return
        self.report(
            NO_SYNC_OUTSIDE_FORWARD,
            node.items[0][0] if len(node.items) == 1 else found,
            related=[(forward, "the forward pass runs here")] if forward is not None else (),
            claims=claims,
            fix=functools.partial(_cover_fix, scope=node, forward=forward) if forward is not None else None,
        )


def _local_scope(item: nodes.NodeNG) -> nodes.Call | None:
    """The call of ``no_sync`` in a context manager, or a possible one."""
    if isinstance(item, nodes.Name) and (value := only_binding(item)) is not None:
        return _local_scope(value)
    if isinstance(item, nodes.IfExp):
        return _local_scope(item.body) or _local_scope(item.orelse)
    if isinstance(item, nodes.Call) and isinstance(item.func, nodes.Attribute) and item.func.attrname == "no_sync":
        of_accelerator = len(item.args) == 1 and "accelerator" in last_name(item.func.expr).lower()
        return item if of_accelerator or not (item.args or item.keywords) else None
    return None


def _calls(body: list[nodes.NodeNG]) -> Iterator[nodes.Call]:
    for statement in body:
        yield from nodes_of(statement, nodes.Call)


def _is_backward(call: nodes.Call) -> bool:
    return last_name(call.func) == "backward"


def _may_call_a_model(call: nodes.Call) -> bool:
    """Whether a call may run a forward pass, itself or in a called function of this file."""
    name = last_name(call.func)
    names = qualified(call.func)
    if name in _HARMLESS and not any(isinstance(one, nodes.FunctionDef) for one in _definitions(call)):
        return False
    if all(_TORCH.search(one) for one in names):
        return False
    if isinstance(call.func, nodes.Name):
        value = only_binding(call.func)
        if isinstance(value, nodes.Call) and all(_LOSSES.search(one) for one in qualified(value.func)):
            return False
    found = [one for one in _definitions(call) if isinstance(one, nodes.FunctionDef)]
    # A function of this file that only runs backward passes calls no model.
    return not found or not all(_only_goes_back(one) for one in found)


def _only_goes_back(function: nodes.FunctionDef) -> bool:
    return all(last_name(call.func) in _HARMLESS for call in nodes_of(function, nodes.Call))


def _definitions(call: nodes.Call) -> list[nodes.NodeNG]:
    return bindings(call.func) if isinstance(call.func, nodes.Name) else []


def _is_covered(node: nodes.With) -> bool:
    """Whether another ``no_sync()`` around this one, or a helper's caller, holds the forward pass."""
    return any(
        isinstance(parent, nodes.With) and any(_local_scope(item) is not None for item, _ in parent.items)
        for parent in node.node_ancestors()
    )


def _forward(scope: nodes.With, model: nodes.NodeNG) -> nodes.Call | None:
    """The call of the model in front of the scope, in the same function."""
    text = model.as_string()
    calls = (
        call
        for call in nodes_of(function_of(scope), nodes.Call)
        if call.func.as_string() == text and (call.lineno or 0) < (scope.lineno or 0)
    )
    return max(calls, key=lambda call: call.lineno or 0, default=None)


def _loss_is_given(backward: nodes.Call) -> bool:
    """Whether the loss is an argument of the function, whose forward pass ran before it was called."""
    names = [name for one in (backward.func, *backward.args) for name in nodes_of(one, nodes.Name)]
    losses = [name for name in names if "loss" in name.name.lower()]
    return bool(losses) and all(any(isinstance(one.parent, nodes.Arguments) for one in bindings(name)) for name in losses)


def _cover_fix(source: Source, scope: nodes.With, forward: nodes.Call) -> Fix | None:
    """Move the ``with`` line in front of the forward pass, if both are in one block and on their own lines."""
    first = forward.statement()
    block = getattr(scope.parent, "body", [])
    if first not in block or scope not in block or len(scope.items) != 1 or scope.body[0].lineno != scope.lineno + 1:
        return None
    between = block[block.index(first) : block.index(scope)]
    strings = (one for statement in between for one in nodes_of(statement, (nodes.Const, nodes.JoinedStr)))
    if any((one.end_lineno or 0) != (one.lineno or 0) for one in strings):
        return None
    read, places = (nodes.Name, nodes.Attribute), (nodes.AssignName, nodes.AssignAttr)
    wanted = {name.as_string() for name in nodes_of(scope.items[0][0], read)}
    bound = {name.as_string() for statement in between for name in nodes_of(statement, places)}
    starts, lines = source.line_starts, source.lines
    head, opening = lines[scope.lineno - 1], lines[first.lineno - 1]
    indent, step = indentation(lines, scope, scope.body[0])
    outer = indent.removesuffix(step)
    if wanted & bound or head[: scope.col_offset].strip() or opening[: first.col_offset].strip() or not head.startswith(outer):
        return None
    covered = source.slice(source.span(starts[first.lineno - 1], starts[scope.lineno - 1])).splitlines(keepends=True)
    inner = "".join(f"{step}{line}" if line.strip() else line for line in covered)
    # One edit for all these lines, so that no other fix changes one of them in the same round.
    whole = source.span(starts[first.lineno - 1], starts[scope.lineno])
    edit = Edit(whole, f"{head}{source.newline}{inner}")
    level, reason = (Applicability.UNSAFE, _REASON) if _steps_when_synchronised(scope) else (Applicability.DISPLAY, _COMPARE)
    return Fix("run the forward pass inside the same context", (edit,), level, reason)


def _steps_when_synchronised(scope: nodes.With) -> bool:
    """Whether every step of the loop is under the same test by which the scope leaves gradients local.

    Before the fix all gradients are synchronised; after it, a step at another time, such as after the last batch, would
    use gradients that differ between the ranks.
    """
    choice = scope.items[0][0]
    if isinstance(choice, nodes.Name):
        choice = only_binding(choice)
    if not isinstance(choice, nodes.IfExp):
        return False
    local_if_true = _local_scope(choice.body) is not None
    loop = next(iter(loops_around(scope)), None) or function_of(scope)
    steps = [one for one in own_calls(loop) if is_step(one)]
    guards = [guard_of(one, loop) for one in steps]
    known = [(one[1].last, one[2].as_string()) for one in guards if one is not None]
    outside = [one for one in own_calls(function_of(scope)) if is_step(one) and one not in steps]
    return bool(steps) and not outside and len(known) == len(steps) and set(known) == {(not local_if_true, choice.test.as_string())}

