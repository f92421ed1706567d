"""Family 72: constraints of DDP on a model and its parameters."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Probe, Reference, Rule

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
    rationale="With a static graph DDP records in the first iteration which gradients arrive, and starts its "
    "reduction at the end of that backward pass. Gradient accumulation runs all micro-batches except the last under "
    "`no_sync()`, which skips what this recording needs: the first synchronized backward pass after it fails. After "
    "one synchronized iteration the two work together.",
    cost="`RuntimeError: expect_autograd_hooks_ INTERNAL ASSERT FAILED` in the first step. Without the assertion gradients would "
    "silently not be reduced (pytorch#143580).",
    exceptions="A first iteration that is synchronized, such as `no_sync()` from the second step on; `no_sync()` "
    "around an evaluation without gradients; always one micro-batch per step.",
    versions="Shown with torch 2.13; reported to PyTorch since torch 2.2 and still open.",
    verification="Run two micro-batches on one process with gloo: the second one fails.",
    references=(
        _DDP,
        Reference("pytorch#143580", "https://github.com/pytorch/pytorch/issues/143580"),
        Reference("accelerate#3679", "https://github.com/huggingface/accelerate/issues/3679"),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(b"static_graph",),
    setting_triggers=(b"static_graph", b"static-graph"),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: without the flag, a parameter that gets no gradient and a layer that is checkpointed twice "
    "are errors.",
    overrides="DDP raises or computes wrong gradients with it",
)

STATIC_GRAPH_WITH_DYNAMIC_MODEL = Rule(
    code="E7230",
    symbol="static-graph-with-dynamic-model",
    consequence=Consequence.CRASH,
    message="`static_graph=True` promises that every step uses the same parameters, but `%(model)s` runs different "
    "layers from step to step: DDP raises as soon as the set of used parameters changes; leave `static_graph` out",
    summary="DDP with `static_graph=True` around a model whose forward pass runs different layers from step to step.",
    rationale="With `static_graph=True` DDP records in the first iteration which parameters get a gradient, and how "
    "often, and relies on it from then on. A forward pass that skips layers at random (layer-drop, stochastic depth "
    "by a branch, modes drawn at random) or freezes parameters uses different parameters in a later step.",
    cost="`RuntimeError: Your training graph has changed in this iteration` in the first step that differs.",
    exceptions="A branch on a setting that never changes during a run; branches that use the same parameters; a "
    "random path that only scales a result. The rule does not compare the contents of the branches, so it is off by "
    "default.",
    versions="torch 2.0 to 2.13.",
    verification="Train for a few steps with `TORCH_DISTRIBUTED_DEBUG=INFO`, and compare the names of the parameters "
    "whose `.grad` is `None`.",
    references=(_DDP, _DESIGN),
    reads=("py",),
    triggers=(b"static_graph",),
    confidence=Confidence.LOW,
    default=False,
)

PARAMETERS_FROZEN_AFTER_WRAP = Rule(
    code="E7232",
    symbol="parameters-frozen-after-wrap",
    consequence=Consequence.CRASH,
    message="%(target)s is %(change)s after DDP wrapped the model: %(effect)s; do it before wrapping, or wrap the model again",
    summary="Part of a model is frozen or unfrozen after DDP has wrapped it.",
    rationale="DDP registers the parameters that require gradients when it wraps a model, and does not check again. A "
    "parameter that is frozen later gets no gradient, although DDP waits for it. A parameter that is unfrozen later "
    "has no hook, so each rank updates it with its own gradient.",
    cost="Frozen later: `RuntimeError: Expected to have finished reduction in the prior iteration` in the second step. Unfrozen later: no "
    "error, and parameters that drift apart between the ranks.",
    exceptions="Freezing a whole network, such as a teacher, or the adversary that does not train in this step. "
    "Freezing with `find_unused_parameters=True`, or before the first forward pass with `static_graph=True`. Changes "
    "in every step are reported as requires-grad-toggled-per-step.",
    versions="torch 2.0 to 2.13.",
    verification="Compare a checksum of the parameters over the ranks after a few steps; two processes with gloo on a "
    "CPU are enough.",
    references=(_DDP, _DESIGN),
    reads=("py",),
    triggers=(b"requires_grad", b"freez", b"set_trainable", b"toggle_grad"),
    confidence=Confidence.MEDIUM,
    probe=Probe("trainable-parameters", "parameters were frozen after DDP had wrapped them"),
)

RULES = (
    STATIC_GRAPH_WITH_NO_SYNC,
    STATIC_GRAPH_WITH_DYNAMIC_MODEL,
    PARAMETERS_FROZEN_AFTER_WRAP,
)
