"""What the rules about host time ask: whether a place runs in every step of a training on an accelerator."""

from __future__ import annotations

import re
from collections.abc import Collection

from ldlm_lint.code.table import COLUMNS
from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import HOMES, ON_HOST
from ldlm_lint.program.modules import Module
from ldlm_lint.project.index import Project
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.steps import Place
from ldlm_lint.project.training import ON_TPU, is_probe, is_tutorial, trainings_of
from ldlm_lint.project.traits import Trait
from ldlm_lint.rules.host_time import RUNS_IN_EVERY_STEP

_DEVICE = Trait(
    lazily(
        rb"cuda|torch\.accelerator|\bAccelerator\(|lightning|transformers|deepspeed|accelerate|\btrl\b|\.to\(.*device"
        rb"|\b(?:xpu|npu|mps)\b"
    ),
    (
        *(b"cuda", b"torch.accelerator", b"Accelerator(", b"lightning", b"transformers", b"deepspeed", b"accelerate"),
        *(b"device", b"xpu", b"npu", b"mps", b"trl"),
    ),
)
_DIFFERENTIATES = Trait(lazily(rb"\.backward\("), (b".backward(",))
_LEARNS = Trait(
    lazily(rb"optim|\.step\(|Trainer|lightning|deepspeed|accelerat|colossalai|\blr\b|learning_rate|\btrain(?:_|ing|\()|_train\b"),
    (b"optim", b".step(", b"Trainer", b"lightning", b"deepspeed", b"accelerat", b"colossalai", b"lr", b"rate", b"train"),
)
_PREDICTS = lazily(
    r"(^|/)(inference|infer|eval|evaluation|evaluate|serving|sampling|generation)(/|\.py$)"
    r"|/(eval|inference|infer|evaluate|generate|predict|sample|demo|convert|export)_[^/]*\.py$"
    r"|_(eval|inference|evaluation|generation|demo)\.py$",
    re.I,
)
# A function that loads a model for a training, or lets it generate there, measures nothing.
_MEASURES = lazily(r"(?:^|\.)_*(?:eval\w*|val(?:id\w*|_\w+)?|test(?:_\w+)?)$")
_LOSS_CLASS = lazily(r"Loss|Criterion|Objective")
_EMPTIES = lazily(r"torch\.\w+\.empty_cache$")


def _runs_in_each_training_step(context: Context, finding: Finding, place: str) -> Verdict:
    """The subject holds a function, the lines of the loops around, and what is a step: a loop, or the function (0)."""
    path = finding.span.path
    if _is_beside_steps(context, finding) or _is_on_host(context, finding) or _is_settled(context, finding):
        return Verdict(False)
    scope, _, rest = place.partition("|")
    lines, _, itself = rest.partition("|")
    # The facts of a file are read for this only where nothing is known to use it.
    alone = not trainings_of(context.project, path) and _counts_alone(context, path, scope)
    if not _trains_on_device(context, path, alone):
        return Verdict(False)
    found = (path, int(itself)) if itself not in ("", "0") else None
    found = found or context.often.every_step(path, scope, [int(one) for one in lines.split(",") if one])
    if found is None and (itself or is_loss(scope)):
        found = _itself(context, path, scope)
    if found is None or only_differentiates(context.project, found[0]) or _trains_nothing(context, *found):
        return Verdict(False)
    if not alone and trainings_of(context.project, path) and not context.starts_training(path):
        return Verdict(False)
    if found[0] != path and _only_predicts(context.project, *found):
        return Verdict(False)
    if found[0] == path and _is_made_to_measure(context.project, scope):
        return Verdict(False)
    where = context.each_step(*found, path)
    return Verdict(True, (Related(context.line_span(*found), RUNS_IN_EVERY_STEP),), (("where", where),))


def _is_beside_steps(context: Context, finding: Finding) -> bool:
    """Whether a place stands in a function that holds the loop of a training's steps, and outside of it; or that trains nothing."""
    module = context.view.module(finding.span.path)
    if module is None:
        return False
    place = context.view.place_at(module, finding.span.start)
    function = context.view.function_at(module, place)
    training = context.view.training
    steps = training.reached.get(function)
    if steps is None:
        return function in training.differentiates
    if None in steps:
        return False
    return steps.isdisjoint(context.view.loops_at(module, function, place))


def _is_on_host(context: Context, finding: Finding) -> bool:
    """Whether all tensors in an expression are known to be on the host, such as those of a batch before it is moved."""
    module = context.view.module(finding.span.path)
    if module is None:
        return False
    first, last = (context.view.place_at(module, one) for one in (finding.span.start, finding.span.end))
    program = context.program
    rows = [number for number, place in enumerate(module.table.places) if first <= place < last and not _moves(module, number)]
    homes = {number: home for number in rows if (home := program.ask(module.base | number) & HOMES)}
    if set(homes.values()) != {ON_HOST}:
        return False
    return all(context.view.host_side.is_on_host(module, number) for number in homes)


def _trains_nothing(context: Context, path: str, line: int) -> bool:
    """Whether the loop or function on a line computes gradients that nothing is updated by, as the program tells."""
    module = context.view.module(path)
    if module is None:
        return False
    function = context.view.function_at(module, (line + 1 << COLUMNS) - 1)
    training = context.view.training
    return function in training.differentiates and function not in training.reached


