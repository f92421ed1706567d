"""loss-graph-accumulation: a running sum or a list of losses that keeps the graph of each one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.kept_graphs import Kept, KeptGraphs
from ldlm_lint.concepts.value_reads import ValueReads
from ldlm_lint.edits.detaching import detach, statement_at
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
)
from ldlm_lint.program.handles import Call
from ldlm_lint.program.walks import reached
from ldlm_lint.wording import listed, quoted

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

RULE = Rule(
    code="W7510",
    symbol="loss-graph-accumulation",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="%(into)s collects %(loss)s with its autograd graph: the graph of every step stays in memory, which grows with "
    "the number of steps; collect %(detached)s instead",
    summary="A running sum or a list of losses that keeps the graph of each one.",
    rationale="A loss references the graph that computed it, and so does a sum or a list that contains the loss. The "
    "backward pass frees the tensors that were saved for it, but not the nodes of the graph or what these nodes "
    "reference. The sum grows by one graph per step, so host memory grows, and device memory too if a node references "
    "tensors. Freeing such a long graph at the end can take long.",
    cost="Memory that grows with the number of steps: after 10 steps the nodes of all 10 were alive, with `.detach()` "
    "none (measured on torch 2.13). The backward pass does free the saved activations.",
    exceptions="A sum that is itself differentiated, such as the sum of several tasks or micro-batches, needs the "
    "graph and is not reported. A few hundred steps of a small model do no harm.",
    versions="All versions of torch.",
    verification="Print `total.grad_fn` after the loop: it is `None` if the sum holds no graph. Or watch the resident "
    "memory of the process over a few thousand steps.",
    references=(
        Reference(
            "Frequently asked questions: my model reports out of memory",
            "https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",
        ),
        Reference("torch.Tensor.detach", "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html"),
    ),
    reads=("py",),
    triggers=(b"+=", b".append(", b".update(", b".add(", b".push(", b".record(", b".log(", b" + ", b"] = "),
    requires=((b"backward", b"training_step"),),
    applicability=Applicability.SAFE,
    fix_safety="Safe if the sum is a variable of the function that is only divided, compared, converted to a number "
    "or formatted as one (`f\"{total:.4f}\"`). Otherwise unsafe: code that ldlm-lint cannot see may differentiate the sum, "
    "and a tensor prints its `grad_fn`. `.detach()` does not wait for the GPU, as `.item()` would.",
    probe=Probe("live-autograd-nodes", "losses of earlier iterations are alive with their graphs"),
)

_DIFFERENTIATED = "the backward pass of the loss is here"
_BY_FRAMEWORK = "the framework runs the backward pass of this"
_REASON = "not all uses of %s are known: code that differentiates it then finds no graph"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The places that collect losses with their graphs."""
    for kept in code[KeptGraphs].all:
        losses = list(dict.fromkeys(loss.called_in(kept.spot.function) for loss in kept.losses))
        related = [Related(kept.passed.spot.line_span, _BY_FRAMEWORK if kept.passed.call is None else _DIFFERENTIATED)]
        if kept.inside is not None:
            related.append(Related(kept.inside.line_span, "the value is collected here with its graph"))
        span = kept.at.span if isinstance(kept.at, Call) else statement_at(code.source(kept.at.module), kept.spot.line)
        yield code.finding(
            RULE,
            span or kept.spot.line_span,
            {"loss": listed(losses), "into": quoted(kept.into), "detached": listed(f"{loss}.detach()" for loss in losses)},
            related,
            fix=_fix(code, kept, losses),
            confidence=Confidence.HIGH if kept.is_seen else Confidence.MEDIUM,
        )


def _fix(code: ProjectCode, kept: Kept, losses: list[str]) -> Fix | None:
    """Detach each loss at the place where it is collected."""
    edits = detach(code.source(kept.at.module), kept.spot.line, losses)
    if not edits:
        return None
    title = f"detach {', '.join(losses)}"
    if kept.is_of_variable and _are_tensors(code, kept) and all(map(code[ValueReads].is_only_read, kept.holders)):
        return Fix(title, edits, Applicability.SAFE)
    return Fix(title, edits, Applicability.UNSAFE, _REASON % quoted(kept.into))


def _are_tensors(code: ProjectCode, kept: Kept) -> bool:
    """Whether the losses themselves run backward, in a file with torch in which no other class has such a method."""
    call = kept.passed.call
    receiver = call.receiver if call is not None and not call.positional else None
    run = reached([receiver.unnamed], lambda at: at.operands[:1] if at.operator == "Div" else ()) if receiver is not None else ()
    tensors = {one.unnamed for one in run}
    others = [one for one in code.classes if one.module is kept.at.module and one.changes("backward") and not one.outside_bases and not one.changes("detach")]
    has_torch = any(name.partition(".")[0] == "torch" for name, *_ in kept.at.module.table.imports)
    return has_torch and not others and all(loss.unnamed in tensors for loss in kept.losses)
