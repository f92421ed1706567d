"""Family 75, memory and host time: checkpointed segments, and parameters that are frozen and unfrozen."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Reference, Rule

CHECKPOINT_WITHOUT_USE_REENTRANT = Rule(
    code="W7503",
    symbol="checkpoint-without-use-reentrant",
    consequence=Consequence.DEPRECATED,
    message="`%(function)s()` without `use_reentrant` falls back to the reentrant implementation, which silently drops "
    "gradients when no tensor input requires one and rejects keyword arguments: pass `use_reentrant=False`",
    summary="`torch.utils.checkpoint` without the `use_reentrant` argument.",
    rationale="The default is the old, reentrant implementation. It gives the parameters of the segment no gradients "
    "if none of its tensor arguments requires one (after a frozen embedding). It does not see tensors inside tuples, "
    "lists and dictionaries, and takes no keyword arguments for the function. Under DDP it fails with "
    "`find_unused_parameters=True` or, for a layer used twice, silently computes wrong gradients. The non-reentrant "
    "implementation has none of these limits.",
    cost="A warning in each process, and missing gradients in the cases above. Speed is not the point: the difference "
    "in time and memory was not measured.",
    exceptions="Code that needs the reentrant implementation, such as a segment that saves other tensors when it is "
    "recomputed. Then pass `use_reentrant=True`, which keeps today's behavior explicitly.",
    versions="torch 2.1 to 2.13 warn; torch 2.0 silently uses the reentrant implementation. The warning has announced "
    "an error for several versions, but 2.13 still only warns.",
    verification="Run with `python -W error::UserWarning`, or compare the gradients of all parameters with checkpointing on and off.",
    references=(
        Reference("torch.utils.checkpoint", "https://docs.pytorch.org/docs/stable/checkpoint.html"),
        Reference(
            "Activation checkpointing techniques in PyTorch", "https://pytorch.org/blog/activation-checkpointing-techniques/"
        ),
    ),
    reads=("py",),
    needs="checkpoint(use_reentrant=)",
    triggers=(b"utils.checkpoint", b"from torch.utils import"),
    requires=((b"checkpoint",),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it changes the implementation. A segment that saves other tensors when it is recomputed "
    "raises, and gradients that were silently missing appear. `use_reentrant=True` would be safe, but would keep the "
    "defect: write it yourself if you need it.",
)

RULES = (CHECKPOINT_WITHOUT_USE_REENTRANT,)
