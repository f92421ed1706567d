"""Questions about loaders with options from a configuration, and about splitting data: the linked program answers."""

from __future__ import annotations

from ldlm_lint.checkers.by_program.dataloader_without_persistent_workers import ends_never
from ldlm_lint.checkers.by_program.loader_calls import LoaderCall
from ldlm_lint.checkers.by_program.loader_datasets import is_changed_between_passes, works_per_item
from ldlm_lint.concepts.loader_passes import Pass
from ldlm_lint.concepts.replicas import Replicas
from ldlm_lint.model import Finding
from ldlm_lint.project.questions.base import Context, Question, Verdict


def _loader_is_reiterated(context: Context, finding: Finding, position: str) -> Verdict:
    one = _loader(context, finding, position)
    if one is None or ends_never(context.view, one) or context.view.loaders.has_none_by_default(one):
        return Verdict(False)
    found = context.view.loaders.repeated(one)
    if found is None or is_changed_between_passes(context.view, one):
        # Restarted workers see a change; persistent ones would keep the old dataset.
        return Verdict(False)
    return _at(context, finding, one, found, "this iterates the DataLoader repeatedly")


def _no_dataset_takes_epochs(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The loop of a framework changes no dataset of the project: persistent workers would not see that."""
    known = finding.span.path in context.project.files or finding.span.path in context.project.others
    return Verdict(known and not context.dataset_changes.some_takes_epochs())


def _loader_feeds_training(context: Context, finding: Finding, position: str) -> Verdict:
    one = _loader(context, finding, position)
    found = context.view.loaders.concept.trains(one.call) if one is not None else None
    return _at(context, finding, one, found, "this trains on its batches") if one is not None and found is not None else Verdict(False)


def _dataset_works_per_item(context: Context, finding: Finding, position: str) -> Verdict:
    """An unknown dataset may do so."""
    one = _loader(context, finding, position)
    return Verdict(one is None or works_per_item(context.view, one))


def _collates_on_host(context: Context, finding: Finding, name: str) -> Verdict:
    return Verdict(not context.datasets.collates_on_device(finding.span.path, name))


def _each_rank_has_its_loader(context: Context, finding: Finding, subject: str) -> Verdict:
    """No ``DataParallel`` of one process uses a loader for all GPUs of the node, in a file or a launched one (its
    name)."""
    named = [path for path in context.project.files if path.endswith(f"/{subject}")] if subject.endswith(".py") else [finding.span.path]
    modules = [module for module in map(context.view.module, named) if module is not None]
    return Verdict(not modules or not all(map(context.view[Replicas].are_of_one_process, modules)))


def _loader(context: Context, finding: Finding, position: str) -> LoaderCall | None:
    """The loader at a place, unless it belongs to a test."""
    path = finding.span.path
    return None if context.project.is_test(path) else context.view.loaders.at(path, position)


def _at(context: Context, finding: Finding, one: LoaderCall, found: Pass, note: str) -> Verdict:
    where, related = context.view.loaders.where(one, found, note)
    elsewhere = tuple(other for other in related if (other.span.path, other.span.start) != (finding.span.path, finding.span.start))
    return Verdict(True, elsewhere, (("where", where),))


QUESTIONS: dict[str, Question] = {
    "loader-is-reiterated": _loader_is_reiterated,
    "no-dataset-takes-epochs": _no_dataset_takes_epochs,
    "loader-feeds-training": _loader_feeds_training,
    "dataset-works-per-item": _dataset_works_per_item,
    "collates-on-host": _collates_on_host,
    "each-rank-has-its-loader": _each_rank_has_its_loader,
}
