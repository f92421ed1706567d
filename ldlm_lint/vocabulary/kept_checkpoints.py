"""The number of checkpoints of a Trainer without a limit, from its settings."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Fewer are not danger for a disk: "a handful of saves" is an exception of the rule.
HANDFUL = 5
_FEW_AT_MOST = 8 * HANDFUL
_DEFAULT_STEPS, _DEFAULT_EPOCHS = 500, 3


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a Trainer saves; None for an unknown setting, the framework's default for a missing one.

    ``every`` counts steps, or is the share of all steps if it is below 1; ``most_steps`` is an upper bound of the run's
    steps if the number of epochs and samples is known.
    """

    strategy: str | None = "steps"
    every: float | None = _DEFAULT_STEPS
    steps: float | None = None
    epochs: float | None = _DEFAULT_EPOCHS
    most_steps: float | None = None

    @property
    def count(self) -> int | None:
        """The number of checkpoints of the whole run; None if unknown."""
        if self.strategy == "epoch" and not self._by_steps:
            return math.ceil(self.epochs) if self.epochs is not None else None
        if self.strategy != "steps" or not self.every or self.every < 0:
            return None
        if self.every < 1:
            return round(1 / self.every)
        return int(self.steps // self.every) if self.steps and self.steps > 0 else None

    @property
    def _by_steps(self) -> bool:
        return self.steps is not None and self.steps > 0

    @property
    def harmless(self) -> bool:
        """Whether nothing is saved during the run, only a few, or the schedule is unknown."""
        if self.strategy not in ("steps", "epoch") or (self.strategy == "steps" and not (self.every and self.every > 0)):
            return True
        if self.count is not None:
            return self.count <= HANDFUL
        if self.epochs is not None and self.epochs <= 0 and not self._by_steps:
            return True
        if self.strategy == "steps" and self.most_steps is not None and self.every:
            # An upper bound for one GPU: with eight of them there are only a few.
            return self.most_steps // self.every <= _FEW_AT_MOST
        return False

    @property
    def described(self) -> str:
        """The result for the checkpoints: ``keeps all 100 checkpoints of this run (10000 steps, one every 100)``."""
        how = self._rhythm
        if self.count is None:
            return f"keeps every checkpoint it writes ({how})"
        total = f"{self.steps:g} steps, " if self._by_steps and self.strategy == "steps" else ""
        return f"keeps all {self.count} checkpoints of this run ({total}{how})"

    @property
    def _rhythm(self) -> str:
        if self.strategy == "epoch":
            return "one per epoch"
        every = f"one every {self.every:g} steps" if self.every and self.every >= 1 else f"one every {(self.every or 0):.1%} of the steps"
        if self._by_steps:
            return every.removesuffix(" steps")
        return every if self.epochs is None or (self.every or 0) < 1 else f"{every} of {self.epochs:g} epochs"
