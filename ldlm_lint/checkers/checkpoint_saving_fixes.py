"""The edits that mend a save: a test of the rank around it, a temporary file before it."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.checkpoint_paths import Save
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.source import Source

_COLLECTIVE = "a state_dict() that gathers shards must be called by every rank, and get_rank() needs a process group"
_SPACE = "for a moment both files lie on the disk, and what watches the folder sees a second name"


def guard_fix(source: Source, saves: list[nodes.Call]) -> Fix | None:
    """``if get_rank() == 0:`` around one save that is a statement of its own on lines of its own."""
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


def atomic_fix(source: Source, save: Save) -> Fix | None:
    """Save beside the file, then take its place in one step."""
    statement = save.node.statement()
    temporary = _beside(save.path)
    if temporary is None or save.node.parent is not statement or not _stands_alone(source, statement):
        return None
    edit, replace = ensure_import(source, "os", "replace")
    span, path = span_of(source, statement), span_of(source, save.path)
    line = source.position(span.start)[0] - 1
    indent = source.slice(source.span(source.line_starts[line], span.start))
    edits = [Edit(path, temporary)]
    move = f"{source.newline}{indent}{replace}({temporary}, {source.slice(path)})"
    edits.append(Edit(source.span(span.end, span.end), move))
    edits += [edit] if edit else []
    return Fix("write a temporary file and rename it", tuple(sorted(edits)), Applicability.UNSAFE, _SPACE)


def _beside(path: nodes.NodeNG) -> str | None:
    """The expression of a name beside a path that may be evaluated twice."""
    if isinstance(path, nodes.Const) and isinstance(path.value, str):
        return f'"{path.value}.tmp"' if path.value.isprintable() and not set(path.value) & set('"\\') else None
    if isinstance(path, nodes.Name):
        return f'f"{{{path.name}}}.tmp"'
    if isinstance(path, nodes.Attribute) and isinstance(path.expr, nodes.Name):
        return f'f"{{{path.as_string()}}}.tmp"'
    return None


def _stands_alone(source: Source, statement: nodes.NodeNG) -> bool:
    """Whether nothing else stands on the lines of a statement."""
    if not isinstance(statement, nodes.Expr):
        return False
    span = span_of(source, statement)
    first, column = source.position(span.start)
    last, end = source.position(span.end)
    before, after = source.lines[first - 1][: column - 1], source.lines[last - 1][end - 1 :]
    return not before.strip() and not after.partition("#")[0].strip()
