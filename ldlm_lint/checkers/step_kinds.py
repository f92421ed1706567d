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
_MAY_STEP = lazily(
    r"train|optim|(?<!time)(^|_)step|update|epoch(?!s)|^fit|^run|iteration|backward|learn(?!ing_rate)", re.I
)
_STEPS_NOTHING = lazily(
    r"zero_grad|sched|learning_rate|(^|_)lr(_|$)|set_epoch|state_dict|metric|(?<!ra)meter|(^|_)ema|pbar|progress|log|writer|wandb|print|"
    r"parse|args|load|sav|range|time|sampler|eval|valid|^len$|^update$|optimizers?$"
    r"|^_*(get|build|create|make|init|setup|configure|prepare|set|is|has|should|register|count|num|compute|calc)_"
)
_NEVER_TRAINED = lazily(r"env|prof|sched|meter|metric|bar$|tim(e|er)$|ema|logger|watch|(^|_)lr", re.I)
_NAMES = {"step", "get_scale", "scale", "zero_grad", "backward", "manual_backward"}
_MAY_SCHEDULE = lazily(r"^(update|step)_(\w+_)?(lr|learning_rates?|sched\w*)$|^(lr|sched\w*)_(update|step)$")


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
    MAYBE = "may step an optimizer"
    MAY_SCHEDULE = "may step a scheduler"

    @property
    def steps(self) -> bool:
        """Whether it is the step of an optimizer."""
        return self in (Kind.STEP, Kind.SCALED_STEP)


@functools.lru_cache(1 << 14)
def may_act(name: str) -> bool:
    """Whether a call of this last name may be an event: most are not."""
    return name in ("train", "run") or _may_be_of_step(name) or _names_step(name) or _names_schedule(name)


@functools.lru_cache(1 << 14)
def _may_be_of_step(name: str) -> bool:
    """A cheap look at the names of calls, which repeat from file to file."""
    return name in _NAMES or "unscale" in name or _CLIPS.search(name) is not None


def kind_of(call: nodes.Call) -> tuple[Kind, nodes.NodeNG | None] | None:
    """The kind of a call in a step, and its object; None if it is not an event."""
    name = last_name(call.func)
    if not _may_be_of_step(name):
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


def may_schedule(call: nodes.Call) -> bool:
    """Whether a method by its name moves learning rates on: ``model.update_learning_rate()``."""
    return isinstance(call.func, nodes.Attribute) and _names_schedule(last_name(call.func))


@functools.lru_cache(1 << 14)
def _names_schedule(name: str) -> bool:
    return _MAY_SCHEDULE.search(name) is not None


def may_step(call: nodes.Call) -> bool:
    """Whether a call that is not followed may step an optimizer, by its name."""
    name = last_name(call.func)
    if name == "step":
        return isinstance(call.func, nodes.Attribute) and _NEVER_TRAINED.search(last_name(call.func.expr)) is None
    if name in ("train", "run"):
        return bool(call.args or call.keywords) and not (call.args and isinstance(call.args[0], nodes.Const))
    return _names_step(name)


@functools.lru_cache(1 << 14)
def _names_step(name: str) -> bool:
    return not name[:1].isupper() and _MAY_STEP.search(name) is not None and _STEPS_NOTHING.search(name) is None
