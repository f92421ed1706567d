"""What the rules of copies and sharded_data ask of the project."""

from __future__ import annotations

import re

from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.samplers import Neglect
from ldlm_lint.project.text import call_text
from ldlm_lint.project.training import is_tutorial, trainings_of
from ldlm_lint.project.traits import Trait
from ldlm_lint.project.wrappers import Passes, given, workers_parameter_of
from ldlm_lint.python.flow import Callee
from ldlm_lint.python.slots import Slot
from ldlm_lint.wording import located

_DDP = Trait(re.compile(rb"\bDistributedDataParallel\(|\bDDP\("), (b"DistributedDataParallel(", b"DDP("))
_SAMPLERS = Trait(
    re.compile(rb"DistributedSampler|distributed_sampler|num_replicas"),
    (b"DistributedSampler", b"distributed_sampler", b"num_replicas"),
    code=True,
)
_SHARES_OTHERWISE = Trait(
    re.compile(
        rb"split_dataset_by_node|split_by_node|\.shard\(|::[ \t]*\w*(?:world|rank|replica)\w*"
        rb"|rank[ \t]*::|\bAccelerator\(|setup_dataloaders\(|deepspeed\.initialize|\blightning\b|\bpytorch_lightning\b|%[ \t]*\w*world_?size"
    ),
    (
        *(b"split_dataset_by_node", b"split_by_node", b".shard(", b"::"),
        *(b"Accelerator(", b"setup_dataloaders(", b"deepspeed.initialize", b"lightning", b"world"),
    ),
    code=True,
)
# A keyword, an attribute or a field that gets a value, a key of a dictionary, a flag with a default.
_SET_IN_PYTHON = rb"\b%s(?:[ \t]*(?::[^=\n]*)?=(?!=)[ \t]*(?:field\(default=)?|[\"']:[ \t]*|[\"'],[^)]{0,200}?\bdefault=)(?!0\b|None\b)"
_ZERO_DEFAULT = lazily(rb"\bdefault[ \t]*=[ \t]*0(?![\w.])")
_MANY_WORKERS = lazily(rb"\bnum_workers\s*=\s*(?![01]\b|None)")


def _sampler_epoch_is_never_set(context: Context, finding: Finding, position: str) -> Verdict:
    path = finding.span.path
    found = context.samplers.at(path, position)
    if found is None:
        return Verdict(False)
    where, line = found.loops[0]
    related = (Related(context.line_span(where, line), "this goes through the data in the same order again and again"),)
    return Verdict(True, related, (("where", context.described(where, line, path)),))


def _loop_neglects_a_sampler(context: Context, finding: Finding, line: str) -> Verdict:
    found = context.samplers.behind_loop(finding.span.path, int(line.partition(":")[0]))
    if found is None:
        return Verdict(False)
    related = (Related(context.line_span(found.path, found.line), "the sampler is created here; another training calls its `set_epoch()`"),)
    return Verdict(True, related, (("sampler", _named(found, finding.span.path)), ("where", context.described(finding.span.path, int(line), finding.span.path))))


def _loop_takes_pinned_batches(context: Context, finding: Finding, line: str) -> Verdict:
    loader = context.pinning.loops.get((finding.span.path, int(line.partition(":")[0])))
    if loader is None:
        return Verdict(False)
    related = (Related(context.line_span(*loader), "this loader pins its batches"),)
    return Verdict(True, related, (("loader", located(*loader, finding.span.path)),))


def _runs_under_ddp_unsharded(context: Context, finding: Finding, _subject: str) -> Verdict:
    """A training that uses the loader wraps its model in DDP, and none of its files speaks of sharing data out."""
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    files = trainings_of(project, path)
    if not project.any_shows(files, _DDP) or project.any_shows(files, _SHARES_OTHERWISE):
        return Verdict(False)
    return Verdict(not project.any_shows(files, _SAMPLERS) or context.view.loaders.only_others_get(_DISTRIBUTED))


_DISTRIBUTED = frozenset({"torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler"})


def _iterable_dataset_gets_workers(context: Context, finding: Finding, name: str) -> Verdict:
    """A loader with more than one worker reads an instance of the class, and no ``worker_init_fn`` shares it out."""
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    for other in project.calling_by_name(name) & project.plain:
        for call in project.flow(other).calls:
            made = call.callee.name.rpartition(".")[2] == name and _resolves_to(context, other, call.callee, (path, name))
            if made:
                for where, position in context.tracer.loaders_given(other, Slot("out", "", call.position), {0, "dataset"}):
                    text = call_text(project.data(where), position)
                    if _MANY_WORKERS.search(text) and b"worker_init_fn" not in text:
                        line = int(position.partition(":")[0])
                        related = (Related(context.line_span(where, line), "this loader starts several workers"),)
                        return Verdict(True, related, (("where", located(where, line, path)),))
    return Verdict(False)


def _wrapper_has_workers(context: Context, finding: Finding, subject: str) -> Verdict:
    """Some call of a function passes workers for a parameter whose default is 0."""
    scope, _, parameter = subject.partition("|")
    passed = {one.setting for one in given(context.calls, finding.span.path, scope, parameter) if one.passes is Passes.OTHER}
    return Verdict(any(not one or not _is_zero_flag(context, one) for one in passed))


