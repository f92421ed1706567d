"""host-sync-in-training-loop: reads of device values in all code that a training step runs, by where values are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.devices import HostBatches
from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.every_step import EveryStep
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.reads import Need, Reads
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.switched_off import SwitchedOff
from ldlm_lint.concepts.waits import Wait, Waits
from ldlm_lint.model import (
    Applicability,
    Confidence,
    Consequence,
    Edit,
    Fix,
    Frequency,
    Probe,
    Reference,
    Related,
    Rule,
)
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.vocabulary.reading import READS
from ldlm_lint.vocabulary.wait_advice import (
    ALL_AT_ONCE,
    ALWAYS,
    BY_OPERATION,
    COPIED,
    DECIDED,
    FILLED,
    INDEXED,
    OTHERWISE,
    RUNS,
    SIZED,
    TESTED,
    Advice,
)
from ldlm_lint.vocabulary.wait_remarks import says_host, says_sync
from ldlm_lint.wording import RUNS_IN_EVERY_STEP, quoted, remark_at

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding

RULE = Rule(
    code="W7507",
    symbol="host-sync-in-training-loop",
    frequency=Frequency.STEP,
    consequence=Consequence.SLOW,
    message="%(what)s makes Python wait %(where)s%(wait)s: %(advice)s",
    summary="A value is read from the device, or decides a branch on the host, in every training step.",
    rationale="The host launches kernels ahead of the device. `.item()`, `.cpu()`, `.tolist()`, `float(t)`, "
    "`print(t)` and an `if` on a tensor need a number that is still being computed: the host waits until the device "
    "has finished everything that was launched, and then the device waits until the host has launched more. This gap "
    "occurs in every step, and under data parallelism every rank waits for the slowest one. A sum that stays a tensor "
    "(`total += loss.detach()`) and is read once per logging interval costs no wait. A branch on the value can become "
    "`torch.where`, or a check of the last interval.",
    cost="The time that the device is idle while the host launches the next kernels: large if kernels are short or "
    "the host is busy, zero if the device is the bottleneck and the wait is at the end of the step anyway.",
    exceptions="A value that decides what is launched next and cannot be computed in another way (a GradScaler's own "
    "check, actions for an environment, lengths for packing); a step that takes seconds; training on a CPU. Not "
    "reported: reads under a logging interval, in an evaluation, after a check for NaN that was true, or under a "
    "`debug` condition.",
    versions="All versions of torch: this is how CUDA streams work.",
    verification="`torch.cuda.set_sync_debug_mode('warn')` around one step reports most of these places (not those of "
    "torch.distributed); in a profile they are long `cudaStreamSynchronize` or `cudaMemcpyAsync` calls. This needs a "
    "GPU, because nothing is asynchronous on a CPU.",
    references=(
        Reference(
            "Performance tuning guide: avoid unnecessary CPU-GPU synchronization",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
        Reference(
            "CUDA semantics: asynchronous execution",
            "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
        ),
        Reference(
            "torch.cuda.set_sync_debug_mode",
            "https://docs.pytorch.org/docs/stable/generated/torch.cuda.set_sync_debug_mode.html",
        ),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.MEDIUM,
    applicability=Applicability.DISPLAY,
    fix_safety="Shown only: the code that reads the value decides how long it can stay on the device; a sum that "
    "becomes a tensor needs `.item()` where it is read.",
    probe=Probe("host-wait", "the call waits for the device in every step", device_bound=True),
)
FOR_ALL = " until the GPU has finished all queued work, and the GPU then idles until new kernels arrive"
"""What a wait is for, the field ``wait`` of the message."""
_BY_NEED = {None: DECIDED, Need.DECIDES: DECIDED, Need.INDEXES: INDEXED, Need.SIZES: SIZED}
_CONVERTS = frozenset({"float", "int", "bool"})
# A longer tensor is named by the beginning of the message already.
_LONGEST = 40
_ITEM = ".item()"
_READ_LATER = "the sum becomes a tensor, and code that reads it must call `.item()` there"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The waits that surely run in every step, of those on one line the first."""
    sure = [wait for wait in code[Waits].all() if code[EveryStep].chain(wait.spot) is not None]
    for _, line in itertools.groupby(sure, key=lambda wait: (wait.expr.module.path, wait.spot.line)):
        waits = list(line)
        step = code[EveryStep].step_around(waits[0].spot) or waits[0].spot
        path = code.path(step.function.module)
        if code.trainings.run_on_accelerator(path) and not code.trainings.only_differentiate(path):
            meant = (wait for wait in waits if not _is_meant(code, wait))
            yield from (_finding(code, wait) for wait in itertools.islice(meant, 1))


def _is_meant(code: ProjectCode, wait: Wait) -> bool:
    """Whether the author means a wait, it cannot be avoided, or it does not happen in each step."""
    remark, function = remark_at(code.source(wait.expr.module), wait.span.start, wait.span.end), wait.spot.function
    return (
        says_sync(remark)
        or says_host(remark)
        or (code[Evaluation].is_named_so(function) and not code[Reach].is_certain(function))
        or code[SwitchedOff].is_one(wait.spot)
        or code[Rhythm].is_rare(wait.spot)
        or code[HostBatches].trains_on(function)
        or code[Reads].has_to_be_on_host(wait.expr, wait.spot)
    )


