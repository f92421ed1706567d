"""checkpoint-saved-by-every-rank: a checkpoint that several ranks of a training write to one path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.rank_tests import Who
from ldlm_lint.concepts.shared_saves import SharedSave, SharedSaves
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
)
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="E7602",
    symbol="checkpoint-saved-by-every-rank",
    frequency=Frequency.EPOCH,
    consequence=Consequence.DATA_LOSS,
    message="%(who)s of the training in %(where)s writes this file at the same time, because %(why)s on the way here: "
    "the ranks overwrite each other's data and the file can be broken; save on rank 0 only",
    summary="A checkpoint that all ranks of a distributed training write to the same path.",
    rationale="Every rank runs the same lines. Without a check of the rank, all ranks save to one path: they truncate "
    "and overwrite the file at the same time, and a reader, or the first rank to finish, finds a broken file. The "
    "tutorial on DistributedDataParallel saves in one process only.",
    cost="A checkpoint that may not load, and one write per rank instead of a single write.",
    exceptions="A check of the rank in the function, in a wrapper, in a decorator, at the call site or in any caller; "
    "a path that contains the rank; sharded checkpoints (`torch.distributed.checkpoint`, DeepSpeed's "
    "`save_checkpoint`, `accelerator.save_state`), which every rank must write; programs that start no process group.",
    versions="All versions.",
    verification="Start the training with two processes and check which of them open the file, or let every process "
    "log the save. The test suite contains a program in which two ranks write one file (gloo).",
    references=(
        Reference("torch.save", "https://docs.pytorch.org/docs/stable/generated/torch.save.html"),
        Reference(
            "DDP tutorial: save and load checkpoints", "https://docs.pytorch.org/tutorials/intermediate/ddp_tutorial.html"
        ),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: a `state_dict()` that gathers shards must be called on every rank, and the others may "
    "have to wait at a barrier before they read the file.",
    probe=Probe("checkpoint-files", "several ranks wrote the same path"),
)

_COLLECTIVE = "a `state_dict()` that gathers shards must be called by every rank, and `get_rank()` needs a process group"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The saves that several ranks make, those of one block together."""
    for one in code[SharedSaves].find():
        first, *others = (save.call for save in one.saves)
        path = code.path(one.way.start.module)
        args = {"who": one.who.value, "why": _why(one), "where": quoted(path.rpartition("/")[2])}
        related = [Related(call.span, "this is saved together with it") for call in others] + list(_on_the_way(one))
        fix = _fix(code, first) if not others and not one.test else None
        yield code.finding(RULE, first.span, args, related, fix=fix, confidence=Confidence.MEDIUM)


def _why(one: SharedSave) -> str:
    if one.who is Who.NODES:
        return f"only the local rank is checked ({quoted(one.test)})" if one.test else "only the local rank is checked"
    return f"{quoted(one.test)} excludes only one rank" if one.test else "nothing checks the rank"


def _on_the_way(one: SharedSave) -> Iterator[Related]:
    who = "the first rank of each node" if one.who is Who.NODES else "every rank"
    if one.launch is not None:
        yield Related(one.launch, "this launch uses several nodes")
    if one.way.shown is not None:
        yield Related(one.way.shown.line_span, f"{who} reaches this call and saves")


def _fix(code: ProjectCode, call: Call) -> Fix | None:
    """``if get_rank() == 0:`` around a save that is a single statement on its own lines."""
    source, span = code.source(call.module), call.span
    first, column = source.position(span.start)
    last, end = source.position(span.end)
    before, after = source.lines[first - 1][: column - 1], source.lines[last - 1][end - 1 :]
    if before.strip() or after.partition("#")[0].strip() or not call.is_dropped or '"""' in call.text:
        return None
    edit, get_rank = ensure_import(source, "torch.distributed", "get_rank")
    step = "\t" if before.endswith("\t") else "    "
    edits = [Edit(source.span(span.start, span.start), f"if {get_rank}() == 0:{source.newline}{before}{step}")]
    starts = (source.line_starts[number] for number in range(first, last) if source.lines[number].strip())
    edits += [Edit(source.span(start, start), step) for start in starts]
    return Fix("save on rank 0 only", tuple(sorted([*edits, *([edit] if edit else [])])), Applicability.DISPLAY, _COLLECTIVE)
