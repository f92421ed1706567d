"""Questions about checkpointed segments and skips of one rank: signatures, repetition, reductions."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.model import Applicability, Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.program.handles import Call
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.reentrant import is_never_named
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.traits import Trait
from ldlm_lint.python.flow import Function
from ldlm_lint.python.places import scope_name
from ldlm_lint.python.signatures import Target, accepts, method_of, refuses
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.segments import NON_REENTRANT, not_taken, other_call
from ldlm_lint.wording import listed

_REDUCES = lazily(r"all_?reduce|all_?gather|^reduce|^gather|broadcast|synchronize_between")
_DEVICES = Trait(
    re.compile(
        rb"strategy[ \t]*=[ \t]*[\"'](?:ddp|fsdp|deepspeed)|(?:DDP|FSDP|DeepSpeed)Strategy\(|num_nodes[ \t]*=|devices[ \t]*=[ \t]*(?:-1|[2-9]|1\d)"
    ),
    (b"strategy", b"Strategy(", b"num_nodes", b"devices"),
)


def _callee_is_keyword_only(context: Context, finding: Finding, subject: str) -> Verdict:
    """Whether an imported callee rejects the arguments that a call passes on to it: ``kind|qualified
    name|positional|keywords``."""
    kind, name, positional, passed = subject.split("|")
    function, path = _resolved(context, finding, kind, name)
    if function is None:
        return Verdict(False)
    keywords = None if passed == "?" else set(filter(None, passed.split(",")))
    names = refuses(Target(function, int(kind == "instance")), int(positional), keywords)
    if not names:
        return Verdict(False)
    where = Related(context.line_span(path, function.lineno or 1), "the signature of the function")
    return Verdict(True, (where,), (("names", listed(names)),))


def _resolved(context: Context, finding: Finding, kind: str, name: str) -> tuple[nodes.FunctionDef | None, str]:
    """The function that an imported callee runs and its file, where they belong to the project."""
    path, inside = context.project.resolve(finding.span.path, name) or ("", "")
    module = context.trees.of(path) if inside else None
    return (_definition(module, inside, kind == "instance") if module is not None else None), path


def _callee_takes_keywords(context: Context, finding: Finding, subject: str) -> Verdict:
    """The finding is confirmed; its fix is applied only if an imported callee is known to accept the keywords."""
    kind, name, positional, passed = subject.split("|")
    function, _ = _resolved(context, finding, kind, name)
    keywords = None if passed == "?" else set(filter(None, passed.split(",")))
    taken = accepts(Target(function, int(kind == "instance")), int(positional), keywords)
    if finding.fix is None or taken is None:
        return Verdict(True)
    if taken:
        return Verdict(True, fix=finding.fix._replace(applicability=Applicability.UNSAFE, reason=NON_REENTRANT))
    function_name, names = name.rpartition(".")[2], sorted(keywords or ())
    return Verdict(True, args=(("advice", other_call(function_name)),), fix=not_taken(function_name, names))


def _checkpoint_may_run(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A checkpoint runs unless it is under a switch that nothing turns on."""
    from ldlm_lint.checkers.by_program.trainer_settings import node_at

    view = context.view
    module = view.module(finding.span.path)
    call = view.call_at(module, view.place_at(module, finding.span.start)) if module is not None else None
    if module is None or call is None:
        return Verdict(True)
    node = node_at(view, module, module.table.sites[call].place, nodes.Call)
    is_off = view[LeftOff].is_left_off(Call(view, module.base | call)) or (isinstance(node, nodes.Call) and is_never_named(context.project, node))
    return Verdict(not is_off)


def _callee_takes_arguments(context: Context, finding: Finding, subject: str) -> Verdict:
    return Verdict(not _callee_is_keyword_only(context, finding, subject).holds)


def _definition(module: nodes.Module, name: str, instance: bool) -> nodes.FunctionDef | None:
    """The function with a dotted name, or the one that an object of that class runs."""
    found = next((one for one in nodes_of(module, (nodes.FunctionDef, nodes.ClassDef)) if scope_name(one) == name), None)
    if instance:
        return method_of(found, "forward") if isinstance(found, nodes.ClassDef) else None
    return found if isinstance(found, nodes.FunctionDef) else None


def _class_is_built_once(context: Context, finding: Finding, name: str) -> Verdict:
    """A class that a loop builds, or that one function builds twice, is one block of many."""
    calls = list(context.calls.callers(finding.span.path, f"{name}.__init__"))
    places = [(where, call.scope) for where, call in calls]
    repeated = any(call.loops or context.calls.repeated(where, call.scope) for where, call in calls)
    return Verdict(not repeated and len(places) == len(set(places)))


def _nothing_is_reduced(context: Context, finding: Finding, positions: str) -> Verdict:
    """None of these calls calls a function of the project that reduces over the ranks."""
    path = finding.span.path
    wanted = set(positions.split(";"))
    calls = (call for call in context.project.flow(path).calls if call.position in wanted)
    targets = (target for call in calls for target in context.calls.targets(path, call.callee))
    return Verdict(not any(_reduces(context, where, function) for where, function in targets))


def _lightning_uses_several_devices(context: Context, finding: Finding, _subject: str) -> Verdict:
    """Lightning may use one or many devices; only the settings of a training show which."""
    return Verdict(context.project.any_shows(trainings_of(context.project, finding.span.path), _DEVICES))


def _reduces(context: Context, path: str, function: Function, depth: int = 0) -> bool:
    inner = [call for call in context.project.flow(path).calls if call.scope == function.scope]
    if any(_REDUCES.search(call.callee.name.rpartition(".")[2]) for call in inner):
        return True
    targets = (target for call in inner for target in context.calls.targets(path, call.callee))
    return depth < 1 and any(_reduces(context, where, one, depth + 1) for where, one in targets)


QUESTIONS: dict[str, Question] = {
    "callee-is-keyword-only": _callee_is_keyword_only,
    "callee-takes-arguments": _callee_takes_arguments,
    "callee-takes-keywords": _callee_takes_keywords,
    "checkpoint-may-run": _checkpoint_may_run,
    "class-is-built-once": _class_is_built_once,
    "nothing-is-reduced": _nothing_is_reduced,
    "lightning-uses-several-devices": _lightning_uses_several_devices,
}
