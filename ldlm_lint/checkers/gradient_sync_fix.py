"""The edit that runs a micro-batch under ``no_sync()``: a ``with`` line in front, its statements indented below."""

from __future__ import annotations

from collections.abc import Sequence

from astroid import nodes

from ldlm_lint.autofix.calls import MAX_LINE
from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.gradient_sync import Accumulation
from ldlm_lint.checkers.gradient_sync_block import Model, micro_batch
from ldlm_lint.checkers.gradient_sync_tails import steps_only_at
from ldlm_lint.checkers.gradient_sync_tests import EarlyTest, early_test
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_REASON = "gradients are summed before they are averaged, and stay local until the last micro-batch"
_UNSURE = "`hasattr()` detects runs in which DDP does not wrap the model"
_MOST_MODELS = 2


def no_sync_fix(source: Source, found: Accumulation, wrapper: str) -> Fix | None:
    """The fix if the statements from the forward to the backward pass are in one block, and no step uses gradients that
    were left local; else None."""
    block, models = micro_batch(found, wrapper)
    if not block or not 0 < len(models) <= _MOST_MODELS or not _stands_alone(source, block):
        return None
    test = early_test(source, found, block)
    if test is None or not steps_only_at(found, block):
        return None
    imported, nullcontext = ensure_import(source, "contextlib", "nullcontext")
    header = _header(source, found.loop, block, [_context(model, test, nullcontext) for model in models])
    edit = indented_under(source, found.loop, block, header)
    sure = all(model.always_wrapped for model in models)
    title = f"run all but the last micro-batch under {' and '.join(f'{one.text}.no_sync()' for one in models)}"
    edits = tuple(sorted(filter(None, (imported, edit))))
    return Fix(title, edits, Applicability.UNSAFE, _REASON if sure else f"{_REASON}; {_UNSURE}")


def _header(
    source: Source, outer: nodes.NodeNG, block: Sequence[nodes.NodeNG], contexts: Sequence[tuple[str, str, str]]
) -> str:
    """The line that enters the contexts; a single context that is too long gets a line for each of its parts."""
    line = f"with {', '.join(map(' '.join, contexts))}:"
    indent, step = indentation(source.lines, outer, block[0])
    if len(contexts) > 1 or len(indent.expandtabs()) + len(line) <= MAX_LINE:
        return line
    inner = "".join(f"{source.newline}{indent}{step}{part}" for part in contexts[0])
    return f"with ({inner}{source.newline}{indent}):"


def _context(model: Model, test: EarlyTest, nullcontext: str) -> tuple[str, str, str]:
    """The context for one model, wrapped or not: a value, its condition, and the other value."""
    known = f'hasattr({model.text}, "no_sync")'
    if test.last:
        condition = test.text if model.always_wrapped else f"{test.text} or not {known}"
        return f"{nullcontext}()", f"if {condition}", f"else {model.text}.no_sync()"
    inner = f"({test.text})" if test.loose and not model.always_wrapped else test.text
    condition = inner if model.always_wrapped else f"{known} and {inner}"
    return f"{model.text}.no_sync()", f"if {condition}", f"else {nullcontext}()"


def indented_under(source: Source, outer: nodes.NodeNG, block: Sequence[nodes.NodeNG], header: str) -> Edit:
    """One edit for the lines of a block below a new line; ``outer`` is the statement whose body it is.

    It covers the whole block, so that no other fix changes a line of it in the same round.
    """
    first, last = block[0].lineno or 1, block[-1].end_lineno or 1
    starts, lines = source.line_starts, source.lines
    start = starts[first - 1]
    end = starts[last] if last < len(starts) else len(source.data)
    indent, step = indentation(lines, outer, block[0])
    text = source.slice(source.span(start, end))
    inner = "".join(f"{step}{line}" if line.strip() else line for line in text.splitlines(keepends=True))
    return Edit(source.span(start, end), f"{indent}{header}{source.newline}{inner}")


def indentation(lines: Sequence[str], outer: nodes.NodeNG, statement: nodes.NodeNG) -> tuple[str, str]:
    """The indentation of a statement, and that of one level in the block around it."""
    indent = _blank(lines[(statement.lineno or 1) - 1])
    around = _blank(lines[(outer.lineno or 1) - 1])
    level = indent[len(around) :] if indent.startswith(around) else ""
    return indent, level or ("\t" if indent.endswith("\t") else "    ")


def _blank(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _stands_alone(source: Source, block: Sequence[nodes.NodeNG]) -> bool:
    """Whether indenting changes no string, and the block shares its lines with no other statement."""
    strings = (one for statement in block for one in nodes_of(statement, (nodes.Const, nodes.JoinedStr)))
    if any((one.end_lineno or 0) != (one.lineno or 0) for one in strings):
        return False
    first, last = block[0], block[-1]
    before = source.slice(source.span(source.line_starts[(first.lineno or 1) - 1], span_of(source, first).start))
    end = source.line_starts[last.end_lineno] if (last.end_lineno or 0) < len(source.line_starts) else len(source.data)
    rest = source.slice(source.span(span_of(source, last).end, end)).strip()
    return not before.strip() and (not rest or rest.startswith("#"))


__all__ = ["indentation", "indented_under", "no_sync_fix"]
