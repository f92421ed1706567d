"""What loaders ask: where their values go, and what their datasets cost."""

from __future__ import annotations

from ldlm_lint.checkers.by_program.dataloader_without_persistent_workers import ends_never
from ldlm_lint.checkers.by_program.loader_datasets import is_of_tensors, works_per_item
from ldlm_lint.model import Finding, Related
from ldlm_lint.project.datasets import Load
from ldlm_lint.project.loaders import Site
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.training import is_probe, is_tutorial
from ldlm_lint.rules.data import PREFETCH, WITHOUT_PIN_MEMORY
from ldlm_lint.wording import quoted

_OF_WORKERS = frozenset({PREFETCH.symbol, WITHOUT_PIN_MEMORY.symbol})
"""Rules that say something only of loaders with workers."""


def _loader_is_reiterated(context: Context, finding: Finding, position: str) -> Verdict:
    if _is_no_training(context, finding.span.path):
        return Verdict(False)
    site = context.tracer.second_pass(finding.span.path, position)
    one = context.view.loaders.at(finding.span.path, position) if site is not None else None
    if one is not None and ends_never(context.view, one):
        return Verdict(False)
    maker = (finding.span.path, position)
    if site is not None and site.line and not context.view.loaders.may_go_through(site.path, site.line, maker):
        return Verdict(False)
    if site is not None and context.view.loaders.has_none_by_default(finding.span.path, position):
        return Verdict(False)
    if site is not None and site.scope.rpartition(".")[2] == "val_dataloader" and _is_validated_once(context, site.path):
        return Verdict(False)
    if site is not None and context.dataset_changes.between_passes(finding.span.path, position):
        # Workers that start anew see the change; persistent ones would go on with the dataset as it was.
        return Verdict(False)
    return _at_site(context, finding, site, "this iterates the DataLoader again and again")


def _is_validated_once(context: Context, path: str) -> bool:
    """Whether the Trainers of Lightning that may call a hook validate at the end of the run alone."""
    module = context.view.module(path)
    return module is not None and context.view.lightning_rhythm.validates_once(module)


def _no_dataset_takes_epochs(context: Context, finding: Finding, _subject: str) -> Verdict:
    """The loop of a framework changes no dataset of the project: persistent workers would not see that."""
    known = finding.span.path in context.project.files or finding.span.path in context.project.others
    return Verdict(known and not context.dataset_changes.some_takes_epochs())


def _loader_feeds_training(context: Context, finding: Finding, position: str) -> Verdict:
    if _is_no_training(context, finding.span.path):
        return Verdict(False)
    sites = context.tracer.sites(finding.span.path, position)
    site = next((one for one in sites if not context.project.is_test(one.path) and _trains_on(context, one, (finding.span.path, position))), None)
    of_workers = finding.rule in _OF_WORKERS
    if site is not None and of_workers and context.view.loaders.has_none_by_default(finding.span.path, position):
        return Verdict(False)
    return _at_site(context, finding, site, "this trains on its batches")


def _trains_on(context: Context, site: Site, maker: tuple[str, str]) -> bool:
    """Whether a site trains, and no argument on the way keeps the loader that is made at a place from it."""
    return context.tracer.trains(site) and (not site.line or context.view.loaders.may_go_through(site.path, site.line, maker))


def _is_no_training(context: Context, path: str) -> bool:
    """A test, a tutorial or a file that measures loaders, by its name."""
    return context.project.is_test(path) or is_tutorial(context.project, path) or is_probe(path)


def _dataset_works_per_item(context: Context, finding: Finding, position: str) -> Verdict:
    """A dataset that nobody knows may do so."""
    one = context.view.loaders.at(finding.span.path, position)
    is_tensor = one is not None and is_of_tensors(context.view, one) and not works_per_item(context.view, one)
    return Verdict(context.datasets.load(finding.span.path, position) is not Load.NONE and not is_tensor)


def _collates_on_host(context: Context, finding: Finding, name: str) -> Verdict:
    return Verdict(not context.datasets.collates_on_device(finding.span.path, name))


def _at_site(context: Context, finding: Finding, site: Site | None, note: str) -> Verdict:
    if site is None:
        return Verdict(False)
    where = context.described(site.path, site.line, finding.span.path) if site.line else f"in {quoted(site.path.rpartition('/')[2])}"
    related = (Related(context.line_span(site.path, site.line), note),) if site.line else ()
    if related and related[0].span.path == finding.span.path and related[0].span.start == finding.span.start:
        related = ()
    return Verdict(True, related, (("where", where),))


QUESTIONS: dict[str, Question] = {
    "loader-is-reiterated": _loader_is_reiterated,
    "no-dataset-takes-epochs": _no_dataset_takes_epochs,
    "loader-feeds-training": _loader_feeds_training,
    "dataset-works-per-item": _dataset_works_per_item,
    "collates-on-host": _collates_on_host,
}
