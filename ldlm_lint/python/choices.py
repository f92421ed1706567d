"""Whether a state is saved because of its quality, such as the best so far, and not because of the time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_BEST = lazily(r"best|improv|better|lowest|highest|record|is_(max|min)|patience|early_?stop", re.I)
_MEASURE = lazily(
    r"loss|acc(?!um|el)|metric|score|fid|psnr|ssim|bleu|rouge|m?iou|(?<![a-z])m?ap(?![a-z])|f1|wer|ppl|perplexity|reward|auc|mse|error",
    re.I,
)
CHOSEN_LATER = lazily(
    r"best_?(epoch|step|iter|ckpt|checkpoint)|averag\w*_?(ckpt|checkpoint|model|weight)|(ckpt|checkpoint|model|weight)s?_?averag",
    re.I,
)
"""Names of what chooses among checkpoints afterwards, or averages them."""


def speaks_of_worth(text: str) -> bool:
    """Whether a text names a measure of a model, or the best of several."""
    return _BEST.search(text) is not None or _MEASURE.search(text) is not None


def is_chosen(node: nodes.NodeNG) -> bool:
    """Whether a test around a node in its own function, or the function's name, is about the quality of a state.

    ``if is_best``, ``if loss < lowest``, ``def save_best(...)``.
    """
    return _BEST.search(getattr(function_of(node), "name", "")) is not None or any(
        _is_choice(test) for test in _tests(node)
    )


def _tests(node: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    for parent in node.node_ancestors():
        if isinstance(parent, nodes.FunctionDef):
            return
        if isinstance(parent, (nodes.If, nodes.IfExp, nodes.While)):
            yield parent.test


def _is_choice(test: nodes.NodeNG) -> bool:
    if _BEST.search(test.as_string()):
        return True
    return any(_MEASURE.search(one.as_string()) for one in nodes_of(test, nodes.Compare))
