"""What the project can say of a file before it is looked at closely: which rules have no chance there, whatever it holds.

Each answer is a necessary condition of what the questions behind the claims of the rule's findings confirm.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.project.outlook_of_files import CONDITIONS
from ldlm_lint.project.outlook_of_functions import OUTLOOKS
from ldlm_lint.project.questions import Context
from ldlm_lint.project.questions.memory import may_lack_checkpointing
from ldlm_lint.python.skim import holds_any
from ldlm_lint.shapes.prospects import ANYWHERE, BY_FUNCTIONS, CLAIMS, Variant


def may_hold(context: Context, symbol: str, path: str, functions: Sequence[str]) -> bool:
    """Whether a rule (its symbol) may hold for one of some functions of a file, as `ldlm_lint.shapes.prospects` names them."""
    if tuple(functions) == ANYWHERE:
        return any(_may_stand(context, path, one) for one in CLAIMS[symbol]) and _may_hold_somewhere(context, symbol, path)
    return OUTLOOKS[symbol](context, path, functions)


def _may_hold_somewhere(context: Context, symbol: str, path: str) -> bool:
    """Whether a rule may hold for one of the functions that the text of a file defines, or its module.

    So it may where the text does not tell what they are called, or holds what makes their callers matter no more.
    """
    apart = BY_FUNCTIONS.get(symbol)
    if apart is None or any(one.search(context.project.data(path)) for one in apart):
        return True
    sketch = context.calls.sketch
    # Whether the text tells all of them is found out last: that takes longer than most answers.
    return OUTLOOKS[symbol](context, path, ("", *sketch.functions(path))) or not sketch.tells_functions(path)


def _may_stand(context: Context, path: str, variant: Variant) -> bool:
    """Whether a finding with certain claims may stand in a file."""
    if variant.words and not holds_any(context.project.data(path), variant.words):
        return False
    return all(_may(context, path, kind) for kind in variant.claims)


def _may(context: Context, path: str, kind: str) -> bool:
    """Whether a claim of some kind may hold for a file; one that nothing is known of may."""
    if kind not in CONDITIONS:
        return True
    key = (f"may {kind}", path)
    if key not in context.answers:
        context.answers[key] = CONDITIONS[kind](context, path)
    return context.answers[key]


def warm(context: Context) -> None:
    """Read the texts of a project for what the outlooks ask of all of them."""
    for path in context.project.files:
        may_lack_checkpointing(context, path)
