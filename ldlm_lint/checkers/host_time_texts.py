"""What a message says of places where the host waits: their code, and what to do, by what the value is read for."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.host_time_needs import Need, is_only_kept, need_of
from ldlm_lint.checkers.host_time_syncs import Sync
from ldlm_lint.python.host_names import READS
from ldlm_lint.python.names import last_name
from ldlm_lint.wording import quoted

_NEEDED = "compute it on the CPU before the batch is moved, or use `torch.where`"
_TESTED = "use `torch.where`, or test only every N steps"
_SHOWN = "show it only every N steps"
_COPIED = "keep %s on the GPU and copy it to the CPU only when you log"
_CONVERTS = ("float", "int", "bool")
# A longer tensor is named by the beginning of the message already.
_LONGEST = 40


def described(sync: Sync) -> str:
    """The code of a place where the host waits."""
    text = quoted(sync.node.as_string())
    if sync.branches:
        return f"the condition {text}"
    return text if isinstance(sync.node, nodes.Call) else f"formatting {text}"


def advice_for(sync: Sync) -> str:
    """What to do about a place: a value that is needed at once has to be known earlier, any other can be read later."""
    need = need_of(sync.node)
    if need is Need.FINITE:
        return _TESTED
    if sync.branches or need is not None:
        return _NEEDED
    call = sync.node
    if not isinstance(call, nodes.Call):
        return _SHOWN
    name = last_name(call.func)
    if isinstance(call.func, nodes.Attribute) and name in READS | {"to"}:
        return _later(call, call.func.expr, f"`.{name}()`" if name not in ("cpu", "to") else "")
    if name in _CONVERTS and call.args:
        return _later(call, call.args[0], f"`{name}()`")
    return _SHOWN


def _later(call: nodes.Call, tensor: nodes.NodeNG, read: str) -> str:
    """To keep a tensor without its graph, and to read it only now and then; elsewhere than in its function it may be needed."""
    text = tensor.as_string().removesuffix(".data")
    if not read and not is_only_kept(call):
        return f"keep {quoted(text, _LONGEST)} on the GPU, or copy it only every N steps"
    kept = text if ".detach()" in text else f"{text}.detach()"
    shown = quoted(kept) if len(kept) <= _LONGEST else "the tensor"
    if not is_only_kept(call):
        return f"keep {shown} if you only log it, otherwise compute it before the batch is moved, or use `torch.where`"
    return f"keep {shown} and call {read} only when you log" if read else _COPIED % shown
