"""Loops over epochs, told from loops of steps that only speak of epochs: ``for iter_epoch, batch in enumerate(loader)``."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

_EPOCH = lazily(r"epoch", re.I)
_STEP = lazily(r"step|iter|batch", re.I)
# Behind ``in`` a progress bar may say in which epoch it stands; what counts epochs counts to a number of them.
_HEADER = lazily(r"^[ \t]*(?:async[ \t]+)?for\b(?P<target>.*?)[ \t,(]in\b(?P<iterable>.*)", re.S)
_COUNTED = lazily(
    r"\b(?:t?range|count|arange|prange)\([^\"']{0,200}?(?<!per_)(?<!per)epoch|^[ \t]*\(*(?:\w+\()*[\w.]*epochs\b", re.I
)
_WHILE = lazily(r"^[ \t]*while\b.*epoch", re.I)


def counts_epochs(target: str, iterable: str) -> bool:
    """Whether the variable of a loop is called an epoch; one that is called a step as well, ``iter_epoch``, where it counts them."""
    return _EPOCH.search(target) is not None and (_STEP.search(target) is None or _COUNTED.search(iterable) is not None)


def is_epoch_loop(header: str) -> bool:
    """Whether the first line of a loop says that it goes over epochs."""
    if _EPOCH.search(header) is None:
        return False
    found = _HEADER.match(header)
    if found is None:
        return _WHILE.match(header) is not None
    target, iterable = found["target"], found["iterable"]
    return counts_epochs(target, iterable) or (_STEP.search(target) is None and _COUNTED.search(iterable) is not None)


__all__ = ["counts_epochs", "is_epoch_loop"]
