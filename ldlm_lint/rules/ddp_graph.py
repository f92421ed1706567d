"""Family 72: what DDP allows a model and its parameters to do."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Fix, Probe, Reference, Rule

_DDP = Reference(
    "DistributedDataParallel",
    "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
)
_DESIGN = Reference("Distributed Data Parallel: internal design", "https://docs.pytorch.org/docs/stable/notes/ddp.html")

STATIC_GRAPH_WITH_NO_SYNC = Rule(
    code="E7229",
    symbol="static-graph-with-no-sync",
    consequence=Consequence.CRASH,
    message="`static_graph=True` and %(accumulation)s in the first iteration end in an internal assertion of DDP: leave "
    "`static_graph` out, or synchronize the first backward pass",
    summary="DDP with `static_graph=True`, and `no_sync()` from the first backward pass on.",
    rationale="With a static graph DDP records in the first iteration which gradients arrive, and launches its reduction at the end of that "
    "backward pass. `no_sync()`, which gradient accumulation uses for all micro-batches but the last, leaves out what this recording "
    "needs: the first backward pass that is synchronised afterwards fails. After one synchronised iteration the two go together.",
    cost="`RuntimeError: expect_autograd_hooks_ INTERNAL ASSERT FAILED` in the first step. Without the assertion gradients would "
    "silently not be reduced (pytorch#143580).",
    exceptions="A first iteration that is synchronised, such as `no_sync()` from the second step on; `no_sync()` around an evaluation without "
    "gradients; always one micro-batch to a step.",
    versions="Shown with torch 2.13; reported from torch 2.2 on, and open.",
    verification="Run two micro-batches on one process with gloo: it fails in the second.",
    references=(
        _DDP,
        Reference("pytorch#143580", "https://github.com/pytorch/pytorch/issues/143580"),
        Reference("accelerate#3679", "https://github.com/huggingface/accelerate/issues/3679"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(b"static_graph",),
    setting_triggers=(b"static_graph", b"static-graph"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: without the flag a parameter that gets no gradient, and a layer that is checkpointed twice, are errors.",
)

STATIC_GRAPH_WITH_DYNAMIC_MODEL = Rule(
    code="E7230",
    symbol="static-graph-with-dynamic-model",
    consequence=Consequence.CRASH,
    message="`static_graph=True` promises that every step uses the same parameters, but `%(model)s` runs other layers from "
    "step to step: DDP raises as soon as the set of used parameters changes; leave `static_graph` out",
    summary="DDP with `static_graph=True` around a model whose forward pass runs other layers from step to step.",
    rationale="With `static_graph=True` DDP records in the first iteration which parameters get a gradient, and how often, and relies on it "
    "from then on. A forward pass that skips layers at random (layer-drop, stochastic depth by a branch, modes that are drawn) "
    "or freezes parameters uses others in a later step.",
    cost="`RuntimeError: Your training graph has changed in this iteration` in the first step that differs.",
    exceptions="A branch on a setting that never changes during a run; both branches use the same parameters; the drawn path only scales a "
    "result. What the branches hold is not compared, therefore the rule is not on by default.",
    versions="torch 2.0 to 2.13.",
    verification="Train for some steps with `TORCH_DISTRIBUTED_DEBUG=INFO`, and compare the names of the parameters whose `.grad` is None.",
    references=(_DDP, _DESIGN),
    reads=("py",),
    triggers=(b"static_graph",),
    confidence=Confidence.LOW,
    default=False,
)

FIND_UNUSED_WITH_REENTRANT_CHECKPOINT = Rule(
    code="E7231",
    symbol="find-unused-with-reentrant-checkpoint",
    consequence=Consequence.CRASH,
    message="`find_unused_parameters=True` makes DDP count the parameters of %(where)s as unused, but their gradients "
    "arrive later: DDP raises in the backward pass; pass `use_reentrant=False` to the checkpoint",
    summary="`find_unused_parameters=True` around a model that uses reentrant activation checkpointing.",
    rationale="With the flag DDP walks the autograd graph of the forward pass and marks every parameter that it does not find as ready. A "
    "reentrant segment computes its part of the graph in the backward pass only, so its parameters are not found, are marked, and "
    "are marked again when their gradients arrive. Checkpointing with `use_reentrant=False` records the graph in the forward pass.",
    cost="`RuntimeError: Expected to mark a variable ready only once` in the first backward pass in which checkpointing is on.",
    exceptions="`static_graph=True`, with which reentrant segments work. Checkpointing that is never switched on together with DDP.",
    versions="torch 2.0 to 2.13: in all of them `checkpoint()` without `use_reentrant` is reentrant. The switch of transformers is reentrant "
    "by default before transformers 5.",
    verification="Run one training step on one process with gloo.",
    references=(
        _DDP,
        Reference("torch.utils.checkpoint", "https://docs.pytorch.org/docs/stable/checkpoint.html"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(),
    setting_triggers=(b"find_unused_parameters", b"find-unused-parameters"),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it changes the implementation of every reentrant checkpoint of the model, in whatever file. Gradients that were "
    "silently missing appear, and a segment that saves other tensors when it is computed again raises. Shown only where the "
    "implementation is not chosen by a literal in the call.",
)

PARAMETERS_FROZEN_AFTER_WRAP = Rule(
    code="E7232",
    symbol="parameters-frozen-after-wrap",
    consequence=Consequence.CRASH,
    message="%(target)s is %(change)s after DDP wrapped the model: %(effect)s; do it before wrapping, or wrap the model again",
    summary="Part of a model is frozen or unfrozen after DDP has wrapped it.",
    rationale="DDP registers the parameters that require gradients when it wraps a model, and never looks again. One that is frozen later "
    "gets no gradient although DDP waits for it; one that was frozen at that time and is unfrozen later has no hook, so that each "
    "rank updates it by its own gradient.",
    cost="Frozen later: `RuntimeError: Expected to have finished reduction in the prior iteration` in the second step. Unfrozen later: no "
    "error, and parameters that drift apart between the ranks.",
    exceptions="Freezing a whole network, such as a teacher or the adversary whose turn it is not. Freezing with "
    "`find_unused_parameters=True`, or before the first forward pass with `static_graph=True`. What happens in every step is "
    "requires-grad-toggled-per-step.",
    versions="torch 2.0 to 2.13.",
    verification="Compare a checksum of the parameters over the ranks after some steps; two processes with gloo on a CPU are enough.",
    references=(_DDP, _DESIGN),
    reads=("py",),
    triggers=(b"requires_grad", b"freez", b"set_trainable", b"toggle_grad"),
    confidence=Confidence.MEDIUM,
    probe=Probe("trainable-parameters", "parameters were frozen after DDP had wrapped them"),
)

RULES = (
    STATIC_GRAPH_WITH_NO_SYNC,
    STATIC_GRAPH_WITH_DYNAMIC_MODEL,
    FIND_UNUSED_WITH_REENTRANT_CHECKPOINT,
    PARAMETERS_FROZEN_AFTER_WRAP,
)

CHECKPOINT_FIX = Fix(
    "pass use_reentrant=False to the checkpoint, or in gradient_checkpointing_kwargs",
    (),
    Applicability.DISPLAY,
    "the call does not spell out what chooses the implementation",
)
"""What to do where the call that is reentrant is in another file than the finding."""
