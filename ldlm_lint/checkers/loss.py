"""Finds losses that lose their scale or their gradient."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.loss_fixes import unbounded_fix, width_fix
from ldlm_lint.checkers.losses import bounded_loss, reaches_backward, trains
from ldlm_lint.checkers.unit_vectors import unit_vector_error
from ldlm_lint.model import Claim, Rule
from ldlm_lint.rules.loss import CLAMPED_LOSS, MSE_ON_UNIT_VECTORS, RULES
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.host import Host

_TRAINING = (Claim("belongs-to-training"),)


class LossChecker(LdlmChecker):
    """The operands and bounds of a loss."""

    rules = RULES

    def __init__(self, linter: Host) -> None:
        super().__init__(linter)
        self._possible: set[Rule] = set()

    def visit_module(self, _node: nodes.Module) -> None:
        """Determine which rules a file can break at all, to skip the calls for the others."""
        data = self.source.data
        self._possible = {rule for rule in RULES if self.may_break(rule) and any(trigger in data for trigger in rule.triggers)}

    def visit_call(self, node: nodes.Call) -> None:
        """Check every call that may bound a loss, or compare two vectors."""
        if CLAMPED_LOSS in self._possible:
            self._check_clamp(node)
        if MSE_ON_UNIT_VECTORS in self._possible:
            self._check_error(node)

    def _check_clamp(self, node: nodes.Call) -> None:
        clamped = bounded_loss(node)
        if clamped is not None and trains(node) and reaches_backward(node):
            operand, bound = clamped
            args = {"loss": quoted(operand.as_string()), "bound": quoted(bound.as_string())}
            fix = functools.partial(unbounded_fix, call=node, operand=operand, bound=bound)
            self.report(CLAMPED_LOSS, node, args=args, claims=_TRAINING, fix=fix)

    def _check_error(self, node: nodes.Call) -> None:
        pair = unit_vector_error(node)
        if pair is not None and trains(node) and _stays_a_tensor(node):
            left, right = pair
            args = {"left": quoted(left.as_string()), "right": quoted(right.as_string())}
            fix = functools.partial(width_fix, call=node, left=left)
            self.report(MSE_ON_UNIT_VECTORS, node, args=args, claims=_TRAINING, fix=fix)


def _stays_a_tensor(node: nodes.Call) -> bool:
    parent = node.parent
    if isinstance(parent, nodes.Attribute):
        return parent.attrname not in ("item", "detach", "cpu", "numpy", "tolist")
    return not (isinstance(parent, nodes.Call) and isinstance(parent.func, nodes.Name) and parent.func.name == "float")
