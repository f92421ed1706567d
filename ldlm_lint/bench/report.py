"""A comparison of two trees as a table for people, and as JSON ``ldlm-bench/1`` (docs/bench.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from rich.table import Table
from rich.text import Text

from ldlm_lint.bench.compare import FEWEST_ROUNDS, Change, Comparison
from ldlm_lint.bench.losses import Agreement, Losses, Special
from ldlm_lint.bench.losses_in_words import difference, loss_lines
from ldlm_lint.bench.samples import Sample
from ldlm_lint.evidence.model import plain
from ldlm_lint.evidence.statistics import Quartiles
from ldlm_lint.report.cells import clean
from ldlm_lint.report.console import console_of
from ldlm_lint.report.verdicts import amount
from ldlm_lint.report.verdicts_json import finite

SCHEMA = "ldlm-bench/1"
_STYLES = {Change.BETTER: "green", Change.WORSE: "red", Change.NONE_SEEN: "", Change.UNCLEAR: "dim"}
_WIDTH = 160


def write(
    comparisons: Sequence[Comparison], losses: Losses, stream: TextIO, *, rounds: int, notes: Sequence[str] = ()
) -> None:
    """Write the table, a line about the losses, the notes, and the conclusion."""
    console = console_of(stream)
    if not console.is_terminal:
        console.width = _WIDTH
    with console.capture() as captured:
        console.print(_table(comparisons))
    stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    for line in (*loss_lines(losses), *notes):
        console.print(Text.assemble(("note: ", "bold"), clean(line)), soft_wrap=True)
    console.print(Text(conclusion(comparisons, losses, rounds), "bold"), soft_wrap=True)


def _table(comparisons: Sequence[Comparison]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", "before", "after", "gain [95 %]", "same tree", "verdict"):
        table.add_column(title)
    for one in comparisons:
        verdict = Text(one.change.value, _STYLES[one.change])
        if one.reason:
            verdict.append(f": {one.reason}", "dim")
        unit = one.quantity.unit
        table.add_row(
            one.quantity.name, spread(one.before, unit), spread(one.after, unit), gain(one), noise(one), verdict
        )
    return table


def gain(one: Comparison) -> str:
    """How many times as good the second tree is, with its 95 % interval: ``1.310x [1.270, 1.350]``."""
    return f"{one.gain.value:.3f}x [{one.gain.low:.3f}, {one.gain.high:.3f}]"


def spread(found: Quartiles, unit: str) -> str:
    """The median of the runs and their quartiles, with the unit."""
    return f"{_amount(found.median, unit)} ({_amount(found.q1, unit)} to {_amount(found.q3, unit)})"


def _amount(value: float, unit: str) -> str:
    if unit == "1/s":
        return f"{value:,.4g} /s"
    if unit == "s" and value < 1:
        return amount(value * 1000, "ms")
    return amount(value, "bytes" if unit == "B" else unit)


def noise(one: Comparison) -> str:
    """The difference between runs of the same tree (A/A)."""
    return f"within {one.noise_band - 1:.1%}"


def conclusion(comparisons: Sequence[Comparison], losses: Losses, rounds: int) -> str:
    """One line: what improved, what got worse, that no difference was seen, or that the result is unclear."""
    changes = [
        f"{one.quantity.name} {word} ({_effect(one)})"
        for change, word in ((Change.WORSE, "worse"), (Change.BETTER, "better"))
        for one in comparisons
        if one.change is change
    ]
    if losses.agreement is Agreement.DIFFERENT:
        changes.insert(0, f"losses differ ({difference(losses)})")
    if changes:
        return f"After {rounds} rounds: {', '.join(changes)}."
    if rounds < FEWEST_ROUNDS:
        return f"Cannot tell: too few rounds ({rounds}, at least {FEWEST_ROUNDS} are needed)."
    if comparisons and all(one.change is Change.NONE_SEEN for one in comparisons):
        return f"No difference seen in {rounds} rounds."
    unclear = ", ".join(one.quantity.name for one in comparisons if one.change is Change.UNCLEAR)
    equal = ", ".join(one.quantity.name for one in comparisons if one.change is Change.NONE_SEEN)
    if not equal:
        return f"Cannot tell after {rounds} rounds: {unclear or 'nothing was measured'}."
    return f"No difference seen in {rounds} rounds in {equal}; undecided: {unclear}."


def _effect(one: Comparison) -> str:
    return f"{one.gain.value:.3f}x, 95 % {one.gain.low:.3f} to {one.gain.high:.3f}"


def document(
    comparisons: Sequence[Comparison],
    losses: Losses,
    samples: Sequence[Sample],
    *,
    command: Sequence[str],
    fixes: Mapping[str, int],
    environment: Mapping[str, Any],
    notes: Sequence[str],
) -> dict[str, Any]:
    """The whole comparison as plain values, every run included."""
    return {
        "schema": SCHEMA,
        "command": list(command),
        "fixes": dict(fixes),
        "comparisons": [_comparison(one) for one in comparisons],
        "losses": finite(
            {
                "agreement": losses.agreement.name.lower(),
                "steps": losses.steps,
                "largest": losses.largest,
                "at_step": losses.at_step,
                "same_tree": losses.same_tree,
                "not_finite": [_special(found) for found in losses.not_finite],
                "missing": [_special(found) for found in losses.missing],
            }
        ),
        "runs": [_run(one) for one in samples],
        "environment": finite(dict(environment)),
        "notes": list(notes),
    }


def render(document: Mapping[str, Any]) -> str:
    """One JSON document, ASCII only."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _special(found: Special) -> dict[str, Any]:
    return {"arm": found.arm, "kind": found.kind.lower(), "first_step": found.first, "steps": found.steps}


def _comparison(one: Comparison) -> dict[str, Any]:
    return {
        "quantity": one.quantity.name,
        "unit": one.quantity.unit,
        "more_is_better": one.quantity.more_is_better,
        "before": plain(one.before),
        "after": plain(one.after),
        "gain": {"value": one.gain.value, "ci95": [one.gain.low, one.gain.high], "rounds": one.gain.n},
        "noise_band": one.noise_band,
        "change": one.change.name.lower(),
        "reason": one.reason,
    }


def _run(one: Sample) -> dict[str, Any]:
    return {
        "arm": one.arm,
        "round": one.round,
        "seconds": one.seconds,
        "cpu_seconds": one.cpu_seconds,
        "steps": one.steps,
        "step_seconds": one.step_seconds,
        "memory_bytes": one.memory_bytes,
        "memory_kind": one.memory_kind,
        "rate": one.logged.rate,
        "rate_key": one.logged.rate_key,
        "losses": finite({str(step): loss for step, loss in one.logged.losses.items()}),
    }
