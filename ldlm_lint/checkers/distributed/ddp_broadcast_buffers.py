"""ddp-broadcast-buffers: wrappers that leave out the broadcast of random buffers, or name it by its old name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.concepts.random_buffers import RandomBuffers
from ldlm_lint.concepts.replicas import Replicas
from ldlm_lint.edits.keywords import remove_arguments
from ldlm_lint.edits.written_parts import keyword_of
from ldlm_lint.model import Applicability, Confidence, Consequence, Edit, Finding, Fix, Probe, Reference, Rule, Span
from ldlm_lint.vocabulary.wrappers import DDP

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.source import Source

RULE = Rule(
    code="I7228",
    symbol="ddp-broadcast-buffers",
    consequence=Consequence.WRONG_RESULT,
    message="%(problem)s",
    summary="`broadcast_buffers=False` around a model with random buffers, or any `broadcast_buffers` if torch 2.13 "
    "is the oldest version.",
    rationale="Since torch 2.1 `broadcast_buffers=False` skips not only the broadcast before each forward pass but "
    "also the one at construction. Buffers that each rank draws from its own random stream (codebooks, random "
    "projections, noise) then differ between the ranks for the whole run, and only those of rank 0 are saved. torch "
    "2.13 deprecates the argument in favor of `forward_sync_buffers`, which always synchronizes at construction.",
    cost="Correctness: the ranks silently compute with different buffers. The time that the flag saves was not "
    "measured; models without batch normalization or other changing buffers have little to send.",
    exceptions="All ranks draw the buffers from the same seed, or every rank loads a checkpoint that contains them "
    "before wrapping.",
    versions="torch 2.1 to 2.13 for the missing broadcast, 2.13 for the deprecation (reported if `target-torch` is "
    "2.13).",
    verification="Print a checksum of each buffer on every rank after wrapping.",
    references=(
        Reference(
            "DistributedDataParallel",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
        Reference(
            "torch 2.1.2: DDP passes broadcast_buffers to its initial synchronisation",
            "https://github.com/pytorch/pytorch/blob/v2.1.2/torch/nn/parallel/distributed.py",
        ),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: the buffers are now broadcast at construction or before each forward pass, which they were "
    "not before; `forward_sync_buffers` does not exist before torch 2.13.",
    probe=Probe("buffers-of-ranks", "the buffers of the ranks differ after wrapping"),
    overrides="the ranks compute with different buffers with it",
)

_OPTION, _NEW_OPTION, _RENAMED_IN = "broadcast_buffers", "forward_sync_buffers", (2, 13)
# What follows differs between torch versions: 2.13 has `init_sync` where 2.0 has `process_group`.
_POSITIONAL = tables.positional("torch.nn.parallel.DistributedDataParallel")
_DEPRECATED = (
    "`broadcast_buffers` is deprecated since torch 2.13: rename it to `forward_sync_buffers`, with which DDP always broadcasts buffers at construction"
)
_DRAWN = (
    "`broadcast_buffers=False` also skips the broadcast at construction since torch 2.1: each rank keeps the random values that it "
    "drew for `%s.%s`; leave `broadcast_buffers` at its default"
)


def find(code: ProjectCode) -> Iterator[Finding]:
    """The wrappers with the option: any where torch has renamed it, else those of models whose ranks draw buffers."""
    for call in code.calls(DDP):
        given, written = call.argument(_OPTION, _POSITIONAL.index(_OPTION)), keyword_of(call, _OPTION)
        if not given.values or len(call.positional) > len(_POSITIONAL):
            continue
        source, place = code.source(call.module), written.whole if written is not None else None
        oldest = code.torch_of(call.module).oldest
        if oldest is not None and oldest >= _RENAMED_IN:
            fix = _rename(source, place) if place is not None else None
            yield code.finding(RULE, place or call.span, {"problem": _DEPRECATED}, fix=fix, confidence=RULE.confidence)
        elif given.only is False and code[Replicas].train(call):
            drawn = next(filter(None, map(code[RandomBuffers].of, call.argument("module", 0).values)), None)
            if drawn is not None and not code[RandomBuffers].are_drawn_alike(call):
                edits = remove_arguments(source, [place]) if place is not None else None
                reason = "buffers are then broadcast at construction and before each forward pass"
                fix = Fix("leave broadcast_buffers at its default", edits, Applicability.UNSAFE, reason) if edits else None
                args = {"problem": _DRAWN % (drawn.owner.name, drawn.name)}
                yield code.finding(RULE, place or call.span, args, fix=fix, confidence=RULE.confidence)


def _rename(source: Source, keyword: Span) -> Fix:
    edit = Edit(source.span(keyword.start, keyword.start + len(_OPTION)), _NEW_OPTION)
    reason = "torch before 2.13 has no `forward_sync_buffers`, and False no longer skips the broadcast at construction"
    needs = (tables.interface("DistributedDataParallel(forward_sync_buffers=)"),)
    return Fix("rename broadcast_buffers to forward_sync_buffers", (edit,), Applicability.UNSAFE, reason, needs=needs)
