"""Family 73: gradients that are filled with zeros although they could be freed."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Frequency, Probe, Reference, Rule

GRADIENTS_KEPT_AS_ZEROS = Rule(
    code="R7311",
    symbol="gradients-kept-as-zeros",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="`set_to_none=False` keeps all gradients allocated and fills them with zeros, which takes memory and one "
    "more pass over all gradients in every step: drop it, so that `zero_grad()` frees the gradients",
    summary="`zero_grad(set_to_none=False)`, which has not been torch's default since torch 2.0.",
    rationale="Since torch 2.0 `zero_grad()` sets the gradients to None: their memory is free during the next forward "
    "pass, and the first backward pass writes them instead of adding to zeros. With `set_to_none=False` one kernel "
    "fills all gradients with zeros, and another reads and adds although a write would do. It also changes the "
    "training: a parameter that took no part in a step has a gradient of zeros, so momentum and weight decay still "
    "move it, while the optimizer skips a gradient of None.",
    cost="Memory of one copy of the parameters during the forward pass, and two sweeps over this memory in each step.",
    exceptions="Code that reads `.grad` before a backward pass, or that reduces gradients by hand and expects one "
    "on each rank; captured CUDA graphs, which write to fixed addresses (a file that captures one is not reported).",
    versions="torch 2.0 to 2.13, in which the default is `True`. Before 2.0 `set_to_none=False` is the default.",
    verification="Look at `parameter.grad` after `zero_grad()`, and compare `torch.cuda.memory_allocated()` there.",
    references=(
        Reference(
            "torch.optim.Optimizer.zero_grad",
            "https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.zero_grad.html",
        ),
        Reference(
            "Performance tuning guide: use parameter.grad = None instead of zero_grad",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
    ),
    reads=("py",),
    needs="zero_grad(set_to_none=True) by default",
    triggers=(b"set_to_none", b"zero_grad(False"),
    requires=((b"zero_grad",),),
    silencers=(b"CUDAGraph", b"make_graphed_callables", b"cuda.graph("),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: the code asks for zeros. Without them `.grad` is `None` between the steps, and parameters that take no part in a step are skipped "
    "by the optimizer instead of being moved by momentum and weight decay.",
    probe=Probe("gradients-after-zero-grad", "gradients are tensors of zeros after zero_grad()"),
)

RULES = (GRADIENTS_KEPT_AS_ZEROS,)
