"""The default step of an optimizer against the fused one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldlm_lint.evidence.model import Judgement, Verdict
from ldlm_lint.probe.micro import profiles
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.judging import arms_of, compared
from ldlm_lint.probe.micro.sampling import Build, compute_clock, sample

_RULE = "optimizer-not-fused"
_CLAIM = "a step of AdamW(fused=True) takes less time than one of the default"
# 80 tensors of 2.6 million parameters: many small ones, where launches cost more than arithmetic, as in most models.
_TENSORS, _SIZE = 80, 32_768
# Two copies of one optimizer differ by several percent because of the memory location of their state; new states turn
# that into noise.
_ROUNDS, _REBUILD = 20, 4


def run(context: Context) -> None:
    """Time the steps, look at the kernels, and judge."""
    torch = context.torch
    kernels, missing = _kernels(context)
    context.observe("kernels", kernels)
    if missing:
        context.judge(Judgement(_RULE, _CLAIM, Verdict.INCONCLUSIVE, missing, context.scope()))
        return
    adamw = {"default": {}, "fused": {"fused": True}}
    if context.device == "cuda":
        adamw["for-loop"] = {"foreach": False}
    timing = _timed(context, torch.optim.AdamW, adamw, 0.7)
    momentum = {"default": {"momentum": 0.9}, "fused": {"momentum": 0.9, "fused": True}}
    judgement = compared(context, _RULE, _CLAIM, timing, "default", "fused", detail={"kernels": kernels})
    context.judge(judgement)
    if context.left > 3:
        other = compared(context, _RULE, "", _timed(context, torch.optim.SGD, momentum, 0.9), "default", "fused")
        if other.measured:
            context.observe("sgd", {"ratio": other.measured.value, "ci95": other.measured.ci95, "n": other.measured.n})


def _kernels(context: Context) -> tuple[dict[str, dict[str, int]], str]:
    """The kernels of a step of each arm, and why the fused one cannot be had."""
    torch = context.torch
    found: dict[str, dict[str, int]] = {}
    for name, options in (("default", {}), ("foreach", {"foreach": True}), ("fused", {"fused": True})):
        try:
            call = _build(context, torch.optim.AdamW, options)()
            call()
            profile = profiles.profiled(torch, call, context.device)
        except (RuntimeError, TypeError, ValueError) as error:
            # Not before torch 2.4 on a CPU.
            found[name] = {}
            if name == "fused":
                return found, f"this torch has no fused AdamW on {context.device} ({error})"
            continue
        found[name] = {**profiles.counted(profile, profiles.FUSED), **profiles.counted(profile, profiles.FOREACH)}
    seen = any(profiles.FUSED.search(name) for name in found["fused"])
    return found, "" if seen else "AdamW(fused=True) ran, but no fused kernel was seen in its profile"


def _timed(context: Context, kind: Any, options: dict[str, dict[str, Any]], share: float) -> Any:
    arms = {name: _build(context, kind, one) for name, one in options.items()}
    clock = compute_clock(context.torch, context.device)
    end = context.end - (1 - share) * context.left
    return sample(
        arms_of(context, arms, "default"), clock, seed=context.seed, end=end, rounds=_ROUNDS, rebuild=_REBUILD
    )


def _build(context: Context, kind: Any, options: dict[str, Any]) -> Build:
    torch = context.torch

    def build() -> Callable[[], None]:
        parameters = [torch.nn.Parameter(torch.randn(_SIZE, device=context.device)) for _ in range(_TENSORS)]
        for one in parameters:
            one.grad = torch.randn_like(one)
        return kind(parameters, lr=1e-4, **options).step

    return build
