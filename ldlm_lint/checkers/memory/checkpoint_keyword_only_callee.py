"""checkpoint-keyword-only-callee: checkpointed functions with keyword-only parameters that get their arguments by position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.checkers.memory.segment_fixes import DOCUMENTATION, IMPORTS, function_of
from ldlm_lint.concepts.segments import Segment, Segments
from ldlm_lint.edits.written_parts import keyword_of, parts_of
from ldlm_lint.model import Applicability, Consequence, Edit, Finding, Fix, Related, Rule
from ldlm_lint.vocabulary.segments import FLAG
from ldlm_lint.wording import listed, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="E7506",
    symbol="checkpoint-keyword-only-callee",
    consequence=Consequence.CRASH,
    message="%(function)s takes %(names)s by keyword only, but `checkpoint()` passes its arguments by position: this call "
    "raises TypeError; pass them by keyword, with `use_reentrant=False`",
    summary="A checkpointed function with keyword-only parameters that gets its arguments by position.",
    rationale="`checkpoint(function, *args)` calls `function(*args)`. Parameters after a bare `*` in its signature "
    "cannot be passed by position, so a model that ran as `block(x=x, mask=mask)` fails as soon as its checkpointing "
    "is switched on. The non-reentrant implementation passes keyword arguments on: `checkpoint(block, x=x, mask=mask, "
    "use_reentrant=False)`.",
    cost="A TypeError in the first forward pass with checkpointing.",
    exceptions="Keyword-only parameters with a default that are left out are not reported.",
    versions="torch 2.0 to 2.13. Keyword arguments for the function need `use_reentrant=False`.",
    verification="Run one forward pass with checkpointing switched on, on a CPU.",
    references=(DOCUMENTATION,),
    reads=("py",),
    needs="checkpoint(use_reentrant=)",
    triggers=(b"checkpoint",),
    requires=(IMPORTS,),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: code that raised now runs, with the non-reentrant implementation.",
    overrides="the call raises with it",
)

_REASON = "code that raised then runs, with the non-reentrant implementation"


def find(code: ProjectCode) -> Iterator[Finding]:
    """All segments whose function cannot be called as they call it."""
    segments = code[Segments]
    for segment in segments.all:
        names = segments.failing.get(segment.call)
        if names is not None:
            call, function = segment.call, segment.run.signatures[0].function
            args = {"function": quoted(function_of(call)), "names": listed(names)}
            related = [] if function.module is call.module else [Related(function.spot.line_span, "the signature of the function")]
            yield code.finding(RULE, call.span, args, related, fix=_fix(code, segment, names), confidence=RULE.confidence)


def _fix(code: ProjectCode, segment: Segment, names: list[str]) -> Fix | None:
    """Pass arguments with the names of parameters by keyword, if no positional ones remain and the call is complete."""
    call, parts = segment.call, parts_of(segment.call)
    given = [one for one in parts if not one.name][1:]
    keywords = {*(one.text for one in given), *segment.handed}
    if not given or segment.keywords is None or not {one.text for one in given} <= set(names) or not all(one.takes([], keywords) for one in segment.run.signatures):
        return None
    edits = [Edit(one.span, f"{one.text}={one.text}") for one in given]
    flag, end = keyword_of(call, "use_reentrant"), parts[-1].whole.end
    chosen = Edit(flag.span, "False") if flag is not None else Edit(code.source(call.module).span(end, end), ", use_reentrant=False")
    return Fix("pass the arguments by keyword", (*edits, chosen), Applicability.UNSAFE, _REASON, needs=(tables.interface(FLAG),))
