"""graph-retained-on-backward: the only backward pass of a step retains its graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.concepts.optimizer_steps import OptimizerSteps
from ldlm_lint.model import Confidence, Consequence, Frequency, Probe, Reference, Rule
from ldlm_lint.program.handles import Call
from ldlm_lint.program.walks import Through, origins

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.model import Finding

RULE = Rule(
    code="W7511",
    symbol="graph-retained-on-backward",
    frequency=Frequency.STEP,
    consequence=Consequence.MEMORY,
    message="`retain_graph=True` keeps the tensors that the forward pass saved, but the step has no second backward pass "
    "that needs them: they only take memory; drop `retain_graph=True`",
    summary="A step with a single backward pass that retains its graph.",
    rationale="A backward pass frees the tensors that the forward pass saved for it. With `retain_graph=True` they "
    "stay until the last tensor of the graph is gone. Only a second backward pass over the same graph needs that. In "
    "a step with one backward pass the flag is either a leftover or hides a defect: the graph of an earlier step is "
    "still attached, through a hidden state or a sum of losses that was not detached. Then each step differentiates "
    "all steps before it.",
    cost="Memory: the activations of a step stay until its loss variable is assigned again. If an earlier graph is "
    "attached, time and memory grow with every step.",
    exceptions="Several losses over one graph, second derivatives, hooks that run their own backward pass. A step "
    "with another backward pass, or with a call of `torch.autograd.grad`, is not reported.",
    versions="All versions of torch.",
    verification="Remove the flag. If a step then raises `Trying to backward through the graph a second time`, it is "
    "attached to an earlier step: detach what it carries over.",
    references=(
        Reference("torch.Tensor.backward", "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html"),
        Reference("Autograd mechanics", "https://docs.pytorch.org/docs/stable/notes/autograd.html"),
    ),
    reads=("py",),
    triggers=(b"retain_graph",),
    requires=((b"backward",),),
    default=False,
    probe=Probe("retained-graphs", "a backward pass retained its graph and no other one went through it"),
)

_SAME_GRAPH = Through.NAMES | Through.CHOICES | Through.PARTS | Through.ATTRIBUTES


def find(code: ProjectCode) -> Iterator[Finding]:
    """The backward passes that retain a graph which the step has made, and nothing else differentiates."""
    for call in code[BackwardPasses].calls:
        retains = call.argument("retain_graph").only is True and call.argument("create_graph").is_absent
        if retains and _is_whole_step(code, call) and _is_alone(code, call):
            yield code.finding(RULE, call.span, {}, confidence=Confidence.HIGH)


def _is_whole_step(code: ProjectCode, call: Call) -> bool:
    """Whether the loop or function around a backward pass computes the loss and lets the optimizer step, or clears its gradients."""
    step, loss = _step(call), code[BackwardPasses].loss(call)
    updates = any(code[OptimizerSteps].leads_to_one(one) or one.called_name == "zero_grad" for one in step)
    made_of = origins(loss, _SAME_GRAPH, lambda at: at.operands if at.kind in ("op", "un") else ()) if loss is not None else iter(())
    return updates and any(one in step for one in made_of)


def _step(call: Call) -> list[Call]:
    """The calls of the innermost loop, or of the function, around a call."""
    return call.loops[0].calls if call.loops else [] if call.function.is_module else call.function.calls


def _is_alone(code: ProjectCode, call: Call) -> bool:
    """Whether nothing else computes gradients in the functions that lead to a backward pass from the loop of its step."""
    way = [call]
    for one in way:
        if any(other != one and code[BackwardPasses].lead_to_gradients(other) for other in one.function.calls):
            return False
        way += [above for above in one.function.callers if above not in way] if not one.loops else []
    return True
