"""A watched run for the judges: the evidence of all its ranks, and the device of the verdicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Scope, Verdict
from ldlm_lint.evidence.settling import DEVICE
from ldlm_lint.evidence.statistics import MOST_PRESSURE
from ldlm_lint.rules import by_symbol

# The beginning of a reason for "wrong device".
OBSERVED_ON = "observed on "
ACCELERATORS = frozenset({"cuda", "xpu", "mps", "hpu", "mtia"})


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """The processes of one command.

    ``target`` is ``cpu`` or ``cuda`` if the user named it, else empty: then training is taken to happen on an
    accelerator, and a run on a CPU decides no rule that is bound to the device.
    """

    ranks: tuple[Evidence, ...]
    target: str = ""

    @property
    def device(self) -> str:
        """The device the run was on; the accelerator if any rank used one."""
        devices = [one.environment.device for one in self.ranks]
        return next((one for one in devices if one in ACCELERATORS), devices[0])

    @property
    def complete(self) -> bool:
        """Whether each rank of the process group left evidence; needed by claims about all ranks."""
        return len({one.run.rank for one in self.ranks if 0 <= one.run.rank < self._world_size}) == self._world_size

    @property
    def _world_size(self) -> int:
        return max((one.run.world_size for one in self.ranks), default=1)

    @property
    def busy(self) -> str:
        """Why wall-clock figures of this run are unreliable, as a sentence; empty if the machine was not busy."""
        pressure = max((one.environment.cpu_pressure or 0.0 for one in self.ranks), default=0.0)
        return f"the machine was busy (CPU pressure {pressure:.0f} %)" if pressure > MOST_PRESSURE else ""

    def of(self, topic: str) -> Iterator[tuple[Evidence, Any]]:
        """The observations of a topic with their process; records of a list one by one."""
        for one in self.ranks:
            found = one.observations.get(topic)
            for record in found if isinstance(found, list) else [] if found is None else [found]:
                yield one, record

    def unseen(self, topic: str) -> str:
        """Why a rank could not observe a topic; empty if each could, so that missing observations mean absence."""
        return next((one.unavailable[topic] for one in self.ranks if topic in one.unavailable), "")

    def scope(self) -> Scope:
        """The scope of a judgement over all ranks."""
        return Scope(
            self.device,
            self.target or self.device,
            min((one.run.steps for one in self.ranks), default=0),
            tuple(sorted({one.run.rank for one in self.ranks})),
            self._world_size,
        )

    def wrong_device(self) -> str:
        """Why a device-bound rule cannot be settled by this run, as a sentence; empty if it can."""
        return wrong_device(self.device, self.target)


def wrong_device(device: str, target: str) -> str:
    """Why observations on a device decide nothing about the target (empty: any accelerator); empty if they do."""
    target = target or (device if device in ACCELERATORS else "an accelerator")
    return "" if device == target else f"{OBSERVED_ON}{device}, but the rule is about {target}"


def on_its_device(judgement: Judgement, target: str, *, experiment: bool = False) -> Judgement:
    """A judgement, inconclusive if its rule is bound to a device and it comes from another one.

    ``experiment`` says that it comes from a micro-experiment, which may be bound even if watching is not.
    """
    probe = by_symbol[judgement.rule].probe if judgement.rule in by_symbol else None
    bound = probe is not None and (probe.device_bound or (experiment and probe.bound_experiment))
    reason = wrong_device(judgement.scope.device, target) if bound else ""
    if reason and judgement.verdict is Verdict.INCONCLUSIVE:
        return dataclasses.replace(judgement, settled_by=DEVICE)
    return _inconclusive(judgement, reason) if reason else judgement


def device_bound(run: WatchedRun, judgement: Judgement) -> Judgement:
    """The judgement if the run was on its device, else inconclusive with the figure kept."""
    reason = run.wrong_device()
    return _inconclusive(judgement, reason) if reason else judgement


def _inconclusive(judgement: Judgement, reason: str) -> Judgement:
    return dataclasses.replace(
        judgement,
        verdict=Verdict.INCONCLUSIVE,
        reason=f"{reason}; {judgement.reason}",
        lifts=False,
        settled_by=DEVICE,
    )
