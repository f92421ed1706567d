"""What findings about a training step need: a file that trains, or a call that moves a learning rate on."""

from __future__ import annotations

import re

from ldlm_lint.python.skim import Skim
from ldlm_lint.shapes.outline import GAP, Outline

_STEPS = re.compile(
    rb"\." + GAP + rb"step" + GAP + rb"\(" + GAP + rb"\)|\b(?:update|step)_(?:\w+_)?(?:lr|learning_rates?|sched\w*)\b|\b(?:lr|sched\w*)_(?:update|step)\b"
)


def trains(outline: Outline) -> bool:
    """Whether the project would count the file among those that train."""
    return Skim(outline.data).trains


def may_schedule(outline: Outline) -> bool:
    """Whether something is stepped, or a method by its name moves learning rates on."""
    return _STEPS.search(outline.data) is not None
