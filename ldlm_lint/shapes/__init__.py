"""Necessary conditions of rules on the standard library's syntax tree, which exists for a file anyway: a file that
passes the word test but cannot break the rule needs no astroid tree.

A condition may be true too often, but never false if the checker would report something. Each states its assumptions.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ldlm_lint.shapes.evaluation import may_evaluate
from ldlm_lint.shapes.outline import Outline, outline_of

CONDITIONS: dict[str, Callable[[Outline], bool]] = {
    "evaluation-with-gradients": may_evaluate,
}


def possible(symbols: Iterable[str], module: ast.Module, data: bytes) -> frozenset[str]:
    """The rules that a file may break by its shape, of those whose words it contains; ``data`` is its text in UTF-8."""
    outline = None
    found = []
    for symbol in symbols:
        condition = CONDITIONS.get(symbol)
        if condition is not None:
            outline = outline_of(module, data)
        if condition is None or outline is None or condition(outline):
            found.append(symbol)
    return frozenset(found)
