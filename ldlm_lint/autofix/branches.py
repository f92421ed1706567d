"""Writing a statement twice: once changed under a condition, once unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ldlm_lint.autofix.calls import MAX_LINE
from ldlm_lint.patterns import lazily
from ldlm_lint.source import Source

_BLANK = lazily(r"[ \t]*")
_REST = lazily(rb"[ \t]*(#[^\r\n]*)?(?=\r|\n|\Z)")
NEWLINE = "\n"
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


__all__ = ["call_text", "indent_unit"]
