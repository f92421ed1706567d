"""Names of what makes the effective batch size: batch per GPU, number of GPUs, accumulation steps."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

_ACCUMULATION = lazily(
    r"(?:(?:training|train|trainer|num|n|no)_)*"
    r"(?:(?:gradients?|grads?)_?acc(?:um|umulate|umulation)?(?:_?(?:steps?|iters?|batches|freq|factor|num|n|every))?"
    r"|accum(?:ulate|ulation)?_?(?:steps?|iters?|freq|factor|every|grad_batches|grad|gradients?)"
    r"|update_freq|ga_?steps|gas)"
)
_MAY_ACCUMULATE = lazily(r"accum|(?:^|_)grad_?acc|micro_?batches|micro_?steps")
_WORLD = lazily(
    r"(?:(?:global|total|local|num|n|get|data_parallel|dp|ddp)_?)*"
    r"(?:world_?size|world|n?gpus?|n?nodes|nnodes|nproc\w*|num_processes|machines|devices|device_count|dp_size|data_parallel_size|dp_degree|replicas)"
    r"(?:_per_node|_?count|_?num)?"
)
_BATCH = lazily(r"(?:\w*_)?(?:batch|bs|bsz|mbs|gbs|batchsize|batch_size|micro_batch)(?:_\w*)?")
_GLOBAL_BATCH = lazily(r"(?:\w*_)?(?:global|total|effective|target)_(?:train_)?(?:batch\w*|bsz?)")

_OF_BATCHES = lazily(r"steps_per_epoch|num_batches|batches_per|iters_per|loader", re.I)
_OF_UPDATES = lazily(r"accum|micro|updates?(_|$)|optimizer_steps|grad_acc", re.I)

# ``accum_steps > 1`` says how many micro-batches there are, ``step > 1`` which one this is.
COUNTS = lazily(r"step|iter|epoch|batch|idx|index|count|^[ijkn]$|^it$", re.I)
COUNTS_NOT = lazily(r"accum|steps$|iters$|batches$|every|freq|interval|num_|size|per_", re.I)
"""Names of numbers that count steps or micro-batches from 0, and of settings that do not."""


def _plain(name: str) -> str:
    """A name as snake case: the last part of a dotted one, in lower case."""
    last = name.lstrip("-+~").rpartition(".")[2]
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", last).replace("-", "_").lower()


def is_accumulation(name: str) -> bool:
    """Whether a name means the number of gradient accumulation steps."""
    return _ACCUMULATION.fullmatch(_plain(name)) is not None


def may_accumulate(name: str) -> bool:
    """Whether an option's name may mean it: its program decides."""
    return is_accumulation(name) or (name.startswith("--") and _MAY_ACCUMULATE.search(_plain(name)) is not None)


def is_world_size(name: str) -> bool:
    """Whether a name means a number of processes, GPUs or nodes."""
    plain = _plain(name)
    # `--gpu 0` and `device` name one of them.
    return plain not in ("gpu", "node", "device") and _WORLD.fullmatch(plain) is not None


def counts_batches(name: str) -> bool:
    """Whether a name means a number of batches as a loader gives them."""
    return _OF_BATCHES.search(name) is not None and not counts_updates(name)


def counts_updates(name: str) -> bool:
    """Whether a name means a number of steps of an optimizer, or of micro-batches for one."""
    return _OF_UPDATES.search(name) is not None


def is_batch_size(name: str) -> bool:
    """Whether a name means a batch size of any kind."""
    return _BATCH.fullmatch(_plain(name)) is not None


def is_global_batch_size(name: str) -> bool:
    """Whether a name means the batch size over all GPUs and accumulation steps."""
    return _GLOBAL_BATCH.fullmatch(_plain(name)) is not None
