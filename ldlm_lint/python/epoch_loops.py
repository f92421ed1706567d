"""Loops over epochs, distinguished from loops of steps that only mention epochs: ``for iter_epoch, batch in
enumerate(loader)``."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

_EPOCH = lazily(r"epoch", re.I)
_STEP = lazily(r"step|iter|batch", re.I)
# After ``in`` a progress bar may show the epoch; a loop over epochs counts to their number.
_HEADER = lazily(r"^[ \t]*(?:async[ \t]+)?for\b(?P<target>.*?)[ \t,(]in\b(?P<iterable>.*)", re.S)
_COUNTED = lazily(
    r"\b(?:t?range|count|arange|prange)\([^\"']{0,200}?(?<!per_)(?<!per)epoch|^[ \t]*\(*(?:\w+\()*[\w.]*epochs\b", re.I
)
_WHILE = lazily(r"^[ \t]*while\b.*epoch", re.I)


def counts_epochs(target: str, iterable: str) -> bool:
    """Whether the variable of a loop is named epoch; one also named step, ``iter_epoch``, only if it counts epochs."""
    return _EPOCH.search(target) is not None and (_STEP.search(target) is None or _COUNTED.search(iterable) is not None)


def is_epoch_loop(header: str) -> bool:
    """Whether the first line of a loop shows that it iterates over epochs."""
    if _EPOCH.search(header) is None:
        return False
    found = _HEADER.match(header)
    if found is None:
        return _WHILE.match(header) is not None
    target, iterable = found["target"], found["iterable"]
    return counts_epochs(target, iterable) or (_STEP.search(target) is None and _COUNTED.search(iterable) is not None)


__all__ = ["counts_epochs", "is_epoch_loop"]
