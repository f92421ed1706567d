"""unsharded-iterable-dataset: streams of the project that a loader with several workers reads."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.datasets import Datasets
from ldlm_lint.concepts.loaders import Loader, Loaders
from ldlm_lint.concepts.workers import Workers
from ldlm_lint.model import Confidence, Consequence, Finding, Frequency, Reference, Related, Rule
from ldlm_lint.program.handles import Class
from ldlm_lint.vocabulary.loaders import ITERABLE_DATASETS
from ldlm_lint.wording import located

if TYPE_CHECKING:
    from ldlm_lint.checkers.project_code import ProjectCode

_ITERABLE = Reference(
    "torch.utils.data.IterableDataset", "https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset"
)
RULE = Rule(
    code="W7113",
    symbol="unsharded-iterable-dataset",
    frequency=Frequency.EPOCH,
    consequence=Consequence.WRONG_RESULT,
    message="`%(dataset)s.__iter__` does not use `get_worker_info()`: every worker of the loader at %(where)s yields "
    "all samples, so each sample comes once per worker; split the samples with `get_worker_info()`",
    summary="An `IterableDataset` that does not split its samples between workers, read by a loader with workers.",
    rationale="Each worker process of a `DataLoader` gets a copy of the dataset object and iterates all of it. An "
    "`__iter__` that uses neither `torch.utils.data.get_worker_info()` nor the rank yields every sample once per "
    "worker.",
    cost="Every sample comes as many times as there are workers, in batches that repeat each other; an epoch takes "
    "that many times longer. Not measured here.",
    exceptions="An endless stream of random samples that are drawn independently in each worker, and a dataset that a "
    "`worker_init_fn` splits.",
    versions="All versions.",
    verification="Collect the samples of one iteration with `num_workers=2` and look for repetitions; a CPU is enough.",
    references=(_ITERABLE,),
    reads=("py",),
    triggers=(b"IterableDataset",),
    confidence=Confidence.MEDIUM,
    default=False,
)

# Code that mentions any of these distributes samples deliberately.
_SHARES = re.compile(r"worker|rank|shard|world|replica|islice\(.*,.*,|split_by|process_index|distributed", re.I)
_ENDLESS = re.compile(r"while (?:True|1):")
_DRAWS = re.compile(r"rand|shuffle|choice|sample|perm|generator", re.I)


def find(code: ProjectCode) -> Iterator[Finding]:
    """The streams that do not split their samples, which a loader with several workers reads."""
    told = set[Class]()
    for loader in code[Loaders].shown:
        if not _has_several_workers(code, loader) or not code[Loaders].lacks(loader, "worker_init_fn"):
            continue
        for owner in code[Datasets].classes_of(loader):
            begins = next((one for one in owner.own_methods if one.name == "__iter__"), None)
            if begins is None or owner in told or not owner.outside_bases & ITERABLE_DATASETS or _shares_out(owner.text):
                continue
            told.add(owner)
            where = located(code.path(loader.call.module), loader.call.line, code.path(owner.module))
            related = [
                Related(begins.spot.line_span, "this yields all samples to every worker"),
                Related(loader.call.spot.line_span, "this loader starts several workers"),
            ]
            yield code.finding(RULE, owner.body.spot.line_span, {"dataset": owner.name, "where": where}, related, confidence=Confidence.MEDIUM)


def _has_several_workers(code: ProjectCode, loader: Loader) -> bool:
    return code[Workers].given(loader).is_given and any(way.number is None or way.number > 1 for way in code[Workers].ways(loader))


def _shares_out(text: str) -> bool:
    return _SHARES.search(text) is not None or (_ENDLESS.search(text) is not None and _DRAWS.search(text) is not None)
