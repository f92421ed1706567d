"""ddp-gradient-copy where DDP's class or its options come from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint import tables
from ldlm_lint.autofix.calls import add_keyword
from ldlm_lint.checkers.by_program import calls
from ldlm_lint.checkers.by_program.ddp_calls import WRAPPERS, may_have, wraps
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.ways import Ways
from ldlm_lint.checkers.ddp import VIEW_REASON
from ldlm_lint.model import Applicability, Claim, Finding, Fix
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.python.model_names import names_evaluation
from ldlm_lint.rules.ddp import GRADIENT_COPY

RULE = GRADIENT_COPY
WORDS = (b"DistributedDataParallel", b"DDP")
_VIEWS = "gradient_as_bucket_view"


def find(view: View) -> Iterator[Finding]:
    """All wrappers that surely get no views."""
    ways = Ways(view)
    for call in dict.fromkeys(wraps(view, WRAPPERS)):
        if may_have(view, call, _VIEWS) or calls.handler_around(view, call) or _only_evaluates(view, call):
            continue
        if not _is_second_choice(view, ways, call):
            claims = (Claim("wrapped-model-trains", calls.dotted_scope(view, call)), Claim("gradients-stay-attached"))
            yield view.finding(RULE, view.call_span(call), {}, claims=claims, fix=_fix(view, call))


def _is_second_choice(view: View, ways: Ways, call: int) -> bool:
    """Whether torch's wrapper is only taken where another one, such as apex's, cannot be imported."""
    module = view.program.module_of(call)
    function = module.base | module.nodes[call & MASK][1]
    torchs = [one for one in view.program.ask(function) if not view.ask.names_of(frozenset([one])).isdisjoint(WRAPPERS)]
    found = [way for atom in torchs for way in ways.to(function, atom)]
    return bool(found) and all(ways.is_fallback(way.key) for way in found)


def _only_evaluates(view: View, call: int) -> bool:
    """Whether the function around a wrapper evaluates, or the model that it wraps is frozen there, as a teacher is."""
    if any(names_evaluation(name) for name in calls.functions_around(view, call)):
        return True
    model = view.ask.argument(call, "module", 0)
    return any(calls.is_frozen_beside(view, call, one) for one in model.sources)


def _fix(view: View, call: int) -> Fix | None:
    """The keyword at the call, where it can be of no other class."""
    module = view.program.module_of(call)
    value = view.program.ask(module.base | module.nodes[call & MASK][1])
    if any(one < FIRST or view.program.atoms.of[one] not in {("x", name) for name in WRAPPERS} for one in value):
        return None
    edit = add_keyword(view.source(module), view.call_span(call), _VIEWS, "True")
    needs = (tables.interface("DistributedDataParallel(gradient_as_bucket_view=)"),)
    return Fix(f"set {_VIEWS}=True", (edit,), Applicability.UNSAFE, VIEW_REASON, needs=needs) if edit else None
