"""The comparison as a picture: each run's time by round, the gain with its A/A band, and the losses by step."""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldlm_lint.bench.compare import Comparison
from ldlm_lint.bench.samples import Sample
from ldlm_lint.bench.trees import AFTER, AGAIN, BEFORE
from ldlm_lint.evidence.statistics import BAR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind people can distinguish; markers distinguish them in print.
_STYLES = {BEFORE: ("#000000", "o"), AGAIN: ("#E69F00", "s"), AFTER: ("#0072B2", "^")}
_MIDDLE = dict.fromkeys(_STYLES, 0.0) | {BEFORE: -0.2, AFTER: 0.2}


def draw(samples: Sequence[Sample], comparisons: Sequence[Comparison], command: Sequence[str], path: Path) -> None:
    """Write the picture; its format is that of the file's suffix.

    Raises ImportError without matplotlib, ValueError for an unknown suffix, OSError.
    """
    # Not pyplot: a picture for a file needs no window and no global state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.2), layout="constrained")
    figure.suptitle(textwrap.shorten(shlex.join(command), 110, placeholder=" ..."), family="monospace", fontsize=10)
    times, gains, losses = figure.subplots(1, 3)
    _draw_times(times, samples)
    _draw_gains(gains, comparisons)
    _draw_losses(losses, samples)
    for axes in (times, gains, losses):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def _draw_times(axes: Axes, samples: Sequence[Sample]) -> None:
    from matplotlib.ticker import MaxNLocator

    by_steps = all(sample.step_seconds for sample in samples)
    for arm, found in _by_arm(samples).items():
        colour, marker = _STYLES[arm]
        seconds = [(sample.step_seconds or 0.0) if by_steps else sample.seconds for sample in found]
        # Side by side: equal times would hide each other.
        at = [sample.round + 1 + _MIDDLE[arm] for sample in found]
        axes.plot(at, seconds, marker, color=colour, label=arm, markersize=6)
    axes.set(xlabel="round", ylabel="seconds per optimizer step" if by_steps else "seconds per run", title="time")
    axes.set_ylim(0, 1.08 * axes.get_ylim()[1])
    axes.set_xlim(0.5, max(sample.round for sample in samples) + 1.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.legend(loc="lower right", fontsize=8)


def _draw_gains(axes: Axes, comparisons: Sequence[Comparison]) -> None:
    """Each quantity's gain and its 95 % interval, over the band that a difference must leave: A/A, or the least bar."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    rows: list[str] = []
    for row, found in enumerate(comparisons):
        band = max(found.noise_band, BAR)
        axes.fill_betweenx(
            [row - 0.35, row + 0.35],
            1 / band,
            band,
            color="#BBBBBB",
            label="_" * bool(row) + f"noise (A/A), at least {BAR - 1:.0%}",
        )
        gain = found.gain
        reach = [[max(0.0, gain.value - gain.low)], [max(0.0, gain.high - gain.value)]]
        axes.errorbar([gain.value], [row], xerr=reach, fmt="o", color="#0072B2", capsize=4)
        axes.annotate(
            f"{gain.value:.2f}x", (gain.value, row), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8
        )
        rows.append(found.quantity.name)
    axes.axvline(1, color="black", lw=1)
    axes.set_xscale("log")
    ends = [value for found in comparisons for value in (found.gain.low, found.gain.high, found.noise_band)]
    reach_of_all = max([1.1, *(max(value, 1 / value) for value in ends if value > 0 and math.isfinite(value))]) * 1.05
    axes.set_xlim(1 / reach_of_all, reach_of_all)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if reach_of_all > 3 else _ticks(reach_of_all))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(rows)), rows)
    axes.set_ylim(len(rows), -0.5)  # space for the legend below the last row
    axes.set(xlabel="times as good as before (worse < 1 < better)", title="gain, 95 % interval")
    if rows:
        axes.legend(loc="lower right", fontsize=8)


def _ticks(reach: float) -> Any:
    from matplotlib.ticker import FixedLocator

    far = next(one for one in (1.05, 1.1, 1.25, 1.5, 2.0, 3.0) if one * 1.06 >= reach or one == 3.0)
    while far > reach:
        far = 1 + (far - 1) / 2
    return FixedLocator([round(1 / far, 2), 1, round(far, 2)])


def _draw_losses(axes: Axes, samples: Sequence[Sample]) -> None:
    """The curves; a cross at the foot of the panel marks each step whose loss is not a finite number."""
    for arm, found in _by_arm(samples).items():
        colour, _ = _STYLES[arm]
        style = "--" if arm == AFTER else "-"
        bad: set[int] = set()
        for number, sample in enumerate(found):
            curve = sorted(sample.logged.losses.items())
            bad.update(step for step, loss in curve if not math.isfinite(loss))
            values = [loss if math.isfinite(loss) else math.nan for _, loss in curve]
            label = None if number else arm
            axes.plot([step for step, _ in curve], values, style, color=colour, label=label, alpha=0.7, lw=1.4)
        if bad:
            foot = [0.03 + 0.04 * list(_STYLES).index(arm)] * len(bad)
            place, label = axes.get_xaxis_transform(), f"NaN or inf in {arm}"
            axes.plot(sorted(bad), foot, "x", color=colour, label=label, transform=place)
    axes.set(xlabel="step", ylabel="loss as printed", title="loss")
    if any(sample.logged.losses for sample in samples):
        axes.legend(loc="upper right", fontsize=8)
    else:
        axes.text(0.5, 0.5, "no loss in the output", ha="center", va="center", transform=axes.transAxes)


def _by_arm(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    return {
        arm: sorted((sample for sample in samples if sample.arm == arm), key=lambda sample: sample.round)
        for arm in _STYLES
    }
