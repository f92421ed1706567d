"""TF32 and bfloat16: the flags, the arithmetic, and the speedup."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldlm_lint.evidence.model import Measurement
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.judging import arms_of, compared, seen
from ldlm_lint.probe.micro.sampling import Build, compute_clock, sample

_SIZES = {"cpu": 384, "cuda": 4096}
# A product of float32 is right to about 3e-7 of its largest element, one of TF32 to about 1e-3.
_TF32_ERROR = 3e-5
_MIXED = "after fp32_precision was set, the older flag allow_tf32 raises when it is read"
_TF32 = "float32 products are done in TF32 once it is chosen, and take less time"
_BFLOAT16 = "small gradients that vanish in float16 without a GradScaler survive in bfloat16"


def run(context: Context) -> None:
    """Judge the three rules; flags are restored, although this process ends with the experiment."""
    flags = _flags(context.torch)
    context.observe("flags", flags)
    _mixed(context)
    _gradients(context)
    _tf32(context)


def error(context: Context) -> float:
    """The largest error of a float32 product on the device, as a share of its largest element."""
    torch = context.torch
    draw = torch.Generator().manual_seed(context.seed)
    x, y = (torch.randn(512, 512, generator=draw) for _ in range(2))
    exact = x.double() @ y.double()
    found = (x.to(context.device) @ y.to(context.device)).cpu().double()
    return float((found - exact).abs().max() / exact.abs().max())


def _flags(torch: Any) -> dict[str, str]:
    """The current flags, each through a readable interface: the older one raises once the newer was used."""
    found = {}
    for name, place in (("matmul", torch.backends.cuda.matmul), ("cudnn", torch.backends.cudnn)):
        for flag in ("fp32_precision", "allow_tf32"):
            try:
                found[f"{name}.{flag}"] = str(getattr(place, flag))
            except (AttributeError, RuntimeError) as reason:
                found[f"{name}.{flag}"] = f"cannot be read ({str(reason).splitlines()[0]})"
    return found


def _mixed(context: Context) -> None:
    """Structure alone, the same on each device: the effect of reading the older flag after setting the newer."""
    matmul = context.torch.backends.cuda.matmul
    before = getattr(matmul, "fp32_precision", None)
    if before is None:
        said = f"torch {context.torch.__version__} has no fp32_precision, so the two cannot be mixed"
        context.judge(seen(context, "mixed-tf32-apis", _MIXED, None, said))
        return
    matmul.fp32_precision = "tf32"
    try:
        value = matmul.allow_tf32
    except RuntimeError as raised:
        holds, said = True, f"reading allow_tf32 raised RuntimeError: {str(raised).splitlines()[0]}"
    else:
        holds, said = False, f"reading allow_tf32 gave {value}"
    finally:
        matmul.fp32_precision = before
    context.judge(seen(context, "mixed-tf32-apis", _MIXED, holds, said))


def _gradients(context: Context) -> None:
    """Gradients of a float16 and of a bfloat16 autocast, without a scaler; and how fast bfloat16 is."""
    torch = context.torch
    half, brain = (_share_of_zeros(torch, context.device, dtype) for dtype in (torch.float16, torch.bfloat16))
    arms = {"float32": _product(context, "float32"), "bfloat16": _product(context, "bfloat16")}
    clock = compute_clock(torch, context.device)
    end = context.end - 0.5 * context.left
    timing = sample(arms_of(context, arms, "float32"), clock, seed=context.seed, end=end)
    speed = compared(context, "grad-scaler-with-bfloat16", "", timing, "float32", "bfloat16")
    if context.same:
        context.judge(speed)
        return
    if half is None or brain is None:
        said = f"this torch has no autocast to float16 or to bfloat16 on {context.device}"
        context.judge(seen(context, "grad-scaler-with-bfloat16", _BFLOAT16, None, said))
        return
    detail: dict[str, Any] = {"zero_gradients": {"float16": half, "bfloat16": brain}}
    if speed.measured:
        detail["float32_over_bfloat16"] = {"ratio": speed.measured.value, "ci95": speed.measured.ci95}
    measured = Measurement("gradients that vanished", 100 * brain, "%", detail=detail)
    said = f"{100 * half:.0f} % of the gradients vanished in float16, {100 * brain:.0f} % in bfloat16"
    if speed.measured and speed.measured.value:
        said += f"; a float32 product takes {speed.measured.value:.2f} times as long as one of bfloat16 here"
    holds = brain < 0.01 < half
    context.judge(seen(context, "grad-scaler-with-bfloat16", _BFLOAT16, holds, said, measured))


def _share_of_zeros(torch: Any, device: str, dtype: Any) -> float | None:
    """The share of zeros among a layer's gradients under autocast if all are small (about 1e-9) and not zero.

    None if this torch has no autocast of that type on the device (float16 on a CPU before torch 2.2).
    """
    draw = torch.Generator().manual_seed(0)
    layer = torch.nn.Linear(64, 64, bias=False).to(device)
    batch = torch.randn(32, 64, generator=draw).to(device)
    with torch.autocast(device, dtype=dtype):
        out = layer(batch)
        if out.dtype != dtype:
            return None
        (out.float() * 1e-10).sum().backward()
    return float((layer.weight.grad == 0).float().mean())


def _tf32(context: Context) -> None:
    """On CUDA with and without TF32; a CPU has none, and its behaviour is only reported."""
    torch = context.torch
    if context.device != "cuda":
        found = error(context)
        said = f"no TF32 here: the error of a float32 product is {found:.1e} of its largest element"
        measured = Measurement("largest relative error", found)
        context.judge(seen(context, "tf32-disabled", _TF32, None, said, measured))
        return
    errors = {}
    for name, precision in (("float32", "highest"), ("tf32", "high")):
        torch.set_float32_matmul_precision(precision)
        errors[name] = error(context)
    arms = {
        name: _product(context, "float32", precision) for name, precision in (("float32", "highest"), ("tf32", "high"))
    }
    clock = compute_clock(torch, context.device)
    timing = sample(arms_of(context, arms, "float32"), clock, seed=context.seed, end=context.end)
    judgement = compared(context, "tf32-disabled", _TF32, timing, "float32", "tf32", detail={"errors": errors})
    effective = errors["tf32"] > _TF32_ERROR > errors["float32"]
    if effective or context.same:
        context.judge(judgement)
        return
    said = f"TF32 was chosen, but a product's error is {errors['tf32']:.1e} ({errors['float32']:.1e} without)"
    context.judge(seen(context, "tf32-disabled", _TF32, None, f"{said}; {judgement.reason}", judgement.measured))


def _product(context: Context, dtype: str, precision: str = "") -> Build:
    torch = context.torch

    def build() -> Callable[[], Any]:
        size = _SIZES[context.device]
        x, y = (torch.randn(size, size, device=context.device, dtype=getattr(torch, dtype)) for _ in range(2))

        def call() -> Any:
            if precision:
                torch.set_float32_matmul_precision(precision)
            return x @ y

        return call

    return build
