"""Reads for which the host waits no longer, or of which the author says that it waits."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.autofix.lines import block_of
from ldlm_lint.patterns import lazily
from ldlm_lint.python.model_names import looks_like_model
from ldlm_lint.python.names import last_name, qualified
from ldlm_lint.python.walks import nodes_of

DEVICES = ("cuda", "xpu", "mps", "npu", "accelerator")
SYNCHRONIZES = frozenset({f"torch.{one}.synchronize" for one in DEVICES} | {"torch.cuda.current_stream.synchronize"})
_OF_DEVICE = lazily(r"device|cuda|gpu|xpu|mps|npu", re.I)
_LAUNCHES = {"backward", "manual_backward", "step", "optimizer_step"}
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


def has_waited(node: nodes.NodeNG) -> bool:
    """Whether the device was waited for earlier in the same block or in one around it, and got nothing of weight to do since.

    ``torch.cuda.synchronize()`` in front of a clock: what is read behind it is there already.
    """
    statement = node.statement()
    while True:
        block = block_of(statement)
        for one in reversed(block[: block.index(statement)]):
            if _waits(one):
                return True
            if isinstance(one, (nodes.For, nodes.While)) or any(map(_launches, nodes_of(one, nodes.Call))):
                return False
        if not isinstance(statement.parent, (nodes.If, nodes.With)):
            return False
        statement = statement.parent


def _waits(statement: nodes.NodeNG) -> bool:
    """``torch.cuda.synchronize()``, also under tests of which device there is."""
    if isinstance(statement, nodes.If):
        return _OF_DEVICE.search(statement.test.as_string()) is not None and any(map(_waits, [*statement.body, *statement.orelse]))
    call = statement.value if isinstance(statement, nodes.Expr) else None
    return isinstance(call, nodes.Call) and last_name(call.func) == "synchronize" and qualified(call.func) <= SYNCHRONIZES


def _launches(call: nodes.Call) -> bool:
    name = last_name(call.func)
    return name in _LAUNCHES or (bool(call.args or call.keywords) and looks_like_model(name))


__all__ = ["DEVICES", "SYNCHRONIZES", "has_waited", "is_said_to_sync"]
