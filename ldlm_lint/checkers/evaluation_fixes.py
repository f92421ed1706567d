"""The fix of an evaluation that records gradients: a decorator, or a context around its loop."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.base import extent
from ldlm_lint.checkers.evaluation_runs import Run
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.edits.lines import indent_at, indent_of, stands_alone, step_of
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_PLACES = (nodes.For, nodes.While, nodes.Assign, nodes.AugAssign, nodes.AnnAssign, nodes.Expr)
_REASON = "code that differentiates what the evaluation returns no longer gets gradients"


def no_grad_fix(source: Source, run: Run) -> Fix | None:
    """Switch gradients off for a function that never needs them, else for the loop of the evaluation."""
    if run.learns or isinstance(run.owner, nodes.Module):
        return _around(source, run.place)
    if isinstance(run.owner, nodes.AsyncFunctionDef):
        return None
    line = extent(run.owner)[0]
    indent = indent_at(source, line)
    if not source.lines[line - 1].lstrip().startswith("def "):
        return None
    imported, name = ensure_import(source, "torch", "no_grad")
    start = source.line_starts[line - 1]
    decorator = Edit(source.span(start, start), f"{indent}@{name}(){source.newline}")
    return _fix(f"decorate {run.owner.name} with {name}()", [imported, decorator])


def _around(source: Source, place: nodes.NodeNG) -> Fix | None:
    """Indent a loop or statement below ``with torch.no_grad():``; None if a text of several lines would change."""
    if not isinstance(place, _PLACES) or isinstance(place, nodes.AsyncFor) or _has_long_text(place):
        return None
    last = place.end_lineno or place.lineno
    indent = indent_of(source, place)
    if not stands_alone(source, place):
        return None
    imported, name = ensure_import(source, "torch", "no_grad")
    step = step_of(source, place)
    edits = []
    for number in range(place.lineno, last + 1):
        if source.lines[number - 1].strip():
            start = source.line_starts[number - 1]
            first = f"{indent}with {name}():{source.newline}" if number == place.lineno else ""
            edits.append(Edit(source.span(start, start), first + step))
    return _fix(f"run the evaluation under {name}()", [imported, *edits])


def _has_long_text(loop: nodes.NodeNG) -> bool:
    texts = nodes_of(loop, (nodes.Const, nodes.JoinedStr))
    return any((one.end_lineno or 0) > (one.lineno or 0) for one in texts)


def _fix(title: str, edits: list[Edit | None]) -> Fix:
    return Fix(title, tuple(sorted(one for one in edits if one is not None)), Applicability.UNSAFE, _REASON)
