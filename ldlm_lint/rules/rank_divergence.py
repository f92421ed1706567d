"""Family 72: ranks that leave a step which the others take."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Reference, Rule

RANK_LOCAL_SKIP = Rule(
    code="E7234",
    symbol="rank-local-skip",
    frequency=Frequency.STEP,
    consequence=Consequence.HANG,
    message="%(cause)s can make one rank skip its backward pass: the other ranks then wait in theirs for gradients that "
    "never come; let all ranks decide together, with an all-reduce of the condition",
    summary="A training step that one rank can leave between forward and backward on its own.",
    rationale="Under DDP, FSDP and DeepSpeed the backward pass is a collective: each rank waits for the gradients of "
    "all others. A rank whose own loss is not finite, or that runs out of memory, and therefore continues with the "
    "next batch does not take part. The others wait for it until the process group times out. If the skipping rank "
    "reaches its next backward pass first, the gradients of different batches are added up, and from then on the "
    "ranks are one step apart.",
    cost="The job hangs until the timeout of the process group and then dies, at the first batch that the skip was "
    "written for.",
    exceptions="Not reported: a flag or loss that was reduced over the ranks before it is checked; a process that "
    "exits; a skip of `optimizer.step()` after the backward pass, where all ranks have the same gradients; training "
    "with one process.",
    versions="All versions of torch.",
    verification="Start two processes and set the loss of one to NaN in one step: the other one hangs in `backward()`.",
    references=(
        Reference("Distributed Data Parallel: internal design", "https://docs.pytorch.org/docs/stable/notes/ddp.html"),
        Reference(
            "DistributedDataParallel", "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html"
        ),
        Reference(
            "torch.distributed.all_reduce", "https://docs.pytorch.org/docs/stable/distributed.html#torch.distributed.all_reduce"
        ),
    ),
    reads=("py",),
    triggers=(b"nan", b"inf", b"finite", b"loss", b"Error", b"Exception"),
    requires=((b"backward", b"scaler", b"training_step"), (b"continue", b"return", b"break", b"except", b"finite", b"nan")),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: it adds a collective and a synchronization to each step, and needs an existing process "
    "group. `nan_to_num` with a skipped `optimizer.step()` after the backward pass may suit the training better.",
)

RULES = (RANK_LOCAL_SKIP,)
