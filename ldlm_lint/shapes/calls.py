"""Conditions of findings about single calls: the call itself, and its required context or arguments."""

from __future__ import annotations

from ldlm_lint.shapes.meaning import calls_of
from ldlm_lint.shapes.outline import Outline

_TORCH = ("torch",)


def may_checkpoint(outline: Outline) -> bool:
    """Whether torch's activation checkpointing may be called with a function to run."""
    return any(call.args for _, call in calls_of(outline, frozenset({"checkpoint"}), _TORCH))


def may_leave_implementation(outline: Outline) -> bool:
    """Whether a segment of torch's activation checkpointing may omit its implementation."""
    functions = frozenset({"checkpoint", "checkpoint_sequential"})
    return any(all(one.arg != "use_reentrant" for one in call.keywords) for _, call in calls_of(outline, functions, _TORCH))


__all__ = ["may_checkpoint", "may_leave_implementation"]
