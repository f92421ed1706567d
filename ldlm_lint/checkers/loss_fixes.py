"""Replacements for a bounded loss, or of the mean squared error of unit vectors; shown, never applied."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.autofix.edits import delete_line
from ldlm_lint.autofix.keywords import remove_arguments
from ldlm_lint.checkers.base import span_of
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.source import Source

_NORMALIZE = {"torch.nn.functional.normalize"}
_ATOMS = (nodes.Name, nodes.Attribute, nodes.Call, nodes.Subscript)
_UNBOUNDED = "large losses then train with their full gradient, which clipping of the gradient norm limits"
_SCALED = "the term then has D / 2 times its weight: divide a tuned weight by D / 2, or leave the term as it is"


def unbounded_fix(source: Source, call: nodes.Call, operand: nodes.NodeNG, bound: nodes.NodeNG) -> Fix:
    """Leave the upper bound out and limit the gradients instead; with edits if the call has no other effect."""
    title = "remove the bound, and clip the gradients with clip_grad_norm_() before the step"
    return Fix(title, _without_bound(source, call, operand, bound), Applicability.DISPLAY, _UNBOUNDED)


def _without_bound(source: Source, call: nodes.Call, operand: nodes.NodeNG, bound: nodes.NodeNG) -> tuple[Edit, ...]:
    given = {id(one): one for one in call.args} | {id(one.value): one for one in call.keywords}
    others = [one for key, one in given.items() if key not in (id(operand), id(bound)) and not _is_none(one)]
    if (
        isinstance(call.parent, nodes.Expr)
        or id(bound) not in given
        or any(isinstance(one, nodes.Starred) for one in call.args)
    ):
        return ()
    if others:
        last = isinstance(given[id(bound)], nodes.Keyword) or call.args[-1] is bound
        return (remove_arguments(source, [span_of(source, given[id(bound)])]) or ()) if last else ()
    text, parent = source.slice(span_of(source, operand)), call.parent
    if isinstance(parent, nodes.Assign) and any(one.as_string() == operand.as_string() for one in parent.targets):
        # Only ``loss = loss`` would remain.
        alone = len(parent.targets) == 1 and len(getattr(parent.parent, "body", ())) > 1
        return (delete_line(source, span_of(source, parent)),) if alone else ()
    return (Edit(span_of(source, call), text if isinstance(operand, _ATOMS) else f"({text})"),)


def _is_none(node: nodes.NodeNG) -> bool:
    value = node.value if isinstance(node, nodes.Keyword) else node
    return isinstance(value, nodes.Const) and value.value is None


def width_fix(source: Source, call: nodes.Call, left: nodes.NodeNG) -> Fix:
    """Multiply by half the width, which makes it the mean of 1 - cos; with edits if the width is known to be the last
    dimension."""
    title = "multiply the error by D / 2, which makes it the mean of 1 - cos"
    return Fix(title, _times_width(source, call, left), Applicability.DISPLAY, _SCALED)


def _times_width(source: Source, call: nodes.Call, left: nodes.NodeNG) -> tuple[Edit, ...]:
    parent = call.parent
    divides = isinstance(parent, nodes.BinOp) and (
        parent.op == "**" or (parent.op != "*" and parent.right is call and parent.op not in "+-")
    )
    plain = isinstance(parent, (nodes.Return, nodes.Assign, nodes.AugAssign, nodes.BinOp)) and not divides
    if not plain or not isinstance(left, nodes.Name) or not _is_along_last(left):
        return ()
    end = span_of(source, call).end
    return (Edit(source.span(end, end), f" * ({left.name}.shape[-1] / 2)"),)


def _is_along_last(name: nodes.Name) -> bool:
    """Whether every value of a name was normalized along the last dimension."""
    values = [
        getattr(one.parent, "value", None) if isinstance(one, nodes.AssignName) else None for one in bindings(name)
    ]
    calls = [one for one in values if isinstance(one, nodes.Call) and qualified(one.func) <= _NORMALIZE]
    dims = [Arguments(one, ("input", "p", "dim"))["dim"] for one in calls]
    return bool(dims) and len(dims) == len(values) and all(one.is_only(-1) for one in dims)


__all__ = ["unbounded_fix", "width_fix"]
