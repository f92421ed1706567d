"""The call that makes the default process group."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import qualified

DEFAULT_GROUP = "torch.distributed.init_process_group"
POSITIONAL = ("backend", "init_method", "timeout")
"""Its parameters that may be passed by position, up to the timeout."""


def makes_default_group(call: nodes.Call) -> bool:
    """Whether a call is ``init_process_group``."""
    return qualified(call.func) == {DEFAULT_GROUP}