def _is_settled(context: Context, finding: Finding) -> bool:
    """Whether a finding is about a value that the ranks have just agreed on, or that is asked for until it has come once."""
    module = context.view.module(finding.span.path)
    if module is None:
        return False
    first, last = (context.view.place_at(module, one) for one in (finding.span.start, finding.span.end))
    function = context.view.function_at(module, first)
    rows = [number for number, place in enumerate(module.table.places) if first <= place < last]
    restarts = context.view.training.frequency.restarts
    return any(context.view.agreement.decides(module, one, function) or restarts.settles(module, one, function) for one in rows)


def _moves(module: Module, number: int) -> bool:
    """Whether a row moves a tensor: where it is afterwards says nothing of before."""
    row = module.nodes[number]
    return row[0] == "call" and module.last_name(row[1]) in ("cpu", "to", "type", "numpy")


def _stands_in_no_measured_section(context: Context, finding: Finding, position: str) -> Verdict:
    """A wait that no difference of two clock reads of its step needs; unknown where the file takes part in no training."""
    module = context.view.module(finding.span.path)
    call = None if module is None else context.view.call_at(module, context.view.place_at(module, finding.span.start))
    return Verdict(module is not None and call is not None and not context.view.measuring.is_measured(module, call))


def _is_made_to_measure(project: Project, scope: str) -> bool:
    """Whether a ``forward`` is of a class that evaluations make for themselves, and nobody else: a metric written as a module."""
    owner, _, name = scope.rpartition(".")
    if name != "forward" or "." in owner:
        return False
    calls = (call for one in project.calling_by_name(owner) if not project.is_test(one) for call in project.flow(one).calls)
    made = [call.scope for call in calls if call.callee.name.rpartition(".")[2] == owner]
    return bool(made) and all(map(_MEASURES.search, made))


def _only_predicts(project: Project, path: str, line: int) -> bool:
    """Whether a ``forward`` around what a training uses stands in a file of no training, and turns gradients off there."""
    if trainings_of(project, path):
        return False
    return any(one.partition(":")[0] == str(line) for one in project.gradients(path).unrecorded)


def _call_empties_cache(context: Context, finding: Finding, position: str) -> Verdict:
    """A helper of the project's own, such as one that chooses among kinds of devices, hands the call on to torch."""
    path = finding.span.path
    callees = (one.callee for one in context.project.flow(path).calls if one.position == position)
    targets = (target for callee in callees for target in context.calls.targets(path, callee))
    return Verdict(
        any(
            one.scope == function.scope and _EMPTIES.match(one.callee.name)
            for where, function in targets
            for one in context.project.flow(where).calls
        )
    )


def only_differentiates(project: Project, path: str) -> bool:
    """A file with gradients that no weights follow: an attack, a saliency map, a check."""
    return project.any_shows([path], _DIFFERENTIATES) and not project.any_shows([path], _LEARNS)


def _counts_alone(context: Context, path: str, scope: str) -> bool:
    """Whether code belongs to a training although nothing uses it: a loss, a step that a framework calls."""
    if is_loss(scope) or scope.rpartition(".")[2] in ("training_step", "compute_loss"):
        return True
    function = context.calls.function(path, scope) if b"lightning" in context.project.data(path) else None
    return function is not None and function.lightning


def _trains_on_device(context: Context, path: str, alone: bool) -> bool:
    """Whether a training that uses a file runs on an accelerator whose kernels the host does not wait for."""
    project, known = context.project, context.answers
    key = ("trains-on-device", f"{path}|{alone}")
    if key not in known:
        files = trainings_of(project, path) or (project.training_files | {path} if alone else ())
        left_out = project.is_test(path) or is_tutorial(project, path) or is_probe(path)
        left_out = left_out or (_predicts(project, path) and not project.skim(path).trains)
        known[key] = not left_out and bool(files) and _on_device(project, files)
    return known[key]


def trains_on_device(context: Context, path: str) -> bool:
    """Whether the training steps of a file run on an accelerator, in no tutorial, test or measurement."""
    return _trains_on_device(context, path, True)


def may_train_on_device(context: Context, path: str) -> bool:
    """Whether a function of a file may belong to a training on an accelerator, whichever it is."""
    return _trains_on_device(context, path, True)


def _predicts(project: Project, path: str) -> bool:
    """A file that its name or folder says evaluates a model, or runs it."""
    return _PREDICTS.search(path.removeprefix(project.root)) is not None


def _on_device(project: Project, files: Collection[str]) -> bool:
    if not project.any_skim(files, "cuda") and project.any_shows(files, ON_TPU):
        return False
    return project.any_shows(files, _DEVICE)


def _itself(context: Context, path: str, scope: str) -> Place | None:
    """A function that computes gradients and updates weights runs again and again, unless its calls are seen not to."""
    function = context.calls.function(path, scope)
    if function is None:
        return None
    callers = list(context.calls.callers(path, scope))
    if callers and "." not in scope and not context.calls.repeated(path, scope):
        return None
    return path, function.line


def is_loss(scope: str) -> bool:
    """The call of a loss object: ``EDMLoss.__call__``."""
    owner, _, name = scope.rpartition(".")
    return name in ("__call__", "forward") and _LOSS_CLASS.search(owner) is not None


QUESTIONS: dict[str, Question] = {
    "call-empties-cache": _call_empties_cache,
    "stands-in-no-measured-section": _stands_in_no_measured_section,
    "runs-in-each-training-step": _runs_in_each_training_step,
}
