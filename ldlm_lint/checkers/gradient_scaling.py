"""Finds gradients of the wrong scale; the project knows how other files use the scaler or the loss."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.accumulating import MicroBatches, micro_batches
from ldlm_lint.checkers.base import LdlmChecker
from ldlm_lint.checkers.gradient_scaling_fixes import divide_fix, unscale_fix
from ldlm_lint.checkers.scaled_loss import is_scaled
from ldlm_lint.checkers.scaler_steps import ScaledClip, is_scaled_somewhere, may_scale, scaled_clips
from ldlm_lint.checkers.step_events import Event, Kind, events_of
from ldlm_lint.checkers.step_names import last_name
from ldlm_lint.checkers.step_roots import STEPS, roots_of
from ldlm_lint.model import Claim, Confidence
from ldlm_lint.python.slots import slots_of
from ldlm_lint.rules.gradient_scaling import ACCUMULATION_LOSS_NOT_SCALED, CLIP_BEFORE_UNSCALE, RULES
from ldlm_lint.wording import quoted

_CLIPS, _SCALED, _BACKWARD = (frozenset({kind}) for kind in (Kind.CLIP, Kind.SCALED_STEP, Kind.BACKWARD))
_TRAINING = Claim("stands-outside-tests")


class GradientScalingChecker(LdlmChecker):
    """Scaled losses and gradients."""

    rules = RULES

    def visit_module(self, node: nodes.Module) -> None:
        """Look at every function that computes or clips gradients."""
        data = self.source.data
        if b"backward" not in data and b"scaler" not in data.lower():
            return
        clips: dict[nodes.Call, tuple[ScaledClip, list[Event]]] = {}
        losses: dict[tuple[nodes.NodeNG, str], dict[nodes.Call, MicroBatches]] = {}
        groups: dict[nodes.Call, tuple[nodes.NodeNG, str]] = {}
        for root in roots_of(node, _CLIPS, _SCALED) if self.may_break(CLIP_BEFORE_UNSCALE) else ():
            events = events_of(root)
            for found in scaled_clips(events):
                known = clips.get(found.clips[0].node)
                if known is None or (found.step.site is found.step.node and known[0].step.site is not known[0].step.node):
                    clips[found.clips[0].node] = (found, events)
        for root in roots_of(node, _BACKWARD, STEPS) if self.may_break(ACCUMULATION_LOSS_NOT_SCALED) else ():
            for micro in micro_batches(events_of(root)):
                place = micro.backward.loops[-1] if micro.backward.loops else micro.step.node.scope()
                # A step function that several loops call is one place.
                group = groups.setdefault(micro.backward.node, (place, micro.count.as_string()))
                losses.setdefault(group, {}).setdefault(micro.backward.node, micro)
        for found, events in clips.values():
            self._check_clip(found, events)
        for passes in losses.values():
            self._check_loss([one for one in passes.values() if not is_scaled(one, data)])

    def _check_clip(self, found: ScaledClip, events: list[Event]) -> None:
        first, *others = found.clips
        scaler = found.step.node.func.expr
        scales = may_scale(scaler)
        if scales is False or not is_scaled_somewhere(first.node.root()):
            return
        slots = ";".join(f"{one.kind}:{one.scope}:{one.name}" for one in slots_of(scaler))
        self.report(
            CLIP_BEFORE_UNSCALE,
            first.site,
            args={"function": last_name(first.site.func), "call": quoted(f"{scaler.as_string()}.unscale_({found.step.subject})")},
            confidence=Confidence.HIGH if scales else Confidence.MEDIUM,
            related=[(found.step.node, "the gradients are unscaled here"), *((one.site, "this clips scaled gradients too") for one in others)],
            claims=(_TRAINING,) if scales else (_TRAINING, Claim("scales-gradients", slots)),
            fix=lambda source: unscale_fix(source, found, events),
        )

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
