"""What the project can say of a file before it is looked at closely: which rules have no chance there, whatever it holds.

Each answer is a necessary condition of what the questions behind the claims of the rule's findings confirm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ldlm_lint.project.questions import Context
from ldlm_lint.project.questions.host_time import is_loss, may_train_on_device
from ldlm_lint.project.questions.memory import may_lack_checkpointing


def may_hold(context: Context, symbol: str, path: str, functions: Sequence[str]) -> bool:
    """Whether a rule (its symbol) may hold for one of some functions of a file, by their dotted names; empty for the module."""
    return _OUTLOOKS[symbol](context, path, functions)


def warm(context: Context) -> None:
    """Read the texts of a project for what the outlooks ask of all of them."""
    for path in context.project.files:
        may_train_on_device(context, path)
        may_lack_checkpointing(context, path)
        context.often.may_be_step(path, "")


def _may_be_reached(context: Context, path: str, functions: Sequence[str]) -> bool:
    """Whether a training step may come to a function, as far as the texts of the project tell."""
    if not may_train_on_device(context, path):
        return False
    return any(is_loss(one) or context.often.may_be_step(path, one) for one in functions)


def _may_lack_checkpointing(context: Context, path: str, _functions: Sequence[str]) -> bool:
    """Whether neither a file nor the trainings that use it checkpoint activations."""
    return may_lack_checkpointing(context, path)


_OUTLOOKS: dict[str, Callable[[Context, str, Sequence[str]], bool]] = {
    "host-sync-in-training-loop": _may_be_reached,
    "missing-activation-checkpointing": _may_lack_checkpointing,
}
