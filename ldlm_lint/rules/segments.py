"""Family 75: segments of activation checkpointing that fail, do not train or save no memory."""

from __future__ import annotations

from collections.abc import Sequence

from ldlm_lint.model import Applicability, Confidence, Consequence, Fix, Frequency, Probe, Reference, Rule
from ldlm_lint.wording import quoted

_CHECKPOINT = Reference("torch.utils.checkpoint", "https://docs.pytorch.org/docs/stable/checkpoint.html")
_TECHNIQUES = Reference(
    "Activation checkpointing techniques in PyTorch", "https://pytorch.org/blog/activation-checkpointing-techniques/"
)
_IMPORTS = (b"utils.checkpoint", b"from torch.utils import")
FLAG = "checkpoint(use_reentrant=)"
NON_REENTRANT = "another implementation computes the backward pass, and gradients that were silently missing appear"

REENTRANT_CHECKPOINT_MISUSE = Rule(
    code="E7504",
    symbol="reentrant-checkpoint-misuse",
    consequence=Consequence.CRASH,
    message="%(problem)s; %(advice)s",
    summary="A reentrant checkpoint (`use_reentrant=True` or omitted) with arguments that it cannot handle.",
    rationale="The reentrant implementation is an autograd function of its positional tensors. Keyword arguments for "
    "the checkpointed function, `context_fn` and `debug=True` raise a ValueError. Tensors inside a tuple, list or "
    "dictionary are not inputs of that function, so no gradient flows back through them. If no tensor input requires "
    "a gradient at all, such as the output of a frozen embedding, the output requires none and the parameters of the "
    "segment silently get no gradients.",
    cost="An error in the first step, or parameters that never train, with at most a warning.",
    exceptions="Not reported: containers of sizes or masks only, inputs on which `requires_grad_()` was called, "
    "as `enable_input_require_grads()` of transformers does, and checkpoints under a switch that nothing in the project "
    "turns on.",
    versions="torch 2.0 to 2.13; omitting the flag still means the reentrant implementation in 2.13.",
    verification="Look for parameters whose `grad` is `None` after the first backward pass, with checkpointing on and "
    "off.",
    references=(_CHECKPOINT, _TECHNIQUES),
    reads=("py",),
    needs="checkpoint(use_reentrant=)",
    triggers=(b"checkpoint",),
    requires=(_IMPORTS,),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it changes the implementation. Parameters that got no gradients now train, and a segment that "
    "saves other tensors when it is recomputed raises. Keyword arguments are then passed to the function: if its "
    "signature does not accept them, or the project allows a torch before 1.11, which has no `use_reentrant`, nothing "
    "is changed and the reason is shown.",
    probe=Probe("gradients-of-segments", "parameters of a reentrant segment got no gradient"),
    overrides="the call raises or drops gradients with it",
)

WHOLE_MODEL_CHECKPOINT = Rule(
    code="W7505",
    symbol="whole-model-checkpoint",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="one checkpointed segment covers %(blocks)s in `self.%(model)s`, so its backward pass computes all their "
    "activations again at once and peak memory does not fall: checkpoint each of them instead",
    summary="A whole stack of blocks checkpointed as one segment.",
    rationale="The backward pass of a segment first computes all its activations again and then holds them together. "
    "If the one segment is the whole model, that is as much memory as without checkpointing, only a moment later, and "
    "one more forward pass. Many segments save memory, because one at a time is computed again: each block, or each "
    "few blocks.",
    cost="Time: about one more forward pass. Memory: 98.0 MiB peak for 24 layers in one segment, 98.0 without "
    "checkpointing, 52.1 with a segment per layer (measured).",
    exceptions="Not reported: a model of several such stacks, each a separate segment, and a stack that is itself one "
    "of many blocks.",
    versions="All versions of torch.",
    verification="Compare `torch.cuda.max_memory_allocated()` over one step, with and without it.",
    references=(_CHECKPOINT, _TECHNIQUES),
    reads=("py",),
    triggers=(b"checkpoint",),
    requires=(_IMPORTS,),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: removing the segment without checkpointing the blocks, which are called in another class, "
    "would save as little memory, only without the recomputation.",
    probe=Probe(
        "recomputed-blocks",
        "one checkpointed segment held a whole stack of blocks",
        experiment="activation-checkpointing",
        bound_experiment=True,
    ),
)

CHECKPOINT_KEYWORD_ONLY_CALLEE = Rule(
    code="E7506",
    symbol="checkpoint-keyword-only-callee",
    consequence=Consequence.CRASH,
    message="%(function)s takes %(names)s by keyword only, but `checkpoint()` passes its arguments by position: this call "
    "raises TypeError; pass them by keyword, with `use_reentrant=False`",
    summary="A checkpointed function with keyword-only parameters that gets its arguments by position.",
    rationale="`checkpoint(function, *args)` calls `function(*args)`. Parameters after a bare `*` in its signature "
    "cannot be passed by position, so a model that ran as `block(x=x, mask=mask)` fails as soon as its checkpointing "
    "is switched on. The non-reentrant implementation passes keyword arguments on: `checkpoint(block, x=x, mask=mask, "
    "use_reentrant=False)`.",
    cost="A TypeError in the first forward pass with checkpointing.",
    exceptions="Keyword-only parameters with a default that are left out are not reported.",
    versions="torch 2.0 to 2.13. Keyword arguments for the function need `use_reentrant=False`.",
    verification="Run one forward pass with checkpointing switched on, on a CPU.",
    references=(_CHECKPOINT,),
    reads=("py",),
    needs="checkpoint(use_reentrant=)",
    triggers=(b"checkpoint",),
    requires=(_IMPORTS,),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: code that raised now runs, with the non-reentrant implementation.",
    overrides="the call raises with it",
)


def not_taken(function: str, keywords: Sequence[str]) -> Fix:
    """The advice if a checkpointed function does not accept the passed keywords: no flag makes that call work."""
    names = ", ".join(keywords)
    reason = f"{function} cannot be called with {names}: with use_reentrant=False alone this line would raise TypeError"
    return Fix(f"call {function} as its signature allows, then set use_reentrant=False", (), Applicability.DISPLAY, reason)


PASS_THE_FLAG = "pass `use_reentrant=False`"


def other_call(function: str) -> str:
    """What to do if a checkpointed function does not accept what it is called with: the flag would only change the error."""
    return f"{quoted(function)} does not accept these arguments either, so call it as its signature allows: `use_reentrant=False` alone would only raise TypeError instead"


def unknown_callee(function: str, keywords: Sequence[str]) -> str:
    """Why the other implementation may not fix the error."""
    names = ", ".join(keywords) or "the keywords in `**`"
    return f"the line still raises if {function} does not take {names}, and its signature is not known"


RULES = (REENTRANT_CHECKPOINT_MISUSE, WHOLE_MODEL_CHECKPOINT, CHECKPOINT_KEYWORD_ONLY_CALLEE)
