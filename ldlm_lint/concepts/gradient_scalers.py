"""Scalers of gradients: the loss is multiplied by a scale, and the gradients are divided by it where the optimizer steps.

    scaler.scale(loss).backward()
    clip_grad_norm_(model.parameters(), 1.0)      # still scaled, unless `scaler.unscale_(optimizer)` comes before
    scaler.step(optimizer)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.concepts.precision import Autocasts, Precision
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, leading_to
from ldlm_lint.program.walks import Through

_SCALERS = frozenset(
    ["torch.GradScaler", "torch.cpu.amp.GradScaler", "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler"]
    + [f"torch.{place}.{name}" for place in ("amp", "cuda.amp") for name in ("GradScaler", "grad_scaler.GradScaler")]
)
_CLIPS = frozenset(
    [f"torch.nn.utils.{place}{name}" for place in ("", "clip_grad.") for name in ("clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_")]
    + [f"timm.utils.{name}" for name in ("adaptive_clip_grad", "agc.adaptive_clip_grad", "dispatch_clip_grad", "clip_grad.dispatch_clip_grad")]
)
_SHARDED = "torch.distributed.fsdp."
# For an unknown object only its name is known.
_NAMED = lazily(r"scaler$", re.I)


class ScaledClip(NamedTuple):
    """The calls that clip gradients, or lead to it, which are scaled until ``step`` has run later in their function, itself
    or by ``site``; ``is_known`` if the scaler is surely torch's."""

    clips: tuple[Call, ...]
    step: Call
    site: Call
    is_known: bool


