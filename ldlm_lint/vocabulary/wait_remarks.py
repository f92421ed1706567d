"""Comments about a read: that it waits, or that there is nothing to wait for."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

# ``# One host sync for the whole forward``, but not ``# detach, to avoid a sync with the GPU``, nor the name of the rule.
_SYNC = lazily(r"\bsync(?:s|ed|ing|hroni[sz]\w*)?\b(?!-in-)", re.I)
_SIDES = lazily(r"\b(?:host|device|gpu|cuda|cpu|d2h|dtoh)\b", re.I)
_DENIED = lazily(r"\b(?:avoid\w*|without|no|not|never|\w+n't|prevent\w*|instead|fewer|less)\b", re.I)
_REGRETTED = lazily(r"\b(?:todo|fixme|hack|xxx|slow\w*|expensive|bad)\b", re.I)
# A fact about a value from its author: ``# cpu tensors, so these ops are cheap``. The result of a call on it is not
# covered.
_ON_HOST = lazily(r"(?<!to )(?<!to a )(?<!than a )\b(cpu|host) tensors?\b|\balready on (the )?(cpu|host)\b", re.I)


def says_sync(remark: str) -> bool:
    """Whether a comment states that the host waits here, without denying or regretting it."""
    said = _SYNC.search(remark)
    if said is None or _SIDES.search(remark) is None:
        return False
    return _DENIED.search(remark, 0, said.start()) is None and _REGRETTED.search(remark) is None


def says_host(remark: str) -> bool:
    """Whether a comment says that a value is on the host already."""
    return _ON_HOST.search(remark) is not None


__all__ = ["says_host", "says_sync"]
