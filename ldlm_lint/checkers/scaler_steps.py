"""Gradients that are clipped while they are still multiplied by the gradient scaler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.step_events import Event, Kind
from ldlm_lint.checkers.step_names import last_name, values_of
from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import UNKNOWN, qualified
from ldlm_lint.python.values import evaluate
from ldlm_lint.python.walks import nodes_of

SCALERS = frozenset(
    {
        "torch.amp.GradScaler",
        "torch.amp.grad_scaler.GradScaler",
        "torch.cuda.amp.GradScaler",
        "torch.cuda.amp.grad_scaler.GradScaler",
        "torch.cpu.amp.GradScaler",
        "torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler",
    }
)
_BFLOAT = "bfloat16"


class ScaledClip(NamedTuple):
    """Clippings (one edit mends them all) of gradients that ``step`` unscales only afterwards."""

    clips: tuple[Event, ...]
    step: Event


def scaled_clips(events: Sequence[Event]) -> Iterator[ScaledClip]:
    """The clippings before a scaler's step that no unscaling precedes."""
    found: dict[nodes.Call, list[Event]] = {}
    steps: dict[nodes.Call, Event] = {}
    scaled = [one for one in events if one.kind is Kind.SCALED_STEP]
    for event in (one for one in events if one.kind is Kind.CLIP):
        step = next((one for one in scaled if one.follows(event)), None)
        if step is None or not _in_one_pass(event, step, events):
            continue
        if not any(_unscales(one, event, step, events) for one in events):
            found.setdefault(step.node, []).append(event)
            steps[step.node] = step
    for node, clips in found.items():
        yield ScaledClip(tuple(clips), steps[node])


def _in_one_pass(clip: Event, step: Event, events: Sequence[Event]) -> bool:
    """Whether no backward pass runs again between the two, for other loops than those over parameters."""
    shared = clip.common_loops(step)
    inner = {*clip.loops[shared:], *step.loops[shared:]}
    return not any(one.kind in (Kind.BACKWARD, Kind.SCALE) and not inner.isdisjoint(one.loops) for one in events)


def _unscales(event: Event, clip: Event, step: Event, events: Sequence[Event]) -> bool:
    """Whether an event unscales the clipped gradients: for the same optimizer, or for one that is not stepped
    otherwise."""
    if event.kind is not Kind.UNSCALE or not clip.follows(event) or clip.common_loops(event) < clip.common_loops(step):
        return False
    others = {one.subject for one in events if one.kind is Kind.SCALED_STEP} - {step.subject}
    return event.subject not in others


def may_scale(scaler: nodes.NodeNG) -> bool | None:
    """Whether a scaler is torch's and may be switched on; None if the file does not create it."""
    made = [value for value in values_of(scaler) if not (isinstance(value, nodes.Const) and value.value is None)]
    calls = [value for value in made if isinstance(value, nodes.Call)]
    if not calls:
        return None
    if any(UNKNOWN in name for call in calls for name in qualified(call.func)):
        return None
    own = [call for call in calls if qualified(call.func) <= SCALERS]
    return any(not _is_off(call) for call in own) and not _runs_bfloat(scaler.root())


def _is_off(call: nodes.Call) -> bool:
    argument = Arguments(call)["enabled"]
    if argument.is_only(False):
        return True
    test = argument.node
    if not isinstance(test, nodes.Compare) or len(test.ops) != 1 or test.ops[0][0] != "==":
        return False
    # ``enabled=(dtype == "float16")`` with one known dtype.
    sides = [evaluate(side) for side in (test.left, test.ops[0][1])]
    return all(sides) and not set(sides[0] or ()) & set(sides[1] or ())


def _runs_bfloat(module: nodes.NodeNG) -> bool:
    """Whether every autocast of the file uses bfloat16: the scaler is the mistake there, not the clipping."""
    dtypes = []
    for call in nodes_of(module, nodes.Call):
        if last_name(call.func) == "autocast":
            dtype = Arguments(call)["dtype"].node
            dtypes.append(last_name(dtype) if dtype is not None else "")
    return bool(dtypes) and all(one == _BFLOAT for one in dtypes)


def is_scaled_somewhere(module: nodes.NodeNG) -> bool:
    """Whether the file scales a loss at all."""
    return any(last_name(call.func) == "scale" and call.args for call in nodes_of(module, nodes.Call))
