"""Family 73, the effective batch size: per-GPU batch x GPUs x accumulation steps, and causes of its drift."""

from __future__ import annotations

import re

from ldlm_lint.model import Applicability, Confidence, Consequence, Reference, Rule
from ldlm_lint.patterns import lazily

GRADIENT_ACCUMULATION_FIXED = Rule(
    code="W7306",
    symbol="gradient-accumulation-fixed",
    consequence=Consequence.WRONG_RESULT,
    message="%(name)s is %(value)s, but the number of GPUs can change (%(world)s): twice the GPUs silently doubles the "
    "effective batch size; compute the steps from a target batch size",
    summary="A launcher that fixes the gradient accumulation steps although it takes the number of GPUs from outside.",
    rationale="The optimizer sees batch per GPU x GPUs x accumulation steps samples in each step. A script that runs "
    "on 8 or 16 GPUs with the same number of accumulation steps silently doubles that product. The learning rate, the "
    "warm-up and the number of steps were tuned for one of the two and do not change.",
    cost="No run time, but runs that cannot be compared: the result depends on the size of the allocation.",
    exceptions="A learning rate that is scaled with the effective batch size, or weak scaling on purpose. Not "
    "reported: accumulation steps that the script computes; a batch per GPU that it computes from a global batch "
    "size; a global batch size that is passed on; one GPU, or a literal number of GPUs; a project whose code divides "
    "the steps by the world size. Values from a sourced script count too.",
    versions="All versions.",
    verification="Print batch per GPU x world size x accumulation steps at the start of training, and stop with an "
    "error if it is not the intended number.",
    references=(
        Reference("torchrun, environment variables", "https://docs.pytorch.org/docs/stable/elastic/run.html#environment-variables"),
        Reference(
            "accelerate: gradient accumulation", "https://huggingface.co/docs/accelerate/usage_guides/gradient_accumulation"
        ),
    ),
    reads=("py", "sh", "cfg"),
    triggers=(),
    setting_triggers=(b"accum", b"ACCUM", b"Accum", b"update-freq", b"update_freq"),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: the global batch size to compute the steps from is your decision. The formula divides by "
    "the number of all processes of the launch, each counted once: `GPUS` if `NODES=$((GPUS / GPUS_PER_NODE))`, "
    "otherwise nodes x processes per node.",
)

BATCH_SIZE_DRIFT = Rule(
    code="W7307",
    symbol="batch-size-drift",
    consequence=Consequence.WRONG_RESULT,
    message="%(name)s is an integer division: where %(divisor)s does not divide %(target)s, the remainder is lost and "
    "training runs with another batch size than configured; stop with an error when a remainder is left",
    summary="Accumulation steps from an integer division by the number of GPUs, without a check for a remainder.",
    rationale="`$((TARGET / (BATCH * WORLD)))` and `target // (batch * world_size)` drop the remainder. With a target "
    "of 128 and 4 samples per GPU, 24 GPUs get 1 step and an effective batch of 96. 64 GPUs get 0 steps, or 256 "
    "samples if the 0 is raised to 1.",
    cost="No run time, but training with another batch size than the configuration states.",
    exceptions="Not reported: a division that is checked with `%`, a product that is compared with the target, a "
    "quotient that is rounded up on purpose, and literal numbers that divide without a remainder.",
    versions="All versions.",
    verification="Multiply the result by batch and world size and compare it with the target, for each number of GPUs "
    "in use.",
    references=(
        Reference(
            "Bash manual: shell arithmetic", "https://www.gnu.org/software/bash/manual/bash.html#Shell-Arithmetic"
        ),
        Reference(
            "Binary arithmetic operations", "https://docs.python.org/3/reference/expressions.html#binary-arithmetic-operations"
        ),
    ),
    reads=("sh", "py"),
    triggers=(b"accum", b"ACCUM", b"Accum"),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: whether to stop, to round up or to adjust the learning rate is your decision.",
)

RULES = (GRADIENT_ACCUMULATION_FIXED, BATCH_SIZE_DRIFT)

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
# A text without any of these has no number of ranks for `is_world_size`.
_RANKS = lazily(rb"(?i)world|gpus|nodes|nproc|processes|machines|devices|device_?count|size|degree|replicas")
_BATCH = lazily(r"(?:\w*_)?(?:batch|bs|bsz|mbs|gbs|batchsize|batch_size|micro_batch)(?:_\w*)?")
_GLOBAL_BATCH = lazily(r"(?:\w*_)?(?:global|total|effective|target)_(?:train_)?(?:batch\w*|bsz?)")


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


def may_count_ranks(text: bytes) -> bool:
    """Whether a text may contain a name for a number of processes, GPUs or nodes."""
    return _RANKS.search(text) is not None


def is_batch_size(name: str) -> bool:
    """Whether a name means a batch size of any kind."""
    return _BATCH.fullmatch(_plain(name)) is not None


def is_global_batch_size(name: str) -> bool:
    """Whether a name means the batch size over all GPUs and accumulation steps."""
    return _GLOBAL_BATCH.fullmatch(_plain(name)) is not None
