"""The peak memory of a training step as a page: does it fit, a bar for each way to checkpoint, and the figures."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ldlm_lint.evidence.model import Evidence
from ldlm_lint.report.html.charts import percent
from ldlm_lint.report.html.facts import machine, short
from ldlm_lint.report.html.page import render
from ldlm_lint.report.memory import KINDS, NOT_IN_IT, answer, head, rows
from ldlm_lint.report.next_steps import Step
from ldlm_lint.report.verdicts import amount


@dataclass(frozen=True, slots=True)
class Part:
    """A kind of memory in a bar: ``number`` is that of its colour, ``start`` and ``width`` are SVG values."""

    number: int
    words: str
    start: str
    width: str


@dataclass(frozen=True, slots=True)
class Bar:
    """The peak of one way to run the step, from left to right by kind."""

    name: str
    peak: str
    fits: bool | None
    parts: tuple[Part, ...]


def page(found: Evidence, words: Sequence[str], fits: str = "") -> str:
    """The whole page as HTML, of the evidence of ``probe memory``; ``words`` is its command line without ``--fits``, ``fits`` that value."""
    memory = found.observations["memory"]
    capacity, variants = memory.get("capacity_bytes", 0), memory["variants"]
    measured = [variant for variant in variants if not variant["error"]]
    longest = max([capacity, *(variant["peak_bytes"] for variant in measured)]) or 1
    return render(
        "memory.html",
        styles=("measured.css",),
        headline=headline(memory, capacity),
        head=[short(line) for line in head(memory) if line],
        steps=[Step(step.purpose, short(step.command)) for step in next_steps(memory, words, fits)],
        bars=[_bar(variant, longest, capacity) for variant in measured],
        capacity=amount(capacity, "bytes") if capacity else "",
        capacity_at=percent(capacity / longest),
        kinds=[label for _, label in KINDS],
        names=[short(variant["name"]) for variant in measured],
        rows=[(label, list(cells)) for label, cells in rows(measured)],
        failed=[short(f"{one['name']}: the step failed: {one['error']}") for one in variants if one["error"]],
        notes=[short(note) for note in (*found.notes, NOT_IN_IT)],
        command=short(shlex.join(words)),
        machine=list(machine(found.environment)),
    )


def headline(memory: Mapping[str, Any], capacity: int) -> str:
    """Whether it fits, or else the current peak and the smallest one."""
    variants = memory["variants"]
    if variants[0]["error"]:
        return "The training step failed, so its memory is not known"
    if capacity:
        return answer(memory, capacity).rstrip(".")
    said = f"One training step needs at least {amount(variants[0]['peak_bytes'], 'bytes')}"
    others = [variant for variant in variants[1:] if not variant["error"]]
    least = min(others, key=lambda variant: variant["peak_bytes"], default=variants[0])
    if least["peak_bytes"] < variants[0]["peak_bytes"]:
        said += f"; with {least['name']} {amount(least['peak_bytes'], 'bytes')}"
    return said


def next_steps(memory: Mapping[str, Any], words: Sequence[str], fits: str) -> Iterator[Step]:
    """What to do with the answer."""
    capacity, variants = memory.get("capacity_bytes", 0), memory["variants"]
    if not capacity:
        yield Step("Ask whether it fits: name the memory of your GPU", shlex.join([*words, "--fits", "80GB"]))
        return
    if memory["fits"] is None:
        yield Step("Return (model, batch, loss) from the function, so that the whole step is measured", shlex.join([*words, "--fits", fits]))
        return
    if memory["fits"]:
        yield Step("Try it for real: the figures are least amounts, and a run shows what they leave out")
        return
    if any(not variant["error"] and variant["peak_bytes"] <= capacity for variant in variants[1:]):
        yield Step("Checkpoint the activations, which makes it fit", "ldlm-lint explain missing-activation-checkpointing")
    if not memory["request"]["autocast"]:
        yield Step("See what bf16 autocast saves", shlex.join([*words, "--autocast", "bf16", "--fits", fits]))
    yield Step("See what a smaller batch saves: `--batch N` sets its rows")


def _bar(variant: Mapping[str, Any], longest: int, capacity: int) -> Bar:
    at = 0
    parts = []
    for number, (kind, label) in enumerate(KINDS, 1):
        size = variant["bytes_at_peak"][kind]
        if size:
            parts.append(Part(number, f"{label}: {amount(size, 'bytes')}", percent(at / longest), percent(size / longest)))
        at += size
    peak = variant["peak_bytes"]
    return Bar(short(variant["name"]), amount(peak, "bytes"), peak <= capacity if capacity else None, tuple(parts))
