"""What the autocasts of a file compute in, and the gradient scalers beside them."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Argument, Arguments
from ldlm_lint.python.names import is_named, last_name, qualified
from ldlm_lint.python.walks import nodes_of

OLD_AUTOCASTS = frozenset({"torch.cuda.amp.autocast", "torch.cuda.amp.autocast_mode.autocast"})
_NEW_AUTOCASTS = frozenset({"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"})
AUTOCASTS = OLD_AUTOCASTS | _NEW_AUTOCASTS
OLD_SCALERS = frozenset({"torch.cuda.amp.GradScaler", "torch.cuda.amp.grad_scaler.GradScaler"})
_NEW_SCALERS = frozenset({"torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler", "torch.GradScaler"})
SCALERS = OLD_SCALERS | _NEW_SCALERS
OLD_SCALER = ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled")
NAMES_BFLOAT16 = lazily(r"^(use_|is_|with_)?(bf16|bfloat16)$", re.I)
CHOOSES_PRECISION = lazily(r"16|half|dtype|precision|scal", re.I)


class Precision(enum.Enum):
    """What an autocast computes in."""

    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    OTHER = "other"


def autocasts(module: nodes.Module) -> Iterator[tuple[nodes.NodeNG, Precision]]:
    """The uses of autocast on CUDA in a file; one that is passed on without being called may be anything."""
    for node in nodes_of(module, (nodes.Name, nodes.Attribute)):
        if isinstance(node.parent, nodes.Attribute) or qualified(node).isdisjoint(AUTOCASTS):
            continue
        if isinstance(node.parent, nodes.Call) and node.parent.func is node:
            yield node.parent, _precision(node.parent)
        elif not isinstance(node.parent, nodes.Assign):
            yield node, Precision.OTHER


def _precision(call: nodes.Call) -> Precision:
    if not is_named(call.func, AUTOCASTS):
        return Precision.OTHER
    old = is_named(call.func, OLD_AUTOCASTS)
    arguments = Arguments(call, ("enabled", "dtype") if old else ("device_type", "dtype", "enabled"))
    if arguments["enabled"].is_only(False) or arguments["device_type"].is_only("cpu"):
        return Precision.FLOAT32
    dtype = arguments["dtype"]
    if dtype.node is None:
        return Precision.OTHER
    names = qualified(dtype.node)
    if names <= {"torch.bfloat16"}:
        return Precision.BFLOAT16
    return Precision.FLOAT32 if names <= {"torch.float32", "torch.float"} else Precision.OTHER


def enabled_argument(call: nodes.Call) -> Argument:
    """What a scaler gets as ``enabled``."""
    old = is_named(call.func, OLD_SCALERS)
    return Arguments(call, OLD_SCALER if old else ("device", *OLD_SCALER))["enabled"]


def always_scales(call: nodes.Call) -> bool:
    """Whether a call makes a scaler that is enabled whatever the precision is."""
    if not is_named(call.func, SCALERS):
        return False
    enabled = enabled_argument(call)
    return (enabled.absent or enabled.is_only(True)) and not _is_chosen_by_precision(call)


def _is_chosen_by_precision(node: nodes.NodeNG) -> bool:
    """Whether a condition around a node speaks of the precision, or of scaling."""
    child, parent = node, node.parent
    while parent is not None:
        test = parent.test if isinstance(parent, (nodes.If, nodes.IfExp)) else None
        if test is not None and child is not test and CHOOSES_PRECISION.search(test.as_string()):
            return not _asks_for_bfloat16(parent, child)
        child, parent = parent, parent.parent
    return False


def _asks_for_bfloat16(branch: nodes.NodeNG, child: nodes.NodeNG) -> bool:
    """``GradScaler() if use_bfloat16 else None``: made for the very precision that needs none."""
    body = branch.body if isinstance(branch.body, list) else [branch.body]
    return child in body and isinstance(branch.test, (nodes.Name, nodes.Attribute)) and NAMES_BFLOAT16.search(last_name(branch.test)) is not None
