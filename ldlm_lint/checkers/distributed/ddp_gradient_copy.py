"""ddp-gradient-copy: wraps of trained models without gradient views, for any origin of DDP's class and its options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint import tables
from ldlm_lint.concepts.builders import Runs
from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.concepts.old_torch import OldTorch
from ldlm_lint.concepts.recorded_runs import RecordedRuns
from ldlm_lint.concepts.reduction import Reduction
from ldlm_lint.concepts.replica_runs import ReplicaRuns
from ldlm_lint.concepts.replicas import Replicas
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.edits.keywords import add_keyword
from ldlm_lint.model import Applicability, Confidence, Consequence, Finding, Fix, Probe, Reference, Rule
from ldlm_lint.vocabulary.models import names_evaluation
from ldlm_lint.vocabulary.wrappers import DDP

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode
    from ldlm_lint.program.handles import Call, Class

RULE = Rule(
    code="R7227",
    symbol="ddp-gradient-copy",
    consequence=Consequence.MEMORY,
    message="DDP stores every gradient twice, in `.grad` and in its communication buckets, which takes the size of all "
    "gradients in GPU memory: pass `gradient_as_bucket_view=True`, which makes `.grad` a view of the bucket",
    summary="A DDP wrapper of a model that trains, without `gradient_as_bucket_view`.",
    rationale="By default DDP copies each gradient into a bucket, reduces the bucket, and copies the result back into "
    "`.grad`. Memory holds the gradients twice from the backward pass to the end of the step. With "
    "`gradient_as_bucket_view=True` a reduced gradient is a view of its bucket, and the copy is freed.",
    cost="Memory: one copy of all gradients, 4 bytes for each trainable fp32 parameter. Measured: 244 MiB less peak "
    "memory for 256 MiB of gradients (resident memory of one process on CPU, torch 2.13). Hardly any time: "
    "`zero_grad()` sets gradients to None, which ends the view in every step, so the copy into the bucket remains.",
    exceptions="Code that calls `detach_()` on a gradient, as hand-written `zero_grad` functions do: this raises for "
    "a view. Code that keeps a reference to a gradient beyond the next backward pass. A wrapper around a model that "
    "is only evaluated.",
    versions="torch 2.0 to 2.13; the default is False in all these versions.",
    verification="Compare `torch.cuda.max_memory_allocated()` over a few steps, with and without it.",
    references=(
        Reference(
            "DistributedDataParallel",
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html",
        ),
        Reference("pytorch#41954", "https://github.com/pytorch/pytorch/pull/41954"),
    ),
    reads=("py",),
    needs="DistributedDataParallel(gradient_as_bucket_view=)",
    triggers=(),
    applicability=Applicability.UNSAFE,
    fix_safety="Unsafe: `detach_()` on a gradient raises for a view, and a reference to a gradient that is kept "
    "beyond the step sees the gradient of the next step.",
    probe=Probe("gradient-storages", "gradients and buckets are different memory", experiment="ddp"),
)

_VIEWS = "gradient_as_bucket_view"
_REASON = "`detach_()` on a gradient raises for a view, and a gradient that is kept beyond the step changes in the next step"
# What follows differs between torch versions: 2.13 has `init_sync` where 2.0 has `process_group`.
_POSITIONAL = tables.positional("torch.nn.parallel.DistributedDataParallel")
_FEW = 3
_LIGHT = frozenset(
    {
        *("Linear", "ReLU", "GELU", "Tanh", "Sigmoid", "Dropout", "Flatten", "Identity", "Sequential", "LayerNorm"),
        *("BatchNorm1d", "BatchNorm2d", "AvgPool2d", "MaxPool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d"),
    }
)


def find(code: ProjectCode) -> Iterator[Finding]:
    """The wrappers that surely get no views."""
    for call in code.calls(DDP):
        given = call.positional
        is_plain = len(given) <= len(_POSITIONAL) and all(one.kind != "star" for one in given) and not _is_second_choice(call)
        if is_plain and call.argument(_VIEWS).is_absent and _may_run(code, call) and _trains(code, call) and not _is_small(call):
            confidence = RULE.confidence if call.is_as_written else Confidence.MEDIUM
            yield code.finding(RULE, call.span, {}, fix=_fix(code, call), confidence=confidence)


def _may_run(code: ProjectCode, call: Call) -> bool:
    """Whether a wrapper is no second attempt, for no torch of the past, in code that something calls, and under no switch
    that nothing turns on."""
    is_left = call.is_in_handler or code[OldTorch].is_needed_at(call) or code[LeftOff].is_left_off(call)
    return not is_left and code[Runs].may_run(call.function) and code[Replicas].may_be_wanted(call)


def _trains(code: ProjectCode, call: Call) -> bool:
    """Whether the wrapped model is trained, and nothing detaches its gradients in place: the function around the wrapper
    does not evaluate, and the model is not frozen there, as a teacher is."""
    untrained, around = code[Untrained], next(iter(call.function.around), None)
    if (around is not None and names_evaluation(around.name)) or untrained.records_nothing(call) or untrained.is_only_evaluated(call):
        return False
    runs = code[ReplicaRuns]
    if code[RecordedRuns].is_wrapper_never_recorded(call, lambda model: any(one.replica.wrapper == call for one in runs.behind(model))):
        return False
    is_frozen = any(untrained.is_frozen_beside(call, model) for model in call.argument("module", 0).values)
    return not is_frozen and code[Replicas].train(call) and not code[Reduction].detaches_gradients(call)


def _is_second_choice(call: Call) -> bool:
    """Whether torch's wrapper is used only if another one, such as apex's, cannot be imported."""
    found = call.callee.alternatives(DDP)
    return any(one.origins for one in found) and all(one.is_fallback for one in found)


def _is_small(call: Call) -> bool:
    """A linear layer, or a class of the project with a few of them: a toy or a probe with negligible gradients."""
    models = call.argument("module", 0).values
    names = {name for model in models for name in (*model.made_by, *model.outside_names)}
    classes = {owner for model in models for owner in (*model.classes_of, *model.as_classes)}
    return bool(names or classes) and all(name.endswith(".Linear") for name in names) and all(map(_is_light, classes))


def _is_light(owner: Class) -> bool:
    """Whether the capitalised names that the methods of a class call, which are its layers, are a few light ones."""
    layers = [call.called_name for function in owner.functions for call in function.calls if call.called_name[:1].isupper()]
    return bool(layers) and layers.count("Linear") <= _FEW and _LIGHT.issuperset(layers)


def _fix(code: ProjectCode, call: Call) -> Fix | None:
    """The keyword at the call, where it can be of no other class."""
    callee = call.callee
    if callee.as_classes or not callee.interfaces <= DDP or len(callee.identities) < callee.count_of_values:
        return None
    edit = add_keyword(code.source(call.module), call.span, _VIEWS, "True")
    needs = (tables.interface("DistributedDataParallel(gradient_as_bucket_view=)"),)
    return Fix(f"set {_VIEWS}=True", (edit,), Applicability.UNSAFE, _REASON, needs=needs) if edit else None
