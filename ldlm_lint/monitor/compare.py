"""Compares two runs: quantities of only one, and common quantities aligned by step.

Both runs are cut into the same stretches of steps; a stretch is a round, its medians the samples. The difference of a
run from itself, odd against even stretches, is the band below which nothing counts as a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ldlm_lint.evidence.model import Verdict
from ldlm_lint.evidence.statistics import Ratio, verdict
from ldlm_lint.monitor import remarks as say
from ldlm_lint.monitor.aligned import Aligned, Place, Stretch
from ldlm_lint.monitor.detectors.robust import median
from ldlm_lint.monitor.differing import FEWEST, chance, changes, part, ratio_of, self_band, total
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.judging import Series
from ldlm_lint.monitor.remarks import Remark, measure, quantity, times
from ldlm_lint.monitor.report import unread

CAPACITY = 1 << 16
BARS = {"loss": 1.01, "tokens_per_s": 1.05, "samples_per_s": 1.05, "iterations_per_s": 1.05, "step_time_s": 1.05}
"""The quantities that are compared, and the least ratio that matters in practice."""
_PART_BARS = {"loss": 0.05}
_PART_BAR = 0.10
"""The least change that matters in a part of the run only, as a logarithm."""
_SPREADS = 1.0
"""The same for values of which no ratio can be formed, in spreads of the single values."""
_WARM_UP = 0.05
"""Share of the common steps at the start in which speed is not compared: compilation, the start of workers."""
_LATE = 10
_PARTS = {2: "half", 3: "third", 4: "quarter", 5: "fifth", 10: "tenth"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """One quantity of two runs: ``ratio`` is B over A, None where it cannot be formed; ``verdict`` on "they differ".

    ``same`` says that all common steps print the same value; ``noise`` how far a run is from itself, as a ratio.
    ``apart`` is where they differ, if that is a part of the run; ``aligned`` has the values of both.
    ``last``, ``worst`` and ``mean`` are of A and B: the medians of the last tenth, the worst values after the first
    steps, and the mean seconds of a step (of a rate: of a unit of work); None where there are none.
    """

    key: str
    split: str
    steps: int
    a: float
    b: float
    same: bool
    ratio: Ratio | None
    noise: float | None
    verdict: Verdict
    reason: str
    nonfinite: tuple[int, int] = (0, 0)
    last: tuple[float, float] | None = None
    worst: tuple[float, float] | None = None
    mean: tuple[float, float] | None = None
    remarks: tuple[Remark, ...] = ()
    apart: tuple[Place, Place] | None = None
    aligned: Aligned | None = field(default=None, repr=False, compare=False)


@dataclass(slots=True)
class Compared:
    """Two runs: their common quantities, remarks, and the columns of both that are not a known quantity."""

    quantities: list[Comparison] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    uncompared: list[str] = field(default_factory=list)

    @property
    def differ(self) -> bool:
        """Whether any result shows a difference of the runs."""
        verdicts = (one.verdict is Verdict.VERIFIED for one in self.quantities)
        return any(one.differs for one in self.remarks) or any(verdicts)


def compare(first: Health, second: Health) -> Compared:
    """All quantities that both runs have, and what only one of them has."""
    found = Compared()
    pairs = _pairs(first.series, second.series)
    # All quantities of a line end together: the end of a run is reported once.
    clock = max(pairs, key=lambda name: (name[1] == "train", min(map(_length, pairs[name]))), default=None)
    for name, (a, b) in pairs.items():
        aligned = Aligned(a.curve, b.curve)
        if name == clock:
            found.remarks += [*say.ends(aligned), *say.missing(aligned)]
        found.quantities.append(_Quantity(*name, aligned).judge())
    found.remarks += [*say.alarms(first, second), *say.columns(first, second)]
    found.uncompared = [one for one in unread(first) if one in unread(second)]
    return found


def _length(one: Series) -> int:
    return one.curve.count + one.curve.nonfinite


def _pairs(first: Iterable[Series], second: Iterable[Series]) -> dict[tuple[str, str], tuple[Series, Series]]:
    """The series of each quantity: of the same format, name and rank in both runs, else the longest of each."""
    ours, theirs = _by_name(first), _by_name(second)
    found = {}
    for name in sorted(ours.keys() & theirs.keys(), key=lambda one: (list(BARS).index(one[0]), one[1])):
        alike = [(a, b) for a in ours[name] for b in theirs[name] if _printed(a) == _printed(b)]
        every = alike or [(max(ours[name], key=_length), max(theirs[name], key=_length))]
        found[name] = max(every, key=lambda pair: min(map(_length, pair)))
    return found


def _by_name(every: Iterable[Series]) -> dict[tuple[str, str], list[Series]]:
    found: dict[tuple[str, str], list[Series]] = {}
    for one in every:
        if one.key.named.key in BARS and one.curve.values:
            split = "val" if one.key.template.split == "val" else "train"
            found.setdefault((one.key.named.key, split), []).append(one)
    return found


def _printed(one: Series) -> tuple[str, str, int | None]:
    return one.key.template.name, one.key.named.raw, one.key.rank


class _Quantity:
    """Judges one quantity."""

    def __init__(self, key: str, split: str, aligned: Aligned) -> None:
        self.key, self.split, self.aligned = key, split, aligned
        self.name = quantity(key, split)
        self.speed = key != "loss"
        self.rate = key.endswith("_per_s")
        self.stretches = aligned.stretches(_WARM_UP if self.speed else 0.0, positive=self.speed)
        self.mean: tuple[float, float] | None = None
        self.apart: tuple[Place, Place] | None = None

    def judge(self) -> Comparison:
        """The verdict with its reasons."""
        remarks = list(say.broken(self.aligned))
        ratio = noise = None
        same = self.aligned.same
        if not self.stretches:
            said, reason = Verdict.INCONCLUSIVE, self._nothing()
        elif same:
            whole = self.aligned.a.whole and self.aligned.b.whole
            kept = "" if whole else f" at the {len(self.aligned.common):,} steps that were kept"
            said, reason = Verdict.REFUTED, f"equal in every digit printed{kept}"
        elif self.aligned.same_numbers:
            said, reason = Verdict.REFUTED, f"equal in every digit at the other {self.aligned.same_numbers:,} steps"
        else:
            ratio, noise, said, reason = self._whole()
            remarks += [*self._part(), *self._total()]
        if any(one.differs for one in remarks):
            said, reason = Verdict.VERIFIED, reason.replace("no difference seen", "no difference in the median")
        reason = "; ".join([*(one.text for one in remarks), reason])
        return Comparison(
            self.key,
            self.split,
            len(self.aligned.common),
            *self._medians(self.stretches),
            same,
            ratio,
            noise,
            said,
            reason,
            (self.aligned.a.lost, self.aligned.b.lost),
            self._last(),
            self._worst(),
            self.mean,
            tuple(remarks),
            self.apart,
            self.aligned,
        )

    def _nothing(self) -> str:
        if self.aligned.common:
            return "no step at which both have a finite value"
        return "no step in common"

    def _medians(self, stretches: Sequence[Stretch]) -> tuple[float, float]:
        if not stretches:
            return float("nan"), float("nan")
        return median([v for one in stretches for v in one.a]), median([v for one in stretches for v in one.b])

    def _last(self) -> tuple[float, float] | None:
        """The middles of the last tenth; NaN for a run that has mostly no number there."""
        if not self.stretches:
            return None
        late = self.aligned.late(_LATE)
        if late is None:
            return self._medians(self.stretches[-max(len(self.stretches) // _LATE, 1) :])
        finite = [[value for value in values if math.isfinite(value)] for values in late]
        a, b = (
            median(kept) if 2 * len(kept) > len(every) else math.nan for kept, every in zip(finite, late, strict=True)
        )
        return a, b

    def _worst(self) -> tuple[float, float] | None:
        if not self.stretches:
            return None
        worst = min if self.rate else max
        return worst(worst(one.a) for one in self.stretches), worst(worst(one.b) for one in self.stretches)

    def _whole(self) -> tuple[Ratio | None, float | None, Verdict, str]:
        """Whether the runs differ all along."""
        count = len(self.stretches)
        if count < FEWEST:
            return None, None, Verdict.INCONCLUSIVE, f"{count} common steps are too few, {FEWEST} are needed"
        moves, _ = changes(self.stretches)
        if any(min(one.medians) <= 0 for one in self.stretches):
            return None, None, *self._by_spread(moves)
        (ratio, other), noise, bar = ratio_of(self.stretches), self_band(self.stretches), BARS[self.key]
        up, down = verdict(ratio, noise, bar), verdict(other, noise, bar)
        said = f"B/A {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] over {count} stretches, a run against itself {noise:.3f}"
        if Verdict.VERIFIED in (up, down):
            if abs(median(moves)) > chance(moves):
                return ratio, noise, Verdict.VERIFIED, said
            up = down = Verdict.INCONCLUSIVE
        if up is down is Verdict.REFUTED:
            return ratio, noise, Verdict.REFUTED, f"no difference seen: {said}, less than {bar - 1:.0%} either way"
        return ratio, noise, Verdict.INCONCLUSIVE, f"no difference seen, but a small one is possible: {said}"

    def _by_spread(self, moves: Sequence[float]) -> tuple[Verdict, str]:
        """The same where no ratio can be formed: by how far the single values scatter."""
        if abs(median(moves)) > max(_SPREADS, 2 * chance(moves)):
            a, b = self._medians(self.stretches)
            return Verdict.VERIFIED, f"B's {self.name} is {'higher' if b > a else 'lower'} than A's during the whole run"
        return (
            Verdict.INCONCLUSIVE,
            "no difference seen, but a small one is possible: values of zero or below have no ratio",
        )

    def _part(self) -> Iterator[Remark]:
        """Whether they differ in a part of the run."""
        if len(self.stretches) < FEWEST:
            return
        positive = changes(self.stretches)[1]
        found = part(self.stretches, _PART_BARS.get(self.key, _PART_BAR) if positive else _SPREADS)
        if found is None:
            return
        self.apart = first, last = self.stretches[found.start].first, self.stretches[found.end - 1].last
        where = self._where(found.start, found.end)
        values = f"({measure(found.a, self.key)}, {measure(found.b, self.key)})"
        steps = self.aligned.a.span(first, last)
        yield Remark("part", f"{where} ({steps}) {self._more(found.a, found.b, positive)} {values}", differs=True)

    def _where(self, start: int, end: int) -> str:
        count = len(self.stretches)
        if start and end < count:
            return "in a part of the run"
        share = (end - start) / count
        near = min(_PARTS, key=lambda one: abs(one * share - 1))
        size = _PARTS[near] if abs(near * share - 1) < 0.12 else f"{100 * share:.0f} %"
        return f"in the {'last' if end == count else 'first'} {size}"

    def _more(self, a: float, b: float, positive: bool) -> str:
        if not positive or min(a, b) <= 0:
            return f"B's {self.name} is {'higher' if b > a else 'lower'} than A's"
        if self.key == "step_time_s":
            return f"B's step takes {times(b / a)} as long"
        if self.rate:
            return f"B has {times(b / a)} A's {self.name}"
        return f"B's {self.name} is {times(b / a)} A's"

    def _total(self) -> Iterator[Remark]:
        """Whether the total time is longer."""
        if not self.speed:
            return
        a, b, differ = total(self.stretches, self.rate)
        self.mean = a, b
        if differ:
            what = f" ({measure(a, self.key)}, {measure(b, self.key)} a step)" if self.key == "step_time_s" else ""
            yield Remark("total", f"all steps together take {times(b / a)} as long in B{what}", differs=True)
