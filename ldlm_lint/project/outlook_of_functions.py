"""Necessary conditions of a rule's findings on their function, by the texts of the project: its callers, and their
places."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ldlm_lint.project.questions.base import Context
from ldlm_lint.project.sketch import Place
from ldlm_lint.project.traits import Trait
from ldlm_lint.shapes.evaluation import MODE
from ldlm_lint.shapes.outline import GAP

_WAYS = 400
# ``model.eval()``, and ``model.train(…)`` with any argument.
_SWITCHES = Trait(
    re.compile(rb"eval" + GAP + rb"\(" + GAP + rb"\)|\." + GAP + rb"train" + GAP + rb"\((?!\))"),
    (b"eval", b"train"),
)


Outlook = Callable[[Context, str, Sequence[str]], bool]
"""Whether a rule may hold for one of some functions of a file, by their dotted names."""


def _each(of_one: Callable[[Context, str, str], bool]) -> Outlook:
    return lambda context, path, scopes: any(of_one(context, path, one) for one in scopes)


def _may_save_on_every_rank(context: Context, path: str, scope: str) -> bool:
    """Whether a function may be reached from the start of training ranks."""
    sketch, ranks = context.calls.sketch, context.ranks
    known = ranks.unreached
    waiting: list[Place] = [(path, scope)] if (path, scope) not in known else []
    seen = set(waiting)
    while waiting and len(seen) < _WAYS:
        place = waiting.pop()
        if ranks.may_start(place):
            return True
        fresh = sketch.callers(place, tests=False) - seen - known
        seen |= fresh
        waiting.extend(fresh)
    if not waiting:
        # Every path to the visited ones has been followed.
        known |= seen
    return bool(waiting)


def _may_be_evaluated(context: Context, path: str, asked: str) -> bool:
    """Whether a function has a caller that may add what its evaluation needs."""
    need, _, scope = asked.partition(" ")
    callers = {one for one, inner in context.calls.sketch.callers((path, scope), tests=False) if (one, inner) != (path, scope)}
    return context.project.any_shows(callers, _SWITCHES) if need == MODE else bool(callers)


OUTLOOKS: dict[str, Outlook] = {
    "checkpoint-saved-by-every-rank": _each(_may_save_on_every_rank),
    "evaluation-with-gradients": _each(_may_be_evaluated),
}
"""By the symbols of rules what their findings need of a function that they are in."""
