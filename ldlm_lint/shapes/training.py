"""Conditions of findings about a training step on a text: a file that trains, or a call that advances a learning
rate.
"""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily
from ldlm_lint.python.skim import Skim
from ldlm_lint.shapes.outline import GAP

_STEPS = lazily(rb"step" + GAP + rb"\(" + GAP + rb"\)")
# The checkers' pattern for method names, for a text; each begins with letters, which are searched fastest.
_SCHEDULES = (
    *(re.compile(rb"%s_(?:\w+_)?(?:lr|learning_rates?|sched\w*)(?!\w)" % one) for one in (b"update", b"step")),
    *(re.compile(rb"%s_(?:update|step)(?!\w)" % one) for one in (rb"lr(?<!\wlr)", rb"sched(?<!\wsched)\w*")),
)
_LETTER = lazily(rb"\w")


def trains(data: bytes) -> bool:
    """Whether the project would count the file among those that train."""
    return Skim(data).trains


def may_schedule(data: bytes) -> bool:
    """Whether there is a step call, or a method that advances learning rates by its name."""
    if any(not _LETTER.match(data, one.start() - 1) for one in _STEPS.finditer(data)):
        return True
    return any(one.search(data) for one in _SCHEDULES)
