"""The edit that runs a micro-batch under ``no_sync()``: a ``with`` line in front, its statements indented below."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.gradient_sync import Accumulation
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.names import bindings, is_named
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_REASON = "gradients are summed before they are averaged, and stay local between backward and the last micro-batch"
_UNSURE = "model may not be wrapped in every run"
_REPEATABLE = (nodes.Name, nodes.Attribute, nodes.Const, nodes.BinOp, nodes.BoolOp, nodes.Compare, nodes.UnaryOp)


def no_sync_fix(source: Source, found: Accumulation, wrapper: str) -> Fix | None:
    """The fix where the statements from the forward to the backward pass stand in one block; None elsewhere."""
    block = _block(found, wrapper)
    boundary = _boundary_text(source, found, block[0]) if block else None
    if not block or boundary is None or _holds_long_strings(source, block):
        return None
    model = _model_of(block[0], wrapper)
    assert model is not None
    edit, nullcontext = ensure_import(source, "contextlib", "nullcontext")
    start = _line_start(source, block[0])
    indent = source.slice(source.span(start, span_of(source, block[0]).start))
    step = "\t" if indent.endswith("\t") else "    "
    head = f"{indent}with {nullcontext}() if {boundary} else {model.as_string()}.no_sync():{source.newline}"
    edits = [Edit(source.span(start, start), head + step), *_indented(source, block, step)]
    level = Applicability.UNSAFE if _always_wrapped(model, wrapper) else Applicability.DISPLAY
    reason = _REASON if level is Applicability.UNSAFE else f"{_UNSURE}, and {_REASON}"
    title = f"run all but the last micro-batch under {model.as_string()}.no_sync()"
    return Fix(title, tuple(sorted(filter(None, (edit, *edits)))), level, reason)


def _block(found: Accumulation, wrapper: str) -> list[nodes.NodeNG]:
    """The statements from the one that calls the model to the backward pass; empty where the loop's own block does not hold both."""
    body = found.loop.body
    last = found.backward.statement()
    if last not in body:
        return []
    end = body.index(last)
    first = next((at for at in range(end + 1) if _model_of(body[at], wrapper) is not None), None)
    return [] if first is None else body[first : end + 1]


def _model_of(statement: nodes.NodeNG, wrapper: str) -> nodes.NodeNG | None:
    """What a statement calls that is bound to a DDP wrapper in this file."""
    calls = (call.func for call in nodes_of(statement, nodes.Call))
    return next((func for func in calls if any(True for _ in _wraps(func, wrapper))), None)


def _wraps(func: nodes.NodeNG, wrapper: str) -> list[nodes.NodeNG]:
    """The assignments that bind a variable, or an attribute of ``self``, to a wrapper."""
    if isinstance(func, nodes.Name):
        targets = [one for one in bindings(func) if isinstance(one, nodes.AssignName)]
    elif isinstance(func, nodes.Attribute) and func.expr.as_string() == "self":
        owner = next((one for one in func.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
        every = nodes_of(owner, nodes.AssignAttr) if owner is not None else ()
        targets = [one for one in every if one.attrname == func.attrname]
    else:
        return []
    values = ((one, getattr(one.parent, "value", None)) for one in targets)
    return [one.parent for one, value in values if isinstance(value, nodes.Call) and is_named(value.func, {wrapper})]


def _always_wrapped(model: nodes.NodeNG, wrapper: str) -> bool:
    """Whether a wrapper is bound on every path to the loop: right in a function's block, and last of all bindings."""
    wraps = _wraps(model, wrapper)
    if not any(isinstance(one.parent, nodes.FunctionDef) for one in wraps):
        return False
    last = max(one.lineno for one in wraps if isinstance(one.parent, nodes.FunctionDef))
    others = bindings(model) if isinstance(model, nodes.Name) else []
    return all((one.lineno or 0) <= last for one in others)


def _boundary_text(source: Source, found: Accumulation, first: nodes.NodeNG) -> str | None:
    """The test of the last micro-batch as it can be written before the forward pass."""
    if found.boundary is None:
        return _last_of_range(source, found)
    parts = list(nodes_of(found.boundary, nodes.NodeNG))
    if not all(isinstance(part, _REPEATABLE) or _is_length(part) for part in parts):
        return None
    names = {part.as_string() for part in parts if isinstance(part, (nodes.Name, nodes.Attribute))}
    places = (nodes.AssignName, nodes.AssignAttr)
    for target in nodes_of(found.loop, places):
        if target.as_string() in names and (target.lineno or 0) >= (first.lineno or 0):
            later = (target.lineno or 0) > (found.guard.lineno or 0)
            if not later:
                return None
    text = source.slice(span_of(source, found.boundary))
    return text if "\n" not in text else None


def _last_of_range(source: Source, found: Accumulation) -> str | None:
    loop = found.loop
    if found.guard is not loop or not isinstance(loop.target, nodes.AssignName) or loop.target.name == "_":
        return None
    if not isinstance(found.count, (nodes.Name, nodes.Attribute, nodes.Const)) or found.count is not _only_bound(loop):
        return None
    return f"{loop.target.name} == {source.slice(span_of(source, found.count))} - 1"


def _only_bound(loop: nodes.For) -> nodes.NodeNG | None:
    """The one argument of a loop's ``range``."""
    of_range = isinstance(loop.iter, nodes.Call) and loop.iter.func.as_string() == "range" and len(loop.iter.args) == 1
    return loop.iter.args[0] if of_range else None


def _is_length(node: nodes.NodeNG) -> bool:
    return isinstance(node, nodes.Call) and isinstance(node.func, nodes.Name) and node.func.name == "len"


def _line_start(source: Source, statement: nodes.NodeNG) -> int:
    return source.line_starts[(statement.lineno or 1) - 1]


def _indented(source: Source, block: list[nodes.NodeNG], step: str) -> list[Edit]:
    """One more level for every line of the block but its first and the empty ones."""
    first, last = block[0].lineno or 1, block[-1].end_lineno or 1
    starts = (source.line_starts[line - 1] for line in range(first + 1, last + 1) if source.lines[line - 1].strip())
    return [Edit(source.span(start, start), step) for start in starts]


def _holds_long_strings(source: Source, block: list[nodes.NodeNG]) -> bool:
    """Whether indenting would change a string, or the block shares its lines with other statements."""
    strings = (one for statement in block for one in nodes_of(statement, (nodes.Const, nodes.JoinedStr)))
    if any((one.end_lineno or 0) != (one.lineno or 0) for one in strings):
        return True
    before = source.lines[(block[0].lineno or 1) - 1][: block[0].col_offset or 0]
    return bool(before.strip())
