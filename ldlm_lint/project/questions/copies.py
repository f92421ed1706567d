"""The questions of the rules in copies and sharded_data."""

from __future__ import annotations

import re

from ldlm_lint.concepts.loader_passes import LoaderPasses
from ldlm_lint.model import Finding, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.samplers import Neglect
from ldlm_lint.project.text import call_text
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.traits import Trait
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
_MANY_WORKERS = lazily(rb"\bnum_workers\s*=\s*(?![01]\b|None)")


def _sampler_epoch_is_never_set(context: Context, finding: Finding, position: str) -> Verdict:
    path = finding.span.path
    found = context.samplers.at(path, position)
    if found is None:
        return Verdict(False)
    where, line = found.loops[0]
    related = (Related(context.line_span(where, line), "this goes through the data in the same order each time"),)
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
    """A training that uses the loader wraps its model in DDP, and none of its files mentions splitting data."""
    project, path = context.project, finding.span.path
    if project.is_test(path):
        return Verdict(False)
    files = trainings_of(project, path)
    if not project.any_shows(files, _DDP) or project.any_shows(files, _SHARES_OTHERWISE):
        return Verdict(False)
    return Verdict(not project.any_shows(files, _SAMPLERS) or context.view[LoaderPasses].only_others_get(_DISTRIBUTED))


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
}
