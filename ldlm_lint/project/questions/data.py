"""Questions about loaders with options from a configuration, and about splitting data: the linked program answers."""

from __future__ import annotations

from ldlm_lint.checkers.data.passes_shown import AGAIN, TRAINS, described, related_to
from ldlm_lint.concepts.datasets import Datasets
from ldlm_lint.concepts.item_work import ItemWork
from ldlm_lint.concepts.loader_passes import LoaderPasses, Pass
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.replicas import Replicas
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.model import Finding
from ldlm_lint.project.questions.base import Context, Question, Verdict


def _loader_is_reiterated(context: Context, finding: Finding, position: str) -> Verdict:
    view, one = context.view, _loader(context, finding, position)
    found = view[LoaderPasses].repeated(one) if one is not None and not view[Workers].are_none_by_default(one) else None
    if one is None or found is None or view[Datasets].change_between_passes(one):
        # Restarted workers see a change; persistent ones would keep the old dataset.
        return Verdict(False)
    return _at(context, finding, one, found, AGAIN)


def _no_dataset_takes_epochs(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The loop of a framework changes no dataset of the project: persistent workers would not see that."""
    known = finding.span.path in context.project.files or finding.span.path in context.project.others
    return Verdict(known and not context.view[Datasets].may_take_epochs)


def _loader_feeds_training(context: Context, finding: Finding, position: str) -> Verdict:
    one = _loader(context, finding, position)
    found = context.view[LoaderPasses].trains(one.call) if one is not None else None
    return _at(context, finding, one, found, TRAINS) if one is not None and found is not None else Verdict(False)


def _dataset_works_per_item(context: Context, finding: Finding, position: str) -> Verdict:
    """An unknown dataset may do so."""
    one = _loader(context, finding, position)
    return Verdict(one is None or context.view[ItemWork].may_be_there(one))


def _each_rank_has_its_loader(context: Context, finding: Finding, subject: str) -> Verdict:
    """No ``DataParallel`` of one process uses a loader for all GPUs of the node, in a file or a launched one (its
    name)."""
    named = [path for path in context.project.files if path.endswith(f"/{subject}")] if subject.endswith(".py") else [finding.span.path]
    modules = [module for module in map(context.view.module, named) if module is not None]
    return Verdict(not modules or not all(map(context.view[Replicas].are_of_one_process, modules)))


def _loader(context: Context, finding: Finding, position: str) -> Loader | None:
    """The loader at a place, unless it belongs to a test."""
    path = finding.span.path
    return None if context.project.is_test(path) else context.view[Loaders].at(path, position)


def _at(context: Context, finding: Finding, one: Loader, found: Pass, note: str) -> Verdict:
    related = related_to(one, found, note)
    elsewhere = tuple(other for other in related if (other.span.path, other.span.start) != (finding.span.path, finding.span.start))
    return Verdict(True, elsewhere, (("where", described(context.view, one, found)),))


QUESTIONS: dict[str, Question] = {
    "loader-is-reiterated": _loader_is_reiterated,
    "no-dataset-takes-epochs": _no_dataset_takes_epochs,
    "loader-feeds-training": _loader_feeds_training,
    "dataset-works-per-item": _dataset_works_per_item,
    "each-rank-has-its-loader": _each_rank_has_its_loader,
}
