"""The edits that fix a save: a test of the rank around it, a copy of its state before it."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import span_of
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.source import Source

_COLLECTIVE = "a `state_dict()` that gathers shards must be called by every rank, and `get_rank()` needs a process group"


def guard_fix(source: Source, saves: list[nodes.Call]) -> Fix | None:
    """``if get_rank() == 0:`` around one save that is a single statement on its own lines."""
    statement = saves[0].statement()
    if len(saves) > 1 or not _stands_alone(source, statement) or '"""' in statement.as_string():
        return None
    edit, get_rank = ensure_import(source, "torch.distributed", "get_rank")
    span = span_of(source, statement)
    line = source.position(span.start)[0] - 1
    indent = source.slice(source.span(source.line_starts[line], span.start))
    step = "\t" if indent.endswith("\t") else "    "
    edits = [Edit(source.span(span.start, span.start), f"if {get_rank}() == 0:{source.newline}{indent}{step}")]
    for number in range(line + 1, source.position(span.end)[0]):
        if source.lines[number].strip():
            start = source.line_starts[number]
            edits.append(Edit(source.span(start, start), step))
    edits += [edit] if edit else []
    return Fix("save on rank 0 only", tuple(sorted(edits)), Applicability.DISPLAY, _COLLECTIVE)


def _stands_alone(source: Source, statement: nodes.NodeNG) -> bool:
    """Whether a statement is alone on its lines."""
    if not isinstance(statement, nodes.Expr):
        return False
    span = span_of(source, statement)
    first, column = source.position(span.start)
    last, end = source.position(span.end)
    before, after = source.lines[first - 1][: column - 1], source.lines[last - 1][end - 1 :]
    return not before.strip() and not after.partition("#")[0].strip()
