"""From the numbers of a line to its values: decimal commas, and progress bars distinguished by their total."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ldlm_lint.monitor.plans import Part
from ldlm_lint.monitor.records import Column, Template

_GROUPED = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_DOTTED = re.compile(r"[-+]?[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+")
_DECIMAL = re.compile(r"[-+]?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?")
# Counts, which may be printed with thousands separators. Other values are not: `loss 1,234` may be 1.234.
_COUNTED = {"step", "samples", "tokens", "tokens_per_s", "samples_per_s", "iterations_per_s"}
_COUNTED |= {"memory_bytes", "loss_scale", "skipped_steps", "nan_iterations"}
_FRACTION = re.compile(
    r"(?i)loss|norm|(?:^|[^a-z])(?:lr|acc|ppl|ce|kl|nll|mfu|rate|entropy|reward|score|time)(?:$|[^a-z])"
)
# The limit on distinct totals of one bar; with more of them the number is not a total.
_MOST = 64
_ALIKE = 1.5


class Commas:
    """Reads numbers that hold a comma. A log that has shown a decimal comma has no thousands."""

    def __init__(self) -> None:
        self.decimal = False

    def number(self, text: str, counted: bool) -> float | None:
        """The value; None if the comma is ambiguous."""
        text = text.strip()
        if "," not in text:
            return float(text)
        if _DOTTED.fullmatch(text):
            self.decimal = True
            return float(text.replace(".", "").replace(",", "."))
        if _GROUPED.fullmatch(text):
            if "." in text or text.count(",") > 1:
                return float(text.replace(",", ""))
            if self.decimal:
                return None if counted else float(text.replace(",", "."))
            return float(text.replace(",", "")) if counted else None
        if _DECIMAL.fullmatch(text):
            self.decimal = True
            return float(text.replace(",", "."))
        return None

    def column(self, text: str, column: Column) -> float | None:
        """The value of a column."""
        return self.number(text, column.key in _COUNTED if column.key else not _FRACTION.search(column.raw))


class Values:
    """Per-log facts about numbers besides their plan: its commas, and the totals of its bars."""

    def __init__(self, interned: Callable[[Template], Template]) -> None:
        self.commas = Commas()
        self._interned = interned
        self._totals: dict[Template, dict[float, Template]] = {}

    def clear(self) -> None:
        """Forget the templates of totals, when the reader resets."""
        self._totals.clear()

    def read(self, part: Part, numbers: Sequence[str]) -> tuple[Template, list[float]]:
        """The template and the values of one record; an ambiguous value is left out."""
        template = part.template if part.total < 0 else self._of_total(part, numbers[part.total])
        try:
            values = [float(numbers[at]) for at in part.values]
        except ValueError:
            said = [self.commas.column(numbers[at], one) for at, one in zip(part.values, template.columns, strict=True)]
            kept = [index for index, one in enumerate(said) if one is not None]
            values = [(part.scales[index] if part.scales else 1.0) * said[index] for index in kept]  # type: ignore[operator]
            if len(kept) == len(said):
                return template, values
            columns = tuple(template.columns[index] for index in kept)
            return self._interned(
                Template(template.name, template.split, columns, template.exact, template.shape)
            ), values
        if part.scales:
            values = [one * scale for one, scale in zip(values, part.scales, strict=True)]
        return template, values

    def counter(self, text: str, *, counted: bool = True) -> float | None:
        """A step, an epoch or a rank."""
        return self.commas.number(text, counted)

    def _of_total(self, part: Part, text: str) -> Template:
        """The template of a bar with this total: the bars of an evaluation look like those of the training around them."""
        known = self._totals.setdefault(part.template, {})
        total = self.commas.number(text, True) or 0.0
        found = known.get(total)
        if found is None and part.varies:
            # With batches of varying sizes, epochs can differ in length.
            found = next(
                (one for other, one in known.items() if total < _ALIKE * other and other < _ALIKE * total), None
            )
        if found is None:
            if len(known) >= _MOST:
                return part.template
            one = part.template
            shape = f"{one.shape} of {text.strip()}".strip()
            found = self._interned(Template(one.name, one.split, one.columns, one.exact, shape))
            known[total] = found
        return found
