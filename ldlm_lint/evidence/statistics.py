"""Paired statistics for timings on a machine with other load.

Sequential A-then-B timing reports more than 5 % difference between identical programs in 35-70 % of trials on a loaded
machine; interleaved rounds, a bootstrap interval of the median log ratio and an A/A band measured in the same run do
not (the studies after the constants are in docs/evidence).
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ldlm_lint.evidence.model import Verdict

RESAMPLES = 2000
FEWEST_ROUNDS = 15
# Claims about loaders use wall-clock time, with an epoch as a round.
FEWEST_EPOCHS = 9
BAR = 1.05
# Above this share of time in which runnable tasks waited for a CPU (PSI, in percent), wall-clock figures are
# meaningless.
MOST_PRESSURE = 20.0


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of one arm's time to another's: the median of the rounds' ratios and its 95 % interval."""

    value: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Quartiles:
    """The quartiles of ``n`` samples."""

    q1: float
    median: float
    q3: float
    n: int


def quartiles(samples: Sequence[float]) -> Quartiles:
    """The quartiles of at least one sample; raises ValueError without samples."""
    if not samples:
        raise ValueError("no samples")
    if len(samples) == 1:
        return Quartiles(samples[0], samples[0], samples[0], 1)
    q1, median, q3 = statistics.quantiles(samples, n=4, method="inclusive")
    return Quartiles(q1, median, q3, len(samples))


def paired_ratio(slow: Sequence[float], fast: Sequence[float], *, seed: int = 0) -> Ratio:
    """``slow / fast`` from samples of the same rounds, in the same order; percentile bootstrap of the median.

    Raises ValueError for lengths that differ, no samples, or a sample that is not positive and finite.
    """
    if len(slow) != len(fast) or not slow:
        raise ValueError("paired samples of the same rounds are needed")
    if any(not (math.isfinite(one) and one > 0) for one in (*slow, *fast)):
        raise ValueError("a sample is not a positive number")
    logs = [math.log(one / other) for one, other in zip(slow, fast, strict=True)]
    draw = random.Random(seed)
    medians = sorted(statistics.median(draw.choices(logs, k=len(logs))) for _ in range(RESAMPLES))
    low, high = medians[int(0.025 * RESAMPLES)], medians[int(0.975 * RESAMPLES) - 1]
    return Ratio(math.exp(statistics.median(logs)), math.exp(low), math.exp(high), len(logs))


def band(one: Ratio) -> float:
    """The difference in an A/A comparison, as a ratio of at least 1: the worse end of its interval."""
    return max(one.high, 1 / one.low, 1.0)


def verdict(ratio: Ratio, noise_band: float, bar: float = BAR, *, fewest: int = FEWEST_ROUNDS) -> Verdict:
    """VERIFIED if the whole interval is above both the threshold and the A/A band, REFUTED if it is below the
    threshold.

    Fewer than ``fewest`` rounds are inconclusive, and so is a band above twice the threshold's excess: such a machine
    is too noisy.
    """
    if ratio.n < fewest:
        return Verdict.INCONCLUSIVE
    if ratio.low >= max(bar, noise_band):
        return Verdict.VERIFIED
    if ratio.high < bar and noise_band < 1 + 2 * (bar - 1):
        return Verdict.REFUTED
    return Verdict.INCONCLUSIVE
