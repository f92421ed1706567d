"""Paired statistics: a thing against itself is never faster on a machine with bursts, and a real effect is seen on a quiet one."""

from __future__ import annotations

import math
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from collected import for_every

from ldlm_lint.evidence.model import Verdict
from ldlm_lint.evidence.statistics import (
    BAR,
    FEWEST_EPOCHS,
    FEWEST_ROUNDS,
    Ratio,
    band,
    paired_ratio,
    quartiles,
    verdict,
)

# More of them: LDLM_TRIALS=1000 python -m pytest tests/test_evidence_statistics.py
TRIALS = int(os.environ.get("LDLM_TRIALS", "25"))
Noise = Callable[[random.Random], Iterator[float]]


def quiet(draw: random.Random) -> Iterator[float]:
    """CPU time of one thread: 2 %, as measured with other work on the machine."""
    while True:
        yield math.exp(draw.gauss(0, 0.02))


def bursts(draw: random.Random) -> Iterator[float]:
    """Other work comes for several samples and makes them up to some times as long."""
    busy = False
    while True:
        if draw.random() < (0.15 if busy else 0.08):
            busy = not busy
        yield math.exp(draw.gauss(0, 0.02)) * (1 + (draw.expovariate(1.25) if busy else 0))


def levels(draw: random.Random) -> Iterator[float]:
    """A neighbour that takes a half or two thirds of the CPU for a while."""
    level = 1.0
    while True:
        if draw.random() < 0.1:
            level = draw.choice([1.0, 1.0, 1.5, 2.0, 3.0])
        yield level * math.exp(draw.gauss(0, 0.1))


def tails(draw: random.Random) -> Iterator[float]:
    """Samples without a variance."""
    while True:
        yield 1 + 0.05 * (draw.paretovariate(1.2) - 1)


def drift(draw: random.Random) -> Iterator[float]:
    """A clock that falls while the device warms up."""
    for number in range(10**6):
        yield (1 + number / 50) * math.exp(draw.gauss(0, 0.02))


def judged(noise: Noise, effect: float, seed: int, rounds: int = FEWEST_ROUNDS) -> Verdict:
    """The verdict of an experiment whose slow arm takes ``effect`` times as long, with its A/A control."""
    draw = random.Random(seed)
    source, arms = noise(draw), {"slow": effect, "twin": effect, "fast": 1.0}
    samples: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(rounds):
        order = list(arms)
        draw.shuffle(order)
        for name in order:
            samples[name].append(arms[name] * next(source))
    control = band(paired_ratio(samples["slow"], samples["twin"], seed=seed))
    return verdict(
        paired_ratio(samples["slow"], samples["fast"], seed=seed), control, fewest=min(rounds, FEWEST_ROUNDS)
    )


@pytest.mark.parametrize("noise", [quiet, bursts, levels, tails, drift])
def test_a_thing_is_never_faster_than_itself(noise):
    assert Verdict.VERIFIED not in {judged(noise, 1.0, seed) for seed in range(TRIALS)}


@pytest.mark.parametrize("noise", [bursts, levels])
def test_nor_in_the_few_epochs_of_a_loader(noise):
    assert Verdict.VERIFIED not in {judged(noise, 1.0, seed, FEWEST_EPOCHS) for seed in range(TRIALS)}


@for_every("noise", [quiet, drift])
@for_every("effect", [1.15, 1.3, 3.0])
def test_a_real_effect_is_seen_on_a_quiet_machine(noise, effect):
    found = Counter(judged(noise, effect, seed) for seed in range(10))
    assert found[Verdict.VERIFIED] >= 9


def test_an_effect_below_the_bar_is_no_finding_however_sure_it_is():
    # 2 % slower, seen a hundred times with a noise of a thousandth.
    draw = random.Random(1)
    fast = [math.exp(draw.gauss(0, 0.001)) for _ in range(100)]
    ratio = paired_ratio([1.02 * one * math.exp(draw.gauss(0, 0.001)) for one in fast], fast)
    assert ratio.low > 1.01
    assert verdict(ratio, 1.001) is Verdict.REFUTED


def test_an_effect_within_the_noise_band_is_inconclusive():
    assert verdict(Ratio(1.2, 1.15, 1.25, 30), noise_band=1.18) is Verdict.INCONCLUSIVE
    assert verdict(Ratio(1.2, 1.15, 1.25, 30), noise_band=1.10) is Verdict.VERIFIED


def test_a_machine_that_cannot_tell_does_not_refute():
    assert verdict(Ratio(1.0, 0.98, 1.02, 30), noise_band=1.3) is Verdict.INCONCLUSIVE
    assert verdict(Ratio(1.0, 0.98, 1.02, 30), noise_band=1.03) is Verdict.REFUTED


def test_few_rounds_decide_nothing():
    assert verdict(Ratio(3.0, 2.9, 3.1, FEWEST_ROUNDS - 1), 1.0) is Verdict.INCONCLUSIVE
    assert verdict(Ratio(3.0, 2.9, 3.1, FEWEST_EPOCHS), 1.0, fewest=FEWEST_EPOCHS) is Verdict.VERIFIED
    assert verdict(Ratio(3.0, 2.9, 3.1, FEWEST_ROUNDS), 1.0, BAR) is Verdict.VERIFIED


def test_pairing_takes_out_what_both_arms_share():
    # Rounds differ a hundredfold, the arms of a round by exactly a third.
    fast = [10.0**power for power in (0, 1, 2, 0, 1, 2, 0, 1, 2)]
    ratio = paired_ratio([1.5 * one for one in fast], fast)
    assert (ratio.n, *(round(one, 9) for one in (ratio.low, ratio.value, ratio.high))) == (9, 1.5, 1.5, 1.5)


def test_the_same_seed_gives_the_same_interval():
    draw = random.Random(3)
    slow, fast = ([draw.uniform(1, 2) for _ in range(20)] for _ in range(2))
    assert paired_ratio(slow, fast, seed=4) == paired_ratio(slow, fast, seed=4)
    inverse = paired_ratio(fast, slow, seed=4)
    assert inverse.value == pytest.approx(1 / paired_ratio(slow, fast, seed=4).value)


@pytest.mark.parametrize(
    "samples", [([], []), ([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([math.nan], [1.0]), ([1.0], [-1.0])]
)
def test_samples_that_cannot_be_compared_raise(samples):
    with pytest.raises(ValueError):
        paired_ratio(*samples)


def test_the_band_of_a_control_is_its_worse_end():
    assert band(Ratio(1.0, 0.8, 1.1, 20)) == pytest.approx(1.25)
    assert band(Ratio(1.0, 1.0, 1.0, 20)) == 1.0


def test_quartiles():
    found = quartiles([4.0, 1.0, 2.0, 3.0, 5.0])
    assert (found.q1, found.median, found.q3, found.n) == (2.0, 3.0, 4.0, 5)
    assert quartiles([2.0]).q3 == 2.0
    with pytest.raises(ValueError):
        quartiles([])
