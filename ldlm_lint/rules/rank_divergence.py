"""Family 72: ranks that leave a step which the others take."""

from __future__ import annotations

from ldlm_lint.model import Applicability, Confidence, Consequence, Frequency, Reference, Rule

RANK_LOCAL_SKIP = Rule(
    code="E7234",
    symbol="rank-local-skip",
    frequency=Frequency.STEP,
    consequence=Consequence.HANG,
    message="%(cause)s makes one rank skip its backward pass while the others wait in theirs: decide it over all ranks",
    summary="A training step that one rank leaves between forward and backward, by itself.",
    rationale="Under DDP, FSDP and DeepSpeed the backward pass is a collective: each rank waits for the gradients of all others. A "
    "rank whose own loss is not finite, or that runs out of memory, and therefore goes on with the next batch does not take part. The "
    "others wait for it until the process group times out; where the skipping rank comes to its next backward first, the "
    "gradients of different batches are added up, and from then on the ranks are a step apart.",
    cost="The job hangs until the timeout of the process group and dies, at the first batch that the skip was written for.",
    exceptions="A flag or loss that was reduced over the ranks before it is asked; a process that exits; a skip of `optimizer.step()` "
    "behind the backward pass, where all ranks hold the same gradients; a training of one process. None of these is reported.",
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
    fix_safety="Shown only: it adds a collective and a synchronisation to each step, and needs a process group that exists; `nan_to_num` "
    "with a skipped `optimizer.step()` behind the backward pass may be what suits the training better.",
)

RULES = (RANK_LOCAL_SKIP,)
