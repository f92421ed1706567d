"""Which torch has fused kernels for an optimizer, and what they need of the code around."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ldlm_lint import tables
from ldlm_lint.model import Interface
from ldlm_lint.requirements import TorchRange


def _interfaces_of(*names: str) -> dict[str, str]:
    return {f"torch.optim.{module}{name}": name for name in names for module in ("", f"{name.lower()}.")}


WITH_FUSED = _interfaces_of("Adagrad", "Adam", "AdamW", "SGD")
"""The constructors that have the argument in some torch, with the names of their classes."""
WITHOUT_FUSED = _interfaces_of("ASGD", "Adadelta", "Adafactor", "Adamax", "LBFGS", "Muon", "NAdam", "RAdam", "RMSprop", "Rprop", "SparseAdam")
"""Those without it, as of torch 2.13; scripts that read the installed wheel find the same."""
CHECKED_IN_STEP = (2, 5)
"""Since this torch devices and types are checked in the first step, no longer in the constructor."""
PASS_FUSED = "pass `fused=True`"
# The oldest torch that is supported, and the first one whose fused kernels take parameters on a CPU.
_SUPPORTED, _ON_CPU = (2, 0), (2, 4)
_RIGHT_UNDER_SCALERS = (2, 1)


def has_fused(torch: TorchRange, name: str) -> bool:
    """Whether some torch that the project runs on has the fused implementation."""
    since = tables.fused_since(name)
    return since is not None and (torch.newest is None or torch.newest >= since)


def advice(optimizers: Iterable[str], torch: TorchRange) -> str:
    """The advice; names the required torch if the oldest allowed one lacks it."""
    since = max((found for one in optimizers if (found := tables.fused_since(one)) is not None), default=None)
    if since is None or torch.oldest is None or torch.oldest >= since:
        return PASS_FUSED
    return f"{PASS_FUSED} (needs torch >= {'.'.join(map(str, since))})"


def needs(names: Sequence[str], *, moved_later: bool) -> tuple[Interface, ...]:
    """The versions that make the constructor work: also where only a part of the project's requirements allows older ones."""
    return tuple(_needs(names, moved_later))


def _needs(names: Sequence[str], moved_later: bool) -> Iterator[Interface]:
    for fused in map(tables.fused, names):
        yield fused
        # torch 2.0.0 computed wrong steps (pytorch#95781).
        yield Interface(f"{fused.name} with correct steps under a GradScaler", max(fused.since, _RIGHT_UNDER_SCALERS))
        if moved_later:
            yield Interface(f"{fused.name} of parameters that are moved to the GPU later", max(fused.since, _ON_CPU))


def obstacle_to(names: Sequence[str], *, moved_later: bool) -> str:
    """Why the constructor may raise if the project does not name a torch version; a named one is compared with the
    needs of the fix."""
    for name in names:
        since = tables.fused_since(name)
        if since is None or since > _SUPPORTED:
            return f"torch before {'.'.join(map(str, since or ()))} has no fused {name}: set target-torch"
    if moved_later:
        return "torch before 2.4 raises for parameters that are not on the GPU yet: move the model first, or set target-torch"
    return ""
