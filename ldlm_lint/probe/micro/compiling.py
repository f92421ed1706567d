"""torch.compile: whether it works here, whether it helps, and when its errors are raised."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from ldlm_lint.evidence.model import Measurement
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.judging import arms_of, compared, seen
from ldlm_lint.probe.micro.sampling import Build, compute_clock, sample

_RULE = "compile-guarded-by-try"
_LATE = "torch.compile(model) returns before anything is compiled: its errors are raised at the first call"
_WORKS = "torch.compile works on this machine"
_HELPS = "a compiled model is faster than an eager one"
# Compilation has to earn more than the noise: it costs seconds to minutes at each start and each new shape.
_BAR = 1.1
# The loss is about 1; float32 sums in another order differ by some 1e-6, TF32 by 1e-3.
_TOLERANCE = 1e-2
_SIZES = {"cpu": (256, 512), "cuda": (8192, 1024)}


def run(context: Context) -> None:
    """Judge three claims, each by itself; the last two are about the machine, not a rule."""
    # With the user's cache, compilation would seem to work because of cached results.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(context.scratch, "inductor")
    if context.same:
        _helps(context, _build(context, None), {})
        return
    _late(context)
    compiled, detail = _works(context)
    if compiled is not None:
        _helps(context, compiled, detail)


def _late(context: Context) -> None:
    """A backend that always fails shows where the error is raised; nothing is compiled."""
    torch = context.torch
    if not hasattr(torch, "compile"):
        context.judge(seen(context, _RULE, _LATE, None, f"torch {torch.__version__} has no torch.compile"))
        return

    def fails(graph: Any, inputs: Any) -> Any:
        raise RuntimeError("no compiler")

    try:
        model = torch.compile(torch.nn.Linear(2, 2), backend=fails)
    except Exception as error:  # any type: the claim is that none is raised here
        context.judge(seen(context, _RULE, _LATE, False, f"torch.compile itself raised {type(error).__name__}"))
        return
    try:
        model(torch.ones(1, 2))
    except Exception as error:  # dynamo wraps the backend's error in its own
        said = f"a backend that fails: torch.compile returned, the first call raised {type(error).__name__}"
        context.judge(seen(context, _RULE, _LATE, True, said))
        return
    context.judge(seen(context, _RULE, _LATE, False, "a backend that fails, but no error at the first call"))


def _works(context: Context) -> tuple[Build | None, dict[str, Any]]:
    """A compiled training step and its time; None if it failed, with the reason reported."""
    torch = context.torch
    if not hasattr(torch, "compile"):
        return None, {}
    if context.device == "cpu":
        torch.set_num_threads(1)
    began = time.perf_counter()
    step = _step(context, torch.compile)
    eager = _step(context, None)
    try:
        difference = float((step() - eager()).abs())
    except Exception as error:  # InductorError, BackendCompilerFailed, InvalidCxxCompiler: by version of torch
        context.judge(seen(context, "", _WORKS, False, f"it failed: {type(error).__name__}: {_last_line(error)}"))
        return None, {}
    seconds = time.perf_counter() - began
    detail = {"seconds": round(seconds, 2), "loss_difference": difference, **_counters(torch), "compiler": _compiler()}
    said = f"a model was compiled for training in {seconds:.1f} s (graphs: {detail['unique_graphs']}, "
    said += f"breaks: {detail['graph_breaks']}), its loss differs from the eager one's by {difference:.1e}"
    measured = Measurement("seconds to compile", seconds, "s", detail=detail)
    context.judge(seen(context, "", _WORKS, difference < _TOLERANCE, said, measured))
    return (lambda: step), detail


def _helps(context: Context, compiled: Build, detail: dict[str, Any]) -> None:
    clock = compute_clock(context.torch, context.device)
    arms = {"eager": _build(context, None), "compiled": compiled}
    timing = sample(arms_of(context, arms, "eager"), clock, seed=context.seed, end=context.end)
    rows, width = _SIZES[context.device]
    stand_in = f"a training step of two layers with a GELU written out between them, {rows} x {width}"
    context.judge(
        compared(context, "", _HELPS, timing, "eager", "compiled", bar=_BAR, stand_in=stand_in, detail=detail)
    )


def _build(context: Context, compile: Callable[[Any], Any] | None) -> Build:
    return lambda: _step(context, compile)


def _step(context: Context, compile: Callable[[Any], Any] | None) -> Callable[[], Any]:
    torch = context.torch
    rows, width = _SIZES[context.device]
    torch.manual_seed(context.seed)
    model = _network(torch, width).to(context.device)
    forward = compile(model) if compile else model
    batch = torch.randn(rows, width, device=context.device)

    def step() -> Any:
        model.zero_grad(set_to_none=True)
        loss = forward(batch).square().mean()
        loss.backward()
        return loss.detach()

    return step


def _network(torch: Any, width: int) -> Any:
    class Network(torch.nn.Module):
        """Two layers around a chain of elementwise operations: fusible work with few kernels to compile."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = torch.nn.Linear(width, width), torch.nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            h = self.first(x)
            return x + self.last(0.5 * h * (1 + torch.tanh(0.79788456 * (h + 0.044715 * h * h * h))))

    return Network()


def _counters(torch: Any) -> dict[str, int]:
    """Graphs and breaks by names that torch does not promise; -1 where this torch has others."""
    try:
        from torch._dynamo.utils import counters
    except ImportError:
        return {"unique_graphs": -1, "graph_breaks": -1}
    # Dynamo counts the graph of `_late` too, whose backend failed; it adds none here.
    return {
        "unique_graphs": int(counters["stats"].get("unique_graphs", -1)),
        "graph_breaks": sum(counters["graph_break"].values()),
    }


def _compiler() -> str:
    try:
        from torch._inductor.cpp_builder import get_cpp_compiler

        return str(get_cpp_compiler())
    except Exception as error:  # ImportError of another version, InvalidCxxCompiler where there is none
        return f"none ({type(error).__name__})"


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if "compiler" in line.lower()), lines[0] if lines else "")[:200]
