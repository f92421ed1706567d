"""How messages show code and places: names in backquotes, on one line, of a length that a reader takes in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

LONGEST = 60
"""How many characters of an expression a message shows."""
_LOOPS = ("for", "while")


def code(text: str) -> str:
    """Code in backquotes, on one line; of a long expression the beginning, which names it.

    Code that holds a backquote itself stands in two of them, as in Markdown.
    """
    flat = cut(text)
    return f"`` {flat} ``" if "`" in flat else f"`{flat}`"


def cut(text: str) -> str:
    """Code on one line, and no more of it than a message shows."""
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 3].rstrip()}..."


def listed(names: Iterable[str]) -> str:
    """Names, each in backquotes, as a sentence lists them."""
    return enumerated([code(name) for name in names])


def enumerated(words: Sequence[str]) -> str:
    """Words as a sentence lists them: ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def any_of(names: Iterable[str]) -> str:
    """Names, each in backquotes, of which one is meant."""
    return " or ".join(code(name) for name in names)


def place(path: str, line: int, own: str = "") -> str:
    """Where a line is: ``line 12`` of the file ``own`` that the message is about, ``train.py:12`` of another one."""
    return f"line {line}" if path == own else f"{path.rpartition('/')[2]}:{line}"


def statement(text: str) -> str:
    """What a line of Python begins: a loop, a function by its name, else the line itself."""
    words = text.removeprefix("async ").split(maxsplit=2)
    if words[:1] and words[0] in _LOOPS:
        return "the loop"
    if words[:1] == ["def"] and len(words) > 1:
        return f"`{words[1].partition('(')[0]}()`"
    return code(text)
