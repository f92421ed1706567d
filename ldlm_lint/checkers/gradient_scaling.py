"""Finds gradients of the wrong scale; the project knows how other files use the scaler or the loss."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.accumulating import MicroBatches, micro_batches
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.gradient_scaling_fixes import divide_fix
from ldlm_lint.checkers.scaled_loss import is_scaled
from ldlm_lint.checkers.step_events import Kind, events_of
from ldlm_lint.checkers.step_names import last_name
from ldlm_lint.checkers.step_roots import STEPS, roots_of
from ldlm_lint.model import Claim
from ldlm_lint.rules.gradient_scaling import ACCUMULATION_LOSS_NOT_SCALED, RULES
from ldlm_lint.wording import quoted

_BACKWARD = frozenset({Kind.BACKWARD})
_TRAINING = Claim("stands-outside-tests")


class GradientScalingChecker(LdlmChecker):
    """Scaled losses."""

    rules = RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Look at every function that computes gradients."""
        data = self.source.data
        if b"backward" not in data:
            return
        losses: dict[tuple[nodes.NodeNG, str], dict[nodes.Call, MicroBatches]] = {}
        groups: dict[nodes.Call, tuple[nodes.NodeNG, str]] = {}
        for root in roots_of(node, _BACKWARD, STEPS):
            for micro in micro_batches(events_of(root)):
                place = micro.backward.loops[-1] if micro.backward.loops else micro.step.node.scope()
                # A step function that several loops call is one place.
                group = groups.setdefault(micro.backward.node, (place, micro.count.as_string()))
                losses.setdefault(group, {}).setdefault(micro.backward.node, micro)
        for passes in losses.values():
            self._check_loss([one for one in passes.values() if not is_scaled(one, data)])

    def _check_loss(self, group: list[MicroBatches]) -> None:
        """One finding for the backward passes of one accumulation, such as those with and without a scaler."""
        if not group:
            return
        micro, *others = group
        self.report(
            ACCUMULATION_LOSS_NOT_SCALED,
            micro.backward.node,
            args={"count": quoted(micro.count.as_string())},
            related=[(micro.step.node, "the optimizer steps here"), *((one.backward.node, "this loss is not divided either") for one in others)],
            claims=(_TRAINING, Claim("loss-is-divided-nowhere", last_name(micro.count))),
            fix=lambda source: divide_fix(source, group),
        )
