"""Finds graphs that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.checkers.autograd_fixes import detach_fix
from ldlm_lint.checkers.autograd_graphs import Kept, kept_graphs
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.model import Claim, Confidence, Rule
from ldlm_lint.python.gradients import text_of
from ldlm_lint.python.places import function_of, scope_name
from ldlm_lint.rules.autograd import (
    LOSS_GRAPH_ACCUMULATION,
    RULES,
)
from ldlm_lint.wording import listed, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_OUTSIDE_TESTS = (Claim("stands-outside-tests"),)


def _note(found: Kept) -> str:
    return "the backward pass of the loss is here" if isinstance(found.backward, nodes.Call) else "the framework runs the backward pass of this"


class AutogradChecker(LdlmChecker):
    """Graphs that are kept."""

    rules = RULES

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._possible: set[Rule] = set()

    def visit_module(self, node: nodes.Module) -> None:
        """Tell which rules a file can break at all, and look for losses that are collected with their graphs."""
        data = self.source.data
        self._possible = {
            rule
            for rule in RULES
            if self.may_break(rule) and all(any(trigger in data for trigger in group) for group in (rule.triggers, *rule.requires))
        }
        if LOSS_GRAPH_ACCUMULATION in self._possible:
            for found in kept_graphs(node):
                self._report_kept(found)

    def _report_kept(self, found: Kept) -> None:
        meter = (Claim("meter-keeps-graphs", found.meter),) if found.meter else ()
        again = (Claim("is-called-again", scope_name(function_of(found.node))),) if found.by_callers else ()
        losses = [text_of(part) for part in found.parts]
        self.report(
            LOSS_GRAPH_ACCUMULATION,
            found.node,
            args={"loss": listed(losses), "into": quoted(found.into), "detached": listed(f"{loss}.detach()" for loss in losses)},
            confidence=Confidence.MEDIUM if meter or again else Confidence.HIGH,
            related=[(found.backward, _note(found))],
            claims=_OUTSIDE_TESTS + meter + again,
            fix=lambda source: detach_fix(source, found),
        )
