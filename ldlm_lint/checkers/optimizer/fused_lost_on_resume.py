"""fused-lost-on-resume: fused optimizers that load a state, which has the flag of the run that saved it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.optimizers import Optimizers
from ldlm_lint.edits.written_parts import Part, written_argument
from ldlm_lint.model import (
    Applicability,
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
from ldlm_lint.vocabulary.fused_kernels import WITH_FUSED

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Argument, Call

RULE = Rule(
    code="I7304",
    symbol="fused-lost-on-resume",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="`%(optimizer)s(fused=True)` loses the flag when `load_state_dict()` loads a checkpoint that was saved without "
    "it, and then runs the slower default implementation: set `fused` in the state before loading it",
    summary="A fused optimizer whose state is restored from a checkpoint that can have been saved without `fused`.",
    rationale="`load_state_dict` replaces the options of every parameter group with those of the checkpoint, "
    "including `fused`. After resuming from a checkpoint of a run without `fused`, the optimizer silently runs the "
    "default implementation again.",
    cost="The speed of the fused kernels is lost silently.",
    exceptions="If all checkpoints were written with `fused=True`, the flag is kept.",
    versions="torch 2.0 to 2.13.",
    verification="Print `optimizer.param_groups[0]['fused']` after `load_state_dict`: it is `None`, although the "
    "constructor got `True`.",
    references=(
        Reference("torch.optim.AdamW", "https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html"),
        Reference("torch.optim.Optimizer", "https://github.com/pytorch/pytorch/blob/main/torch/optim/optimizer.py"),
    ),
    reads=("py",),
    triggers=(),
    default=False,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: the code does not show whether older checkpoints exist. Set the flag in the state before "
    "loading it: if it is set on the optimizer afterwards, the step counts stay on the CPU, where GPU kernels cannot "
    "read them.",
    probe=Probe("optimizer-flags", "restoring the optimizer's state switched fused off"),
)

_PLACES = frozenset({"attr", "item"})


def find(code: ProjectCode) -> Iterator[Finding]:
    """The fused optimizers that load a state, where nothing sets the flag again."""
    optimizers = code[Optimizers]
    for call in code.calls(WITH_FUSED):
        made, loads = optimizers.only_of_torch(call, WITH_FUSED), optimizers.restoring(call)
        if made and loads and _may_be_on(call.argument("fused")) and not optimizers.set_in_groups("fused", call):
            args = {"optimizer": optimizers.called(call, made)}
            related = [Related(loads[0].line_span, "the flags of the checkpoint replace those of the constructor")]
            yield code.finding(RULE, call.span, args, related, fix=_fix(code, loads[0]), confidence=RULE.confidence)


def _may_be_on(fused: Argument) -> bool:
    return fused.is_given and not all(one.is_falsy for one in fused.values)


def _fix(code: ProjectCode, load: Call) -> Fix | None:
    """Set the flag in the state before it is loaded: set afterwards, the step counts would stay on the CPU, where the
    kernels of a GPU cannot read them."""
    source, state = code.source(load.module), written_argument(load, "state_dict", 0)
    is_statement = load.is_dropped and load.span.start == load.line_span.start
    if state is None or not is_statement or len(load.arguments) != 1 or not _is_held(load, state) or _loads_others(load):
        return None
    line, start, newline = source.lines[load.line - 1], source.line_starts[load.line - 1], source.newline
    indent = line[: len(line) - len(line.lstrip())]
    step = "\t" if indent.endswith("\t") else "    "
    new = f'{indent}for group in {state.text}["param_groups"]:{newline}{indent}{step}group["fused"] = True{newline}'
    edit, reason = Edit(source.span(start, start), new), "the code does not show whether older checkpoints exist"
    return Fix("set fused in the state before loading it", (edit,), Applicability.DISPLAY, reason)


def _is_held(load: Call, state: Part) -> bool:
    """Whether a state is the same each time its expression is read: no call gives it."""
    called = any(state.span.start <= one.span.start < state.span.end for one in load.function.calls)
    return (state.is_name or load.arguments[0].kind in _PLACES) and "\n" not in state.text and not called


def _loads_others(load: Call) -> bool:
    """Whether the call also loads the states of other objects."""
    return load.receiver is None or load.receiver.count_of_values != 1
