"""The questions of the rules about autograd graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.model import Finding, Related
from ldlm_lint.program.atoms import MASK
from ldlm_lint.project.questions.base import Context, Question, Verdict

if TYPE_CHECKING:
    pass

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


QUESTIONS: dict[str, Question] = {
    "meter-keeps-graphs": _meter_keeps_graphs,
    "is-called-again": _is_called_again,
}
