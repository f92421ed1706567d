"""Family 75, memory and host time: checkpointed segments, and parameters that are frozen and unfrozen."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Probe, Reference, Rule

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

REQUIRES_GRAD_TOGGLED_PER_STEP = Rule(
    code="W7501",
    symbol="requires-grad-toggled-per-step",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`requires_grad` of %(target)s is set %(where)s, but DDP fixed which gradients it averages when it wrapped the "
    "model: only `find_unused_parameters=True`, which searches the graph in every step, allows that; freeze before wrapping",
    summary="Parameters that are frozen or unfrozen inside `forward` or a training step.",
    rationale="DDP registers the parameters that require gradients when it wraps the model. A parameter that is "
    "frozen later gets no gradient, and the next forward pass raises unless `find_unused_parameters=True` searches "
    "the graph in every iteration. A parameter that was frozen when the model was wrapped and is unfrozen later is "
    "never reduced, so the ranks silently drift apart. Ranks that draw different modes need different gradients, and "
    "`static_graph=True` allows no change at all.",
    cost="A forced `find_unused_parameters=True`, and the loop over the parameters: 1.3 ms per 1000 parameters and "
    "step (measured on CPU). Under `torch.compile` a changed `requires_grad` is a reason to compile again.",
    exceptions="Adversarial training that takes turns is not reported: each network is wrapped separately and frozen "
    "as a whole while the other one trains, which DDP supports; so are phases of one loop, if they switch whole wrapped "
    "models. Freezing once, before DDP wraps the model, is correct. Input tensors that need a gradient are fine.",
    versions="All versions of torch.",
    verification="Run with `TORCH_DISTRIBUTED_DEBUG=INFO`, which names parameters without gradients, and compare a "
    "checksum of the parameters over the ranks after a few steps.",
    references=(
        Reference(
            "DistributedDataParallel", "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
        ),
        Reference("Distributed Data Parallel: internal design", "https://docs.pytorch.org/docs/stable/notes/ddp.html"),
    ),
    reads=("py",),
    triggers=(b"requires_grad", b"toggle_grad", b"set_trainable", b"freez"),
    confidence=Confidence.MEDIUM,
    probe=Probe(
        "trainable-parameters",
        "the set of parameters that require gradients changes between steps",
        whole_run=True,
    ),
)

RULES = (CHECKPOINT_WITHOUT_USE_REENTRANT, REQUIRES_GRAD_TOGGLED_PER_STEP)
