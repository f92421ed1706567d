"""A comparison of two trees as a page: the answer first, then each gain over the A/A band, times, losses, what to do next."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ldlm_lint.bench.compare import FEWEST_ROUNDS, Change, Comparison
from ldlm_lint.bench.invocation import Invocation
from ldlm_lint.bench.losses import Agreement, Losses
from ldlm_lint.bench.losses_in_words import difference, loss_lines
from ldlm_lint.bench.report import conclusion, gain, noise, spread
from ldlm_lint.bench.samples import Sample
from ldlm_lint.bench.trees import AFTER, AGAIN, BEFORE
from ldlm_lint.evidence.model import Environment
from ldlm_lint.evidence.statistics import BAR
from ldlm_lint.probe.projects import without_secrets
from ldlm_lint.report.html.charts import Line, LineChart, line_chart
from ldlm_lint.report.html.facts import machine, short, url_of
from ldlm_lint.report.html.intervals import Interval, chart
from ldlm_lint.report.html.page import render
from ldlm_lint.report.next_steps import Step

_ARMS = (BEFORE, AGAIN, AFTER)
# The tree as it is has calm colours; the second tree's line is dashed, so that it is seen on top of an equal one.
_COLOURS = {BEFORE: 0, AGAIN: 4, AFTER: 6}
_TONES = {Change.BETTER: "good", Change.WORSE: "bad", Change.NONE_SEEN: "open", Change.UNCLEAR: "open"}
_BADGES = {Change.BETTER: "good", Change.WORSE: "grave", Change.NONE_SEEN: "", Change.UNCLEAR: "costly"}
_MOST_RULES = 8
_MOST_RUNS = 300


@dataclass(frozen=True, slots=True)
class Words:
    """The wording of a change of a quantity: ``{}`` is the factor (faster, more or less)."""

    better: str
    worse: str


_WORDS = {
    "step time": Words("make a step {} faster", "make a step {} slower"),
    "throughput in the log": Words("raise the throughput in the log {}", "lower the throughput in the log {}"),
    "whole run": Words("make the whole run {} faster", "make the whole run {} slower"),
    "CPU time": Words("need {} less CPU time", "need {} more CPU time"),
    "peak memory": Words("need {} less peak memory", "need {} more peak memory"),
}


@dataclass(frozen=True, slots=True)
class Compared:
    """The contents of a comparison's page. ``fixes`` counts the applied fixes by rule; two given trees have none."""

    comparisons: Sequence[Comparison]
    losses: Losses
    samples: Sequence[Sample]
    fixes: Mapping[str, int]
    environment: Environment
    notes: Sequence[str]
    invocation: Invocation

    @property
    def rounds(self) -> int:
        """The number of whole rounds."""
        return len({sample.round for sample in self.samples})


def page(found: Compared) -> str:
    """The whole page as HTML."""
    return render(
        "bench.html",
        styles=("charts.css", "measured.css"),
        scripts=("charts.js",),
        headline=headline(found),
        also=_changes(found) if found.losses.agreement is Agreement.DIFFERENT else "",
        lead=_lead(found),
        steps=[Step(step.purpose, short(step.command)) for step in next_steps(found)],
        intervals=chart(map(_interval, found.comparisons)),
        quantities=[_row(comparison) for comparison in found.comparisons],
        badges=list(_badges(found)),
        times=_times(found.samples),
        runs=[_run(sample) for sample in _in_order(found.samples)[:_MOST_RUNS]],
        losses=_loss_chart(found.samples),
        loss_lines=[short(_sentence(line)) for line in loss_lines(found.losses)],
        unclear=[(one.quantity.name, one.reason) for one in found.comparisons if one.change is Change.UNCLEAR],
        notes=[short(_sentence(note)) for note in found.notes],
        command=short(shlex.join(without_secrets(found.invocation.command))),
        fixes=[(short(rule), count, url_of(rule)) for rule, count in sorted(found.fixes.items())],
        trees=[(label, short(tree)) for label, tree in _trees(found.invocation)],
        facts=list(_facts(found)),
        machine=list(machine(found.environment)),
    )


