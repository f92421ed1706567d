"""Finds checkpointed segments without a choice of their implementation, and places that freeze and unfreeze parameters."""

from __future__ import annotations

from typing import ClassVar

from astroid import nodes

from ldlm_lint.checkers.activation_checkpointing import check_use_reentrant
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.freezing import claims_of, toggles
from ldlm_lint.rules.recomputation import (
    CHECKPOINT_WITHOUT_USE_REENTRANT,
    REQUIRES_GRAD_TOGGLED_PER_STEP,
    RULES,
)


class RecomputationChecker(LdlmChecker):
    """Checkpointed segments, and parameters that are frozen and unfrozen."""

    rules = RULES
    finds: ClassVar = {
        "visit_module": (REQUIRES_GRAD_TOGGLED_PER_STEP,),
        "visit_call": (CHECKPOINT_WITHOUT_USE_REENTRANT,),
    }

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the places that freeze and unfreeze parameters."""
        if any(trigger in self.source.data for trigger in REQUIRES_GRAD_TOGGLED_PER_STEP.triggers):
            self._check_toggles(node)

    def _check_toggles(self, node: nodes.Module) -> None:
        for first, *others in toggles(node):
            self.report(
                REQUIRES_GRAD_TOGGLED_PER_STEP,
                first.node,
                args={"target": first.target, "where": ""},
                related=[(other.node, "this sets `requires_grad` too") for other in others],
                claims=claims_of([first, *others]),
            )

    def visit_call(self, node: nodes.Call) -> None:
        """Look at checkpointed segments."""
        check_use_reentrant(self, node)
