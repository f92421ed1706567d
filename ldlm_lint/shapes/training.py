"""What findings about a training step need of a text: a file that trains, or a call that moves a learning rate on."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily
from ldlm_lint.python.skim import Skim
from ldlm_lint.shapes.outline import GAP

_STEPS = lazily(rb"step" + GAP + rb"\(" + GAP + rb"\)")
# As the checkers have it for the name of a method, here in a text; each begins with letters, which a search finds fastest by themselves.
_SCHEDULES = (
    *(re.compile(rb"%s_(?:\w+_)?(?:lr|learning_rates?|sched\w*)(?!\w)" % one) for one in (b"update", b"step")),
    *(re.compile(rb"%s_(?:update|step)(?!\w)" % one) for one in (rb"lr(?<!\wlr)", rb"sched(?<!\wsched)\w*")),
)
_LETTER = lazily(rb"\w")


def trains(data: bytes) -> bool:
    """Whether the project would count the file among those that train."""
    return Skim(data).trains


def may_schedule(data: bytes) -> bool:
    """Whether something is stepped, or a method by its name moves learning rates on."""
    if any(not _LETTER.match(data, one.start() - 1) for one in _STEPS.finditer(data)):
        return True
    return any(one.search(data) for one in _SCHEDULES)
