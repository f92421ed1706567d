"""reentrant-checkpoint-misuse: calls of the reentrant checkpoint with arguments that it cannot handle."""

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
from ldlm_lint.concepts.recomputing import Recomputing
from ldlm_lint.concepts.segments import Misuse, Segment, Segments
from ldlm_lint.edits.written_parts import keyword_of, parts_of
from ldlm_lint.model import Applicability, Consequence, Finding, Fix, Probe, Rule
from ldlm_lint.vocabulary.segments import FLAG, NON_REENTRANT
from ldlm_lint.wording import listed, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call

RULE = Rule(
    code="E7504",
    symbol="reentrant-checkpoint-misuse",
    consequence=Consequence.CRASH,
    message="%(problem)s; %(advice)s",
    summary="A reentrant checkpoint (`use_reentrant=True` or omitted) with arguments that it cannot handle.",
    rationale="The reentrant implementation is an autograd function of its positional tensors. Keyword arguments for "
    "the checkpointed function, `context_fn` and `debug=True` raise a ValueError. Tensors inside a tuple, list or "
    "dictionary are not inputs of that function, so no gradient flows back through them. If no tensor input requires "
    "a gradient at all, such as the output of a frozen embedding, the output requires none and the parameters of the "
    "segment silently get no gradients.",
    cost="An error in the first step, or parameters that never train, with at most a warning.",
    exceptions="Not reported: containers of sizes or masks only, inputs on which `requires_grad_()` was called, "
    "as `enable_input_require_grads()` of transformers does, and checkpoints under a switch that nothing in the project "
    "turns on.",
    versions="torch 2.0 to 2.13; omitting the flag still means the reentrant implementation in 2.13.",
    verification="Look for parameters whose `grad` is `None` after the first backward pass, with checkpointing on and "
    "off.",
    references=(DOCUMENTATION, TECHNIQUES),
    reads=("py",),
    needs="checkpoint(use_reentrant=)",
    triggers=(b"checkpoint",),
    requires=(IMPORTS,),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: it changes the implementation. Parameters that got no gradients now train, and a segment that "
    "saves other tensors when it is recomputed raises. Keyword arguments are then passed to the function: if its "
    "signature does not accept them, or the project allows a torch before 1.11, which has no `use_reentrant`, nothing "
    "is changed and the reason is shown.",
    probe=Probe("gradients-of-segments", "parameters of a reentrant segment got no gradient"),
    overrides="the call raises or drops gradients with it",
)

_ADVICE = "pass `use_reentrant=False`"


def find(code: ProjectCode) -> Iterator[Finding]:
    """All segments with such arguments that something may switch on."""
    segments = code[Segments]
    for segment in segments.all:
        call = segment.call
        misuse = segments.misuse(call)
        if misuse is not None and call not in segments.failing and not code[Recomputing].is_off(call):
            is_taken = segment.is_taken if segment.handed or call.unpacked else True
            args = {"problem": _problem(segment, misuse), "advice": _other_call(call) if is_taken is False else _ADVICE}
            yield code.finding(RULE, call.span, args, fix=_fix(segment, is_taken), confidence=RULE.confidence)


def _problem(segment: Segment, misuse: Misuse) -> str:
    given = misuse.input
    if given is None:
        names = listed(f"{name}=" for name in misuse.rejected)
        chosen = "used when `use_reentrant` is omitted" if keyword_of(segment.call, "use_reentrant") is None else "`use_reentrant=True`"
        return (
            f"`checkpoint()` is called with {names}, which the reentrant implementation ({chosen}) rejects: "
            "this line raises ValueError as soon as it runs"
        )
    kind = given.unnamed.kind
    if kind in ("seq", "map"):
        container = "a dictionary" if kind == "map" else "a tuple" if given.unnamed.is_tuple else "a list"
        return f"the reentrant `checkpoint()` does not see tensors inside {container}: they silently get no gradient"
    written = parts_of(segment.call)[1 + segment.inputs.index(given)].text
    return f"{quoted(written)} requires no gradient, so the reentrant `checkpoint()` silently gives the parameters of this segment none either"


def _other_call(call: Call) -> str:
    """What to do if the function does not accept what it is called with: the flag would only change the error."""
    return (
        f"{quoted(function_of(call))} does not accept these arguments either, so call it as its signature allows: "
        "`use_reentrant=False` alone would only raise TypeError instead"
    )


def _fix(segment: Segment, is_taken: bool | None) -> Fix | None:
    """Choose the other implementation, which calls the function with the keywords, too: only shown if that may raise."""
    function = function_of(segment.call)
    if is_taken is False:
        reason = f"{function} cannot be called with {', '.join(segment.handed)}: with use_reentrant=False alone this line would raise TypeError"
        return Fix(f"call {function} as its signature allows, then set use_reentrant=False", (), Applicability.DISPLAY, reason)
    edit = choice_of_implementation(segment.call)
    reason = NON_REENTRANT if is_taken else f"{NON_REENTRANT}; {may_still_raise(function, segment.handed)}"
    level = Applicability.UNSAFE if is_taken else Applicability.DISPLAY
    return Fix("set use_reentrant=False", (edit,), level, reason, needs=(tables.interface(FLAG),)) if edit is not None else None
