"""Finds variables of PyTorch's NCCL process group that are set after the group was made that reads them."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.python.names import qualified
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

_PREFIX = "TORCH_NCCL_"
# The names these had before torch 2.2; NCCL's own variables are read later, with the first communicator.
_OLD_NAMES = {"NCCL_BLOCKING_WAIT", "NCCL_ASYNC_ERROR_HANDLING", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING"}
_MAKES_GROUP = {"torch.distributed.init_process_group", "torch.distributed.new_group"}
_STARTS_PROCESSES = ("subprocess.", "torch.multiprocessing.", "multiprocessing.", "os.exec", "os.spawn", "os.system")


def settings_after(call: nodes.Call) -> Iterator[tuple[nodes.NodeNG, str]]:
    """The assignments of such variables that follow a call in its own block, with their names.

    Only straight-line code counts, and only up to whatever may still read the variable: another group, or a new process.
    """
    for later in _following(call.statement()):
        if isinstance(later, nodes.Assign):
            for target in later.targets:
                if isinstance(target, nodes.Subscript) and qualified(target.value) == {"os.environ"}:
                    name = constant(target.slice)
                    if isinstance(name, str) and (name.startswith(_PREFIX) or name in _OLD_NAMES):
                        yield later, name


def _following(statement: nodes.NodeNG) -> list[nodes.NodeNG]:
    block = next((part for part in _blocks(statement.parent) if statement in part), [])
    rest = block[block.index(statement) + 1 :] if block else []
    later_groups = [at for at, one in enumerate(rest) if _reads_again(one)]
    # A group or process that is made further down reads what is set before it.
    return rest[later_groups[-1] + 1 :] if later_groups else rest


def _blocks(parent: nodes.NodeNG) -> list[list[nodes.NodeNG]]:
    return [part for name in ("body", "orelse", "finalbody") if isinstance(part := getattr(parent, name, None), list)]


def _reads_again(statement: nodes.NodeNG) -> bool:
    for call in nodes_of(statement, nodes.Call):
        for name in qualified(call.func):
            if name in _MAKES_GROUP or name.startswith(_STARTS_PROCESSES):
                return True
    return False
