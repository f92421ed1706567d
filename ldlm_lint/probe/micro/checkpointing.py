"""Activation checkpointing: the saved peak memory, the cost of recomputation, per block and for the whole model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldlm_lint.evidence.model import Measurement
from ldlm_lint.probe.micro import profiles
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.judging import arms_of, compared, seen
from ldlm_lint.probe.micro.sampling import Build, compute_clock, sample

_BLOCKS = 8
_SIZES = {"cpu": (128, 512), "cuda": (1024, 8192)}
_BAR = 1.05
_ROUNDS = 16
_NONE, _EACH, _WHOLE = "no checkpointing", "a segment per block", "one segment for all blocks"
_ARMS = (_NONE, _EACH, _WHOLE)


def run(context: Context) -> None:
    """Measure the peaks, which are exact, then the time; judge both rules."""
    arms = {name: _build(context, name) for name in _ARMS}
    peaks = {name: profiles.peak_bytes(context.torch, _warm(build), context.device) for name, build in arms.items()}
    context.observe("peak_bytes", peaks)
    cost = _cost(context, arms)
    _judge(context, "missing-activation-checkpointing", peaks, _NONE, _EACH, cost, _SAVES)
    _judge(context, "whole-model-checkpoint", peaks, _WHOLE, _EACH, cost, _ONE_SEGMENT)


_SAVES = "checkpointing each block lowers the peak of a training step, for the time of a second forward pass"
_ONE_SEGMENT = "a single segment around all blocks has a higher peak than one segment for each block"


def _judge(
    context: Context, rule: str, peaks: dict[str, int | None], high: str, low: str, cost: dict[str, Any], claim: str
) -> None:
    """Bytes are counted, not sampled, so that a ratio of peaks needs no interval."""
    more, less = peaks[high], peaks[low]
    if not more or not less:
        context.judge(seen(context, rule, claim, None, "this torch's profiler does not report allocated memory"))
        return
    ratio = more / less
    reason = f"the peak of a step is {_mib(more)} with {high}, {_mib(less)} with {low}"
    if cost.get("ratio"):
        reason += f"; with {low} a step takes {cost['ratio']:.2f} times as long as with {_NONE}"
    measured = Measurement(
        f"peak {high} / {low}", ratio, "x", threshold=_BAR, detail={"peak_bytes": peaks, "time": cost}
    )
    context.judge(seen(context, rule, claim, ratio >= _BAR, reason, measured))


def _cost(context: Context, arms: dict[str, Build]) -> dict[str, Any]:
    """How much longer a step with checkpointed blocks takes, as a plain value; an A/A run judges it too."""
    if context.left < 1.5:
        return {}
    clock = compute_clock(context.torch, context.device)
    pair = {_EACH: arms[_EACH], _NONE: arms[_NONE]}
    timing = sample(arms_of(context, pair, _EACH), clock, seed=context.seed, end=context.end - 0.5, rounds=_ROUNDS)
    found = compared(context, "missing-activation-checkpointing", "", timing, _EACH, _NONE)
    if context.same:
        context.judge(found)
    measured = found.measured
    return {"ratio": measured.value, "ci95": measured.ci95, "n": measured.n} if measured else {}


def _warm(build: Build) -> Callable[[], Any]:
    call = build()
    call()
    return call


def _build(context: Context, arm: str) -> Build:
    torch = context.torch
    width, rows = _SIZES[context.device]

    def build() -> Callable[[], None]:
        blocks = torch.nn.Sequential(*(_block(torch, width) for _ in range(_BLOCKS))).to(context.device)
        batch = torch.randn(rows, width, device=context.device)
        forward = _forward(torch, blocks, arm)

        def call() -> None:
            blocks.zero_grad(set_to_none=True)
            forward(batch).square().mean().backward()

        return call

    return build


def _forward(torch: Any, blocks: Any, arm: str) -> Callable[[Any], Any]:
    from torch.utils.checkpoint import checkpoint

    if arm == _NONE:
        return blocks
    if arm == _WHOLE:
        return lambda batch: checkpoint(blocks, batch, use_reentrant=False)

    def each(batch: Any) -> Any:
        for block in blocks:
            batch = checkpoint(block, batch, use_reentrant=False)
        return batch

    return each


def _block(torch: Any, width: int) -> Any:
    class Block(torch.nn.Module):
        """A residual block of a transformer without its attention: the activations are four times as wide inside."""

        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.LayerNorm(width)
            self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm(x))))

    return Block()


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
