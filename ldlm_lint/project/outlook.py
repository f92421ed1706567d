"""What can be ruled out before a file is looked at closely: what no training step may come to."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.project.questions import Context
from ldlm_lint.project.questions.host_time import is_loss, may_train_on_device


def may_be_reached(context: Context, path: str, functions: Iterable[str]) -> bool:
    """Whether a training step may come to one of some functions of a file, by their dotted names; empty for the module.

    What ``runs-in-each-training-step`` confirms is reached, as far as the texts of the project tell.
    """
    if not may_train_on_device(context, path):
        return False
    return any(is_loss(one) or context.often.may_be_step(path, one) for one in functions)
