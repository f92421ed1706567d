"""requires-grad-toggled-per-step where the helper that sets the flags is in another file, under any name."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.freezing import ASKS, Toggle, claims_of, toggles
from ldlm_lint.code.table import column_of, line_of
from ldlm_lint.concepts.switches import switching_calls
from ldlm_lint.model import Confidence, Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.rules.recomputation import REQUIRES_GRAD_TOGGLED_PER_STEP

RULE = REQUIRES_GRAD_TOGGLED_PER_STEP
WORDS = (b"requires_grad",)


def find(view: View) -> Iterator[Finding]:
    """The toggles of each file that calls such a helper; the project decides whether they run in every step."""
    by_module: dict[int, set[tuple[int, int]]] = {}
    for call in switching_calls(view.program, ASKS):
        module = view.program.module_of(call)
        place = module.table.sites[call & MASK].place
        by_module.setdefault(module.index, set()).add((line_of(place), column_of(place)))
    for index, places in sorted(by_module.items()):
        yield from _in_module(view, view.program.modules.all[index], places)


def _in_module(view: View, module: Module, places: set[tuple[int, int]]) -> Iterator[Finding]:
    tree = view.context.trees.of(view.path(module))
    source = view.source(module)
    for group in toggles(tree, places) if tree is not None else ():
        first, *others = group
        if any(_place(one) in places for one in group):
            related = tuple(Related(span_of(source, one.node), "this sets `requires_grad` too") for one in others)
            args = {"target": first.target, "where": ""}
            yield view.finding(RULE, span_of(source, first.node), args, related, claims=claims_of(group), confidence=Confidence.MEDIUM)


def _place(toggle: Toggle) -> tuple[int, int]:
    return toggle.node.lineno or 0, toggle.node.col_offset or 0
