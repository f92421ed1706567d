"""whole-model-checkpoint: a whole stack of blocks as one checkpointed segment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.checkers.memory.segment_fixes import DOCUMENTATION, IMPORTS, TECHNIQUES, function_of
from ldlm_lint.concepts.block_stacks import BlockStacks
from ldlm_lint.concepts.segments import Segment, Segments
from ldlm_lint.edits.written_parts import parts_of
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Probe,
    Related,
    Rule,
)
from ldlm_lint.program.handles import Call
from ldlm_lint.vocabulary.modules import OWN_KEYWORDS

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Class

RULE = Rule(
    code="W7505",
    symbol="whole-model-checkpoint",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="one checkpointed segment covers %(blocks)s in `self.%(model)s`, so its backward pass computes all their "
    "activations again at once and peak memory does not fall: checkpoint each of them instead",
    summary="A whole stack of blocks checkpointed as one segment.",
    rationale="The backward pass of a segment first computes all its activations again and then holds them together. "
    "If the one segment is the whole model, that is as much memory as without checkpointing, only a moment later, and "
    "one more forward pass. Many segments save memory, because one at a time is computed again: each block, or each "
    "few blocks.",
    cost="Time: about one more forward pass. Memory: 98.0 MiB peak for 24 layers in one segment, 98.0 without "
    "checkpointing, 52.1 with a segment per layer (measured).",
    exceptions="Not reported: a model of several such stacks, each a separate segment, and a stack that is itself one "
    "of many blocks.",
    versions="All versions of torch.",
    verification="Compare `torch.cuda.max_memory_allocated()` over one step, with and without it.",
    references=(DOCUMENTATION, TECHNIQUES),
    reads=("py",),
    triggers=(b"checkpoint",),
    requires=(IMPORTS,),
    confidence=Confidence.MEDIUM,
    default=False,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: removing the segment without checkpointing the blocks, which are called in another class, "
    "would save as little memory, only without the recomputation.",
    probe=Probe(
        "recomputed-blocks",
        "one checkpointed segment held a whole stack of blocks",
        experiment="activation-checkpointing",
        bound_experiment=True,
    ),
)

_TITLE = "checkpoint each block where it is called, and call the module itself here"
_REASON = "until the blocks are checkpointed, all activations stay in memory"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The models that have one segment, not in a loop, of an attribute that runs a stack of blocks."""
    segments: dict[Class, list[Segment]] = {}
    for one in code[Segments].all:
        owner = next((function.owner for function in one.call.function.around if function.owner is not None), None)
        if owner is not None:
            segments.setdefault(owner, []).append(one)
    for model, own in segments.items():
        first = own[0]
        made = _made_once(first)
        if made is None or first.call.loops or len({function_of(one.call) for one in own}) > 1:
            continue
        blocks = code[BlockStacks].blocks_of(made, model)
        if blocks and not code[BlockStacks].is_one_of_many(model):
            related = [Related(made.spot.line_span, "the blocks are created here")]
            yield code.finding(RULE, first.call.span, {"model": first.run.name, "blocks": blocks}, related, fix=_fix(first.call), confidence=RULE.confidence)


def _made_once(segment: Segment) -> Call | None:
    """The call that makes the attribute which a segment runs, if nothing else is ever set there."""
    made = [one.unnamed for one in segment.run.set_to]
    return made[0] if len(made) == 1 and isinstance(made[0], Call) else None


def _fix(call: Call) -> Fix:
    """The call without its segment, and a text about what must be done elsewhere first."""
    given = [one for one in parts_of(call)[1:] if one.name not in OWN_KEYWORDS]
    source = call.code.source(call.module)
    edit = Edit(call.span, f"{function_of(call)}({', '.join(source.slice(one.whole) for one in given)})")
    return Fix(_TITLE, (edit,), Applicability.DISPLAY, _REASON)
