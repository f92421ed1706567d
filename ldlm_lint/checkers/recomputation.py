"""Finds checkpointed segments without a choice of their implementation, and places that freeze and unfreeze parameters."""

from __future__ import annotations

from typing import ClassVar

from astroid import nodes

from ldlm_lint.checkers.activation_checkpointing import check_use_reentrant
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.rules.recomputation import (
    CHECKPOINT_WITHOUT_USE_REENTRANT,
    RULES,
)


class RecomputationChecker(LdlmChecker):
    """Checkpointed segments, and parameters that are frozen and unfrozen."""

    rules = RULES
    finds: ClassVar = {
        "visit_call": (CHECKPOINT_WITHOUT_USE_REENTRANT,),
    }

    def visit_call(self, node: nodes.Call) -> None:
        """Look at checkpointed segments."""
        check_use_reentrant(self, node)