class GradientScalers(Concept):
    """Those of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._optimizers, self._passes = code[OptimizerSteps], code[BackwardPasses]

    @cached_property
    def steps(self) -> dict[Call, None]:
        """The calls that step an optimizer by a scaler of torch that may scale, or by an unknown object that is called one."""
        return dict.fromkeys(call for call in self.all_steps if call.receiver is not None and self._may_scale(call.receiver, call))

    @cached_property
    def all_steps(self) -> list[Call]:
        """The calls that step an optimizer by a scaler of torch, whether it scales or not, or by what is called one."""
        called = (call for call in self.code.calls_named("step") if call.positional and call.receiver is not None and not call.targets)
        return [call for call in called if call.receiver is not None and (call.receiver.made_by & _SCALERS or _NAMED.search(call.receiver.last_name))]

    def scaled_clips(self) -> Iterator[ScaledClip]:
        """All clippings of scaled gradients, by the scaler's step that they come before."""
        for step in self.steps:
            yield from self._before(step)

    def unscales_in(self, function: Function, step: Call) -> bool:
        """Whether a function unscales the gradients that a step in it unscales."""
        return any(self._unscales(call) and self._may_unscale_for(call, step) for call in function.calls)

    def _may_scale(self, scaler: Expr, step: Call) -> bool:
        precisions = [one for _, one in self.code[Autocasts].of(self.code.path(step.module))]
        if precisions and all(one is Precision.BFLOAT16 for one in precisions):
            return False
        made = [call for name in sorted(scaler.made_by & _SCALERS) for call in scaler.made_at(name)]
        if made or scaler.made_by or scaler.classes_of:
            return bool(scaler.made_by & _SCALERS) and (not made or not all(map(_is_off, made)))
        scales = (call for call in self.code.calls_in(step.module, "scale") if call.positional and call.receiver is not None)
        return _NAMED.search(scaler.last_name) is not None and any(_NAMED.search(call.receiver.last_name) for call in scales if call.receiver)

    def _before(self, step: Call) -> Iterator[ScaledClip]:
        """The clippings before a step in its function, or else in those that lead to it."""
        todo = [step]
        for site in todo:
            clips = tuple(self._clipped_before(site, step))
            if clips and not self._is_unscaled_above(site, step):
                is_known = bool(step.receiver is not None and step.receiver.made_by)
                yield ScaledClip(clips, step, site, is_known)
            elif not clips and site.function.name != "step":
                # A method called like the step is that of another scaler, which has its own terms.
                todo += [call for call in site.function.callers if call not in todo]

    def _clipped_before(self, site: Call, step: Call) -> Iterator[Call]:
        before = [call for call in site.function.calls if call.end <= site.place and call.spot.leads_to(site.spot)]
        for at, call in enumerate(before):
            if self._clips_only(call) and _in_one_pass(call, site, self._passes):
                behind = [one for one in before[at + 1 :] if call.spot.leads_to(one.spot)]
                earlier = [one for one in before[:at] if one.spot.leads_to(call.spot) and _shared_loops(one, call) >= _shared_loops(call, site)]
                is_of_other = any(self._optimizers.leads_to_one(one) or self._passes.lead_to_one(one) for one in behind)
                if not is_of_other and not any(self._unscales(one) and self._may_unscale_for(one, step) for one in earlier):
                    yield call

    def _clips_only(self, call: Call) -> bool:
        """Whether a call surely clips gradients, and does nothing else to them."""
        is_one = call in self.clips or (bool(call.targets) and self._clipping.issuperset(call.targets))
        return is_one and not self._unscales(call) and not self._optimizers.leads_to_one(call)

    def _is_unscaled_above(self, site: Call, step: Call) -> bool:
        """Whether something unscales the gradients before the function of a step is called."""
        todo = list(site.function.callers)
        for call in todo:
            before = (one for one in call.function.calls if one.end <= call.place and one.spot.leads_to(call.spot) and one.loops == call.loops)
            if any(self._unscales(one) and self._may_unscale_for(one, step) for one in before):
                return True
            todo += [one for one in call.function.callers if one not in todo]
        return False

    @cached_property
    def clips(self) -> frozenset[Call]:
        """The calls that clip gradients themselves."""
        methods = (call for call in self.code.calls_named("clip_grad_norm_") if call.receiver is not None)
        sharded = [call for call in methods if call.receiver and any(name.startswith(_SHARDED) for name in call.receiver.made_by)]
        return frozenset([*self.code.calls(_CLIPS), *sharded])

    @cached_property
    def _clipping(self) -> frozenset[Function]:
        return leading_to(call.function for call in self.clips)

    def _unscales(self, call: Call) -> bool:
        """Whether a call may unscale gradients, or ask for the scale to do so."""
        return _is_unscaling(call) or not self._unscaling.isdisjoint(call.targets)

    @cached_property
    def _unscaling(self) -> frozenset[Function]:
        names = sorted(name for name in self.program.calls if "unscale" in name or name == "get_scale")
        return leading_to(call.function for call in self.code.calls_named(*names))

    def _may_unscale_for(self, call: Call, step: Call) -> bool:
        """Whether it may do so for the optimizer of a step: not if another step of the function has its optimizer."""
        given = call.positional[0] if _is_unscaling(call) and call.positional else None
        if given is None or _is_same(given, step.positional[0]):
            return True
        return not any(_is_same(given, one.positional[0]) for one in self.steps if one.function == step.function and one != step)


def _is_unscaling(call: Call) -> bool:
    return "unscale" in call.called_name or call.called_name == "get_scale"


def _is_same(one: Expr, other: Expr) -> bool:
    origins = list(other.origins(Through.NAMES | Through.PARAMETERS))
    return any(mine == its or mine.is_alike(its) for mine in one.origins(Through.NAMES | Through.PARAMETERS) for its in origins)


def _is_off(made: Call) -> bool:
    """``GradScaler(enabled=False)``, ``GradScaler(enabled=dtype == "float16")`` with another dtype."""
    enabled = made.argument("enabled")
    return enabled.is_given and all(one.is_just(False) or _is_untrue(one) for one in enabled.values)


def _is_untrue(test: Expr) -> bool:
    sides = [one.may_be() for one in test.unnamed.operands] if test.unnamed.operator == "Eq" else []
    are_known = bool(sides) and all(one.is_complete and len(one.constants) == len(one.value) for one in sides)
    return are_known and {*sides[0].constants}.isdisjoint(sides[1].constants)


def _shared_loops(one: Call, other: Call) -> int:
    return len([loop for loop in one.loops if loop in other.loops])


def _in_one_pass(call: Call, site: Call, passes: BackwardPasses) -> bool:
    """Whether no backward pass runs again between two calls, for other loops than those over parameters."""
    inner = {*call.loops} ^ {*site.loops}
    return not any(passes.lead_to_one(one) for loop in inner for one in loop.calls)