def _finding(code: ProjectCode, wait: Wait) -> Finding:
    chain = code[EveryStep].chain(wait.spot)
    step = code[EveryStep].step_around(wait.spot) or wait.spot
    text = quoted(code.source(wait.expr.module).slice(wait.span))
    what = f"the condition {text}" if wait.what in ("test", "truth") else f"formatting {text}" if wait.what == "format" else text
    args = {"what": what, "where": code.each_step(step, wait.expr.module), "wait": FOR_ALL, "advice": _advice(code, wait)}
    is_assumed = chain is not None and code[EveryStep].is_assumed(chain.step)
    related = Related(step.line_span, RUNS_IN_EVERY_STEP)
    return code.finding(RULE, wait.span, args, (related,), fix=_fix(code, wait), confidence=Confidence.LOW if is_assumed else Confidence.MEDIUM)


def _advice(code: ProjectCode, wait: Wait) -> str:
    """A value that is needed immediately must be known earlier, or used on the GPU; any other can be read later."""
    name, expr, reads = wait.what.removeprefix("torch.").removeprefix("?"), wait.expr, code[Reads]
    if name in ALWAYS:
        return ALWAYS[name]
    if name == "mask" and expr.kind == "upd":
        return FILLED
    if name in BY_OPERATION:
        return _of(code, expr, BY_OPERATION[name])
    need = reads.need_of(expr)
    if need is Need.FINITE:
        return TESTED
    if _is_one_of_many(code, expr):
        return ALL_AT_ONCE
    if need is not None or name in ("test", "truth"):
        only_runs = _BY_NEED[need] is DECIDED and reads.only_decides_what_runs(expr, wait.spot.function)
        return _of(code, expr, RUNS if only_runs else _BY_NEED[need])
    if isinstance(expr, Call) and expr.callee.kind == "attr" and name in READS:
        return _later(code, expr, expr.callee.text.rpartition(".")[0].rstrip(), f"`.{name}()`" if name not in ("cpu", "to") else "")
    if isinstance(expr, Call) and expr.positional and name in READS | _CONVERTS:
        return _later(code, expr, expr.text.partition("(")[2].removesuffix(")").strip(), f"`{name}()`")
    return f"keep it on the GPU if you only log it, otherwise {_of(code, expr, OTHERWISE)}"


def _of(code: ProjectCode, expr: Expr, advice: Advice) -> str:
    """The advice for a value of the batch, if that is surely all that the value is made of."""
    if expr.index is not None:
        read = expr.index.operands if expr.index.kind in ("seq", "slice") else [expr.index]
    else:
        read = [*expr.arguments, *([expr.receiver] if expr.receiver is not None else [])] if isinstance(expr, Call) else [expr]
    tensors = [one for one in read if one.may_be_tensor]
    return advice.of_batch if tensors and code[Reads].are_of_batch(tensors) else advice.of_model


def _is_one_of_many(code: ProjectCode, expr: Expr) -> bool:
    """Whether a loop inside of the step reads one entry of a tensor after another."""
    if not isinstance(expr, Call) or not expr.loops or code[Steps].are_loops(expr.loops[0]):
        return False
    value = expr.receiver if expr.receiver is not None and not expr.positional else next(iter(expr.positional), None)
    read = value.plain if value is not None else expr
    if read.kind == "item" and read.index is not None:
        return read.index.plain.kind in ("elem", "part")
    return read.kind == "elem" and read.base is not None and read.base.may_be_tensor


def _later(code: ProjectCode, expr: Expr, tensor: str, read: str) -> str:
    """The advice to keep a detached tensor and to read it only occasionally; outside of its function it may be needed."""
    text, is_kept = tensor.removesuffix(".data"), code[Reads].is_only_kept(expr)
    if not read and not is_kept:
        return f"keep {quoted(text, _LONGEST)} on the GPU, or copy it only every N steps"
    kept = text if ".detach()" in text else f"{text}.detach()"
    shown = quoted(kept) if len(kept) <= _LONGEST else "the tensor"
    if not is_kept:
        return f"keep {shown} if you only log it, otherwise {_of(code, expr, OTHERWISE)}"
    return f"keep {shown} and call {read} only when you log" if read else COPIED % shown


def _fix(code: ProjectCode, wait: Wait) -> Fix | None:
    """``total += loss.detach()``: a read that only adds up can become a tensor without more ado."""
    source, end = code.source(wait.expr.module), wait.span.end
    if wait.what.removeprefix("?") != "item" or not code[Reads].is_added(wait.expr) or not source.slice(wait.span).endswith(_ITEM):
        return None
    edit = Edit(source.span(end - len(_ITEM), end), ".detach()")
    return Fix("add up the tensor instead of its value", (edit,), Applicability.DISPLAY, _READ_LATER)
