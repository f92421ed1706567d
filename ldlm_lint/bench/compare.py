"""Compares time and memory of the samples: one comparison per quantity. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ldlm_lint.bench.samples import Sample
from ldlm_lint.bench.trees import AFTER, AGAIN, BEFORE
from ldlm_lint.evidence.statistics import BAR, Quartiles, Ratio, band, paired_ratio, quartiles

# Fewer rounds are inconclusive: of five, all are on one side by chance in one of sixteen comparisons of equal programs,
# and the A/A band, from as many rounds, must be exceeded as well.
FEWEST_ROUNDS = 5


class Change(enum.Enum):
    """What happened to a quantity; NONE_SEEN means that the interval is within the bar, not that nothing was measured."""

    BETTER = "better"
    WORSE = "worse"
    NONE_SEEN = "no difference seen"
    UNCLEAR = "cannot tell"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A compared quantity: how it is read from a sample, and whether more of it is better."""

    name: str
    unit: str
    read: Callable[[Sample], float | None]
    more_is_better: bool = False
    wall_clock: bool = False


QUANTITIES = (
    Quantity("step time", "s", lambda one: one.step_seconds, wall_clock=True),
    Quantity("throughput in the log", "1/s", lambda one: one.logged.rate, more_is_better=True, wall_clock=True),
    Quantity("whole run", "s", lambda one: one.seconds, wall_clock=True),
    Quantity("CPU time", "s", lambda one: one.cpu_seconds),
    Quantity("peak memory", "B", lambda one: one.memory_bytes),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One quantity: the arms' quartiles, how many times better `after` is (above 1 is better), and the A/A band."""

    quantity: Quantity
    before: Quartiles
    after: Quartiles
    gain: Ratio
    noise_band: float
    change: Change
    reason: str = ""


def compared(samples: Sequence[Sample], *, busy: str = "") -> list[Comparison]:
    """A comparison for each quantity that every run has; ``busy`` says why wall-clock times are unreliable."""
    arms = {arm: sorted((one for one in samples if one.arm == arm), key=lambda one: one.round) for arm in _ARMS}
    return list(_compared(arms, busy))


_ARMS = (BEFORE, AGAIN, AFTER)


def _compared(arms: Mapping[str, Sequence[Sample]], busy: str) -> Iterator[Comparison]:
    for quantity in QUANTITIES:
        read = {arm: [quantity.read(one) for one in found] for arm, found in arms.items()}
        values = {arm: [one for one in found if one and one > 0] for arm, found in read.items()}
        if values != read or not all(values.values()):
            continue
        before, again, after = (values[arm] for arm in _ARMS)
        gain = paired_ratio(after, before) if quantity.more_is_better else paired_ratio(before, after)
        noise = band(paired_ratio(before, again))
        change, reason = judged(gain, noise)
        if busy and quantity.wall_clock and change is not Change.NONE_SEEN:
            change, reason = Change.UNCLEAR, busy
        yield Comparison(quantity, quartiles(before), quartiles(after), gain, noise, change, reason)


def judged(gain: Ratio, noise_band: float, bar: float = BAR) -> tuple[Change, str]:
    """The verdict on a gain: its whole interval must exceed the threshold and the A/A difference."""
    beyond = max(bar, noise_band)
    if gain.n < FEWEST_ROUNDS:
        return Change.UNCLEAR, f"{gain.n} rounds are too few, {FEWEST_ROUNDS} are needed"
    if gain.low >= beyond:
        return Change.BETTER, ""
    if gain.high <= 1 / beyond:
        return Change.WORSE, ""
    if gain.low > 1 / bar and gain.high < bar:
        return Change.NONE_SEEN, f"the interval is within {bar - 1:.0%}"
    if noise_band > bar:
        return Change.UNCLEAR, f"runs of the same tree differ by up to {noise_band - 1:.0%}"
    return Change.UNCLEAR, "the interval is too wide; more rounds may tell"