def _is_zero_flag(context: Context, name: str) -> bool:
    """Whether every command-line flag of that name is 0 by default, and no script or configuration says otherwise."""
    project, word = context.project, re.escape(name.encode()).replace(b"_", b"[_-]")
    flag = re.compile(rb"add_argument\(\s*[\"']--(?:[\w-]+\.)*" + word + rb"[\"']([^)]*)")
    declared = [one[1] for path in project.plain if b"add_argument" in (data := project.data(path)) for one in flag.finditer(data)]
    return bool(declared) and all(map(_ZERO_DEFAULT.search, declared)) and not _is_written(context, word)


def _setting_may_have_workers(context: Context, finding: Finding, subject: str) -> Verdict:
    """A call, a configuration or a script passes something else for a constructor's argument than its default of 0.

    Without a constructor it is a field of another package's class, which Python may set, too.
    """
    scope, _, name = subject.partition("|")
    if scope and any(one.passes is Passes.OTHER for one in given(context.calls, finding.span.path, scope, name)):
        return Verdict(True)
    if not scope and _is_set_in_python(context, name.encode()):
        return Verdict(True)
    return Verdict(_is_written(context, name.encode()))


def _is_set_in_python(context: Context, word: bytes) -> bool:
    """Whether some Python file sets a field of that name."""
    made, texts = re.compile(_SET_IN_PYTHON % word), map(context.project.data, context.project.plain)
    return any(word in data and made.search(data) is not None for data in texts)


def _is_written(context: Context, word: bytes) -> bool:
    """Whether a script or a configuration sets something else than 0."""
    written = re.compile(rb"\b" + word + rb"(?:[\"']?[ \t]*[:=][ \t]*(?![\"']?0\b)[^\s#]|[ \t]+[\"']?[1-9$])")
    return any(written.search(context.project.data(one)) for one in context.project.others)


def _wrapper_leaves_workers_at_zero(context: Context, finding: Finding, subject: str) -> Verdict:
    """A call that leaves the parameter at its default of 0 gets a loader that trains, or trains itself."""
    path = finding.span.path
    scope, _, parameter = subject.partition("|")
    if context.project.is_test(path) or is_tutorial(context.project, path):
        return Verdict(False)
    trains_itself = context.calls.trains(path, scope)
    for one in given(context.calls, path, scope, parameter):
        if one.passes is Passes.NOTHING and (trains_itself or _result_trains(context, one.path, one.position)):
            related = (Related(context.line_span(one.path, one.line), "this call leaves the number of workers at its default"),)
            why = f" where `{scope.rpartition('.')[2]}()` is called without `{parameter}` ({located(one.path, one.line, path)})"
            return Verdict(True, related, (("why", why),))
    return Verdict(False)


def _default_decides_workers(context: Context, finding: Finding, subject: str) -> Verdict:
    """A call leaves the parameter at its default, or none is known."""
    scope, _, parameter = subject.partition("|")
    if context.calls.function(finding.span.path, scope) is None:
        return Verdict(False)
    calls = list(given(context.calls, finding.span.path, scope, parameter))
    return Verdict(not calls or any(one.passes is Passes.NOTHING for one in calls))


def _call_makes_loader(context: Context, finding: Finding, subject: str) -> Verdict:
    """A call goes to a function of the project that makes a loader with as many workers as the keyword says."""
    position, _, keyword = subject.partition("|")
    path = finding.span.path
    calls = (one for one in context.project.flow(path).calls if one.position == position)
    return Verdict(any(workers_parameter_of(context.calls, path, one, keyword) for one in calls))


def _call_feeds_training(context: Context, finding: Finding, position: str) -> Verdict:
    path = finding.span.path
    if context.project.is_test(path) or is_tutorial(context.project, path):
        return Verdict(False)
    return Verdict(_result_trains(context, path, position))


def _result_trains(context: Context, path: str, position: str) -> bool:
    return any(context.tracer.trains(site) for site in context.tracer.sites_of_result(path, position))


def _resolves_to(context: Context, path: str, callee: Callee, wanted: tuple[str, str]) -> bool:
    found = (path, callee.name) if callee.kind == "def" else context.project.resolve(path, callee.name)
    return found == wanted


def _named(found: Neglect, own: str) -> str:
    return f"the DistributedSampler at {located(found.path, found.line, own)}"


QUESTIONS: dict[str, Question] = {
    "sampler-epoch-is-never-set": _sampler_epoch_is_never_set,
    "loop-neglects-a-sampler": _loop_neglects_a_sampler,
    "loop-takes-pinned-batches": _loop_takes_pinned_batches,
    "runs-under-ddp-unsharded": _runs_under_ddp_unsharded,
    "iterable-dataset-gets-workers": _iterable_dataset_gets_workers,
    "setting-may-have-workers": _setting_may_have_workers,
    "wrapper-has-workers": _wrapper_has_workers,
    "wrapper-leaves-workers-at-zero": _wrapper_leaves_workers_at_zero,
    "default-decides-workers": _default_decides_workers,
    "call-makes-loader": _call_makes_loader,
    "call-feeds-training": _call_feeds_training,
}
