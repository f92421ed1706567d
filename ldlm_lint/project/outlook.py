"""The project's early verdict on a file: the rules that cannot report there, whatever it contains.

Each answer is a necessary condition for the questions behind the claims of the rule's findings.
"""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.project.outlook_of_files import CONDITIONS
from ldlm_lint.project.outlook_of_functions import OUTLOOKS
from ldlm_lint.project.questions import Context
from ldlm_lint.python.skim import holds_any
from ldlm_lint.shapes.prospects import ANYWHERE, CLAIMS, Variant


def may_hold(context: Context, symbol: str, path: str, functions: Sequence[str]) -> bool:
    """Whether a rule (its symbol) may report in one of these functions of a file, as `ldlm_lint.shapes.prospects` names
    them."""
    if tuple(functions) == ANYWHERE:
        return any(_may_stand(context, path, one) for one in CLAIMS[symbol])
    return OUTLOOKS[symbol](context, path, functions)


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
