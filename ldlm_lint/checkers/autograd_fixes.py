"""The fix of a loss that is kept with its graph: `.detach()`, which is safe where all uses of the sum are known."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.autograd_graphs import Kept
from ldlm_lint.checkers.base import span_of
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.gradients import text_of
from ldlm_lint.python.names import last_name, scope_of
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

# What takes a tensor for its value, whether it has a graph or not; the text of a tensor names its graph.
_READS = {"float", "int", "round", "len", "format", "item", "add_scalar"}
_PASSES_ON = {"mean", "sum", "stack", "cpu", "append", "div"}
_DEPTH = 3
_REASON = "the uses of %s are not all known here: one that differentiates it, or asks for its graph, gets none any more"


def detach_fix(source: Source, found: Kept) -> Fix | None:
    """Detach each loss at the place where it is collected."""
    edits = []
    for part in found.parts:
        edits.append(Edit(span_of(source, part), f"{text_of(part)}.detach()"))
    safe = not found.meter and _is_tensor(found) and _is_read_only(found)
    title = f"detach {', '.join(text_of(part) for part in found.parts)}"
    if safe:
        return Fix(title, tuple(sorted(edits)), Applicability.SAFE)
    return Fix(title, tuple(sorted(edits)), Applicability.UNSAFE, _REASON % found.into)


def _is_tensor(found: Kept) -> bool:
    """Whether the loss itself is asked for its backward pass, so that it is a tensor for certain."""
    receiver = found.backward.func.expr if isinstance(found.backward.func, nodes.Attribute) else None
    return (
        receiver is not None
        and all(text_of(part) == text_of(receiver) for part in found.parts)
        and not found.backward.args
    )


def _is_read_only(found: Kept) -> bool:
    """Whether the sum is a variable of the function that is only printed, divided or asked for its number."""
    owner = function_of(found.node)
    names = [one for one in nodes_of(owner, (nodes.Name, nodes.AssignName)) if one.name == found.into]
    local = isinstance(owner, nodes.FunctionDef) and found.into in owner.locals and bool(names)
    return local and _only_read(owner, found.into, found.node)


def _only_read(owner: nodes.NodeNG, name: str, known: nodes.NodeNG, depth: int = 0) -> bool:
    uses = (one for one in nodes_of(owner, nodes.Name) if one.name == name)
    return depth < _DEPTH and all(scope_of(one) is owner and _is_read(one, owner, known, depth) for one in uses)


def _is_read(use: nodes.NodeNG, owner: nodes.NodeNG, known: nodes.NodeNG, depth: int) -> bool:
    parent = use.parent
    while True:
        if parent is known or isinstance(parent, (nodes.FormattedValue, nodes.Compare)):
            return True
        if isinstance(parent, nodes.Call):
            name = last_name(parent.func)
            if name in _READS:
                return True
            if name not in _PASSES_ON:
                return False
        elif isinstance(parent, nodes.Assign):
            targets = parent.targets
            single = len(targets) == 1 and isinstance(targets[0], nodes.AssignName)
            return single and (targets[0].name == use.name or _only_read(owner, targets[0].name, known, depth + 1))
        elif not isinstance(
            parent, (nodes.BinOp, nodes.UnaryOp, nodes.Attribute, nodes.Keyword, nodes.List, nodes.Tuple)
        ):
            return isinstance(parent, nodes.Expr)
        parent = parent.parent
