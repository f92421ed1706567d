"""data-parallel: models that a training step runs on many GPUs from one process, by the wrapper class or the
function.
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.calls import confidence_of, functions_around, line_span
from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.by_program.written import function_span
from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.replicas import IN_ONE_CALL, ONE_PROCESS, Replicas
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.model import Applicability, Edit, Finding, Fix, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Call
from ldlm_lint.python.model_names import names_evaluation
from ldlm_lint.rules.data_parallel import DATA_PARALLEL, FUNCTION, WRAPPER

RULE = DATA_PARALLEL
WORDS = (b"DataParallel", b"data_parallel")
_REASON = "DistributedDataParallel needs a process group, one process per GPU and a sampler that splits the data"
# Files whose models have no known step are judged by names.
_MEASURES = lazily(
    r"(?:^|[/_])(?:eval\w*|test|valid\w*|infer\w*|demo|predict\w*|sampl\w*|fid|inception|lpips|metrics?)(?:[/_.]|$)"
)


def find(view: View) -> Iterator[Finding]:
    """All calls of the function in a training step, and all wrappers whose models run in one."""
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(IN_ONE_CALL)):
        if view[Replicas].runs_in_step(call):
            yield from _found(view, call, FUNCTION)
    untrained = view[Untrained]
    for call in dict.fromkeys(call for call, _ in view.ask.calls_of(ONE_PROCESS)):
        if _wraps(view, call) and _may_train(view, untrained, call):
            yield from _found(view, call, WRAPPER)


def _wraps(view: View, call: int) -> bool:
    row = view.program.module_of(call).nodes[call & MASK]
    return bool(row[2] or row[3])


def _may_train(view: View, untrained: Untrained, call: int) -> bool:
    """Whether a step runs a wrapped model; if unknown, it counts as trained unless the code around it evaluates."""
    if untrained.records_nothing(Call(view, call)):
        return False
    if view[Replicas].is_stepped(call):
        return True
    if view[Evaluation].is_set_by(Call(view, call).function) or untrained.is_only_evaluated(Call(view, call)):
        return False
    if untrained.is_run_unrecorded(Call(view, call)):
        return False
    # A container of layers is not followed through every function that moves it.
    is_known = bool(list(view.program.atoms.kinds(view.program.ask(call), "i"))) and _has_steps(view, call)
    is_known &= not _is_cut(view, call)
    if is_known or any(map(names_evaluation, functions_around(view, call))):
        return False
    project, path = view.context.project, view.path(view.program.module_of(call))
    return project.skim(path).trains or not _MEASURES.search(path.removeprefix(project.root))


def _is_cut(view: View, call: int) -> bool:
    """Whether the file of a call does not parse to its end: the step may be there."""
    return bool(view.context.trees.parsed(view.path(view.program.module_of(call))).error_line)


def _has_steps(view: View, call: int) -> bool:
    """Whether the program of a call has training steps: they may be after a syntax error, or in a framework."""
    near = view.program.together.programs_of(view.program.module_of(call))
    return any(function.module.index in near for function in view[Steps].functions)


def _found(view: View, call: int, name: str) -> Iterator[Finding]:
    """The finding for a program without a mode with one process per GPU; information if options choose between both."""
    module = view.program.module_of(call)
    path = view.path(module)
    trains = [one for one in view.context.project.trainers_of(path) if view.context.runs_training(one)]
    others = [(one, _per_process(view, {path, one})) for one in trains]
    fix = _fix(view, call) if name == WRAPPER else None
    finding = view.finding(RULE, view.call_span(call), {"name": name}, fix=fix, confidence=confidence_of(view, RULE, call))
    if any(not found for _, found in others):
        yield finding
        return
    for one, found in others:
        if view[Replicas].is_default(call, found) and not _is_launched(view, one):
            related = Related(line_span(view, found[0]), "with this, each GPU has its own process")
            yield finding._replace(related=(related,)).lowered("an option chooses one process for each GPU instead")
            return


def _per_process(view: View, paths: set[str]) -> list[int]:
    """The calls in some files that start one process per GPU."""
    modules = (view.module(path) for path in paths)
    return view[Replicas].in_modules({module.index for module in modules if module is not None})


def _is_launched(view: View, path: str) -> bool:
    """Whether a script starts a program in several processes, or with unknown options."""
    return any(one.launcher != "python" or not one.complete for one in view.context.launches.running(path))


def _fix(view: View, call: int) -> Fix:
    edit = Edit(function_span(view, call), "torch.nn.parallel.DistributedDataParallel")
    return Fix("wrap the model in DistributedDataParallel, with one process per GPU", (edit,), Applicability.DISPLAY, _REASON)
