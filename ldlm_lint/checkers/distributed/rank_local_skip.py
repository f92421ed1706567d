"""rank-local-skip: a training step that one rank can leave before its backward pass, on its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.lightning_trainers import LightningTrainers
from ldlm_lint.concepts.lone_skips import LoneSkips, Skip
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.model import Applicability, Confidence, Consequence, Edit, Finding, Fix, Frequency, Reference, Rule, Span
from ldlm_lint.wording import any_of, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
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
    triggers=(),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: it adds a collective and a synchronization to each step, and needs an existing process "
    "group. `nan_to_num` with a skipped `optimizer.step()` after the backward pass may suit the training better.",
)

_REASON = "each step then has one more collective and synchronization, which needs a process group"
_LONGEST = 40


def find(code: ProjectCode) -> Iterator[Finding]:
    """The skips of trainings on several ranks; Lightning may use one device or many."""
    for module in code.modules:
        if code.trainings.run_on_many_ranks(code.path(module)):
            for skip in (one for function in code.functions_in(module) for one in code[LoneSkips].in_function(function)):
                if not skip.lightning or code[LightningTrainers].may_use_ranks(module):
                    yield code.finding(RULE, _place(skip), {"cause": _cause(skip)}, fix=_fix(code, skip), confidence=Confidence.MEDIUM)


def _place(skip: Skip) -> Span:
    return skip.guard.test_span if skip.guard.test.kind != "none" else skip.guard.line_span


def _cause(skip: Skip) -> str:
    if skip.value is None:
        return f"{any_of(skip.caught)}, which can occur on one rank alone,"
    return f"the test of {quoted(_name_of(skip))}"


def _name_of(skip: Skip) -> str:
    """What the tested value is called there."""
    name = skip.value.called_in(skip.value.function) if skip.value is not None else ""
    return name if 0 < len(name) < _LONGEST else "a loss"


def _fix(code: ProjectCode, skip: Skip) -> Fix:
    """Let the ranks decide together; with edits if the test of a loss is on its own line."""
    return Fix("let all ranks decide together", _edits(code, skip), Applicability.DISPLAY, _REASON)


def _edits(code: ProjectCode, skip: Skip) -> tuple[Edit, ...]:
    """Put the decision into a tensor and take its maximum over the ranks before the test."""
    source, place, name = code.source(skip.guard.module), _place(skip), _name_of(skip)
    whole, test = skip.guard.line_span, source.slice(place)
    is_plain = name.isidentifier() and "loss" in name.lower() and name in test and "math." not in test
    if not skip.leaves or skip.lightning or not is_plain or not source.slice(whole).startswith("if "):
        return ()
    needed, distributed = ensure_import(source, "torch", "distributed")
    line = source.lines[skip.guard.line - 1]
    indent = source.newline + line[: len(line) - len(line.lstrip())]
    text = f"skip = {name}.new_tensor(float(bool({test}))){indent}{distributed}.all_reduce(skip, op={distributed}.ReduceOp.MAX){indent}"
    edits = (Edit(source.span(whole.start, whole.start), text), Edit(place, "skip"))
    return tuple(filter(None, (needed, *edits)))
