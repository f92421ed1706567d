"""The declaration of log formats: as data, close to the print statement of the logging program.

A pattern is a regular expression over the line, in which `<name>` stands for a number and its name gives its meaning:
`<step>`, `<epoch>`, `<>` (nothing of interest), or ``[split.]key[:unit][=name in the log]`` with a canonical key, as in
`<val.loss>` or `<step_time_s:ms=time>`; `<=name>` has no canonical key. A literal `<` is written `\\<`; `^` is also
after the head of a log line. Numbers that the pattern does not name are read as keys and values, with the format's own
``names`` and ``units``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ldlm_lint.monitor.names import RATES, UNITS, Unit
from ldlm_lint.monitor.numbers import MARK
from ldlm_lint.monitor.pairs import item, pairs
from ldlm_lint.monitor.plans import Item, Part, assemble

_NUMBERS = re.compile(r"(?<!\\) ?(?<!\\)<([^<>]*)>")
_NAME = re.compile(r"^(?:(train|val)\.)?(\w*)(?::([^=]*))?(?:=(.*))?$")
# A line may begin after a time, a level and a name of its logger.
_BEGINNING = r"(?:^\s*|(?<=[\s\]>:|\x00]))"
MIB, GIB = Unit("B", 2.0**20), Unit("B", 2.0**30)
SECONDS = Unit("s")
# These programs compute MB and GB with powers of 1024.
_OWN = {"MB": MIB, "GB": GIB, "1/s": Unit("1/s"), "": Unit("")}


@dataclass(frozen=True)
class Format:
    """One kind of line. ``word`` is a text that every such line contains, and others rarely (lower or mixed case as
    is).

    ``names`` maps normalised keys to canonical ones, or to nothing if they have none here although the common table has
    them; ``units`` gives units by how they are printed, or by canonical key for values printed without. ``rest`` False:
    unnamed numbers are ignored. ``only``: other keys than ``names`` are left out.
    """

    name: str
    word: str
    pattern: str
    names: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    split: str = ""
    rest: bool = True

    @cached_property
    def _compiled(self) -> tuple[re.Pattern[str], tuple[str, ...]]:
        labels: list[str] = []

        def number(found: re.Match[str]) -> str:
            labels.append(found[1])
            return f"(?P<n{len(labels) - 1}>{MARK})"

        made = _NUMBERS.sub(number, self.pattern).replace(r"\<", "<")
        # A blank before a number belongs to the number, so any blank of a pattern may be missing.
        made = re.sub(r" (?![?+*])", " ?", made)
        made = _BEGINNING + made[1:] if made.startswith("^") else made
        return re.compile(made), tuple(labels)

    def read(self, text: str, texts: Sequence[str]) -> list[Part] | None:
        """The records of a line from its skeleton, whole and in pieces; None for another format."""
        if self.word.rstrip() not in text:
            return None
        pattern, labels = self._compiled
        found = pattern.search(text)
        if not found:
            return None
        items, taken = [], set()
        for position, label in enumerate(labels):
            start = found.start(f"n{position}")
            if start < 0:
                continue
            index = text.count(MARK, 0, start)
            taken.add(index)
            if label:
                items.append(_item(index, label))
        if self.rest:
            named = pairs(texts, frozenset(taken), self.units)
            items += [made for pair in named if (made := item(pair, self.names, self.units))]
        return assemble(self.name, items, self.split)


def _item(index: int, label: str) -> Item:
    parsed = _NAME.match(label)
    if not parsed:
        raise ValueError(f"not a name of a number: {label!r}")
    split, key, unit, raw = parsed[1] or "", parsed[2], parsed[3] or "", parsed[4] or parsed[2]
    if unit in RATES:
        return Item(index, key, raw, "1/s", RATES[unit][1], split)
    known = _OWN.get(unit) or UNITS[unit.lower()]
    return Item(index, key, raw, known.base, known.scale, split)
