"""The timeout parameters of process groups, and their arguments in a call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.python.calls import Argument, Arguments
from ldlm_lint.python.names import qualified
from ldlm_lint.python.values import seconds
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS

DEFAULT_GROUP = "torch.distributed.init_process_group"
# The parameters that may be passed by position, up to the timeout.
_POSITIONAL = {
    DEFAULT_GROUP: ("backend", "init_method", "timeout"),
    "torch.distributed.new_group": ("ranks", "timeout", "backend"),
    "torch.distributed.new_subgroups": ("group_size", "group", "timeout", "backend"),
    "torch.distributed.new_subgroups_by_enumeration": ("ranks_per_subgroup_list", "timeout", "backend"),
    "torch.distributed.split_group": ("parent_pg", "split_ranks", "timeout"),
    "accelerate.InitProcessGroupKwargs": ("backend", "init_method", "timeout"),
    "deepspeed.init_distributed": ("dist_backend", "auto_mpi_discovery", "distributed_port", "verbose", "timeout"),
    "lightning.strategies.DDPStrategy": (),
    "lightning.strategies.FSDPStrategy": (),
}
POSITIONAL = _POSITIONAL[DEFAULT_GROUP]
_SUBGROUPS = {name for name in _POSITIONAL if "new_" in name or "split_" in name}
_MESHES = {"torch.distributed.init_device_mesh", "torch.distributed.device_mesh.init_device_mesh"}
_DEFAULT_LENGTHS = {"nccl": 600.0, "gloo": 1800.0, "mpi": 1800.0}


class Taken(NamedTuple):
    """The timeout that a call passes: its argument, and whether it must be a plain number of seconds."""

    argument: Argument
    in_seconds: bool


def timeout_of(call: nodes.Call) -> Taken | None:
    """The timeout of a call that accepts one; None for every other call."""
    names = qualified(call.func)
    if len(names) != 1:
        return None
    name = next(iter(names))
    if name in TRAINING_ARGUMENTS:
        return Taken(Arguments(call)["ddp_timeout"], True)
    return Taken(Arguments(call, _POSITIONAL[name])["timeout"], False) if name in _POSITIONAL else None


def makes_default_group(call: nodes.Call) -> bool:
    """Whether a call is ``init_process_group``."""
    return qualified(call.func) == {DEFAULT_GROUP}


def default_groups(module: nodes.Module) -> Iterator[tuple[nodes.Call, nodes.NodeNG]]:
    """The calls that pass the default group a timeout other than its backend's default, each with that timeout."""
    for call in nodes_of(module, nodes.Call):
        if not makes_default_group(call):
            continue
        arguments = Arguments(call, _POSITIONAL[DEFAULT_GROUP])
        timeout = arguments["timeout"]
        if timeout.node is None or timeout.is_only(None) or not _may_be_length(timeout):
            continue
        length = seconds(timeout.node)
        defaults = {_DEFAULT_LENGTHS.get(str(one).lower()) for one in arguments["backend"].values}
        if length is None or set(length) != defaults:
            yield call, timeout.node


def _may_be_length(timeout: Argument) -> bool:
    """A number or string raises, which is another rule's matter."""
    return not timeout.values


def subgroup_without_timeout(call: nodes.Call) -> bool:
    """Whether a call creates a group that certainly gets the default timeout of a backend for GPUs, or one it
    inherits.
    """
    names = qualified(call.func)
    if len(names) != 1 or next(iter(names)) not in _SUBGROUPS:
        return False
    arguments = Arguments(call, _POSITIONAL[next(iter(names))])
    backend = arguments["backend"]
    helps = any(isinstance(value, str) and "nccl" not in value.lower() for value in backend.values)
    # The options of a backend hold a timeout of their own.
    return arguments["timeout"].absent and not helps and arguments["pg_options"].absent


def mesh_of_groups(call: nodes.Call) -> bool:
    """Whether a call creates a GPU mesh with at least two dimensions, each with its own group."""
    if not qualified(call.func) <= _MESHES:
        return False
    arguments = Arguments(call, ("device_type", "mesh_shape"))
    shape = arguments["mesh_shape"].node
    if arguments["device_type"].is_only("cpu") or not isinstance(shape, (nodes.Tuple, nodes.List)):
        return False
    wide = [part for part in shape.elts if not (isinstance(part, nodes.Const) and part.value == 1)]
    return len(wide) > 1 and arguments["backend_override"].absent
