"""What a message says of places where the host waits: their code, and what to do, by what the value is read for."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.checkers.host_time_needs import Need, need_of
from ldlm_lint.checkers.host_time_syncs import Group, Sync
from ldlm_lint.python.host_names import READS
from ldlm_lint.python.names import last_name
from ldlm_lint.wording import LONGEST, quoted

_NEEDED = "compute it on the CPU before the batch is moved, or use `torch.where`"
_TESTED = "use `torch.where`, or test only every N steps"
_SHOWN = "show it only every N steps"
_COPIED = "keep %s on the GPU and copy it to the CPU only when you log"
_CONVERTS = ("float", "int", "bool")


def described(group: Group) -> str:
    """The code of the first place, and on how many more lines beside it the host waits."""
    sync = group.first
    text = quoted(sync.node.as_string())
    if sync.branches:
        text = f"the condition {text}"
    elif not isinstance(sync.node, nodes.Call):
        text = f"formatting {text}"
    count = len({one.node.lineno for one in group.others} - {sync.node.lineno})
    return f"{text} (like {count} more line{'s' * (count > 1)} beside it)" if count else text


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
        return _later(call.func.expr, f"`.{name}()`" if name not in ("cpu", "to") else "")
    if name in _CONVERTS and call.args:
        return _later(call.args[0], f"`{name}()`")
    return _SHOWN


def _later(tensor: nodes.NodeNG, read: str) -> str:
    """To keep a tensor without its graph, and to read it only now and then."""
    text = tensor.as_string().removesuffix(".data")
    kept = text if ".detach()" in text else f"{text}.detach()"
    shown = quoted(kept) if len(kept) <= LONGEST else "the tensor"
    return f"keep {shown} and call {read} only when you log" if read else _COPIED % shown
