"""Necessary conditions of rules on the text of a Python file, tested before it is parsed: for most files with a rule's
words, more of their text shows that they do not break it.

Like the conditions on trees (`ldlm_lint.shapes`), they may be true too often, but never false if the checker would
report something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ldlm_lint.shapes.draft import Draft, draft_of
from ldlm_lint.shapes.evaluation_draft import may_evaluate
from ldlm_lint.shapes.training import trains

TEXTS: dict[str, Callable[[bytes], bool]] = {
    "cache-emptied-in-training-loop": trains,
    "device-synchronized-in-training-loop": trains,
}
"""What the words of a text have to be."""

DRAFTS: dict[str, Callable[[Draft], bool]] = {
    "evaluation-with-gradients": may_evaluate,
}
"""What the functions of a text have to be."""


def possible_by_text(symbols: Iterable[str], data: bytes) -> frozenset[str]:
    """The rules that a file may break by its text (in UTF-8), of those whose words it contains."""
    left = frozenset(symbol for symbol in symbols if symbol not in TEXTS or TEXTS[symbol](data))
    return _left(left, DRAFTS, data)


def _left(symbols: frozenset[str], conditions: dict[str, Callable[[Draft], bool]], data: bytes) -> frozenset[str]:
    asked = symbols & conditions.keys()
    draft = draft_of(data) if asked else None
    return symbols if draft is None else symbols - {symbol for symbol in asked if not conditions[symbol](draft)}
