"""The fix of a loss that is kept with its graph: `.detach()`, which is safe if all uses of the sum are known."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.autograd_graphs import Kept
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.value_reads import is_only_read
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.gradients import text_of
from ldlm_lint.python.names import qualified
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

_REASON = "not all uses of %s are known: code that differentiates it then finds no graph"


def detach_fix(source: Source, found: Kept) -> Fix | None:
    """Detach each loss at the place where it is collected."""
    edits = []
    for part in found.parts:
        span = span_of(source, part)
        edits.append(Edit(span, f"{source.slice(span)}.detach()"))
    safe = not found.meter and _is_tensor(found) and _is_read_only(found)
    title = f"detach {', '.join(text_of(part) for part in found.parts)}"
    if safe:
        return Fix(title, tuple(sorted(edits)), Applicability.SAFE)
    return Fix(title, tuple(sorted(edits)), Applicability.UNSAFE, _REASON % quoted(found.into))


def _is_tensor(found: Kept) -> bool:
    """Whether the loss itself runs backward, so that it is certainly a tensor."""
    call = found.backward
    receiver = call.func.expr if isinstance(call, nodes.Call) and isinstance(call.func, nodes.Attribute) else None
    return (
        receiver is not None
        and isinstance(call, nodes.Call)
        and all(text_of(part) == text_of(receiver) for part in found.parts)
        and not call.args
        and any(_brings_torch(one) for one in nodes_of(found.node.root(), (nodes.Import, nodes.ImportFrom)))
        and not any(_is_own_graph(one) for one in nodes_of(found.node.root(), nodes.ClassDef))
    )


def _brings_torch(statement: nodes.Import | nodes.ImportFrom) -> bool:
    names = [statement.modname] if isinstance(statement, nodes.ImportFrom) else [name for name, _ in statement.names]
    return any(name.partition(".")[0] == "torch" for name in names)


def _is_own_graph(owner: nodes.ClassDef) -> bool:
    """A class with a ``backward`` of its own that needs no context: its objects may be used as losses and lack
    ``detach``."""
    method = owner.locals.get("backward", [None])[0]
    bases = {name for base in owner.bases for name in qualified(base)}
    return (
        isinstance(method, nodes.FunctionDef) and method.type == "method" and "detach" not in owner.locals and not bases
    )


def _is_read_only(found: Kept) -> bool:
    """Whether the sum is a variable of the function that is only printed, divided or converted to a number."""
    owner = function_of(found.node)
    target = found.node.targets[0] if isinstance(found.node, nodes.Assign) else None
    if isinstance(target, (nodes.Tuple, nodes.Subscript)):
        return False
    local = isinstance(owner, nodes.FunctionDef) and found.into in owner.locals
    return local and is_only_read(owner, found.into, found.node)
