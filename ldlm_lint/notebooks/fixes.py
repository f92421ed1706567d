"""The fixes that a notebook allows: the execution order of its cells is unknown.

A fix changes one cell. A new import goes there or into an earlier cell, so that it runs in time when the notebook runs
from the top; lines in IPython syntax are not changed. Other fixes are shown, not applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from ldlm_lint.model import Applicability, Edit, Finding, Fix, InStep, Span
from ldlm_lint.notebooks import is_notebook
from ldlm_lint.notebooks.magics import restored
from ldlm_lint.notebooks.text import Part, untouched
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.linter import UNPARSABLE_FILE
from ldlm_lint.source import Source

SEVERAL_CELLS = "it changes several cells of a notebook, whose execution order is unknown"
_COMMAND = "it changes a command of IPython"
_IMPORTED_LATER = "it depends on an import of a later cell"
_IMPORT = lazily(r"\s*(?:(?:import|from)\s[^\n]*(?:\n\s*|\Z))+|,\s*\w+\s*|\w+,\s*")
_BINDING = lazily(rb"^(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+([^\r\n#]+)", re.MULTILINE)
_WORD = lazily(r"[^\W\d]\w*")


def unparsed(source: Source) -> Iterator[Finding]:
    """A finding for each cell that is not Python, at the line that shows it."""
    from ldlm_lint.code.newer_syntax import asks_for_newer

    for part in source.parts:
        if part.error:
            first, _ = source.position(part.start)
            line = first + part.error_line - 1
            start = source.line_starts[min(line, len(source.line_starts)) - 1]
            span = source.span(start, max(start + len(source.lines[line - 1].encode()), start))
            args = (("error", part.error), ("checked", "the other cells are checked"))
            yield Finding(UNPARSABLE_FILE.symbol, UNPARSABLE_FILE.code, span, args, claims=asks_for_newer(part.error, restored(source.lines[line - 1])))


def bounded(findings: Iterable[Finding], sources: Mapping[str, Source]) -> list[Finding]:
    """The findings, with fixes that a notebook does not bear for display only."""
    return [one._replace(fix=_bounded(one.fix, sources)) if _edits_notebook(one.fix) else one for one in findings]


def in_cells(findings: Iterable[Finding], sources: Mapping[str, Source]) -> list[Finding]:
    """The findings, their places in notebooks with the cells that they are in."""
    return [
        one._replace(
            args=_lines_of_cells(one, sources),
            span=_in_cell(one.span, sources),
            related=tuple(note._replace(span=_in_cell(note.span, sources)) for note in one.related),
            fix=one.fix and one.fix._replace(edits=tuple(_edit_in_cell(edit, sources) for edit in one.fix.edits)),
            in_step=one.in_step and _step_in_cells(one.in_step, sources),
        )
        for one in findings
    ]


def _step_in_cells(place: InStep, sources: Mapping[str, Source]) -> InStep:
    loop, after = (None if span is None else _in_cell(span, sources) for span in (place.loop, place.after))
    return place._replace(step=_in_cell(place.step, sources), loop=loop, after=after)


def _lines_of_cells(finding: Finding, sources: Mapping[str, Source]) -> tuple[tuple[str, object], ...]:
    """The arguments of a finding's message, with lines of the notebook replaced by those of its cells."""
    if not is_notebook(finding.span.path):
        return finding.args
    source, own = sources[finding.span.path], sources[finding.span.path].part_at(finding.span.start)

    def told(match: re.Match[str]) -> str:
        offset = source.offset(int(match["line"]), 0)
        part, (line, _) = source.part_at(offset), source.shown(offset)
        cell = "" if part is None or part == own else f" of cell {part.number}"
        return f"{match['before'] or 'line '}{line}{cell}"

    name = re.escape(PurePosixPath(finding.span.path).name)
    places = re.compile(rf"(?:(?P<before>\blines? )|\b{name}:)(?P<line>\d+)\b")
    return tuple((key, places.sub(told, value) if isinstance(value, str) else value) for key, value in finding.args)


