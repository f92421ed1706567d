"""Gradients that are read after a scaler's step, which are unscaled only if the optimizer does not do it itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of, scope_name
from ldlm_lint.python.walks import nodes_of

SCALER = lazily(r"scaler$|^(amp_|grad_|loss_)?scaler", re.I)
_READERS = {"clip_grad_norm_", "clip_grad_value_", "get_total_norm"}
_ZEROING = {"zero_", "detach_", "requires_grad_"}


class ScaledStep(NamedTuple):
    """A call ``scaler.step(optimizer)`` without ``unscale_`` before it: its line, the function around it and the
    following code.

    ``until`` is the line of the next ``zero_grad``, else that after the function; ``read`` the first line between that
    reads a gradient itself, 0 if none does.
    """

    line: int
    scope: str
    until: int
    read: int


def scaled_steps(module: nodes.Module) -> list[ScaledStep]:
    """Every step by a scaler that unscales in the step itself."""
    return [_of(call) for call in nodes_of(module, nodes.Call) if _is_scaled_step(call) and not _is_unscaled(call)]


def gradient_readers(module: nodes.Module) -> frozenset[str]:
    """The functions of a file, by their dotted names, that read the gradients of parameters."""
    return frozenset(scope_name(function_of(one)) for one in _reads(module))


def _is_scaled_step(call: nodes.Call) -> bool:
    owner = call.func.expr if isinstance(call.func, nodes.Attribute) and call.func.attrname == "step" else None
    return owner is not None and bool(call.args) and SCALER.search(last_name(owner)) is not None


def _is_unscaled(step: nodes.Call) -> bool:
    """Whether the function unscales before the step."""
    calls = nodes_of(function_of(step), nodes.Call)
    return any("unscale" in last_name(one.func) and (one.lineno or 0) <= (step.lineno or 0) for one in calls)


def _of(step: nodes.Call) -> ScaledStep:
    function, line = function_of(step), step.end_lineno or 0
    resets = (one.lineno or 0 for one in nodes_of(function, nodes.Call) if last_name(one.func) == "zero_grad")
    until = min((one for one in resets if one > line), default=(function.tolineno or line) + 1)
    read = min((number for one in _reads(function) if line < (number := one.lineno or 0) < until), default=0)
    return ScaledStep(line, scope_name(function), until, read)


def _reads(part: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """The places that take the values of gradients: ``p.grad.norm()``, torch's own norms and clippings."""
    for node in nodes_of(part, (nodes.Attribute, nodes.Call)):
        if isinstance(node, nodes.Call):
            if last_name(node.func) in _READERS:
                yield node
        elif node.attrname == "grad" and not _is_only_asked_for(node) and not _is_module(node):
            yield node


def _is_only_asked_for(gradient: nodes.Attribute) -> bool:
    """``p.grad is not None``, and ``p.grad.zero_()``."""
    parent = gradient.parent
    if isinstance(parent, nodes.Compare):
        return all(operator in ("is", "is not") for operator, _ in parent.ops)
    return isinstance(parent, nodes.Attribute) and parent.attrname in _ZEROING


def _is_module(node: nodes.Attribute) -> bool:
    """``torch.autograd.grad``."""
    return isinstance(node.parent, nodes.Call) and node.parent.func is node
