"""Finds parameters that are frozen after DDP has wrapped their model."""

from __future__ import annotations

from typing import ClassVar

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.ddp_freezing import late_changes
from ldlm_lint.rules.ddp_graph import (
    PARAMETERS_FROZEN_AFTER_WRAP,
    RULES,
)


class DdpGraphChecker(LdlmChecker):
    """The constraints of DDP on a model and its parameters."""

    rules = RULES
    finds: ClassVar = {
        "visit_module": (PARAMETERS_FROZEN_AFTER_WRAP,),
    }

    def visit_module(self, node: nodes.Module) -> None:
        """Look at the places that freeze or unfreeze parts of wrapped models."""
        for change in late_changes(node):
            self.report(
                PARAMETERS_FROZEN_AFTER_WRAP,
                change.node,
                args={"target": change.target, "change": change.change, "effect": change.effect},
                related=change.related,
                claims=change.claims,
            )
