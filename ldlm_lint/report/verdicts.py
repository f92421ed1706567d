"""Verdicts of the probe as a table for people: what was verified first, the figure with its interval, and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.table import Table
from rich.text import Text

from ldlm_lint.evidence.model import Judgement, Measurement, Verdict
from ldlm_lint.report.cells import clean
from ldlm_lint.report.console import console_of

ORDER = (Verdict.VERIFIED, Verdict.REFUTED, Verdict.INCONCLUSIVE)
# A verified verdict is a defect that was seen: it has the colour of a warning.
STYLES = {Verdict.VERIFIED: "yellow", Verdict.REFUTED: "green", Verdict.INCONCLUSIVE: "dim"}
_RATIOS = ("x", "ratio")
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB")
_WIDTH = 100_000


def write_verdicts(judgements: Iterable[Judgement], stream: TextIO, *, notes: Sequence[str] = ()) -> None:
    """Write a table of judgements to a stream, and below it ``notes``: what could not be seen, and why.

    A terminal gets lines of its width; a pipe gets whole reasons, one to a line.
    """
    found = ordered(judgements)
    console = console_of(stream)
    if not console.is_terminal:
        console.width = _WIDTH
    if found:
        with console.capture() as captured:
            console.print(_table(found))
        # A table pads its cells; nobody wants the blanks in a log.
        stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()) + "\n")
    for note in notes:
        console.print(Text.assemble(("note: ", "bold"), clean(note)), soft_wrap=True)
    console.print(summary(found), soft_wrap=True)


def ordered(judgements: Iterable[Judgement]) -> list[Judgement]:
    """Judgements in the order of a report: verified, refuted, inconclusive; within these by rule and place."""
    return sorted(judgements, key=lambda one: (ORDER.index(one.verdict), one.rule, place(one), one.reason))


def summary(judgements: Sequence[Judgement]) -> str:
    """One line with the counts: ``2 verified, 1 refuted, 4 inconclusive.``"""
    counts = Counter(one.verdict for one in judgements)
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in ORDER) + "."


def place(judgement: Judgement) -> str:
    """``train.py:29`` of the likeliest site; empty for what is said of the machine in general."""
    return f"{judgement.sites[0].path}:{judgement.sites[0].line}" if judgement.sites else ""


def figure(measured: Measurement | None) -> str:
    """A measured value with its interval, ``1.31x [1.27, 1.35]``; empty where nothing was measured.

    >>> figure(Measurement("default / fused", 1.3123, "x", (1.27, 1.35)))
    '1.31x [1.27, 1.35]'
    >>> figure(Measurement("peak", 3 * 2**30, "bytes"))
    '3.00 GiB'
    """
    if measured is None or measured.value is None:
        return ""
    shown = amount(measured.value, measured.unit)
    if measured.ci95 is None:
        return shown
    unit = "" if measured.unit in _RATIOS else measured.unit
    low, high = (amount(one, unit) for one in measured.ci95)
    return f"{shown} [{low}, {high}]"


def amount(value: float, unit: str) -> str:
    """A number with its unit: bytes in the power of 1024 that fits, other numbers with three significant digits."""
    if unit in ("bytes", "B", "byte") and math.isfinite(value):
        power = next((at for at in range(len(_BYTES)) if abs(value) < 1024 ** (at + 1)), len(_BYTES) - 1)
        return f"{value:.0f} B" if power == 0 else f"{value / 1024**power:.2f} {_BYTES[power]}"
    number = f"{value:,}" if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15) else _short(value)
    number = number.removesuffix(".0")
    return f"{number}x" if unit in _RATIOS else f"{number} {unit}".rstrip()


def _short(value: float) -> str:
    """At least two decimals up to a hundred, so that 1.004 and 1.04 differ; none above."""
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _conditions(measured: Measurement | None) -> str:
    """What a figure rests on, in short: the rounds, the bar it had to pass, what the thing differs from itself."""
    if measured is None or measured.value is None:
        return ""
    parts = [f"n {measured.n}"] if measured.n else []
    parts += [f"bar {amount(measured.threshold, '')}"] if measured.threshold is not None else []
    parts += [f"A/A {amount(measured.noise_band, '')}"] if measured.noise_band is not None else []
    return ", ".join(parts)


def _table(judgements: Sequence[Judgement]) -> Table:
    table = Table(box=None, pad_edge=False, show_edge=False, padding=(0, 2, 0, 0))
    table.add_column("verdict", no_wrap=True)
    table.add_column("measured", overflow="fold")
    table.add_column("rule, place and reason", overflow="fold")
    for one in judgements:
        measured = Text("\n").join(Text(line) for line in (figure(one.measured), _conditions(one.measured)) if line)
        where = f"  {clean(place(one))}" if one.sites else ""
        about = Text.assemble((clean(one.rule or one.claim), "bold"), where, "\n", clean(one.reason or one.claim))
        table.add_row(Text(one.verdict.value, STYLES[one.verdict]), measured, about)
    return table
