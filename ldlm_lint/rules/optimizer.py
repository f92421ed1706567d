"""Family 73, optimizer, accumulation and schedule."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint import tables
from ldlm_lint.model import Applicability, Consequence, Frequency, Probe, Reference, Rule
from ldlm_lint.rules.measured import H100

PASS_FUSED = "pass `fused=True`"
FUSED_REASON = (
    "updates differ in the last bits, all parameters must be real floating-point numbers on one kind of device, Lightning cannot clip "
    "gradients for a fused optimizer in mixed precision, and loading an older checkpoint turns fused off again"
)


def pass_fused(optimizers: Iterable[str], oldest: tuple[int, int] | None) -> str:
    """The advice; names the required torch if ``oldest``, the oldest allowed one, lacks it (None: unknown)."""
    since = max((found for one in optimizers if (found := tables.fused_since(one)) is not None), default=None)
    if since is None or oldest is None or oldest >= since:
        return PASS_FUSED
    return f"{PASS_FUSED} (needs torch >= {'.'.join(map(str, since))})"

OPTIMIZER_NOT_FUSED = Rule(
    code="R7301",
    symbol="optimizer-not-fused",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(optimizer)s runs torch's default CUDA implementation, which launches more kernels per step than the fused "
    "one; torch never picks fused by itself: %(advice)s",
    summary="`torch.optim` Adam, AdamW or SGD that trains on CUDA without choosing `fused`.",
    rationale="With neither `fused` nor `foreach`, torch uses the foreach implementation on CUDA: one kernel launch "
    "per arithmetic operation over lists of tensors, and about one more copy of the parameters at the peak. "
    "`fused=True` does the whole update in one kernel per list of tensors. torch never makes it the default. A "
    "configuration that passes `fused=False` also turns off the foreach implementation, unless it asks for it: each "
    "tensor is then updated separately.",
    cost="A part of the optimizer's share of the step: deepmd-kit went from 22 to 8 ms in the optimizer, which was 3 "
    "% of its step (deepmd-kit#4463); torchtitan gained 1.5 to 2 % MFU (torchtitan#355). It can also be slower: 85 to "
    "68 TFLOPS on an A40 with 512 M bf16 parameters on torch 2.2 (pytorch#121857). Measure. "
    "On an H100 the default step of AdamW over 80 tensors of 32,768 numbers took 1.08 ms, the fused one 0.32 ms.",
    exceptions="Training on a CPU, also of one model among others; a step that `torch.compile` compiles; complex or sparse parameters; Lightning with mixed precision and gradient "
    "clipping, which raises for an optimizer that unscales gradients itself (modules of Lightning are reported if "
    "their Trainers are in the project and nothing in the project clips); code that clips scaled gradients under a "
    "GradScaler; an optimizer over a handful of tensors; a wrapper (DeepSpeed, bitsandbytes, apex) with its own "
    "kernels.",
    versions="`fused` exists for Adam since torch 1.13, AdamW since 2.0, SGD since 2.3 (SGD is not reported if the "
    "project allows only older versions). If nothing is set, transformers 4.54 and later use `adamw_torch_fused` with "
    "torch >= 2.8; only an explicit `adamw_torch` is reported.",
    verification="Profile one optimizer step: fused kernels have `FusedAdam` or `aten::_fused_adamw_` in their name. "
    "After resuming, check `optimizer.param_groups[0]['fused']`: a checkpoint written without it turns it off.",
    references=(
        Reference("torch.optim.AdamW", "https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html"),
        Reference("deepmd-kit#4463", "https://github.com/deepmodeling/deepmd-kit/pull/4463"),
        Reference("torchtitan#355", "https://github.com/pytorch/torchtitan/pull/355"),
        Reference("torch.amp.GradScaler.step", "https://github.com/pytorch/pytorch/blob/v2.10.0/torch/amp/grad_scaler.py"),
        Reference("pytorch#121857", "https://github.com/pytorch/pytorch/issues/121857"),
        H100,
    ),
    reads=("py", "sh", "cfg"),
    needs="Adam(fused=)",
    triggers=(),
    setting_triggers=(b"fused", b"adamw_torch", b"torch.optim"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: updates differ in the last bits (3e-8 after 50 steps of AdamW), Lightning's mixed-precision "
    "clipping raises, `load_state_dict` of an older checkpoint turns it off again, and a device without fused kernels "
    "raises at the first step. For the last reason the fix writes `fused=torch.cuda.is_available()`. Only shown if "
    "torch may be too old: a requirement file allows a torch without the fused implementation (Adam 1.13, AdamW 2.0, "
    "SGD 2.3; 2.4 for a model that is moved to the GPU after its optimizer was created), or the project states no "
    "version and the optimizer is SGD or its model is moved so late. Also only shown if gradients are read after "
    "`scaler.step(optimizer)` without `scaler.unscale_` before it: the fused step removes the scale inside its "
    "kernel, and the gradients themselves stay scaled. No fix is offered if the file creates complex or sparse "
    "parameters.",
    probe=Probe(
        "optimizer-kernels",
        "no fused kernel ran in the optimizer's step",
        device_bound=True,
        experiment="fused-optimizer",
    ),
)

RULES = (OPTIMIZER_NOT_FUSED,)
