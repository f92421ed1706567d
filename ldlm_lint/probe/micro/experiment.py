"""The definition of an experiment, and its context while it runs in its own process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ldlm_lint.evidence.model import Judgement, Scope, Verdict
from ldlm_lint.evidence.settling import DEVICE


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment: ``module`` of this folder holds ``run(context)``, ``seconds`` is its time on an idle core.

    ``least`` is the minimum time for starting it to be useful; ``rules`` are those it may judge; ``bound`` are those
    among them that only the target device can decide.
    """

    name: str
    module: str
    title: str
    rules: tuple[str, ...]
    bound: frozenset[str]
    seconds: float
    least: float = 4.0


@dataclass
class Context:
    """The context of an experiment. `emit` passes a result on immediately, so that it survives a later crash.

    ``device`` is ``cpu`` or ``cuda``, ``target`` the device the user named or empty, ``end`` the moment of
    `time.monotonic` by which it must be over, ``scratch`` an empty folder. With ``same`` each arm of a timing is
    replaced by the baseline itself: then every verified claim is false.
    """

    torch: Any
    device: str
    target: str
    seed: int
    end: float
    scratch: str
    bound: frozenset[str] = frozenset()
    same: bool = False
    gpu_busy: str = ""
    emit: Callable[[str, Any], None] = lambda kind, value: None
    world_size: int = 1

    @property
    def left(self) -> float:
        """Seconds until it must be over."""
        return self.end - time.monotonic()

    def scope(self) -> Scope:
        """The scope of a judgement: this machine, the device of the run, the device it is about."""
        return Scope(self.device, self.target or self.device, world_size=self.world_size)

    def judge(self, judgement: Judgement) -> None:
        """Emit a judgement; it is inconclusive if the rule is about another device.

        In an A/A run only comparisons count.
        """
        if self.same and (judgement.measured is None or judgement.measured.ci95 is None):
            return
        self.emit("judgement", settled(self, judgement))

    def observe(self, topic: str, values: Mapping[str, Any]) -> None:
        """Hand raw facts on."""
        self.emit("observation", {"topic": topic, "values": values})


def settled(context: Context, judgement: Judgement) -> Judgement:
    """The judgement as far as this device can decide it; the figure is kept."""
    import dataclasses

    about = context.target or ("" if context.device == "cuda" else "an accelerator")
    if judgement.rule not in context.bound or about in ("", context.device):
        return judgement
    if judgement.verdict is Verdict.INCONCLUSIVE:
        return dataclasses.replace(judgement, settled_by=DEVICE)
    reason = f"measured on {context.device}; the rule is about {about}: {judgement.reason}"
    return dataclasses.replace(
        judgement, verdict=Verdict.INCONCLUSIVE, reason=reason, lifts=False, settled_by=DEVICE
    )
