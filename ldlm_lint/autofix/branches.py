"""Writing a statement twice: once changed under a condition, once unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ldlm_lint.autofix.calls import MAX_LINE
from ldlm_lint.model import Edit, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_BLANK = lazily(r"[ \t]*")
_REST = lazily(rb"[ \t]*(#[^\r\n]*)?(?=\r|\n|\Z)")
NEWLINE = "\n"
_ENDING = lazily(r"\r\n|\r|\n")


def choose_between(
    source: Source, statements: Sequence[Span], changed: Sequence[str], condition: str, *, leaves: bool = False
) -> Edit | None:
    """Put consecutive statements under ``else`` of a condition, with their ``changed`` forms under ``if``.

    A changed form is indented like its statement; its further lines include their indentation. Text after the last
    statement on its line stays there. Statements that leave the function need no ``else`` (``leaves``): they are not
    changed. None if a statement shares a line with other code, holds a text of several lines, or is indented in an
    unusual way.
    """
    first, last = statements[0], statements[-1]
    start = source.line_starts[source.position(first.start)[0] - 1]
    indent = source.data[start : first.start].decode(source.encoding)
    unit = indent_unit(source, source.position(first.start)[0], indent)
    whole = source.slice(Span(first.path, first.start, last.end, first.cell))
    if _BLANK.fullmatch(indent) is None or unit is None or not _REST.match(source.data, last.end):
        return None
    if '"""' in whole or "'''" in whole or re.search(r"\\\r?\n", whole):
        return None
    inner = indent + unit
    new = [f"{inner}{text.replace(NEWLINE, source.newline + unit)}" for text in changed]
    if leaves:
        lines = [f"{indent}if {condition}:", *new, ""]
        return Edit(Span(first.path, start, start, first.cell), source.newline.join(lines))
    old = _ENDING.sub(lambda match: match.group() + unit, whole)
    old = re.sub(rf"(?m)^{re.escape(unit)}[ \t]*(?=\r|\n|\Z)", "", old)
    lines = [f"{indent}if {condition}:", *new, f"{indent}else:", f"{inner}{old}"]
    return Edit(Span(first.path, start, last.end, first.cell), source.newline.join(lines))


def indent_unit(source: Source, line: int, indent: str) -> str | None:
    """The indentation of the block around a line relative to the statement that opens it."""
    for above in reversed(source.lines[: line - 1]):
        match = _BLANK.match(above)
        outer = match.group() if match else ""
        if (
            above.strip()
            and not above.lstrip().startswith("#")
            and len(outer) < len(indent)
            and indent.startswith(outer)
        ):
            return indent[len(outer) :] if above.rstrip().endswith(":") or re.search(r":\s*#", above) else None
    return None


def call_text(callee: str, arguments: Sequence[str], before: str, after: str, indent: str, unit: str) -> str:
    """A call in one line if it fits between the texts ``before`` and ``after`` it, else with its arguments below.

    ``indent`` is that of the statement; lines are separated by ``\\n`` and start with it.
    """
    line = f"{callee}({', '.join(arguments)})"
    if len(indent) + len(before) + len(line) + len(after) <= MAX_LINE:
        return line
    hanging = indent + unit
    if len(hanging) + len(", ".join(arguments)) <= MAX_LINE and not any(one.startswith("*") for one in arguments):
        return f"{callee}(\n{hanging}{', '.join(arguments)}\n{indent})"
    rows = "".join(f"{hanging}{one},\n" for one in arguments)
    return f"{callee}(\n{rows}{indent})"


def new_line_after(source: Source, line: int, text: str) -> Edit:
    """Insert a line after the one with that 1-based number; ``text`` holds its own indentation."""
    if line < len(source.lines):
        at = source.line_starts[line]
        return Edit(source.span(at, at), text + source.newline)
    end = len(source.data)
    return Edit(source.span(end, end), source.newline + text)


__all__ = ["call_text", "choose_between", "indent_unit", "new_line_after"]
