"""Family 73: fused optimizers that cannot be, or are not what they seem."""

from __future__ import annotations

from ldlm_lint import tables
from ldlm_lint.model import Applicability, Consequence, Frequency, Probe, Reference, Rule

# Constructors of torch.optim that know no ``fused`` argument, as of torch 2.13; scripts that read the installed wheel find the same.
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
# Since this release devices and types are looked at in the first step, no longer in the constructor.
CHECKED_IN_STEP = (2, 5)

_ADAMW = Reference("torch.optim.AdamW", "https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html")
_SOURCE = Reference("torch.optim.Optimizer", "https://github.com/pytorch/pytorch/blob/main/torch/optim/optimizer.py")

FUSED_CONFLICT = Rule(
    code="E7302",
    symbol="fused-conflict",
    consequence=Consequence.CRASH,
    message="%(optimizer)s(fused=True) raises: %(problem)s",
    summary="A fused optimizer with an argument, a class or a Trainer that does not go with it.",
    rationale="`fused` excludes `foreach` and `differentiable`: the constructor raises a RuntimeError. A class without a fused implementation "
    "(RMSprop, NAdam, RAdam, Adamax and others; SGD before torch 2.3, Adagrad before 2.4) does not know the argument at all and "
    "raises a TypeError. A fused optimizer unscales gradients by itself, so that Lightning refuses to clip them in mixed "
    "precision and raises in the first step.",
    cost="The training does not start, or ends in its first step.",
    exceptions="A `try` around the constructor that catches the error and goes on without; values that the file does not decide. These are "
    "not reported.",
    versions="torch 2.0 to 2.13; SGD and Adagrad are reported only where target-torch is older than their fused implementation. Lightning 2.x.",
    verification="Run the constructor on a CPU: it raises there, too. Lightning's error names the optimizer and asks whether it is fused.",
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
    fix_safety="Unsafe: it decides which of the two implementations remains, and their updates differ in the last bits.",
    probe=Probe("optimizer-construction", "the optimizer raised when it was made with fused=True"),
)

FUSED_FALLBACK_INEFFECTIVE = Rule(
    code="W7303",
    symbol="fused-fallback-ineffective",
    consequence=Consequence.CRASH,
    message="this try catches nothing for %(optimizer)s(fused=True): since torch 2.5 an unsupported device or type is found in the first step()",
    summary="`try: AdamW(..., fused=True)` with an `except` that builds the optimizer without it.",
    rationale="Up to torch 2.4 the constructor looked at the devices and types of the parameters and raised. Since 2.5 it accepts them, and the "
    "first `step()` raises instead, outside of the `try`: the fallback is never taken.",
    cost="The training ends in its first step on a device or with a type that has no fused kernels, although the code was written to go on.",
    exceptions="An `except TypeError` alone, for classes and releases that do not know the argument; a `try` that takes a step as well; a "
    "target-torch older than 2.5, where the constructor still raises. These are not reported.",
    versions="torch 2.5 to 2.13.",
    verification="`torch.optim.AdamW([torch.zeros(2, dtype=torch.complex64, requires_grad=True)], fused=True)` makes an optimizer, whose "
    "`step()` raises a RuntimeError once there is a gradient; on a CPU, too.",
    references=(_ADAMW, _SOURCE),
    reads=("py",),
    triggers=(b"fused",),
    requires=((b"except",), (b"optim",)),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: `fused=torch.cuda.is_available()` decides by the device, and whether the parameters are on it, and of a supported "
    "type, the file does not tell.",
    probe=Probe("optimizer-construction", "the optimizer was made, and its first step raised"),
)

FUSED_LOST_ON_RESUME = Rule(
    code="I7304",
    symbol="fused-lost-on-resume",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(optimizer)s(fused=True) loses the flag when it loads a checkpoint that was written without it",
    summary="A fused optimizer whose state is restored from a checkpoint that may have been written without `fused`.",
    rationale="`load_state_dict` replaces the options of every parameter group by those of the checkpoint, `fused` among them. After resuming "
    "from a checkpoint of a run without it the optimizer runs the default implementation again, without a word.",
    cost="The gain of the fused kernels, silently.",
    exceptions="All checkpoints were written with `fused=True`: then they keep it.",
    versions="torch 2.0 to 2.13.",
    verification="Print `optimizer.param_groups[0]['fused']` after `load_state_dict`: None, although the constructor got True.",
    references=(_ADAMW, _SOURCE),
    reads=("py",),
    triggers=(b"fused",),
    requires=((b"optim",),),
    default=False,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: whether older checkpoints exist the code does not tell. The flag is set in the state before it is loaded; set on the "
    "optimizer afterwards, the step counts would stay on the CPU, where the kernels of a GPU cannot read them.",
    probe=Probe("optimizer-flags", "restoring the optimizer's state switched fused off"),
)

RULES = (FUSED_CONFLICT, FUSED_FALLBACK_INEFFECTIVE, FUSED_LOST_ON_RESUME)
