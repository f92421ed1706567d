"""From samples and structure to a judgement: the verdict, and a sentence with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ldlm_lint.evidence import statistics
from ldlm_lint.evidence.model import Arm, Judgement, Measurement, Verdict
from ldlm_lint.evidence.statistics import BAR, FEWEST_ROUNDS, MOST_PRESSURE
from ldlm_lint.probe.micro.experiment import Context
from ldlm_lint.probe.micro.sampling import Timing

TWIN = "again"


def arms_of(context: Context, arms: Mapping[str, Any], baseline: str) -> dict[str, Any]:
    """The arms with a second copy of the baseline (the A/A control); in an A/A run every arm is the baseline."""
    with_twin = {**arms, TWIN: arms[baseline]}
    return {name: arms[baseline] for name in with_twin} if context.same else with_twin


def compared(
    context: Context,
    rule: str,
    claim: str,
    timing: Timing,
    slow: str,
    fast: str,
    *,
    bar: float = BAR,
    fewest: int = FEWEST_ROUNDS,
    stand_in: str = "",
    detail: Mapping[str, Any] | None = None,
) -> Judgement:
    """Whether ``slow`` takes at least ``bar`` times as long as ``fast``; the control is a copy of the baseline.

    ``stand_in`` says what was measured instead of the user's own data or model: then no difference is not a refutation.
    """
    if timing.rounds < 2:
        return Judgement(rule, claim, Verdict.INCONCLUSIVE, "no time was left for two rounds", context.scope())
    ratio = statistics.paired_ratio(timing.of(slow), timing.of(fast), seed=context.seed)
    noise = statistics.band(
        statistics.paired_ratio(timing.of(_control(timing, slow)), timing.of(TWIN), seed=context.seed)
    )
    found = statistics.verdict(ratio, noise, bar, fewest=fewest)
    reason = f"{_said(found, slow, fast, ratio, bar)}{f' ({stand_in})' if stand_in else ''}"
    by_samples = found.value
    useless = _useless(context, timing) or _too_few(ratio.n, fewest)
    if useless:
        found, reason = Verdict.INCONCLUSIVE, f"{useless}: {reason}"
    elif found is Verdict.REFUTED and stand_in:
        found, reason = Verdict.INCONCLUSIVE, f"{reason}; a synthetic workload does not refute it for yours"
    measured = _measurement(
        context, timing, (slow, fast), ratio, (noise, bar), {"by_samples": by_samples, **(detail or {})}
    )
    return Judgement(rule, claim, found, reason, context.scope(), measured=measured)


def seen(
    context: Context, rule: str, claim: str, holds: bool | None, reason: str, measured: Measurement | None = None
) -> Judgement:
    """A judgement by structure (names, bytes, flags), which needs no statistics; None is inconclusive."""
    verdict = Verdict.INCONCLUSIVE if holds is None else Verdict.VERIFIED if holds else Verdict.REFUTED
    return Judgement(rule, claim, verdict, reason, context.scope(), measured=measured)


def _measurement(
    context: Context,
    timing: Timing,
    pair: tuple[str, str],
    ratio: statistics.Ratio,
    limits: tuple[float, float],
    detail: Mapping[str, Any],
) -> Measurement:
    """The figure with all that it depends on; ``limits`` are the A/A band and the bar."""
    noise, bar = limits
    return Measurement(
        metric=" / ".join(pair),
        value=ratio.value,
        unit="x",
        ci95=(ratio.low, ratio.high),
        n=ratio.n,
        threshold=bar,
        noise_band=noise,
        clock=timing.clock,
        arms=tuple(_arm(timing, name) for name in timing.samples[timing.clock]),
        detail={**_conditions(timing), **_events(context, timing, *pair), **detail},
    )


def _control(timing: Timing, slow: str) -> str:
    """The arm whose copy was run: the first one (`arms_of` keeps the order)."""
    names = [name for name in timing.samples[timing.clock] if name != TWIN]
    return names[0] if names else slow


def _said(verdict: Verdict, slow: str, fast: str, ratio: statistics.Ratio, bar: float) -> str:
    times = f"{slow} takes {ratio.value:.2f} times as long as {fast}"
    return {
        Verdict.VERIFIED: times,
        Verdict.REFUTED: f"{times}, which is less than {bar:.2f} at 95 % confidence",
        Verdict.INCONCLUSIVE: f"{times}, which {ratio.n} rounds cannot tell from the bar of {bar:.2f} or the noise",
    }[verdict]


def _useless(context: Context, timing: Timing) -> str:
    if context.device == "cuda" and context.gpu_busy:
        return context.gpu_busy
    if timing.clock == "perf_counter" and timing.pressure is not None and timing.pressure > MOST_PRESSURE:
        return f"tasks waited for a CPU {timing.pressure:.0f} % of the time, so the wall clock measures other work"
    return ""


def _too_few(rounds: int, fewest: int) -> str:
    return f"{rounds} of {fewest} rounds were done within the budget" if rounds < fewest else ""


def _arm(timing: Timing, name: str) -> Arm:
    found = statistics.quartiles([1000 * one for one in timing.of(name)])
    return Arm(name, found.median, found.q1, found.q3, found.n, "ms", timing.inner)


def _conditions(timing: Timing) -> dict[str, Any]:
    return {"cpu_pressure": timing.pressure, "involuntary_switches": timing.switches, **timing.detail}


def _events(context: Context, timing: Timing, slow: str, fast: str) -> dict[str, Any]:
    """The same ratio by CUDA events, if there are any: kernel time without host time."""
    if "cuda_event" not in timing.samples:
        return {}
    pairs = (timing.of(slow, "cuda_event"), timing.of(fast, "cuda_event"))
    ratio = statistics.paired_ratio(*pairs, seed=context.seed)
    return {"ratio_by_cuda_events": ratio.value, "ratio_by_cuda_events_ci95": [ratio.low, ratio.high]}
