"""Conditions of findings about single calls: the call itself, and its required context or arguments."""

from __future__ import annotations

import ast

from ldlm_lint.shapes.meaning import calls_of
from ldlm_lint.shapes.outline import Outline, last_name
from ldlm_lint.shapes.walks import nodes_below
from ldlm_lint.vocabulary.batch_sizes import may_count_ranks

_TORCH = ("torch",)


def may_checkpoint(outline: Outline) -> bool:
    """Whether torch's activation checkpointing may be called with a function to run."""
    return any(call.args for _, call in calls_of(outline, frozenset({"checkpoint"}), _TORCH))


def may_leave_implementation(outline: Outline) -> bool:
    """Whether a segment of torch's activation checkpointing may omit its implementation."""
    functions = frozenset({"checkpoint", "checkpoint_sequential"})
    return any(all(one.arg != "use_reentrant" for one in call.keywords) for _, call in calls_of(outline, functions, _TORCH))


def may_guard_compile(outline: Outline) -> bool:
    """Whether ``torch.compile`` may be in a ``try``."""
    compiled = {id(call) for _, call in calls_of(outline, frozenset({"compile"}), _TORCH)}
    return bool(compiled) and any(
        isinstance(one, ast.Try) and any(id(inner) in compiled for part in one.body for inner in nodes_below(part))
        for one in outline.compound
    )


def may_round(outline: Outline) -> bool:
    """Whether there is a division that drops the remainder: its use shows whether it is a number of steps."""
    for statement in (*outline.assigned, *outline.augmented) if may_count_ranks(outline.data) else ():
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.FloorDiv):
            return True
        if statement.value is not None and any(map(_rounds, nodes_below(statement.value))):
            return True
    return False


def _rounds(node: ast.AST) -> bool:
    """``a // b``, ``int(a / b)``."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.FloorDiv)
    first = node.args[0] if isinstance(node, ast.Call) and last_name(node.func) == "int" and node.args else None
    return isinstance(first, ast.BinOp) and isinstance(first.op, ast.Div)


__all__ = ["may_checkpoint", "may_guard_compile", "may_leave_implementation", "may_round"]
