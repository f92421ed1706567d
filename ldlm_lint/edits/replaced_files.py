"""The edits of a save that replaces a file: a temporary name that is renamed afterwards, and the old file deleted later."""

from __future__ import annotations

import re

from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.edits.lines import is_alone
from ldlm_lint.edits.rotation import can_be_repeated
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_NAME = lazily(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_ENDING = lazily(r"(?P<before>.*[\w.])(?P<quote>[\"'])(?P<behind>[)\s]*|\s*%[^\"']*|\.format\([^\"']*\)\)*)")
"""A path whose last text ends the name of the file."""


def written_beside(source: Source, save: Span, path: Span) -> tuple[Edit, ...]:
    """Write to a temporary name, and rename it on the next line; empty if the call is no statement of its own, or its path
    cannot be written again."""
    text = source.slice(path)
    temporary = _temporary(text)
    if not temporary or not can_be_repeated(text) or not is_alone(source, save):
        return ()
    edit, replace = ensure_import(source, "os", "replace")
    added = Edit(_end_of_lines(source, save), f"{source.newline}{_indent(source, save)}{replace}({temporary}, {text})")
    return tuple(sorted([Edit(path, temporary), added, *([edit] if edit is not None else [])]))


def _temporary(path: str) -> str:
    """The code of a name next to a path."""
    if _NAME.fullmatch(path):
        return f'f"{{{path}}}.tmp"'
    found = _ENDING.fullmatch(path)
    return f"{found['before']}.tmp{found['quote']}{found['behind']}" if found is not None else ""


def without_removal(source: Source, removal: Span, save: Span) -> Edit | None:
    """Take the lines of a removal out, with the test that is around it alone; None if it is not in the block of the save."""
    lines = _lines_of(source, removal, _indent(source, save))
    return Edit(lines, "") if lines is not None else None


def removed_later(source: Source, removal: Span, save: Span) -> tuple[Edit, ...]:
    """Move these lines behind the save."""
    lines = _lines_of(source, removal, _indent(source, save)) if is_alone(source, save) else None
    if lines is None:
        return ()
    moved = source.slice(lines).rstrip("\r\n")
    return tuple(sorted([Edit(lines, ""), Edit(_end_of_lines(source, save), source.newline + moved)]))


def _lines_of(source: Source, removal: Span, indent: str) -> Span | None:
    first, last = (source.position(at)[0] for at in (removal.start, removal.end))
    if not is_alone(source, removal):
        return None
    if _indent(source, removal) != indent:
        inner, above = _indent(source, removal), source.lines[first - 2] if first > 1 else ""
        below = next((line for line in source.lines[last:] if line.strip()), "")
        goes_on = below.startswith(inner) or below.strip().startswith(("else", "elif"))
        if not re.fullmatch(rf"{indent}if [^#]*:\s*", above) or goes_on:
            return None
        first -= 1
    return source.span(source.line_starts[first - 1], source.line_starts[last])


def _indent(source: Source, span: Span) -> str:
    line = source.lines[source.position(span.start)[0] - 1]
    return line[: len(line) - len(line.lstrip())]


def _end_of_lines(source: Source, span: Span) -> Span:
    """Behind the last line of a statement, after a comment there, which belongs to it."""
    last = source.position(span.end)[0] - 1
    end = source.line_starts[last] + len(source.lines[last].encode(source.encoding))
    return source.span(end, end)


__all__ = ["removed_later", "without_removal", "written_beside"]
