"""Finds ranks that leave a step which the others take; whether several ranks train at all, the project knows."""

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
            fix=functools.partial(_flag_fix, skip=skip) if skip.test is not None else None,
        )


def _flag_fix(source: Source, skip: Skip) -> Fix | None:
    """Put the decision into a tensor and take its maximum over the ranks before it is asked."""
    test, statement = skip.test, skip.where
    if test is None or not isinstance(statement, nodes.If) or not source.text.split("\n")[statement.lineno - 1].lstrip().startswith("if"):
        return None
    loss = next((one for one in nodes_of(test, nodes.Name) if "loss" in one.name.lower()), None)
    if loss is None or any(isinstance(one, nodes.Name) and one.name == "math" for one in nodes_of(test, nodes.Name)):
        return None
    needed, distributed = ensure_import(source, "torch", "distributed")
    span, whole = span_of(source, test), span_of(source, statement)
    indent = " " * (statement.col_offset or 0)
    text = (
        f"skip = {loss.name}.new_tensor(float(bool({source.slice(span)})))\n"
        f"{indent}{distributed}.all_reduce(skip, op={distributed}.ReduceOp.MAX)\n{indent}"
    )
    edits = (Edit(source.span(whole.start, whole.start), text), Edit(span, "skip"))
    reason = "a collective and a synchronisation in each step, which needs a process group"
    return Fix("decide it over all ranks", tuple(filter(None, (needed, *edits))), Applicability.DISPLAY, reason)
