"""Conditions of findings about single calls: the call itself, and its required context or arguments."""

from __future__ import annotations

import ast

from ldlm_lint.shapes.meaning import calls_of
from ldlm_lint.shapes.outline import Outline
from ldlm_lint.shapes.walks import nodes_below

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


__all__ = ["may_checkpoint", "may_guard_compile", "may_leave_implementation"]
