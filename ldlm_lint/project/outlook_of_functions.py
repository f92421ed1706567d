"""Necessary conditions of a rule's findings on their function, by the texts of the project: its callers, and their
places."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ldlm_lint.project.questions.base import Context
from ldlm_lint.project.traits import Trait
from ldlm_lint.shapes.evaluation import MODE
from ldlm_lint.shapes.outline import GAP

# ``model.eval()``, and ``model.train(…)`` with any argument.
_SWITCHES = Trait(
    re.compile(rb"eval" + GAP + rb"\(" + GAP + rb"\)|\." + GAP + rb"train" + GAP + rb"\((?!\))"),
    (b"eval", b"train"),
)


Outlook = Callable[[Context, str, Sequence[str]], bool]
"""Whether a rule may hold for one of some functions of a file, by their dotted names."""


def _each(of_one: Callable[[Context, str, str], bool]) -> Outlook:
    return lambda context, path, scopes: any(of_one(context, path, one) for one in scopes)


def _may_be_evaluated(context: Context, path: str, asked: str) -> bool:
    """Whether a function has a caller that may add what its evaluation needs."""
    need, _, scope = asked.partition(" ")
    callers = {one for one, inner in context.calls.sketch.callers((path, scope), tests=False) if (one, inner) != (path, scope)}
    return context.project.any_shows(callers, _SWITCHES) if need == MODE else bool(callers)


OUTLOOKS: dict[str, Outlook] = {
    "evaluation-with-gradients": _each(_may_be_evaluated),
}
"""By the symbols of rules what their findings need of a function that they are in."""