def of_cell(source: Source, edit: Edit) -> tuple[int, int, str]:
    """An edit relative to its cell's own text: the replaced bytes, and the new ones.

    In the joined text the last line of a cell ends with a line break that the cell need not have.
    """
    part = source.part_at(edit.span.start)
    if part is None:
        return edit.span.start, edit.span.end, edit.text
    size = len(restored(source.data[part.start : part.end].decode()).encode()) - len(source.newline)
    start = len(restored(source.data[part.start : edit.span.start].decode()).encode())
    end = start + len(restored(source.data[edit.span.start : edit.span.end].decode()).encode())
    text = source.newline + edit.text.rstrip("\r\n") if start > size else edit.text
    return min(start, size), min(end, size), text


def _edit_in_cell(edit: Edit, sources: Mapping[str, Source]) -> Edit:
    return edit._replace(span=_in_cell(edit.span, sources))


def _in_cell(span: Span, sources: Mapping[str, Source]) -> Span:
    part = sources[span.path].part_at(span.start) if is_notebook(span.path) and span.path in sources else None
    return span if part is None else span._replace(cell=part.number)


def _edits_notebook(fix: Fix | None) -> bool:
    return fix is not None and any(is_notebook(edit.span.path) for edit in fix.edits)


def _bounded(fix: Fix | None, sources: Mapping[str, Source]) -> Fix | None:
    if fix is None:
        return None
    edits: list[Edit] = []
    for path in dict.fromkeys(edit.span.path for edit in fix.edits):
        own = [edit for edit in fix.edits if edit.span.path == path]
        source = sources.get(path)
        if is_notebook(path):
            placed = _placed(source, own) if source is not None else SEVERAL_CELLS
            if isinstance(placed, str):
                return fix._replace(applicability=Applicability.DISPLAY, reason=placed)
            own = placed
        edits += own
    return fix._replace(edits=tuple(edits))


def _placed(source: Source, edits: Sequence[Edit]) -> list[Edit] | str:
    """The edits of one notebook, a late import at the top of the cell that needs it; or why they are impossible."""
    imports = [edit for edit in edits if edit.span.start == edit.span.end and _IMPORT.fullmatch(edit.text)]
    others = [edit for edit in edits if edit not in imports]
    cells = {part.number: part for edit in others or imports if (part := source.part_at(edit.span.start))}
    if len(cells) != 1:
        return SEVERAL_CELLS
    cell = next(iter(cells.values()))
    moved = [_in_time(source, edit, cell) if others else _at_top(source, edit) for edit in imports]
    placed = [*others, *(edit for edit in moved if edit is not None)]
    if None in moved or any(_imported_later(source, edit, cell) for edit in others):
        return _IMPORTED_LATER
    return placed if all(untouched(source.data, edit.span.start, edit.span.end) for edit in placed) else _COMMAND


def _in_time(source: Source, edit: Edit, cell: Part) -> Edit | None:
    """An import in the cell that needs it, or before; one that would come later goes to the top of that cell."""
    if edit.span.start < cell.end:
        return _at_top(source, edit)
    if not edit.text.lstrip().startswith(("import ", "from ")):
        return None
    at = cell.start
    for line in source.data[cell.start : cell.end].splitlines(keepends=True):
        if not line.lstrip().startswith(b"#"):
            break
        at += len(line)
    return Edit(Span(edit.span.path, at, at, cell.number), edit.text.strip() + source.newline)


def _at_top(source: Source, edit: Edit) -> Edit:
    """A line that begins a cell begins it without a blank line."""
    begins = any(part.start == edit.span.start for part in source.parts)
    return edit._replace(text=edit.text.lstrip("\r\n")) if begins else edit


def _imported_later(source: Source, edit: Edit, cell: Part) -> bool:
    """Whether an edit uses a name that only a later cell imports."""
    names = set(_WORD.findall(edit.text)) - set(_WORD.findall(source.slice(edit.span)))
    before = {name for match in _BINDING.finditer(source.data, 0, cell.end) for name in _bound(match)}
    later = {name for match in _BINDING.finditer(source.data, cell.end) for name in _bound(match)}
    return not names.isdisjoint(later - before)


def _bound(match: re.Match[bytes]) -> list[str]:
    return _WORD.findall(match[1].decode(errors="replace"))

