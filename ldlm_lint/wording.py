"""How messages show code and places: names in backquotes, on one line, of readable length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldlm_lint.source import Source

LONGEST = 60
"""How many characters of an expression a message shows."""
_LOOPS = ("for", "while")
_REACH = 8
"""Lines above a statement that may say something about it."""
RUNS_IN_EVERY_STEP = "this runs in every step"
"""The note at the line that begins the step in which something runs."""


def quoted(text: str, longest: int = LONGEST) -> str:
    """Code in backquotes, on one line; a long expression is cut after its beginning. A plain number is not quoted.

    Code that contains a backquote itself is put between two of them, as in Markdown.
    """
    flat = " ".join(text.split())
    if flat.replace(".", "", 1).isdecimal():
        return flat
    shown = flat if len(flat) <= longest else f"{flat[: longest - 3].rstrip()}..."
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def listed(names: Iterable[str]) -> str:
    """Names, each in backquotes, as a sentence lists them."""
    return enumerated([quoted(name) for name in names])


def enumerated(words: Sequence[str]) -> str:
    """Words as a sentence lists them: ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def any_of(names: Iterable[str]) -> str:
    """Names, each in backquotes, of which one is meant."""
    return " or ".join(quoted(name) for name in names)


def located(path: str, line: int, own: str = "") -> str:
    """Where a line is: ``line 12`` of the file ``own`` that the message is about, ``train.py:12`` of another one."""
    return f"line {line}" if path == own else f"{path.rpartition('/')[2]}:{line}"


def begins_loop(text: str) -> bool:
    """Whether a line of Python begins a loop."""
    return text.removeprefix("async ").split(maxsplit=1)[:1] in ([one] for one in _LOOPS)


def function_begun(text: str) -> str:
    """The name of the function that a line of Python begins; empty for any other line."""
    words = text.removeprefix("async ").split(maxsplit=1)
    return words[1].partition("(")[0].strip() if words[:1] == ["def"] and len(words) > 1 else ""


def remark_at(source: Source, start: int, end: int) -> str:
    """The comment after the statement at ``[start, end)`` and those in the lines above, up to a blank line."""
    first, last = source.position(start)[0], source.position(end)[0]
    lines = source.lines
    said = [lines[last - 1].partition("#")[2]]
    for line in reversed(lines[max(first - 1 - _REACH, 0) : first - 1]):
        text = line.strip()
        if not text:
            break
        if text.startswith("#"):
            said.append(text.lstrip("# "))
    return " ".join(reversed(said)).strip()
