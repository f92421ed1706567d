"""The conditions under which code of a training step runs, as far as their texts distinguish them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from astroid import nodes

from ldlm_lint.python.memo import remembered
from ldlm_lint.vocabulary.step_names import PROGRESS

Condition = tuple[str, bool]
"""The text of a test without its negation, and whether it holds."""

_OPPOSITES = {"!=": "==", "is not": "is", "not in": "in"}


def conditions_of(test: nodes.NodeNG, holds: bool) -> frozenset[Condition]:
    """The facts in the branches of a test: ``a and b`` gives both, ``x is not None`` is ``x``."""
    # Needed for every function that reaches the test.
    return remembered(test, ("conditions", holds), lambda: _known_where(test, holds))


def _known_where(test: nodes.NodeNG, holds: bool) -> frozenset[Condition]:
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        return conditions_of(test.operand, not holds)
    if isinstance(test, nodes.BoolOp) and (test.op == "and") is holds:
        return frozenset().union(*(conditions_of(value, holds) for value in test.values))
    if isinstance(test, nodes.Compare) and len(test.ops) == 1:
        return frozenset({_compared(test, holds)})
    return frozenset({(test.as_string(), holds)})


def _compared(test: nodes.Compare, holds: bool) -> Condition:
    operator, right = test.ops[0]
    left = test.left.as_string()
    if operator in _OPPOSITES:
        operator, holds = _OPPOSITES[operator], not holds
    if isinstance(right, nodes.Const) and operator in ("is", "=="):
        if right.value is None:
            return left, not holds
        if isinstance(right.value, bool):
            return left, holds is right.value
    return f"{left} {operator} {right.as_string()}", holds


def exclude(one: Iterable[Condition], other: Iterable[Condition]) -> bool:
    """Whether two sets of conditions cannot hold together."""
    known = set(other)
    return any((text, not holds) in known for text, holds in one)


def counts(condition: Condition, names: Iterable[str]) -> bool:
    """Whether a condition depends on the progress of the training: a counter, or a variable of the loops
    (``names``).
    """
    text = condition[0]
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    compares = re.search(r"[<>%]|==|(?<!\w)\d", text) is not None
    return not words.isdisjoint(names) or (PROGRESS.search(text) is not None and (compares or " " not in text))
