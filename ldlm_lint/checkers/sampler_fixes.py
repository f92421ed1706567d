"""The fix of a sampler without ``set_epoch``: a call at the start of the epoch loop."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from astroid import nodes

from ldlm_lint.autofix.lines import indent_of, insert_before, step_of
from ldlm_lint.model import Applicability, Fix
from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import is_named
from ldlm_lint.python.places import function_of
from ldlm_lint.python.slots import LOADERS
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_EPOCH = lazily(r"epoch|^ep$|^e$", re.I)
_REASON = "each epoch then has another order, which is the purpose of shuffling"


def set_epoch_fix(source: Source, call: nodes.Call) -> Fix | None:
    """Call ``set_epoch`` where the sampler, or its loader, and one epoch loop are in reach of each other; None elsewhere."""
    held = _holder(call)
    if held is None:
        return None
    holder, target, certain = held
    loops = list(_epoch_loops(target))
    if len(loops) != 1:
        return None
    loop = loops[0]
    first = loop.body[0]
    if first.lineno == loop.lineno:
        return None
    call_of_it = f"{holder}.set_epoch({loop.target.name})"
    guard = f'if hasattr({holder}, "set_epoch"):{source.newline}{indent_of(source, first)}{step_of(source, loop)}'
    edit = insert_before(source, first, call_of_it if certain else f"{guard}{call_of_it}")
    return Fix(f"call {call_of_it} in each epoch", (edit,), Applicability.UNSAFE, _REASON) if edit else None


def _holder(call: nodes.Call) -> tuple[str, nodes.NodeNG, bool] | None:
    """The object for ``set_epoch``, its variable, and whether it is a sampler in every run."""
    value, certain = call, True
    while isinstance(value.parent, nodes.IfExp):
        value, certain = value.parent, False
    if isinstance(value.parent, nodes.Keyword) and value.parent.arg == "sampler":
        loader = value.parent.parent
        if not (isinstance(loader, nodes.Call) and is_named(loader.func, LOADERS)):
            return None
        target = _only_target(loader)
        return (f"{target.as_string()}.sampler", target, certain) if target is not None and _is_sole(target) else None
    target = _only_target(value)
    return (target.as_string(), target, certain and _is_sole(target)) if target is not None else None


def _only_target(value: nodes.NodeNG) -> nodes.NodeNG | None:
    """The variable or attribute of ``self`` that a value is assigned to."""
    statement = value.parent
    if not isinstance(statement, nodes.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    own = isinstance(target, nodes.AssignAttr) and target.expr.as_string() == "self"
    return target if own or isinstance(target, nodes.AssignName) else None


def _is_sole(target: nodes.NodeNG) -> bool:
    """Whether a variable has no other binding, under any condition."""
    plain = isinstance(target.statement().parent, (nodes.FunctionDef, nodes.Module, nodes.With))
    if isinstance(target, nodes.AssignName):
        return plain and len(target.scope().locals.get(target.name, ())) == 1
    owner = _class_of(target)
    others = nodes_of(owner, nodes.AssignAttr) if owner is not None else ()
    return plain and sum(one.attrname == target.attrname for one in others) == 1


def _epoch_loops(target: nodes.NodeNG) -> Iterator[nodes.For]:
    """The epoch loops that can use a variable after its binding, or an attribute from any method of its class."""
    if isinstance(target, nodes.AssignAttr):
        owner = _class_of(target)
        found = nodes_of(owner, nodes.For) if owner is not None else ()
        yield from (one for one in found if _counts_epochs(one))
        return
    bound = _reaching(target)
    for one in nodes_of(target.scope(), nodes.For):
        if _counts_epochs(one) and function_of(one) is function_of(target) and one.lineno > target.lineno and bound:
            yield one


def _reaching(target: nodes.AssignName) -> bool:
    """Whether a name is bound on every path: right in its function, or in both arms of a condition."""
    arms: list[nodes.NodeNG] = target.scope().locals.get(target.name, [])
    block = target.statement().parent
    if not isinstance(block, nodes.If):
        return True
    return any(one.statement().parent is not block or (one.statement() in block.orelse) != (target.statement() in block.orelse) for one in arms)


def _counts_epochs(loop: nodes.For) -> bool:
    return isinstance(loop.target, nodes.AssignName) and _EPOCH.search(loop.target.name) is not None and bool(_numbers(loop.iter))


def _numbers(iterable: nodes.NodeNG) -> Iterable[nodes.NodeNG]:
    """The ``range(…)`` calls in an iterable, also inside progress bars."""
    return [one for one in nodes_of(iterable, nodes.Call) if isinstance(one.func, nodes.Name) and one.func.name in ("range", "trange")]


def _class_of(node: nodes.NodeNG) -> nodes.ClassDef | None:
    return next((one for one in node.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
