"""Family 73: fused optimizers that fail, or are not fused in fact."""

from __future__ import annotations

from ldlm_lint import tables
from ldlm_lint.model import Applicability, Consequence, Frequency, Probe, Reference, Rule

# Constructors of torch.optim without a ``fused`` argument, as of torch 2.13; scripts that read the installed wheel find
# the same.
WITHOUT_FUSED = frozenset(
    f"torch.optim.{name}"
    for name in ("ASGD", "Adadelta", "Adafactor", "Adamax", "LBFGS", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop", "SparseAdam")
)
# The first torch release whose constructor has the argument.
FUSED_SINCE = {
    f"torch.optim.{name}": since
    for name in ("Adam", "AdamW", "SGD", "Adagrad")
    if (since := tables.fused_since(name)) is not None
}
# Since this release devices and types are checked in the first step, no longer in the constructor.
CHECKED_IN_STEP = (2, 5)

_ADAMW = Reference("torch.optim.AdamW", "https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html")
_SOURCE = Reference("torch.optim.Optimizer", "https://github.com/pytorch/pytorch/blob/main/torch/optim/optimizer.py")

FUSED_CONFLICT = Rule(
    code="E7302",
    symbol="fused-conflict",
    consequence=Consequence.CRASH,
    message="%(call)s raises %(problem)s",
    summary="A fused optimizer with an argument, a class or a Trainer that it cannot be combined with.",
    rationale="`fused` excludes `foreach` and `differentiable`: the constructor raises a RuntimeError. A class "
    "without a fused implementation (RMSprop, NAdam, RAdam, Adamax and others; SGD before torch 2.3, Adagrad before "
    "2.4) does not accept the argument and raises a TypeError. A fused optimizer unscales gradients itself, so "
    "Lightning cannot clip them in mixed precision and raises in the first step.",
    cost="Training does not start, or ends in its first step.",
    exceptions="Not reported: a `try` around the constructor that catches the error and continues without `fused`, "
    "and values that cannot be read from the file.",
    versions="torch 2.0 to 2.13; SGD and Adagrad are reported only if `target-torch` is older than their fused "
    "implementation. Lightning 2.x.",
    verification="Run the constructor on a CPU: it raises there too. Lightning's error names the optimizer and asks "
    "whether it is fused.",
    references=(
        _ADAMW,
        _SOURCE,
        Reference(
            "Lightning: MixedPrecision.clip_gradients",
            "https://github.com/Lightning-AI/pytorch-lightning/blob/master/src/lightning/pytorch/plugins/precision/amp.py",
        ),
    ),
    reads=("py",),
    triggers=(b"fused",),
    requires=((b"optim",),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it decides which of the two implementations remains, and their updates differ in the last "
    "bits.",
    probe=Probe("optimizer-construction", "the optimizer raised when it was made with fused=True"),
    overrides="the constructor raises with both",
)

FUSED_FALLBACK_INEFFECTIVE = Rule(
    code="W7303",
    symbol="fused-fallback-ineffective",
    consequence=Consequence.CRASH,
    message="this `try` cannot catch a failure of `%(optimizer)s(fused=True)`: since torch 2.5 an unsupported device or "
    "type is found in the first `step()`, outside the `try`; decide by `torch.cuda.is_available()` instead",
    summary="`try: AdamW(..., fused=True)` with an `except` that builds the optimizer without it.",
    rationale="Up to torch 2.4 the constructor checked the devices and types of the parameters and raised. Since 2.5 "
    "it accepts them, and the first `step()` raises instead, outside the `try`: the fallback never runs.",
    cost="Training ends in its first step on a device or with a type that has no fused kernels, although the code was "
    "written to continue.",
    exceptions="Not reported: an `except TypeError` alone, for classes and releases that do not accept the argument; "
    "a `try` that also takes a step; a `target-torch` older than 2.5, whose constructor still raises.",
    versions="torch 2.5 to 2.13.",
    verification="`torch.optim.AdamW([torch.zeros(2, dtype=torch.complex64, requires_grad=True)], fused=True)` "
    "creates an optimizer, and its `step()` raises a RuntimeError once there is a gradient, also on a CPU.",
    references=(_ADAMW, _SOURCE),
    reads=("py",),
    needs="a check of fused=True at the first step",
    triggers=(b"fused",),
    requires=((b"except",), (b"optim",)),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: `fused=torch.cuda.is_available()` decides by the device, but the file does not show "
    "whether the parameters are on it and have a supported type.",
    probe=Probe("optimizer-construction", "the optimizer was made, and its first step raised"),
)

FUSED_LOST_ON_RESUME = Rule(
    code="I7304",
    symbol="fused-lost-on-resume",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`%(optimizer)s(fused=True)` loses the flag when `load_state_dict()` loads a checkpoint that was saved without "
    "it, and then runs the slower default implementation: set `fused` in the state before loading it",
    summary="A fused optimizer whose state is restored from a checkpoint that can have been saved without `fused`.",
    rationale="`load_state_dict` replaces the options of every parameter group with those of the checkpoint, "
    "including `fused`. After resuming from a checkpoint of a run without `fused`, the optimizer silently runs the "
    "default implementation again.",
    cost="The speed of the fused kernels is lost silently.",
    exceptions="If all checkpoints were written with `fused=True`, the flag is kept.",
    versions="torch 2.0 to 2.13.",
    verification="Print `optimizer.param_groups[0]['fused']` after `load_state_dict`: it is `None`, although the "
    "constructor got `True`.",
    references=(_ADAMW, _SOURCE),
    reads=("py",),
    triggers=(b"fused",),
    requires=((b"optim",),),
    default=False,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: the code does not show whether older checkpoints exist. Set the flag in the state before "
    "loading it: if it is set on the optimizer afterwards, the step counts stay on the CPU, where GPU kernels cannot "
    "read them.",
    probe=Probe("optimizer-flags", "restoring the optimizer's state switched fused off"),
)

RULES = (FUSED_CONFLICT, FUSED_FALLBACK_INEFFECTIVE, FUSED_LOST_ON_RESUME)
