"""The comparison as a picture: each run's step time (or whole time) by round, and the losses by step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ldlm_lint.bench.samples import Sample
from ldlm_lint.bench.trees import AFTER, AGAIN, BEFORE

_COLOURS = {BEFORE: "tab:gray", AGAIN: "tab:olive", AFTER: "tab:blue"}


def draw(samples: Sequence[Sample], path: Path) -> None:
    """Write the picture; its format is that of the file's suffix.

    Raises ImportError without matplotlib, ValueError for a suffix it does not know, OSError.
    """
    # Not pyplot: a picture for a file needs no window and no global state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    times, losses = figure.subplots(1, 2)
    by_steps = all(one.step_seconds for one in samples)
    for arm, colour in _COLOURS.items():
        found = sorted((one for one in samples if one.arm == arm), key=lambda one: one.round)
        seconds = [(one.step_seconds or 0.0) if by_steps else one.seconds for one in found]
        times.plot([one.round + 1 for one in found], seconds, "o", color=colour, label=arm, alpha=0.8)
        for number, one in enumerate(found):
            curve = sorted(one.logged.losses.items())
            label = arm if number == 0 else None
            losses.plot(
                [step for step, _ in curve], [loss for _, loss in curve], color=colour, label=label, alpha=0.6, lw=1
            )
    times.set(xlabel="round", ylabel="seconds per optimizer step" if by_steps else "seconds per run", title="time")
    times.set_ylim(bottom=0)
    losses.set(xlabel="step", ylabel="loss as printed", title="loss")
    for one in (times, losses):
        one.legend()
        one.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
