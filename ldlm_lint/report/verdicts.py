"""Verdicts of the probe as text: their order, the word for each, the figure with its interval, and their counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from ldlm_lint.evidence import settling
from ldlm_lint.evidence.amounts import RATIOS, amount, duration
from ldlm_lint.evidence.model import Judgement, Measurement, Verdict

__all__ = [
    "NOT_PRESENT",
    "ORDER",
    "WORDS",
    "amount",
    "figure",
    "figure_in_full",
    "groups",
    "ordered",
    "place",
    "settling_command",
    "summary",
    "word",
]

ORDER = (Verdict.VERIFIED, Verdict.REFUTED, Verdict.INCONCLUSIVE)
# The defect was not observed, and no finding reports it: nothing is refuted.
NOT_PRESENT = "not present"
WORDS = (Verdict.VERIFIED.value, Verdict.REFUTED.value, Verdict.INCONCLUSIVE.value, NOT_PRESENT)


def ordered(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Judgements in the order of a document: verified, refuted, inconclusive; within these by rule and place."""
    return sorted(judgements, key=lambda one: (ORDER.index(one.verdict), one.rule, place(one), one.reason))


def word(judgement: Judgement, answered: Collection[Judgement]) -> str:
    """The verdict in a word of `WORDS`; ``answered`` are the judgements for a finding or an experiment."""
    asked = judgement.verdict is not Verdict.REFUTED or judgement in answered
    return judgement.verdict.value if asked else NOT_PRESENT


def summary(judgements: Sequence[Judgement], answered: Collection[Judgement] = ()) -> str:
    """One line with the counts: ``2 verified, 1 refuted, 4 inconclusive, 3 not present.``"""
    counts = Counter(word(one, answered) for one in judgements)
    shown = [name for name in WORDS if name != NOT_PRESENT or counts[name]]
    return ", ".join(f"{counts[name]} {name}" for name in shown) + "."


def place(judgement: Judgement) -> str:
    """``train.py:29`` of the likeliest site; empty for statements about the machine."""
    return f"{judgement.sites[0].path}:{judgement.sites[0].line}" if judgement.sites else ""


def figure(measured: Measurement | None) -> str:
    """A measured value with its interval, ``1.31x [1.27, 1.35]``; empty if nothing was measured.

    >>> figure(Measurement("default / fused", 1.3123, "x", (1.27, 1.35)))
    '1.31x [1.27, 1.35]'
    >>> figure(Measurement("peak", 3 * 2**30, "bytes")), figure(Measurement("start", 0.25, "s an epoch"))
    ('3.00 GiB', '250 ms an epoch')
    """
    if measured is None or measured.value is None:
        return ""
    seconds, _, each = measured.unit.partition(" ")
    if seconds == "s" and measured.ci95 is None:
        return f"{duration(measured.value)} {each}".rstrip()
    shown = amount(measured.value, measured.unit)
    if measured.ci95 is None:
        return shown
    unit = "" if measured.unit in RATIOS else measured.unit
    low, high = (amount(one, unit) for one in measured.ci95)
    return f"{shown} [{low}, {high}]"


def groups(
    judgements: Sequence[Judgement], answered: Collection[Judgement]
) -> Iterator[tuple[str, str, list[Judgement]]]:
    """The word of each group, what would decide it, and its judgements; inconclusive ones are grouped by what would
    decide them."""
    for name in WORDS:
        mine = [one for one in judgements if word(one, answered) == name]
        by_way: dict[str, list[Judgement]] = {}
        for one in mine:
            known = one.verdict is Verdict.INCONCLUSIVE and one.settled_by in settling.ORDER
            by_way.setdefault(one.settled_by if known else "", []).append(one)
        yield from ((name, way, by_way[way]) for way in settling.ORDER if way in by_way)


def figure_in_full(judgement: Judgement) -> str:
    """A figure with its name and, for an interval, its basis: rounds, the threshold, the A/A difference.

    Counts of a watched run are in the sentences already.
    """
    measured = judgement.measured
    if measured is None or measured.value is None:
        return ""
    if judgement.sites and measured.ci95 is None and measured.unit != "bytes":
        return ""
    shown = f"{measured.metric}: {figure(measured)}".removeprefix(": ")
    if measured.ci95 is None:
        return shown
    parts = [f"{measured.n} rounds"] if measured.n else []
    parts += [f"counts from {amount(measured.threshold, measured.unit)}"] if measured.threshold is not None else []
    if measured.noise_band is not None:
        parts.append(f"A/A noise {amount(measured.noise_band, measured.unit)}")
    return f"{shown} ({', '.join(parts)})" if parts else shown


def settling_command(judgement: Judgement, settled_by: str, launch: Sequence[str] | None) -> str:
    """The command that would decide a group; ``launch`` None: the experiments, which need no program."""
    return "ldlm-lint probe" if launch is None else settling.command(settled_by, launch, judgement.scope)
