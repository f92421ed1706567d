"""Necessary conditions of rules on the standard library's syntax tree, which a file has anyway: what passes the words' test
but cannot break the rule needs no tree of ours.

A condition may say yes too often, never no where the checker would report something. Each states what it relies on.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from ldlm_lint.shapes.checkpoints import may_keep_state, may_load_unsaid, may_number_saves, may_save
from ldlm_lint.shapes.evaluation import may_evaluate
from ldlm_lint.shapes.memory import may_lack_checkpointing
from ldlm_lint.shapes.outline import Outline
from ldlm_lint.shapes.training import may_schedule, trains

CONDITIONS: dict[str, Callable[[Outline], bool]] = {
    "evaluation-with-gradients": may_evaluate,
    "checkpoint-load-unspecified": may_load_unsaid,
    "checkpoint-saved-by-every-rank": may_save,
    "checkpoint-saves-live-state": may_keep_state,
    "unbounded-checkpoints": may_number_saves,
    "cache-emptied-in-training-loop": trains,
    "device-synchronized-in-training-loop": trains,
    "scheduler-before-optimizer": may_schedule,
    "missing-activation-checkpointing": may_lack_checkpointing,
}


def possible(symbols: Iterable[str], module: ast.Module, data: bytes) -> frozenset[str]:
    """Of the rules whose words a file holds those that it may break by its shape; ``data`` is its text in UTF-8."""
    outline = None
    found = []
    for symbol in symbols:
        condition = CONDITIONS.get(symbol)
        if condition is not None:
            outline = outline or Outline(module, data)
        if condition is None or outline is None or condition(outline):
            found.append(symbol)
    return frozenset(found)
