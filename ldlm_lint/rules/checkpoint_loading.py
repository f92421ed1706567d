"""Family 76: how checkpoints are read."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Reference, Rule
from ldlm_lint.wording import quoted

_LOAD = Reference("torch.load", "https://docs.pytorch.org/docs/stable/generated/torch.load.html")
_SEMANTICS = Reference(
    "Serialization semantics: weights_only",
    "https://docs.pytorch.org/docs/stable/notes/serialization.html#weights-only",
)

STRICT_BY_DEFAULT = (2, 6)
"""The first torch whose ``torch.load`` takes nothing but tensors and plain containers unless it is told."""

_STRICT = "`weights_only=True`"
FROM_ANYWHERE = {
    "source": "",
    "stakes": "before torch 2.6 the file can run any code, since 2.6 loading fails on anything but tensors and plain containers",
    "advice": f"pass {_STRICT}",
}
"""The fields of the message where nobody knows whose file it is."""


def from_outside(fetched: str) -> dict[str, object]:
    """Those of a file that a call, or an address, brings onto the machine."""
    stakes = "before torch 2.6 the author of the file can run any code on this machine"
    return {"source": f" reads a file from outside ({quoted(fetched)})", "stakes": stakes, "advice": f"pass {_STRICT}"}


def of_the_project(where: str) -> dict[str, object]:
    """Those of a file of the project's own: ``where`` it is written, empty for a checkpoint that a run goes on from."""
    source = f" reads a file that this project writes ({where})" if where else " reads a checkpoint to resume from"
    stakes = "since torch 2.6 this fails if the file holds anything but tensors and plain containers"
    return {"source": source, "stakes": stakes, "advice": f"pass {_STRICT}, or `weights_only=False` if the file holds other objects"}


CHECKPOINT_LOAD_UNSPECIFIED = Rule(
    code="W7604",
    symbol="checkpoint-load-unspecified",
    consequence=Consequence.SECURITY,
    message="`torch.load()` without `weights_only`%(source)s: %(stakes)s; %(advice)s",
    summary="`torch.load` that does not say whether the file can hold arbitrary objects.",
    rationale="A checkpoint is a pickle, and unpickling runs whatever code its author put into it. "
    "`weights_only=True` allows tensors and plain containers only. Its default was False, warned about in torch 2.4 "
    "and 2.5, and is True since 2.6: the same line executes a hostile file on one version and refuses a harmless one, "
    "such as a checkpoint with an argparse.Namespace or a dataclass, on the next.",
    cost="Arbitrary code execution from a downloaded file on the old default, a resume that ends in UnpicklingError "
    "on the new one.",
    exceptions="Tests, a call that passes `pickle_module`, keyword arguments that a function hands on unless all its calls "
    "are known to leave it out, and code that picks the argument by the version of torch. At level info where the project wrote the file itself (it saves "
    "to the same name or folder, or the load restores an optimizer to resume a run): nobody else's code is in it, and only whether it loads depends on the version.",
    versions="`weights_only` exists since torch 1.13; the default is False before 2.6 and True since. Silent where "
    "`target-torch` is 2.6 or later, since the default is then the strict one.",
    verification="Run once with `weights_only=True`. If it raises UnpicklingError, save plain values instead, allow "
    "the types with `torch.serialization.safe_globals`, or write `weights_only=False` where the file is your own. A "
    "program of the test suite shows a resume that ends in UnpicklingError, on torch 2.6 and later.",
    references=(_LOAD, _SEMANTICS),
    reads=("py",),
    triggers=(b"",),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: `weights_only=True` ends a resume whose file holds other objects, `weights_only=False` "
    "lets the file run code. Which one is right depends on where the file comes from.",
)

CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION = Rule(
    code="W7605",
    symbol="checkpoint-load-without-map-location",
    consequence=Consequence.MEMORY,
    message="`torch.load()` without `map_location` puts tensors back on the GPU that saved them, usually `cuda:0`, in "
    'every rank of this training: that GPU holds one copy per rank; pass `map_location="cpu"`',
    summary="A checkpoint that every rank loads onto the device it was saved from.",
    rationale="Without `map_location` each tensor is restored on the device it was saved from. A checkpoint that rank "
    "0 wrote holds cuda:0, so all ranks of a node put a second copy of model and optimizer there. The tutorial on "
    "DistributedDataParallel asks for a `map_location` for every process.",
    cost="One checkpoint of GPU memory on the first GPU for every rank of the node, and out of memory where that is "
    "too much.",
    exceptions="A checkpoint that was moved to the CPU before it was saved, a load that only one rank runs, "
    "`mmap=True`.",
    versions="All.",
    verification="Look at the memory of the first GPU while the ranks resume. It takes several GPUs, so no test shows "
    "it.",
    references=(
        _LOAD,
        Reference(
            "DDP tutorial: save and load checkpoints",
            "https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html",
        ),
    ),
    reads=("py",),
    triggers=(b"load(",),
    requires=((b"torch",),),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.UNSAFE,
    fix_safety='Unsafe: with `map_location="cpu"` what does not go into `load_state_dict` stays on the CPU. Offered where the '
    "function does nothing with the file but that, and reads plain values such as the epoch.",
)

RULES: tuple[Rule, ...] = (CHECKPOINT_LOAD_UNSPECIFIED, CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION)
