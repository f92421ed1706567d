"""What waits for the device by its name, and reads of which the author says that they wait."""

from __future__ import annotations

import re

from ldlm_lint.patterns import lazily

DEVICES = ("cuda", "xpu", "mps", "npu", "accelerator")
SYNCHRONIZES = frozenset({f"torch.{one}.synchronize" for one in DEVICES} | {"torch.cuda.current_stream.synchronize"})
# ``# One host sync for the whole forward``, but not ``# detach, to avoid a sync with the GPU``, nor the name of the rule.
_SYNC = lazily(r"\bsync(?:s|ed|ing|hroni[sz]\w*)?\b(?!-in-)", re.I)
_SIDES = lazily(r"\b(?:host|device|gpu|cuda|cpu|d2h|dtoh)\b", re.I)
_DENIED = lazily(r"\b(?:avoid\w*|without|no|not|never|\w+n't|prevent\w*|instead|fewer|less)\b", re.I)
_REGRETTED = lazily(r"\b(?:todo|fixme|hack|xxx|slow\w*|expensive|bad)\b", re.I)


def is_said_to_sync(remark: str) -> bool:
    """Whether a comment says itself that the host waits here, and neither denies nor regrets it."""
    said = _SYNC.search(remark)
    if said is None or _SIDES.search(remark) is None:
        return False
    return _DENIED.search(remark, 0, said.start()) is None and _REGRETTED.search(remark) is None


__all__ = ["DEVICES", "SYNCHRONIZES", "is_said_to_sync"]
