"""The role of a single call in a training step, by its name and receiver."""

from __future__ import annotations

import enum
import functools
import re

from astroid import nodes

from ldlm_lint.checkers.step_names import Schedule, is_optimizer, last_name, schedule_of
from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import UNKNOWN, qualified
from ldlm_lint.python.scaled_gradients import SCALER

_CLIPS = lazily(
    r"^(clip_grad_norm_?|clip_grad_value_?|clip_grads_with_norm_|dispatch_clip_grad|adaptive_clip_grad)$"
)
# These unscale first, or clip gradients that their engine has unscaled.
_CLIPPING_ENGINES = lazily(r"accelerat|fabric|engine|strategy|^super$", re.I)
_NAMES = {"step", "get_scale", "scale", "zero_grad", "backward", "manual_backward"}


class Kind(enum.Enum):
    """The kind of an event."""

    STEP = "optimizer step"
    SCALED_STEP = "optimizer step by a gradient scaler"
    SCHEDULE = "scheduler step"
    CLIP = "gradient clipping"
    UNSCALE = "unscaling"
    SCALE = "loss scaling"
    BACKWARD = "backward"
    ENGINE = "backward by an engine"
    RESET = "zero_grad"

    @property
    def steps(self) -> bool:
        """Whether it is the step of an optimizer."""
        return self in (Kind.STEP, Kind.SCALED_STEP)


@functools.lru_cache(1 << 14)
def may_act(name: str) -> bool:
    """Whether a call of this last name may be an event: most are not, and names repeat from file to file."""
    return name in _NAMES or "unscale" in name or _CLIPS.search(name) is not None


def kind_of(call: nodes.Call) -> tuple[Kind, nodes.NodeNG | None] | None:
    """The kind of a call in a step, and its object; None if it is not an event."""
    name = last_name(call.func)
    if not may_act(name):
        return None
    if _CLIPS.search(name):
        return _clipping(call)
    if not isinstance(call.func, nodes.Attribute):
        return None
    owner = call.func.expr
    if name == "step":
        return _stepping(call, owner)
    if "unscale" in name or name == "get_scale":
        return Kind.UNSCALE, call.args[0] if call.args else None
    if name == "scale" and len(call.args) == 1 and SCALER.search(last_name(owner)):
        return Kind.SCALE, owner
    if name == "zero_grad":
        return Kind.RESET, owner
    if name in ("backward", "manual_backward"):
        return _computing(call, owner, name)
    return None


def _clipping(call: nodes.Call) -> tuple[Kind, nodes.NodeNG | None] | None:
    if isinstance(call.func, nodes.Attribute) and _CLIPPING_ENGINES.search(last_name(call.func.expr)):
        return None
    names = qualified(call.func)
    if any(name.startswith((".", "torch.nn.utils")) or UNKNOWN in name or "clip" in name for name in names):
        return Kind.CLIP, call.args[0] if call.args else None
    return None


def _stepping(call: nodes.Call, owner: nodes.NodeNG) -> tuple[Kind, nodes.NodeNG | None] | None:
    if SCALER.search(last_name(owner)) and call.args:
        return Kind.SCALED_STEP, call.args[0]
    if is_optimizer(owner):
        return Kind.STEP, owner
    if not call.args and not call.keywords and schedule_of(owner) is not Schedule.OTHER:
        return Kind.SCHEDULE, owner
    return None


def _computing(call: nodes.Call, owner: nodes.NodeNG, name: str) -> tuple[Kind, nodes.NodeNG | None]:
    """``loss.backward()``, or the same by Lightning and Fabric, which leave the scale to the caller."""
    if name == "manual_backward" or (last_name(owner) == "fabric" and call.args):
        return Kind.BACKWARD, call.args[0] if call.args else None
    handed = bool(call.args) or not Arguments(call)["loss"].absent
    return (Kind.ENGINE if handed and "loss" not in last_name(owner) else Kind.BACKWARD), owner
