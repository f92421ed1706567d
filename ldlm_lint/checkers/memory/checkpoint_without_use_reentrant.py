"""checkpoint-without-use-reentrant: checkpointed segments that do not choose their implementation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.checkers.memory.segment_fixes import (
    DOCUMENTATION,
    IMPORTS,
    TECHNIQUES,
    choice_of_implementation,
    function_of,
    may_still_raise,
)
from ldlm_lint.concepts.recomputing import CHECKPOINT, SEQUENTIAL, Recomputing
from ldlm_lint.concepts.recorded_runs import RecordedRuns
from ldlm_lint.concepts.segments import Segments
from ldlm_lint.model import Applicability, Consequence, Finding, Fix, Rule
from ldlm_lint.vocabulary.modules import OWN_KEYWORDS
from ldlm_lint.vocabulary.segments import FLAG, NON_REENTRANT

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="W7503",
    symbol="checkpoint-without-use-reentrant",
    consequence=Consequence.DEPRECATED,
    message="`%(function)s()` without `use_reentrant` falls back to the reentrant implementation, which silently drops "
    "gradients when no tensor input requires one and rejects keyword arguments: pass `use_reentrant=False`",
    summary="`torch.utils.checkpoint` without the `use_reentrant` argument.",
    rationale="The default is the old, reentrant implementation. It gives the parameters of the segment no gradients "
    "if none of its tensor arguments requires one (after a frozen embedding). It does not see tensors inside tuples, "
    "lists and dictionaries, and takes no keyword arguments for the function. Under DDP it fails with "
    "`find_unused_parameters=True` or, for a layer used twice, silently computes wrong gradients. The non-reentrant "
    "implementation has none of these limits.",
    cost="A warning in each process, and missing gradients in the cases above. Speed is not the point: the difference "
    "in time and memory was not measured.",
    exceptions="Code that needs the reentrant implementation, such as a segment that saves other tensors when it is "
    "recomputed. Then pass `use_reentrant=True`, which keeps today's behavior explicitly.",
    versions="torch 2.1 to 2.13 warn; torch 2.0 silently uses the reentrant implementation. The warning has announced "
    "an error for several versions, but 2.13 still only warns.",
    verification="Run with `python -W error::UserWarning`, or compare the gradients of all parameters with checkpointing on and off.",
    references=(DOCUMENTATION, TECHNIQUES),
    reads=("py",),
    needs="checkpoint(use_reentrant=)",
    triggers=IMPORTS,
    requires=((b"checkpoint",),),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it changes the implementation. A segment that saves other tensors when it is recomputed "
    "raises, and gradients that were silently missing appear. `use_reentrant=True` would be safe, but would keep the "
    "defect: write it yourself if you need it.",
)


def find(code: ProjectCode) -> Iterator[Finding]:
    """All calls that leave the choice to the default, but for those whose worse problem another rule reports."""
    segments = code[Segments]
    for function in (CHECKPOINT, SEQUENTIAL):
        for call in code.calls({function}):
            if code[Recomputing].chooses_none(call) and segments.misuse(call) is None and call not in segments.failing:
                found = code.finding(RULE, call.span, {"function": function.rpartition(".")[2]}, fix=_fix(call), confidence=RULE.confidence)
                # Without a backward pass a segment only runs: which implementation it chooses matters little.
                is_recorded = code[RecordedRuns].is_recorded(call)
                yield found if is_recorded else found.lowered("the model around it runs only where gradients are off")


def _fix(call: Call) -> Fix | None:
    edit = choice_of_implementation(call)
    level, reason = Applicability.UNSAFE, NON_REENTRANT
    handed = sorted(name for one in call.unpacked for name in one.keys if name not in OWN_KEYWORDS)
    if handed:
        # The reentrant implementation raises for them; the other one passes them to the function, which may raise, too.
        level, reason = Applicability.DISPLAY, f"{NON_REENTRANT}; {may_still_raise(function_of(call), handed)}"
    return Fix("set use_reentrant=False", (edit,), level, reason, needs=(tables.interface(FLAG),)) if edit is not None else None
