"""ddp-gradient-copy: every wrap of a trained model without gradient views, for any origin of DDP's class and its
options."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.by_program import calls
from ldlm_lint.checkers.by_program.ddp_calls import DDP, WRAPPERS, may_have
from ldlm_lint.checkers.by_program.trainer_settings import node_at
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.concepts.builders import Runs
from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.concepts.old_torch import OldTorch
from ldlm_lint.concepts.recorded_runs import RecordedRuns
from ldlm_lint.concepts.replica_runs import ReplicaRuns
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.model import Applicability, Claim, Finding, Fix
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.handles import Call, Expr, expression
from ldlm_lint.project.wrap_guards import may_wrap
from ldlm_lint.rules.ddp import GRADIENT_COPY
from ldlm_lint.vocabulary.models import names_evaluation

RULE = GRADIENT_COPY
WORDS = (b"DistributedDataParallel", b"DDP")
VIEW_REASON = "`detach_()` on a gradient raises for a view, and a gradient that is kept beyond the step changes in the next step"
_VIEWS = "gradient_as_bucket_view"
# What follows differs between torch versions: 2.13 has `init_sync` where 2.0 has `process_group`.
_POSITIONAL = tables.positional(DDP)
_FEW = 3
_LIGHT = frozenset(
    {
        *("Linear", "ReLU", "GELU", "Tanh", "Sigmoid", "Dropout", "Flatten", "Identity", "Sequential", "LayerNorm"),
        *("BatchNorm1d", "BatchNorm2d", "AvgPool2d", "MaxPool2d", "AdaptiveAvgPool2d", "AdaptiveMaxPool2d"),
    }
)


def find(view: View) -> Iterator[Finding]:
    """All wrappers that surely get no views."""
    untrained = view[Untrained]
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(WRAPPERS)):
        if may_have(view, call, _VIEWS) or _gives_more(view, call) or _trains_nothing(view, untrained, call) or _never_runs(view, call):
            continue
        if not _is_second_choice(view, call) and not _is_small(view, call):
            claims = (Claim("wrapped-model-trains", calls.dotted_scope(view, call)), Claim("gradients-stay-attached"))
            yield view.finding(RULE, view.call_span(call), {}, claims=claims, fix=_fix(view, call), confidence=calls.confidence_of(view, RULE, call))


def _never_runs(view: View, call: int) -> bool:
    """Whether a wrapper is a second attempt, for a torch of the past, in code that nothing calls, or under a switch that
    nothing turns on where nothing starts ranks."""
    module = view.program.module_of(call)
    node = node_at(view, module, module.table.sites[call & MASK].place, nodes.Call)
    if isinstance(node, nodes.Call) and not may_wrap(view.context.project, node):
        return True
    never_runs = not view[Runs].may_run(Call(view, call).function) or view[LeftOff].is_left_off(Call(view, call))
    return never_runs or view.program.stands_in_handler(call) or view[OldTorch].is_needed_at(call)


def _gives_more(view: View, call: int) -> bool:
    """Whether a call returns more by position than all versions of torch agree on."""
    module = view.program.module_of(call)
    given = module.nodes[call & MASK][2]
    return len(given) > len(_POSITIONAL) or any(module.nodes[one][0] == "star" for one in given)


def _is_second_choice(view: View, call: int) -> bool:
    """Whether torch's wrapper is used only if another one, such as apex's, cannot be imported."""
    found = Call(view, call).callee.alternatives(WRAPPERS)
    return any(one.origins for one in found) and all(one.is_fallback for one in found)


def _trains_nothing(view: View, untrained: Untrained, call: int) -> bool:
    """Whether the function around a wrapper evaluates, or the model that it wraps is frozen there, as a teacher is."""
    if any(names_evaluation(name) for name in calls.functions_around(view, call)[:1]) or untrained.records_nothing(Call(view, call)):
        return True
    model = view.ask.argument(call, "module", 0)
    if untrained.is_only_evaluated(Call(view, call)) or view[RecordedRuns].is_wrapper_never_recorded(Call(view, call), lambda one: call in _wrappers_at(view, one)):
        return True
    return any(untrained.is_frozen_beside(Call(view, call), expression(view, one)) for one in model.sources)


def _wrappers_at(view: View, model: Expr) -> set[int]:
    return {one.replica.wrapper.key for one in view[ReplicaRuns].behind(model)}


def _is_small(view: View, call: int) -> bool:
    """A linear layer, or a class of the project with a few of them: a toy or a probe with negligible gradients."""
    model = view.ask.meaning(*view.ask.argument(call, "module", 0).sources)
    known = bool(model.names or model.classes)
    of_others = all(name.rpartition(".")[2] == "Linear" for name in model.names)
    return known and of_others and all(_is_light(_layers(view, owner)) for owner in model.classes)


def _is_light(layers: list[str]) -> bool:
    return bool(layers) and layers.count("Linear") <= _FEW and _LIGHT.issuperset(layers)


def _layers(view: View, owner: int) -> list[str]:
    """The capitalised last names of the calls in a class's methods, which are its layers."""
    module = view.program.module_of(owner)
    inside = {owner & MASK}
    for number, scope in enumerate(module.scopes):
        if scope.parent in inside:
            inside.add(number)
    names = [module.last_name(module.nodes[call][1]) for number in sorted(inside) for call in module.scopes[number].calls]
    return [name for name in names if name[:1].isupper()]


def _fix(view: View, call: int) -> Fix | None:
    """The keyword at the call, where it can be of no other class."""
    module = view.program.module_of(call)
    value = view.program.ask(module.base | module.nodes[call & MASK][1])
    if any(one < FIRST or view.program.atoms.of[one][0] == "c" or not view.ask.names_of(frozenset([one])) <= WRAPPERS for one in value):
        return None
    edit = add_keyword(view.source(module), view.call_span(call), _VIEWS, "True")
    needs = (tables.interface("DistributedDataParallel(gradient_as_bucket_view=)"),)
    return Fix(f"set {_VIEWS}=True", (edit,), Applicability.UNSAFE, VIEW_REASON, needs=needs) if edit else None
