"""checkpoint-load-without-map-location: `torch.load` that leaves the device of the tensors to the file, in every rank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.first_rank import FirstRank
from ldlm_lint.concepts.restored_states import is_only_restored
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Fix, Reference, Rule
from ldlm_lint.patterns import lazily

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call

RULE = Rule(
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
        Reference("torch.load", "https://docs.pytorch.org/docs/stable/generated/torch.load.html"),
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

_LOADS = frozenset({"torch.load", "torch.serialization.load"})
_STATE = lazily(r"ckpt|checkpoint|state|model|weights(?!_only)|resume|pretrained|snapshot|optim", re.I)
# Shards belong to the device mesh that they were saved from.
_SHARDED = lazily(r"FSDP|FullySharded|fully_shard|DTensor|ShardedTensor|sharded_state|SHARDED_STATE", re.I)
_REASON = "other tensors in the file, which `load_state_dict()` does not copy, stay on the CPU"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The loads of states that every rank of a training runs."""
    for load in code.calls(_LOADS):
        is_open = load.argument("map_location", 1).is_absent and load.argument("mmap").is_absent
        is_one = load.callee.count_of_values == 1 and load.callee.interfaces <= _LOADS
        if is_open and is_one and _reads_state(load) and code.trainings.run_on_many_ranks(code.path(load.module)) and not code[FirstRank].runs(load):
            yield code.finding(RULE, load.span, {}, fix=_fix(code, load))


def _reads_state(load: Call) -> bool:
    """Whether a load reads the state of a model or an optimizer, by its words or the function around it."""
    words = (load.text.partition("(")[2], *load.names, *load.variables)
    return any(map(_STATE.search, words)) or any(one.called_name == "load_state_dict" for one in load.function.calls)


def _fix(code: ProjectCode, load: Call) -> Fix | None:
    source = code.source(load.module)
    is_whole = is_only_restored(load) and _SHARDED.search(source.text) is None
    edit = add_keyword(source, load.span, "map_location", '"cpu"') if is_whole else None
    return Fix('set map_location="cpu"', (edit,), Applicability.UNSAFE, _REASON) if edit else None
