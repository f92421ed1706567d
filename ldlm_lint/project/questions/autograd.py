"""The questions of the rules about autograd graphs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ldlm_lint.model import Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.traits import Trait

if TYPE_CHECKING:
    from ldlm_lint.program import Program

_BY_HAND = Trait(
    re.compile(
        rb"\.grad\s*\+=|\.grad\.(?:add_|copy_|mul_|div_|numel|view|flatten|reshape|clone|data)\b"
        rb"|(?:reduce|gather|broadcast)\w*\([^)\n]*\.grad\b|CUDAGraph|make_graphed_callables|cuda\.graph\("
    ),
    (b".grad", b"CUDAGraph", b"make_graphed_callables"),
)


def _meter_keeps_graphs(context: Context, finding: Finding, subject: str) -> Verdict:
    """The method of a class of the project, ``Class.method|position``, sums up or collects its argument unchanged."""
    project, path = context.project, finding.span.path
    name, _, position = subject.partition("|")
    resolved = (path, name[1:]) if name.startswith(".") and _defines(context, path, name[1:]) else None
    where, scope = resolved or project.resolve(path, name) or ("", "")
    function = context.calls.function(where, scope) if scope else None
    facts = project.gradients(where).of(scope) if function is not None else None
    if function is None or facts is None:
        return Verdict(False)
    index = int(position) + (function.params[:1] == ("self",))
    holds = index < len(function.params) and function.params[index] in facts.accumulates
    return Verdict(holds, (Related(context.line_span(where, function.line), "the value is collected here with its graph"),))


def _defines(context: Context, path: str, scope: str) -> bool:
    """Whether a file has a function of this dotted name."""
    return context.calls.function(path, scope) is not None


def _is_called_again(context: Context, finding: Finding, scope: str) -> Verdict:
    """A function runs repeatedly: a loop calls it, or a function that one does, or a framework."""
    path = finding.span.path
    again = context.calls.repeated(path, scope) or context.calls.in_training_loop(path, scope, ()) is not None
    return Verdict(again or _is_called_in_loop(context, finding))


def _is_called_in_loop(context: Context, finding: Finding) -> bool:
    """Whether the program shows a call of the function around a finding that is in a loop."""
    view = context.view
    module = view.module(finding.span.path)
    if module is None:
        return False
    program = view.program
    function = view.function_at(module, view.place_at(module, finding.span.start))
    calls = (edge.call for edge in program.callers(function))
    return any(program.module_of(call).table.sites[call & MASK].loop >= 0 for call in calls)


def _gradients_are_left_alone(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Nothing near the training adds to gradients or communicates them itself, for which they must exist; the reset
    object has gradients."""
    if _resets_something_else(context, finding):
        return Verdict(False)
    files = trainings_of(context.project, finding.span.path)
    return Verdict(bool(files) and not context.project.any_shows(files, _BY_HAND))


def _resets_something_else(context: Context, finding: Finding) -> bool:
    """Whether ``zero_grad`` is a method of a class of the project that is not a module or optimizer, nor forwards to
    one."""
    view = context.view
    module = view.module(finding.span.path)
    call = None if module is None else view.call_at(module, view.place_at(module, finding.span.start))
    if module is None or call is None:
        return False
    program = view.program
    function = module.nodes[module.nodes[call][1]]
    if function[0] != "attr":
        return False
    targets = program.targets_of.get(module.base | call, ())
    return bool(targets) and all(_holds_no_gradients(program, one) for one in targets)


def _holds_no_gradients(program: Program, method: int) -> bool:
    owner, home = program.owner.get(method), program.module_of(method)
    if owner is None or program.outside_of(owner):
        return False
    calls = home.scopes[method & MASK].calls
    return not any(home.last_name(home.nodes[one][1]) == "zero_grad" for one in calls)


QUESTIONS: dict[str, Question] = {
    "meter-keeps-graphs": _meter_keeps_graphs,
    "is-called-again": _is_called_again,
    "gradients-are-left-alone": _gradients_are_left_alone,
}