def headline(found: Compared) -> str:
    """The answer in one sentence: losses that differ, what is worse, what is better, or that no difference was seen."""
    if found.losses.agreement is Agreement.DIFFERENT:
        return f"The losses of the two trees differ: {difference(found.losses)}"
    return _changes(found) or conclusion(found.comparisons, found.losses, found.rounds).rstrip(".")


def _changes(found: Compared) -> str:
    """Losses, then gains: the first changed time, and memory; empty if nothing changed."""
    parts = []
    for change in (Change.WORSE, Change.BETTER):
        changed = [one for one in found.comparisons if one.change is change]
        parts += [_said(one) for one in [one for one in changed if one.quantity.unit != "B"][:1]]
        parts += [_said(one) for one in changed if one.quantity.unit == "B"]
    who = "The fixes" if found.fixes else "The changes of the second tree"
    return f"{who} {_joined(parts)}" if parts else ""


def _said(one: Comparison) -> str:
    """``make a step 1.31x faster [1.27, 1.35]``; for a slowdown the ratio is inverted, so that it is above 1."""
    words, ratio = _WORDS[one.quantity.name], one.gain
    if one.change is Change.BETTER:
        return f"{words.better.format(f'{ratio.value:.2f}x')} [{ratio.low:.2f}, {ratio.high:.2f}]"
    return f"{words.worse.format(f'{1 / ratio.value:.2f}x')} [{1 / ratio.high:.2f}, {1 / ratio.low:.2f}]"


