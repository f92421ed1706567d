"""checkpoint-saves-live-state: a state that keeps changing while it waits to be saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ldlm_lint.concepts.live_states import Kept, LiveStates
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Frequency,
    Reference,
    Related,
    Rule,
    Span,
)
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Expr

RULE = Rule(
    code="E7607",
    symbol="checkpoint-saves-live-state",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="%(what)s, not a copy, and %(how)s: copy the state first",
    summary="A state that keeps changing while it waits to be saved.",
    rationale="The tensors of a `state_dict()` are those of the model and the optimizer, not copies. If a thread "
    "saves them, the next steps change them while the thread writes: the file mixes states of several steps. If they "
    "are kept as the best state of a training, they hold the last state when the loop ends. A dictionary "
    "comprehension copies nothing, and `.cpu()` does not copy a tensor that is already on the CPU.",
    cost="A checkpoint of a state that no step of the training had, or the last state saved as the best one, without "
    "any error.",
    exceptions="A copy (`copy.deepcopy`, `clone`), a function that waits for its thread, processes, which get a copy, "
    "and `torch.distributed.checkpoint.async_save`, which makes one.",
    versions="All versions. `torch.distributed.checkpoint.async_save` exists since torch 2.3.",
    verification="Keep `model.state_dict()`, take a step and compare one of its tensors with the model's. The test "
    "suite contains a program that saves in a thread and finds a later state in the file.",
    references=(
        Reference(
            "Saving and loading models", "https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html"
        ),
        Reference(
            "Asynchronous saving", "https://docs.pytorch.org/tutorials/recipes/distributed_async_checkpoint_recipe.html"
        ),
    ),
    reads=("py",),
    triggers=(b"state_dict(",),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: `copy.deepcopy` needs the memory of the state once more, on the GPU if the state is "
    "there. Copying it to the CPU tensor by tensor may be better.",
)

_STATE = "`state_dict()` returns the live tensors"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The states that a thread gets, and those that are kept across further steps."""
    for call, states in code[LiveStates].given_to_threads():
        if code.trainings.belong_to(code.path(call.module)):
            args = {"what": _STATE, "how": "a thread saves them while the next steps change them"}
            yield code.finding(RULE, call.span, args, fix=_fix(code, states))
    for kept in code[LiveStates].kept():
        if code.trainings.belong_to(code.path(kept.value.module)):
            yield _of_kept(code, kept)


def _of_kept(code: ProjectCode, kept: Kept) -> Finding:
    note = "by now this is the model of the last step" if kept.whole else "by now this is the state of the last step"
    how = "it is kept while further steps change it" if kept.whole else "they are kept while further steps change them"
    name = kept.value.name if kept.value.kind in ("param", "free") else kept.value.text
    args = {"what": f"{quoted(name)} is the model itself" if kept.whole else _STATE, "how": how}
    fix = None if kept.whole else _fix(code, [kept.value])
    return code.finding(RULE, _statement(code, kept), args, [Related(kept.use.line_span, note)], fix=fix)


def _statement(code: ProjectCode, kept: Kept) -> Span:
    """The assignment: from the beginning of its line."""
    source, line = code.source(kept.value.module), kept.event.spot.line_span
    text = source.slice(line)
    return source.span(line.start + len(text) - len(text.lstrip()), line.end)


def _fix(code: ProjectCode, states: Sequence[Expr]) -> Fix:
    """``copy.deepcopy`` around states that go on changing."""
    source = code.source(states[0].module)
    edit, deepcopy = ensure_import(source, "copy", "deepcopy")
    edits = [edit] if edit is not None else []
    for span in (state.unnamed.span for state in states):
        edits += [Edit(source.span(span.start, span.start), f"{deepcopy}("), Edit(source.span(span.end, span.end), ")")]
    reason = "the copy takes the memory of the state once more, on the same device"
    return Fix("copy the state first", tuple(sorted(set(edits))), Applicability.DISPLAY, reason)
