"""What a message says that another one of the same rule does not, in few words."""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.patterns import lazily

LONGEST = 90
_KNOWN = 30
_LEAD = 3
# References to other places in messages; messages that differ only in them count as equal.
_REFERENCE = lazily(r"[\w.-]+\.\w+:\d+|\bline \d+")


def difference(message: str, other: str) -> str:
    """The part of a message that differs from another one; empty if they are the same. Both are cleaned texts.

    Of a long common beginning the last words are kept as context.
    """
    words, others = gist(message).split(" "), gist(other).split(" ")
    if words == others:
        return ""
    same = _common(words, others)
    end = len(words) - min(_common(words[::-1], others[::-1]), len(words) - same, len(others) - same)
    words = message.split(" ")
    begin = max(same - _LEAD, 0) if len(" ".join(words[:same])) > _KNOWN else 0
    shown = words[begin : max(end, same) + _LEAD]
    head, tail = "… " * (begin > 0), " …" * (begin + len(shown) < len(words))
    return cut(f"{head}{' '.join(shown)}{tail}", (": ", "; "))


def gist(message: str) -> str:
    """A message without the numbers of the places that it refers to; it has as many words as before."""
    return _REFERENCE.sub(lambda found: "line" if " " not in found[0] else "line N", message)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def cut(text: str, clauses: tuple[str, ...] = ()) -> str:
    """A text of at most `LONGEST` characters; one that is too long ends where one of the ``clauses`` begins, else a word."""
    if len(text) <= LONGEST:
        return text
    short = text[: LONGEST - 2]
    end = max((short.rfind(clause, _KNOWN) for clause in clauses), default=-1)
    return f"{short[: end if end > 0 else short.rfind(' ')].rstrip(' …')} …"