def _joined(parts: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def _lead(found: Compared) -> str:
    trees = "as it is and with the fixes" if found.fixes else "in two trees"
    return (
        f"The command ran {trees}, in {found.rounds} rounds. In each round the first tree runs twice, which shows what equal "
        "trees differ by (A/A). A difference counts only if its whole 95 % interval is larger than that and larger than "
        f"{BAR - 1:.0%}."
    )


def _badges(found: Compared) -> Iterator[tuple[str, str]]:
    for one in found.comparisons:
        yield f"{one.quantity.name}: {one.change.value}", _BADGES[one.change]
    tone = {Agreement.DIFFERENT: "grave", Agreement.UNKNOWN: "costly"}.get(found.losses.agreement, "good")
    yield f"losses: {found.losses.agreement.value}", tone


def _interval(one: Comparison) -> Interval:
    ratio = one.gain
    return Interval(
        one.quantity.name,
        ratio.value,
        ratio.low,
        ratio.high,
        one.noise_band,
        (1 / BAR, BAR),
        f"{gain(one)} {one.change.value}",
        _TONES[one.change],
    )


def _row(one: Comparison) -> dict[str, str]:
    return {
        "name": one.quantity.name,
        "before": spread(one.before, one.quantity.unit),
        "after": spread(one.after, one.quantity.unit),
        "gain": gain(one),
        "noise": noise(one),
        "change": one.change.value,
        "tone": _BADGES[one.change],
        "reason": one.reason,
    }


def next_steps(found: Compared) -> Iterator[Step]:
    """What to do with the answer, the most urgent first."""
    changes = {one.change for one in found.comparisons}
    parted = found.losses.agreement is Agreement.DIFFERENT
    invocation = found.invocation
    if parted or Change.WORSE in changes:
        yield from _blame(found, "change the losses" if parted else "make it worse")
    elif found.fixes and Change.BETTER in changes:
        yield Step("See what the fixes change", invocation.fixing("--diff"))
        yield Step("Apply the fixes to the project itself; `ldlm-lint undo` takes them back", invocation.fixing())
    if Change.UNCLEAR in changes or found.rounds < FEWEST_ROUNDS:
        rounds = 2 * max(found.rounds, FEWEST_ROUNDS)
        yield Step("Run more rounds on a quiet machine, which narrows the intervals", invocation.line(rounds=rounds))
    if found.losses.agreement is Agreement.UNKNOWN:
        yield Step("Print the loss with its step in each run, so that the losses can be compared")
    if all(sample.cuda is False for sample in found.samples):
        yield Step("Repeat it on the machine with the GPU if that is where training is done", invocation.line())


def _blame(found: Compared, what: str) -> Iterator[Step]:
    """The step that finds the rule whose fixes cause it."""
    rules = sorted(found.fixes, key=lambda rule: (-found.fixes[rule], rule))
    if not rules:
        yield Step(f"Do not take over the second tree before you know which of its changes {what}")
    elif len(rules) == 1:
        yield Step(f"Do not apply the fix before you know why it can {what}", f"ldlm-lint explain {rules[0]}")
    else:
        yield Step(f"Do not apply all fixes. Measure each rule alone to find those that {what}")
        for rule in rules[:_MOST_RULES]:
            yield Step(f"The fixes of {rule} alone", found.invocation.line(select=[rule]))


def _times(samples: Sequence[Sample]) -> LineChart:
    """The time of each run by round, of an optimizer step if all runs have it."""
    by_steps = all(sample.step_seconds for sample in samples)
    lines = [
        Line(
            arm,
            [
                (float(sample.round + 1), (sample.step_seconds or 0.0) if by_steps else sample.seconds)
                for sample in _in_order(samples)
                if sample.arm == arm
            ],
            colour=_COLOURS[arm],
        )
        for arm in _ARMS
    ]
    title = "Seconds per optimizer step" if by_steps else "Seconds per run"
    return line_chart("times", title, lines, unit="round", from_zero=True)


def _loss_chart(samples: Sequence[Sample]) -> LineChart | None:
    """The median loss of each arm by step; a step is lost where the loss of a round is NaN or infinite."""
    lines = [line for line in (_curve(arm, samples) for arm in _ARMS) if line.points]
    if not lines:
        return None
    rounds = len({sample.round for sample in samples})
    return line_chart("losses", "Loss as printed", lines, note=f"median of {rounds} rounds")


def _curve(arm: str, samples: Sequence[Sample]) -> Line:
    by_step: dict[int, list[float]] = {}
    for sample in samples:
        if sample.arm == arm:
            for step, loss in sample.logged.losses.items():
                by_step.setdefault(step, []).append(loss)
    points = [
        (float(step), statistics.median(losses) if all(map(math.isfinite, losses)) else math.nan)
        for step, losses in sorted(by_step.items())
    ]
    return Line(arm, points, tuple(_lost(points)), _COLOURS[arm])


def _lost(points: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The stretches of steps whose loss is not finite, from the first step of each to its last."""
    start: float | None = None
    end = 0.0
    for step, loss in points:
        if math.isfinite(loss):
            if start is not None:
                yield start, end
            start = None
        else:
            start, end = step if start is None else start, step
    if start is not None:
        yield start, end


def _in_order(samples: Sequence[Sample]) -> list[Sample]:
    return sorted(samples, key=lambda sample: (sample.round, _ARMS.index(sample.arm)))


def _run(sample: Sample) -> dict[str, str]:
    return {
        "round": str(sample.round + 1),
        "arm": sample.arm,
        "seconds": f"{sample.seconds:.3f}",
        "cpu": "" if sample.cpu_seconds is None else f"{sample.cpu_seconds:.3f}",
        "step": "" if sample.step_seconds is None else f"{1000 * sample.step_seconds:.3f}",
        "steps": str(sample.steps or ""),
        "memory": "" if sample.memory_bytes is None else f"{sample.memory_bytes / 2**20:,.1f}",
    }


def _trees(invocation: Invocation) -> Iterator[tuple[str, str]]:
    if invocation.before:
        yield "before", invocation.before
        yield "after", invocation.after
    else:
        yield "before", "the project as it is"
        yield "after", f"the project with the fixes below{', unsafe ones too' if invocation.unsafe else ''}"


def _facts(found: Compared) -> Iterator[tuple[str, str]]:
    yield "rounds", f"{found.rounds}, {len(found.samples)} runs"
    steps = {sample.steps for sample in found.samples}
    if len(steps) == 1 and steps != {0}:
        yield "optimizer steps", f"{steps.pop()} in each run"
    cuda = {sample.cuda for sample in found.samples}
    if len(cuda) == 1 and None not in cuda:
        yield "CUDA in the runs", "available" if cuda.pop() else "not available"


def _sentence(text: str) -> str:
    """A note that begins like a sentence.

    >>> _sentence("losses: identical")
    'Losses: identical'
    """
    return text[:1].upper() + text[1:]
