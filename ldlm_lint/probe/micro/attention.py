"""The backend of scaled_dot_product_attention, compared with hand-written attention (matrix products and a softmax)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldlm_lint.evidence.model import Verdict
from ldlm_lint.probe.micro import profiles
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.judging import arms_of, compared
from ldlm_lint.probe.micro.sampling import Build, compute_clock, sample

_RULE = "unfused-attention"
_CLAIM = (
    "scaled_dot_product_attention runs a fused kernel here, and takes less time and memory than softmax written out"
)
_SHAPES = {"cpu": (1, 4, 512, 64), "cuda": (4, 16, 1024, 64)}


def run(context: Context) -> None:
    """Ask for the backend of usual inputs, time forward and backward, and judge."""
    chosen = backends(context)
    context.observe("backends", chosen)
    dtype = "bfloat16" if context.device == "cuda" else "float32"
    arms = {"written-out": _build(context, _written_out, dtype), "sdpa": _build(context, _sdpa, dtype)}
    peaks = {name: profiles.peak_bytes(context.torch, build(), context.device) for name, build in arms.items()}
    clock = compute_clock(context.torch, context.device)
    timing = sample(arms_of(context, arms, "written-out"), clock, seed=context.seed, end=context.end)
    detail = {"backends": chosen, "peak_bytes": peaks, "shape": _SHAPES[context.device], "dtype": dtype}
    judgement = compared(context, _RULE, _CLAIM, timing, "written-out", "sdpa", detail=detail)
    context.judge(_with_backend(judgement, chosen[f"{dtype}, causal"]))


def backends(context: Context) -> dict[str, str]:
    """The backend that SDPA selects for usual inputs, as text, by a name of the inputs."""
    cases: dict[str, tuple[str, dict[str, Any]]] = {}
    for dtype in ("float32", "bfloat16"):
        cases[f"{dtype}, causal"] = (dtype, {"is_causal": True})
        cases[f"{dtype}, boolean mask"] = (dtype, {"mask": "bool"})
        cases[f"{dtype}, float mask with gradient"] = (dtype, {"mask": "float"})
        cases[f"{dtype}, dropout"] = (dtype, {"is_causal": True, "dropout_p": 0.1})
    return {name: _selected(context, dtype, options) for name, (dtype, options) in cases.items()}


def _selected(context: Context, dtype: str, options: dict[str, Any]) -> str:
    """The operator that a call runs, as its profile shows it."""
    torch = context.torch
    q, k, v = _inputs(context, dtype)
    length = q.shape[2]
    masks = {
        "bool": lambda: torch.ones(length, length, dtype=torch.bool, device=context.device).tril(),
        "float": lambda: torch.zeros(length, length, dtype=q.dtype, device=context.device, requires_grad=True),
    }
    given = {key: value for key, value in options.items() if key != "mask"}
    if "mask" in options:
        given["attn_mask"] = masks[options["mask"]]()
    attend = torch.nn.functional.scaled_dot_product_attention
    try:
        profile = profiles.profiled(torch, lambda: attend(q, k, v, **given), context.device)
    except RuntimeError as error:
        return f"none ({str(error).splitlines()[0]})"
    names = [row.key for row in profile.key_averages()]
    return next(
        (word for word in ("cudnn", "flash", "efficient", "overrideable", "math") if _ran(word, names)), "unknown"
    )


def _ran(word: str, names: list[str]) -> bool:
    return any(name.startswith(("aten::_scaled_dot_product_", "aten::_fused_sdp")) and word in name for name in names)


def _with_backend(judgement: Any, backend: str) -> Any:
    """Time alone does not prove a fused kernel: if SDPA falls back to `math`, the claim is false here."""
    import dataclasses

    reason = f"{judgement.reason}; the selected backend is {backend}"
    if backend in ("math", "unknown") or backend.startswith("none"):
        return dataclasses.replace(judgement, verdict=Verdict.INCONCLUSIVE, reason=reason)
    return dataclasses.replace(judgement, reason=reason)


def _inputs(context: Context, dtype: str) -> list[Any]:
    torch = context.torch
    shape = _SHAPES[context.device]
    kind = getattr(torch, dtype)
    return [torch.randn(shape, device=context.device, dtype=kind, requires_grad=True) for _ in range(3)]


def _build(context: Context, attend: Callable[..., Any], dtype: str) -> Build:
    def build() -> Callable[[], None]:
        q, k, v = _inputs(context, dtype)

        def call() -> None:
            attend(context.torch, q, k, v).sum().backward()

        return call

    return build


def _sdpa(torch: Any, q: Any, k: Any, v: Any) -> Any:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _written_out(torch: Any, q: Any, k: Any, v: Any) -> Any:
    length = q.shape[2]
    hidden = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(-2, -1)) * q.shape[-1] ** -0.5
    return scores.masked_fill(hidden, float("-inf")).softmax(-1) @ v
