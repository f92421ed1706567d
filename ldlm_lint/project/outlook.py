"""The project's early verdict on a file: the rules that cannot report there, whatever it contains.

Each answer is a necessary condition for the questions behind the claims of the rule's findings.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.project.outlook_of_files import CONDITIONS
from ldlm_lint.project.outlook_of_functions import OUTLOOKS
from ldlm_lint.project.questions import Context
from ldlm_lint.python.skim import holds_any
from ldlm_lint.shapes.prospects import ANYWHERE, BY_FUNCTIONS, CLAIMS, Variant


def may_hold(context: Context, symbol: str, path: str, functions: Sequence[str]) -> bool:
    """Whether a rule (its symbol) may report in one of these functions of a file, as `ldlm_lint.shapes.prospects` names
    them."""
    if tuple(functions) == ANYWHERE:
        return any(_may_stand(context, path, one) for one in CLAIMS[symbol]) and _may_hold_somewhere(context, symbol, path)
    return OUTLOOKS[symbol](context, path, functions)


def _may_hold_somewhere(context: Context, symbol: str, path: str) -> bool:
    """Whether a rule may report in one of the functions in the text of a file, or its module.

    True if the text does not show their names, or contains code for which their callers do not matter.
    """
    apart = BY_FUNCTIONS.get(symbol)
    if apart is None or any(one.search(context.project.data(path)) for one in apart):
        return True
    sketch = context.calls.sketch
    # Whether the text shows all of them is checked last: that takes longer than most answers.
    return OUTLOOKS[symbol](context, path, ("", *sketch.functions(path))) or not sketch.tells_functions(path)


def _may_stand(context: Context, path: str, variant: Variant) -> bool:
    """Whether a finding with these claims may be in a file."""
    if variant.words and not holds_any(context.project.data(path), variant.words):
        return False
    return all(_may(context, path, kind) for kind in variant.claims)


def _may(context: Context, path: str, kind: str) -> bool:
    """Whether a claim of a kind may hold for a file; unknown kinds may."""
    if kind not in CONDITIONS:
        return True
    key = (f"may {kind}", path)
    if key not in context.answers:
        context.answers[key] = CONDITIONS[kind](context, path)
    return context.answers[key]
