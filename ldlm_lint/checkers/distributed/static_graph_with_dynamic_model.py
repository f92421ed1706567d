"""static-graph-with-dynamic-model: DDP with a static graph around a model whose forward pass draws which layers run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.changing_graphs import ChangingGraphs
from ldlm_lint.edits.written_parts import keyword_of
from ldlm_lint.model import Confidence, Consequence, Finding, Reference, Related, Rule
from ldlm_lint.vocabulary.wrappers import DDP, DDP_OPTIONS

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call, Expr

RULE = Rule(
    code="E7230",
    symbol="static-graph-with-dynamic-model",
    consequence=Consequence.CRASH,
    message="`static_graph=True` promises that every step uses the same parameters, but `%(model)s` runs different "
    "layers from step to step: DDP raises as soon as the set of used parameters changes; leave `static_graph` out",
    summary="DDP with `static_graph=True` around a model whose forward pass runs different layers from step to step.",
    rationale="With `static_graph=True` DDP records in the first iteration which parameters get a gradient, and how "
    "often, and relies on it from then on. A forward pass that skips layers at random (layer-drop, stochastic depth "
    "by a branch, modes drawn at random) or freezes parameters uses different parameters in a later step.",
    cost="`RuntimeError: Your training graph has changed in this iteration` in the first step that differs.",
    exceptions="A branch on a setting that never changes during a run; branches that use the same parameters; a "
    "random path that only scales a result. The rule does not compare the contents of the branches, so it is off by "
    "default.",
    versions="torch 2.0 to 2.13.",
    verification="Train for a few steps with `TORCH_DISTRIBUTED_DEBUG=INFO`, and compare the names of the parameters "
    "whose `.grad` is `None`.",
    references=(
        Reference(
            "DistributedDataParallel",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
        Reference("Distributed Data Parallel: internal design", "https://docs.pytorch.org/docs/stable/notes/ddp.html"),
    ),
    reads=("py",),
    triggers=(),
    confidence=Confidence.LOW,
    default=False,
)

_FLAG = "static_graph"


def find(code: ProjectCode) -> Iterator[Finding]:
    """The wrappers, and what passes options on to one, that promise a static graph for such a model."""
    for call in code.calls(DDP | DDP_OPTIONS):
        static = call.argument(_FLAG)
        if static.only is True and any(one.expr.constant is True for value in static.values for one in value.origins_of(True)):
            change = next(filter(None, map(code[ChangingGraphs].of, _models(code, call))), None)
            if change is not None:
                written = keyword_of(call, _FLAG)
                span = written.whole if written is not None else call.span
                related = [Related(change.line, "this chooses which layers run")]
                yield code.finding(RULE, span, {"model": change.owner.name}, related, confidence=RULE.confidence)


def _models(code: ProjectCode, call: Call) -> list[Expr]:
    """What a wrapper wraps, or what the program passes to the engine that gets its options."""
    if call.callee.interfaces & DDP:
        return call.argument("module", 0).values
    taking = (one for one in code.calls_named("prepare", "fit") if one.may_run_with(call))
    return [model for one in taking for model in one.positional]
