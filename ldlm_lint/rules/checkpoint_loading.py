"""Family 76: how checkpoints are read."""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.model import Applicability, Confidence, Consequence, Reference, Rule
from ldlm_lint.wording import listed, quoted

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
"""The fields of the message if the origin of the file is unknown."""


def from_outside(fetched: str) -> dict[str, object]:
    """Those of a file that a call, or an address, brings onto the machine."""
    stakes = "before torch 2.6 the author of the file can run any code on this machine"
    return {"source": f" reads a file from outside ({quoted(fetched)})", "stakes": stakes, "advice": f"pass {_STRICT}"}


ITS_OWN, ITS_OWN_TENSORS, RESUMES = "the project writes the file itself", "the project writes the file itself, with tensors only", "a checkpoint to resume from"
BESIDE_CODE = "the file is in the folder of the code"
"""Why a load is only information."""


def of_tensors(where: str) -> dict[str, object]:
    """The arguments for a file that the project writes with tensors and plain values only, ``where`` names the call."""
    source = f" reads a file of tensors and plain values only, which {where} writes"
    return {"source": source, "stakes": "every version of torch loads it, and it holds no code of others", "advice": f"pass {_STRICT} to say so"}


def of_files_like(where: str, objects: Iterable[str]) -> dict[str, object]:
    """Those of a file of unknown origin, if the project writes files with the same entries, ``objects`` among them."""
    stakes = f"before torch 2.6 the file can run any code, since 2.6 loading fails on objects such as {listed(objects)}, which {where} writes beside the entries read here"
    return {"source": "", "stakes": stakes, "advice": f"write plain values instead, and pass {_STRICT}"}


def beside_the_code() -> dict[str, object]:
    """Those of a file that comes with the code which reads it."""
    return of_the_project("") | {"source": " reads a file in the folder of the code"}


def of_the_project(where: str, objects: Iterable[str] = (), *, is_inferred: bool = False) -> dict[str, object]:
    """The arguments for a file of the project itself: ``where`` it is written, empty for a checkpoint to resume
    from, with ``objects`` in it that only ``weights_only=False`` reads. ``is_inferred``: not the path says so, but the
    entries that are read.
    """
    written = f" reads entries that {where} writes" if is_inferred else f" reads a file that {where} writes"
    source = written if where else " reads a checkpoint to resume from"
    if objects:
        stakes = f"since torch 2.6 loading fails, because the file also has {listed(objects)}, and not only tensors and plain containers"
        return {"source": source, "stakes": stakes, "advice": "write plain values instead, or pass `weights_only=False`"}
    stakes = "since torch 2.6 this fails if the file holds anything but tensors and plain containers"
    return {"source": source, "stakes": stakes, "advice": f"pass {_STRICT}, or `weights_only=False` if the file holds other objects"}


CHECKPOINT_LOAD_UNSPECIFIED = Rule(
    code="W7604",
    symbol="checkpoint-load-unspecified",
    consequence=Consequence.SECURITY,
    message="`torch.load()` without `weights_only`%(source)s: %(stakes)s; %(advice)s",
    summary="`torch.load` that does not say whether the file can hold arbitrary objects.",
    rationale="A checkpoint is a pickle, and unpickling runs whatever code its author put into it. "
    "`weights_only=True` allows only tensors and plain containers. The default was False up to torch 2.5 (2.4 and 2.5 "
    "warn) and is True since 2.6. So the same line runs the code in a hostile file on one version, and fails on a "
    "harmless file with an argparse.Namespace or a dataclass on the next.",
    cost="With the old default, arbitrary code execution from a downloaded file. With the new one, a resume that ends "
    "in UnpicklingError.",
    exceptions="Not reported: tests, a call that passes `pickle_module`, keyword arguments that a function passes on "
    "unless all its calls are known to omit `weights_only`, and code that chooses the argument by the version of "
    "torch. Reported at level info if the project wrote the file itself (it saves to the same name or folder, or the "
    "load restores an optimizer to resume a run), or if the path begins in the folder of the code: the file contains no code of others, and the version only decides "
    "whether it loads; if it only contains tensors and plain values, every version loads it.",
    versions="`weights_only` exists since torch 1.13; the default is False before 2.6 and True since. Not reported if "
    "`target-torch` is 2.6 or later, because the default is then True.",
    verification="Run once with `weights_only=True`. If it raises UnpicklingError, save plain values instead, allow "
    "the types with `torch.serialization.safe_globals`, or write `weights_only=False` if the file is your own. The "
    "test suite contains a program whose resume ends in UnpicklingError, on torch 2.6 and later.",
    references=(_LOAD, _SEMANTICS),
    reads=("py",),
    needs="torch.load(weights_only=)",
    triggers=(b"",),
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: `weights_only=True` breaks a resume whose file contains other objects, "
    "`weights_only=False` lets the file run code. Which one is right depends on the origin of the file.",
)

CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION = Rule(
    code="W7605",
    symbol="checkpoint-load-without-map-location",
    consequence=Consequence.MEMORY,
    message="`torch.load()` without `map_location` puts tensors back on the GPU that saved them, usually `cuda:0`, in "
    'every rank of this training: that GPU holds one copy per rank; pass `map_location="cpu"`',
    summary="A checkpoint that every rank loads onto the device it was saved from.",
    rationale="Without `map_location` each tensor is restored on the device it was saved from. A checkpoint written "
    "by rank 0 contains cuda:0, so all ranks of a node put another copy of model and optimizer there. The tutorial on "
    "DistributedDataParallel asks for a `map_location` in every process.",
    cost="GPU memory: one copy of the checkpoint on the first GPU for every rank of the node, until that GPU runs out "
    "of memory.",
    exceptions="A checkpoint that was moved to the CPU before it was saved, a load that only one rank runs, and "
    "`mmap=True`.",
    versions="All versions.",
    verification="Look at the memory of the first GPU while the ranks resume. This needs several GPUs, so no test "
    "shows it.",
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
    fix_safety='Unsafe: with `map_location="cpu"` everything that is not passed to `load_state_dict` stays on the '
    "CPU. Offered only if the function uses the file for `load_state_dict` and for plain values such as the epoch.",
)

RULES: tuple[Rule, ...] = (CHECKPOINT_LOAD_UNSPECIFIED, CHECKPOINT_LOAD_WITHOUT_MAP_LOCATION)
