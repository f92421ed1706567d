"""Family 78: mixed precision."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Frequency, Probe, Reference, Rule

DEPRECATED_AMP_API = Rule(
    code="W7801",
    symbol="deprecated-amp-api",
    consequence=Consequence.DEPRECATED,
    message="`%(old)s` is deprecated and warns since torch 2.4; write %(new)s, which does the same",
    summary="`autocast`, `GradScaler`, `custom_fwd` or `custom_bwd` from `torch.cuda.amp` or `torch.cpu.amp`.",
    rationale="`torch.amp` holds the same classes for every kind of device, which is now an argument. The old names are "
    "thin wrappers around them that say so with a FutureWarning, in each process of a training. The arguments moved by "
    "one place: the first of `torch.amp.autocast` and `torch.amp.GradScaler` is the device type, and `autocast` takes "
    "`dtype` before `enabled`, so that renaming alone turns `autocast(True)` into a wrong call.",
    cost="A warning in every process, and a rename that is due before the wrappers go. No time.",
    exceptions="A project that runs on a torch older than the replacement: `torch.amp.GradScaler` exists since 2.3, "
    "`torch.amp.custom_fwd` and `custom_bwd` since 2.4 (they are not reported where target-torch is older). A project that allows "
    "such a torch beside newer ones is reported, and its fix is only shown. Names in a "
    "branch that a version check, `hasattr` or an except clause leaves to old versions are not reported either; where the "
    "file knows no new name, and no version of torch 2 is asked for, such a check asks for what is older still.",
    versions="torch 2.4 to 2.13 warn. `torch.amp.autocast` exists since torch 1.10, `torch.amp.GradScaler` "
    "since 2.3, `torch.amp.custom_fwd` and `custom_bwd` since 2.4.",
    verification="Run with `python -W error::FutureWarning`; the old names raise on torch 2.4 and newer.",
    references=(
        Reference("torch.amp", "https://docs.pytorch.org/docs/stable/amp.html"),
        Reference(
            "torch 2.3: torch.amp.GradScaler",
            "https://github.com/pytorch/pytorch/blob/v2.3.0/torch/amp/grad_scaler.py",
        ),
        Reference(
            "torch.cuda.amp.autocast_mode",
            "https://github.com/pytorch/pytorch/blob/v2.4.0/torch/cuda/amp/autocast_mode.py",
        ),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.SAFE,
    fix_safety="Safe where target-torch or the project's requirements say 2.4 or newer: the call gets the device type, positional arguments get their "
    "names, and an `autocast` that names no dtype gets the one that the old name stood for, since the new one takes that "
    "of an autocast around it. Only shown where a torch that the project allows has no such name: "
    "one of the requirement files that hold for the file (its own folder's, those around it, those of a program that imports it, "
    "those of a folder without code) allows an older torch, or, where none bounds torch, the program has a branch for one. "
    "Unsafe where no bound is known, and where names are imported by themselves "
    "in a file that is no script: the import changes too, and another file may import them from there. Unsafe for a scaler "
    "that other code gets, which may check for the old class, and beside TorchScript, which knows the classes by name.",
)

GRAD_SCALER_WITH_BFLOAT16 = Rule(
    code="R7802",
    symbol="grad-scaler-with-bfloat16",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(where)s computes in bfloat16, which has the range of float32 and needs no loss scaling: this GradScaler "
    "only adds a check for infinities and a wait for the GPU to every step; pass `enabled=False`",
    summary="An enabled `GradScaler` beside an autocast whose dtype is bfloat16.",
    rationale="Loss scaling keeps small gradients from becoming zero in float16, whose smallest normal number is 6e-5. "
    "bfloat16 has the exponent of float32 (smallest normal number 1.2e-38), so there is nothing to rescue. An enabled "
    "scaler still multiplies the loss, divides all gradients, looks for infinities, and reads the result back to the "
    "host in every step.",
    cost="One more pass over all gradients and one wait for the device per step. A scaled gradient norm "
    "also misleads clipping that forgets `unscale_`.",
    exceptions="A script that chooses between float16 and bfloat16 and switches the scaler accordingly, as in "
    '`GradScaler(enabled=(dtype == "float16"))`: a scaler that is not enabled does nothing, and one whose `enabled` is '
    "computed is not reported.",
    versions="All versions of torch.",
    verification="`scaler.get_scale()` only ever grows: it doubles every 2000 steps because no infinity is ever found. "
    "A profile shows the scaler's kernels (`_amp_foreach_non_finite_check_and_unscale_`).",
    references=(
        Reference(
            "Automatic mixed precision: gradient scaling",
            "https://docs.pytorch.org/docs/stable/amp.html#gradient-scaling",
        ),
        Reference("torch.amp.grad_scaler", "https://github.com/pytorch/pytorch/blob/v2.4.0/torch/amp/grad_scaler.py"),
    ),
    reads=("py",),
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the loss is no longer multiplied and the gradients are no longer divided, which changes the last "
    "bits; a step that the scaler skipped because of an infinity is taken; and the scaler's state in a checkpoint becomes "
    "empty, which an enabled scaler refuses to load.",
    probe=Probe(
        "grad-scale",
        "an enabled scaler scaled losses that autocast had computed in bfloat16",
        device_bound=True,
        experiment="precision",
    ),
)

RULES = (DEPRECATED_AMP_API, GRAD_SCALER_WITH_BFLOAT16)
