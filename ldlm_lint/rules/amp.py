"""Family 78: mixed precision."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Consequence, Reference, Rule

DEPRECATED_AMP_API = Rule(
    code="W7801",
    symbol="deprecated-amp-api",
    consequence=Consequence.DEPRECATED,
    message="`%(old)s` is deprecated and warns since torch 2.4; write %(new)s, which does the same",
    summary="`autocast`, `GradScaler`, `custom_fwd` or `custom_bwd` from `torch.cuda.amp` or `torch.cpu.amp`.",
    rationale="`torch.amp` has the same classes for all device types, with the device type as an argument. The old "
    "names are thin wrappers that emit a FutureWarning in every process of a training. The positions of the arguments "
    "changed: `torch.amp.autocast` and `torch.amp.GradScaler` take the device type first, and `autocast` takes "
    "`dtype` before `enabled`, so renaming alone turns `autocast(True)` into a wrong call.",
    cost="A warning in every process, and code that fails once the wrappers are removed. No run time.",
    exceptions="A project that chooses a torch before 2.4, in which the old names do not warn. A project that "
    "allows such a torch and newer ones is reported, but its fix is only shown if the older one lacks the new name. Old names in a branch for old "
    "versions (a version check, `hasattr`, an except clause) are not reported either. Such a branch does not count if "
    "the file uses no new name and checks for no torch 2 version: then it is about even older versions.",
    versions="torch 2.4 to 2.13 warn. `torch.amp.autocast` exists since torch 1.10, `torch.amp.GradScaler` "
    "since 2.3, `torch.amp.custom_fwd` and `custom_bwd` since 2.4.",
    verification="Run with `python -W error::FutureWarning`: the old names raise on torch 2.4 and newer.",
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
    needs="a warning of torch.cuda.amp",
    triggers=(),
    applicability=Applicability.SAFE,
    fix_safety="Safe if `target-torch` or the project's requirements say 2.4 or newer: the call gets the device type, "
    "positional arguments get their names, and an `autocast` without a dtype gets the dtype that the old name "
    "implied, because the new name inherits it from an enclosing autocast. Only shown if a torch version that the "
    "project allows lacks the new name. That is the case if a requirement file that applies to the code allows an "
    "older torch, or if no requirement limits torch and the program has a branch for an older one. Requirement files "
    "apply from the file's own folder, its parent folders, the folder of a program that imports it, and folders "
    "without code. Unsafe if no limit is known. Also unsafe if a file that is not a script imports the names "
    "directly, because another file may import them from there; if other code gets the scaler, because it may check "
    "for the old class; and together with TorchScript, which knows the classes by name.",
)

RULES = (DEPRECATED_AMP_API,)
