"""Whether the two trees print the same losses: their difference, non-finite values, missing steps. Pure."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ldlm_lint.bench.samples import Sample
from ldlm_lint.bench.trees import AFTER, AGAIN, BEFORE

# Printed losses have few digits; a program that sums in another order differs in the last of them.
LOSS_TOLERANCE = 1e-4
_ARMS = (BEFORE, AGAIN, AFTER)


class Agreement(enum.Enum):
    """Whether both trees train to the same losses."""

    IDENTICAL = "identical"
    WITHIN_NOISE = "within what runs of one tree differ by"
    CLOSE = "equal but for the last digits"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Special:
    """Unusual steps of an arm, in the round with most of them: the count, and the first of any round.

    ``kind`` is ``NaN`` or ``inf`` (as the first one) for non-finite losses, ``missing`` for steps that only the other
    tree prints.
    """

    arm: str
    kind: str
    first: int
    steps: int


@dataclass(frozen=True, slots=True)
class Losses:
    """How the printed losses of the two trees agree over ``steps`` common steps.

    ``largest`` is the largest relative difference where both are finite, at ``at_step``; ``same_tree`` that of two runs
    of the same tree. ``not_finite`` and ``missing`` have one entry for each arm that has such steps; ``parted`` says
    that at common steps one tree is finite and the other not.
    """

    agreement: Agreement
    steps: int = 0
    largest: float | None = None
    at_step: int | None = None
    same_tree: float | None = None
    not_finite: tuple[Special, ...] = ()
    missing: tuple[Special, ...] = ()
    parted: bool = False


def losses(samples: Sequence[Sample]) -> Losses:
    """Compare the losses of the arms, round by round."""
    rounds: dict[int, dict[str, Sample]] = {}
    for sample in samples:
        rounds.setdefault(sample.round, {})[sample.arm] = sample
    curves = [{arm: found[arm].logged.losses for arm in _ARMS} for found in rounds.values() if len(found) == len(_ARMS)]
    not_finite, missing = tuple(_not_finite(curves)), tuple(_missing(curves))
    others = [found for curve in curves for found in differences(curve[BEFORE], curve[AFTER])]
    if not others:
        return Losses(Agreement.UNKNOWN, not_finite=not_finite, missing=missing)
    same = [size for curve in curves for _, size in differences(curve[BEFORE], curve[AGAIN])]
    finite = [found for found in others if math.isfinite(found[1])]
    step, largest = max(finite, key=lambda found: found[1]) if finite else (None, None)
    return Losses(
        _agreement([size for _, size in others], same),
        min(len(curve[BEFORE].keys() & curve[AFTER].keys()) for curve in curves),
        largest,
        step,
        max(filter(math.isfinite, same), default=None),
        not_finite,
        missing,
        len(finite) < len(others),
    )


def _agreement(others: Sequence[float], same: Sequence[float]) -> Agreement:
    """The verdict from the relative differences; infinite ones are steps where only one run is finite."""
    largest, same_tree = max(others), max(same, default=0.0)
    if largest == 0:
        return Agreement.IDENTICAL
    if same_tree and largest <= 2 * same_tree:
        return Agreement.WITHIN_NOISE
    return Agreement.CLOSE if largest <= LOSS_TOLERANCE else Agreement.DIFFERENT


def differences(one: Mapping[int, float], other: Mapping[int, float]) -> Iterator[tuple[int, float]]:
    """The relative difference at each common step; infinite where only one of them is a finite number."""
    for step in sorted(one.keys() & other.keys()):
        first, second = one[step], other[step]
        if math.isfinite(first) and math.isfinite(second):
            scale = max(abs(first), abs(second))
            yield step, abs(first - second) / scale if scale else 0.0
        else:
            yield step, 0.0 if repr(first) == repr(second) else math.inf


def _not_finite(curves: Sequence[Mapping[str, Mapping[int, float]]]) -> Iterator[Special]:
    """For each arm the losses that are NaN or infinite."""
    for arm in _ARMS:
        steps = [[step for step, loss in curve[arm].items() if not math.isfinite(loss)] for curve in curves]
        if any(steps):
            first = min(min(found) for found in steps if found)
            value = next(curve[arm][first] for curve, found in zip(curves, steps, strict=True) if first in found)
            yield Special(arm, "NaN" if math.isnan(value) else "inf", first, max(map(len, steps)))


def _missing(curves: Sequence[Mapping[str, Mapping[int, float]]]) -> Iterator[Special]:
    """The steps that only the other tree prints, where any of the two prints a loss at all."""
    for arm, other in ((BEFORE, AFTER), (AFTER, BEFORE)):
        steps = [curve[other].keys() - curve[arm].keys() for curve in curves]
        if any(steps):
            yield Special(arm, "missing", min(min(found) for found in steps if found), max(map(len, steps)))
