"""Names that say what a loader or a sampler is for, where only a name is left to say it; collected from public trainings, 2025."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ldlm_lint.patterns import lazily

ENDLESS_SAMPLERS = lazily(r"infinite|endless|forever|repeat|cycle", re.I)
"""Names of samplers whose one pass is the whole run."""
EPOCHS_OF_RUN = lazily(r"^(?:num|n|max|total)_?epochs$")
"""Names of parameters that get the number of epochs of a run."""
_SPLIT = r"val|valid|validation|test|testing|eval|evaluation|dev|zero_?shot"
_EVALUATES = lazily(rf"(?i)(?:^|_)(?:{_SPLIT})(?:_|\d|$|set|loader|data|dl)")
_EVALUATED = lazily(rf"(?i)(?:{_SPLIT})$")
_TESTED = lazily(r"(?i)test(?:ing)?$")
_MAKES = lazily(r"(?i)^_*(?:get|make|build|create|load|prepare|setup|set_up|init|construct)_")
_WANTS_NONE = lazily(
    r"(?i)parallelism|\b(?:its|their) own\b|dead-?lock|\bhangs?\b|pickl|\bfork|important|\bmust\b|required|necessary|\bneeds? to be (?:0|zero)\b"
    r"|(?:can ?not|can't|does(?:n't| not)|not) (?:work|support|use|compatible)"
)
_TRAINS = lazily(r"(?i)train|loaders$|splits$|datasets$")


def says_evaluation(names: Iterable[str], maker: str, splits: Iterable[str]) -> bool:
    """Whether the names of a loader and its dataset, of the function that creates it, or its split mention
    evaluation.
    """
    told = list(names)
    # ``def build_test_loader():`` creates none for training, whatever uses it; a function that creates several may.
    if _MAKES.match(maker) and not any(map(_TRAINS.search, (maker, *told))):
        told.append(maker)
    return any(map(_EVALUATES.search, told)) or any(map(_EVALUATED.match, splits))


def says_test(splits: Iterable[str]) -> bool:
    """Whether the split is the test split."""
    return any(map(_TESTED.match, splits))


def wants_no_workers(remark: str) -> bool:
    """Whether a comment says why a loader has no workers: its data come from separate threads or processes, or cannot
    be shared."""
    return _WANTS_NONE.search(remark) is not None
