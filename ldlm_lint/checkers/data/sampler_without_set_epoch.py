"""sampler-without-set-epoch: shuffling samplers of a training whose programs never set their epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.epochs import epoch_of, is_only_binding, lines_in, loops_in_reach
from ldlm_lint.concepts.loader_passes import Pass
from ldlm_lint.concepts.samplers import Neglect, Samplers
from ldlm_lint.edits.lines import indent_at, insert_above
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Finding,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
    Span,
)
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.spots import Event, Spot, Write
from ldlm_lint.vocabulary.loaders import LOADERS
from ldlm_lint.wording import located

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

_SAMPLER = Reference(
    "torch.utils.data.distributed.DistributedSampler",
    "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.distributed.DistributedSampler",
)
RULE = Rule(
    code="W7111",
    symbol="sampler-without-set-epoch",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="%(where)s goes through the data in the same order in every epoch: %(sampler)s derives its order from the "
    "epoch number, which this training never sets; call `set_epoch(epoch)` at the start of each epoch",
    summary="A shuffling `DistributedSampler` whose loader is iterated repeatedly, without `set_epoch` between the "
    "epochs.",
    rationale="`DistributedSampler` shuffles with a generator seeded by `seed + epoch`, and its epoch stays 0 until "
    "`set_epoch(epoch)` is called. Without the call, or with the same number in each epoch, each rank gets the same "
    "samples in the same order, so the batches are the same in every epoch.",
    cost="The data is shuffled once instead of in every epoch, which can reduce the quality of the trained model. Not "
    "measured here.",
    exceptions="A sampler with `shuffle=False`, evaluation, and a run of one epoch. Accelerate and Lightning call "
    "`set_epoch` on the samplers of the loaders that they are given, and the Hugging Face Trainer on the loaders it "
    "creates.",
    versions="All versions. The sampler is in the main process, so `set_epoch` works with `persistent_workers=True` "
    "too.",
    verification="Compare `list(sampler)` before and after an epoch on one rank; a CPU and one process are enough.",
    references=(
        _SAMPLER,
        Reference(
            "torch/utils/data/distributed.py, __iter__ and set_epoch",
            "https://github.com/pytorch/pytorch/blob/v2.10.0/torch/utils/data/distributed.py",
        ),
    ),
    reads=("py",),
    triggers=(b"DistributedSampler", b".backward("),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: each epoch then has another order, which is the purpose of shuffling, but runs are no longer "
    "comparable sample by sample with earlier ones.",
    probe=Probe("sampler-epochs", "a shuffling sampler gave two passes the same order"),
)

_REASON = "each epoch then has another order, which is the purpose of shuffling"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The samplers that no training tells the epoch, and the loops of those that do not while another one does."""
    for one in code[Samplers].neglected:
        sampler, first = one.sampler, one.passes[0]
        if one.everywhere:
            at = _begins(first)
            related = [Related(at.line_span, "this goes through the data in the same order each time")]
            args = {"sampler": "this sampler", "where": code.described(first.function.module, at.place, sampler.module)}
            confidence = Confidence.HIGH if one.is_sure else Confidence.MEDIUM
            yield code.finding(RULE, sampler.span, args, related, fix=_fix(code, sampler), confidence=confidence)
        else:
            yield from _at_loops(code, one)


def _at_loops(code: ProjectCode, one: Neglect) -> Iterator[Finding]:
    """The first loop of each file."""
    told = set[str]()
    for found in one.passes:
        path = code.path(found.function.module)
        if path not in told:
            told.add(path)
            named = f"the DistributedSampler at {located(code.path(one.sampler.module), one.sampler.line, path)}"
            related = [Related(one.sampler.spot.line_span, "the sampler is created here; another training calls its `set_epoch()`")]
            module, at = found.function.module, _begins(found)
            args = {"sampler": named, "where": code.described(module, at.place, module)}
            yield code.finding(RULE, _span(code, found), args, related, confidence=Confidence.HIGH)


def _begins(found: Pass) -> Spot:
    """Where the loop of a pass begins, or the one in which an iterator is made."""
    return found.spot.loop.spot if found.loop is None and found.spot.loop is not None else found.spot


def _span(code: ProjectCode, found: Pass) -> Span:
    """What a pass goes through, as written there; where that is only a name, which has its place elsewhere, the loop."""
    loop = found.loop
    if loop is not None and loop.value.line >= loop.line:
        return loop.value.span
    return code.span(found.function.module, found.spot.place, 0)


def _fix(code: ProjectCode, sampler: Call) -> Fix | None:
    """Call ``set_epoch`` where the sampler, or its loader, and one epoch loop are in reach of each other; None elsewhere."""
    held = _holder(sampler)
    loops = [(loop, name) for loop in loops_in_reach(held[0]) if (name := epoch_of(loop))] if held is not None else []
    if held is None or len(loops) != 1:
        return None
    _, text, certain = held
    loop, epoch = loops[0]
    call_of_it, source = f"{text}.set_epoch({epoch})", code.source(loop.module)
    line = min((one for one in lines_in(loop) if one > loop.value.line), default=0)
    if not line:
        return None
    step = indent_at(source, line).removeprefix(indent_at(source, loop.line))
    guard = f'if hasattr({text}, "set_epoch"):{source.newline}{indent_at(source, line)}{step}'
    edit = insert_above(source, line, call_of_it if certain else f"{guard}{call_of_it}")
    return Fix(f"call {call_of_it} in each epoch", (edit,), Applicability.UNSAFE, _REASON)


def _holder(sampler: Call) -> tuple[Event | Write, str, bool] | None:
    """Where the object for ``set_epoch`` gets its name, that name, and whether it is a sampler in every run."""
    value: Expr = sampler
    choices = [one for one in sampler.users if one.kind == "choice"]
    loader = next((one for one in sampler.users if isinstance(one, Call) and ("sampler", sampler) in one.keywords), None)
    if choices:
        value = choices[0]
    elif loader is not None and loader.callee.interfaces & LOADERS and not sampler.names:
        value = loader
    names: list[tuple[Event | Write, str]] = [(one, one.name) for one in value.function.events if one.kind == "bind" and one.expr == value]
    names += [(one, f"self.{one.name}") for one in value.function.writes if one.value == value and one.base.is_self]
    if len(names) != 1 or (value == loader and not is_only_binding(names[0][0])):
        return None
    bound, text = names[0]
    return bound, f"{text}.sampler" if value == loader else text, not choices and is_only_binding(bound)
