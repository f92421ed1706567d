"""Finds ranks that leave a step which the others take; the project knows whether several ranks train at all."""

from __future__ import annotations

import functools

from astroid import nodes

from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import LdlmChecker, span_of
from ldlm_lint.checkers.step_skips import Skip, skips_of
from ldlm_lint.model import Applicability, Claim, Edit, Fix
from ldlm_lint.python.places import position_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.rank_divergence import RANK_LOCAL_SKIP, RULES
from ldlm_lint.source import Source

_REASON = "each step then has one more collective and synchronization, which needs a process group"


class RankDivergenceChecker(LdlmChecker):
    """Ranks that leave a step alone."""

    rules = RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the tests and handlers of every training step."""
        data = self.source.data
        if not all(any(word in data for word in group) for group in RANK_LOCAL_SKIP.requires):
            return
        for skip in skips_of(node):
            self._report(skip)

    def _report(self, skip: Skip) -> None:
        positions = ";".join(position_of(call) for call in skip.reducers)
        claims: tuple[Claim, ...] = (Claim("stands-outside-tests"), Claim("runs-many-ranks"))
        if skip.lightning:
            claims = (*claims, Claim("lightning-uses-several-devices"))
        if positions:
            claims = (*claims, Claim("nothing-is-reduced", positions))
        self.report(
            RANK_LOCAL_SKIP,
            skip.node,
            args={"cause": skip.cause},
            claims=claims,
            fix=functools.partial(_flag_fix, skip=skip),
        )


def _flag_fix(source: Source, skip: Skip) -> Fix:
    """Let the ranks decide together; with edits if the test is on its own line."""
    return Fix("let all ranks decide together", _flag(source, skip), Applicability.DISPLAY, _REASON)


def _flag(source: Source, skip: Skip) -> tuple[Edit, ...]:
    """Put the decision into a tensor and take its maximum over the ranks before the test."""
    test, statement = skip.test, skip.where
    if test is None or not isinstance(statement, nodes.If) or not source.lines[statement.lineno - 1].lstrip().startswith("if"):
        return ()
    loss = next((one for one in nodes_of(test, nodes.Name) if "loss" in one.name.lower()), None)
    if loss is None or any(isinstance(one, nodes.Name) and one.name == "math" for one in nodes_of(test, nodes.Name)):
        return ()
    needed, distributed = ensure_import(source, "torch", "distributed")
    span, whole, newline = span_of(source, test), span_of(source, statement), source.newline
    line = source.lines[statement.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    text = (
        f"skip = {loss.name}.new_tensor(float(bool({source.slice(span)}))){newline}"
        f"{indent}{distributed}.all_reduce(skip, op={distributed}.ReduceOp.MAX){newline}{indent}"
    )
    edits = (Edit(source.span(whole.start, whole.start), text), Edit(span, "skip"))
    return tuple(filter(None, (needed, *edits)))
