"""Two runs beside each other: series of one name, aligned by step, with the statistics of paired samples.

Both runs are cut into the same stretches of steps; a stretch is a round, its medians the samples. How far a run is from
itself, odd stretches against even ones, is the band below which nothing is called a difference.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TextIO

from ldlm_lint.evidence.model import Verdict
from ldlm_lint.evidence.statistics import Ratio, band, paired_ratio, verdict
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.judging import Series
from ldlm_lint.monitor.report import WIDTH, figure, plain
from ldlm_lint.report.cells import clean

SCHEMA = "ldlm-monitor-compare/1"
CAPACITY = 1 << 16
ROUNDS = 40
FEWEST = 15
BARS = {"loss": 1.01, "tokens_per_s": 1.05, "samples_per_s": 1.05, "iterations_per_s": 1.05, "step_time_s": 1.05}
"""The quantities that are compared, and the least ratio that matters in practice."""
_WARM_UP = 0.05
"""Share of the common steps at the start in which speed is not compared: compilation, the start of workers."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One quantity of two runs: ``ratio`` is B over A, None where it cannot be formed; ``verdict`` on "they differ".

    ``same`` says that all common steps print the same value; ``noise`` how far a run is from itself, as a ratio.
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


def compare(first: Health, second: Health) -> list[Comparison]:
    """All quantities that both runs have."""
    ours, theirs = _best(first.series), _best(second.series)
    return [_one(key, split, ours[key, split], theirs[key, split]) for key, split in ours if (key, split) in theirs]


def _best(every: Iterable[Series]) -> dict[tuple[str, str], Series]:
    """The longest series of each quantity, that of the lowest rank among equals."""
    found: dict[tuple[str, str], Series] = {}
    for one in every:
        name = one.key.named.key, "val" if one.key.template.split == "val" else "train"
        known = found.get(name)
        if name[0] in BARS and one.curve.count and (known is None or one.curve.count > known.curve.count):
            found[name] = one
    return found


def _one(key: str, split: str, a: Series, b: Series) -> Comparison:
    ours, theirs = (
        dict(zip(a.curve.steps, a.curve.values, strict=True)),
        dict(zip(b.curve.steps, b.curve.values, strict=True)),
    )
    steps = sorted(ours.keys() & theirs.keys())
    left, right = [ours[step] for step in steps], [theirs[step] for step in steps]
    if not steps:
        none = float("nan")
        return Comparison(key, split, 0, none, none, False, None, None, Verdict.INCONCLUSIVE, "no step in common")
    same = left == right
    if key != "loss":
        cut = int(_WARM_UP * len(steps))
        left, right = left[cut:], right[cut:]
    middle = statistics.median(left), statistics.median(right)
    if same:
        return Comparison(
            key, split, len(steps), *middle, True, None, None, Verdict.REFUTED, "equal in every digit printed"
        )
    ratio, gap, verdict, reason = _judged(left, right, BARS[key])
    return Comparison(key, split, len(steps), *middle, False, ratio, gap, verdict, reason)


def _judged(a: Sequence[float], b: Sequence[float], bar: float) -> tuple[Ratio | None, float | None, Verdict, str]:
    rounds = min(ROUNDS, len(a))
    if rounds < FEWEST:
        return None, None, Verdict.INCONCLUSIVE, f"{len(a)} common steps are too few, {FEWEST} are needed"
    if min(*a, *b) <= 0:
        return None, None, Verdict.INCONCLUSIVE, "a ratio needs values above zero"
    ours, theirs = _stretches(a, rounds), _stretches(b, rounds)
    ratio = paired_ratio(theirs, ours)
    noise = max(band(paired_ratio(one[::2][: len(one) // 2], one[1::2])) for one in (ours, theirs))
    other = paired_ratio(ours, theirs)
    up, down = verdict(ratio, noise, bar), verdict(other, noise, bar)
    said = f"B/A {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}] over {ratio.n} stretches, a run against itself {noise:.3f}"
    if Verdict.VERIFIED in (up, down):
        return ratio, noise, Verdict.VERIFIED, said
    if up is down is Verdict.REFUTED:
        return ratio, noise, Verdict.REFUTED, f"no difference seen: {said}, less than {bar - 1:.0%} either way"
    return ratio, noise, Verdict.INCONCLUSIVE, f"no difference seen, a small one is not excluded: {said}"


def _stretches(values: Sequence[float], rounds: int) -> list[float]:
    edges = [round(index * len(values) / rounds) for index in range(rounds + 1)]
    return [statistics.median(values[start:end]) for start, end in pairwise(edges)]


def write(a: str, b: str, compared: Sequence[Comparison], stream: TextIO) -> None:
    """Write the comparison as a table, a sentence for each quantity."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH
    console.print(f"A {clean(a)}\nB {clean(b)}", soft_wrap=True)
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("quantity", "common steps", "median A", "median B", "differ"):
        rows.add_column(name, justify="left" if name in ("quantity", "differ") else "right")
    words = {Verdict.VERIFIED: "yes", Verdict.REFUTED: "no", Verdict.INCONCLUSIVE: "not known"}
    for one in compared:
        rows.add_row(f"{one.key} [{one.split}]", f"{one.steps:,}", figure(one.a), figure(one.b), words[one.verdict])
    console.print(rows)
    for one in compared:
        console.print(f"{one.key} [{one.split}]: {one.reason}", soft_wrap=True)
    if any(one.key != "loss" and one.ratio for one in compared):
        console.print(
            "The runs were not interleaved: what else the machines did is part of a difference in speed "
            "(ldlm-lint bench interleaves).",
            soft_wrap=True,
        )


def document(a: str, b: str, compared: Sequence[Comparison]) -> dict[str, Any]:
    """The comparison as plain JSON values, after docs/monitor.schema.json."""
    return {
        "schema": SCHEMA,
        "a": a,
        "b": b,
        "compared": [
            {
                "key": one.key,
                "split": one.split,
                "steps": one.steps,
                "a": plain(one.a),
                "b": plain(one.b),
                "same": one.same,
                "ratio": one.ratio and one.ratio.value,
                "ci95": one.ratio and [one.ratio.low, one.ratio.high],
                "rounds": one.ratio.n if one.ratio else 0,
                "noise_band": one.noise,
                "differ": one.verdict.value,
                "reason": one.reason,
            }
            for one in compared
        ],
    }
