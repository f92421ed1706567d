"""The list of rules: consequence, code, name, fix and what each one finds, in the width of a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ldlm_lint.model import Rule
from ldlm_lint.report.lines import Line, line, wrapped
from ldlm_lint.report.page import fix_level
from ldlm_lint.report.rule_screen import STYLES

HEADS = ("consequence", "code", "name", "fix")
LAST = "what it finds"
_GAP = "  "
# Columns that a summary needs next to the rest; with fewer columns it goes below.
_LEAST = 40
_INDENT = "    "


def ordered(rules: Iterable[Rule]) -> list[Rule]:
    """The rules family by family, in each the worst consequence first."""
    return sorted(rules, key=lambda rule: (rule.family, rule.consequence.rank, rule.code[1:]))


def listed(rules: Iterable[Rule], width: int | None) -> Iterator[Line]:
    """The lines of the list, at most ``width`` columns wide; None: one line for each rule, however long."""
    rules = ordered(rules)
    rows = [(rule.consequence.value, rule.code, rule.symbol, fix_level(rule)) for rule in rules]
    sizes = [max(map(len, column)) for column in zip(HEADS, *rows, strict=True)]
    room = None if width is None else width - sum(sizes) - len(_GAP) * len(sizes)
    beside = room is None or room >= _LEAST
    yield line(((_joined(HEADS, sizes) + (_GAP + LAST if beside else "")).rstrip(), "bold"))
    for rule, row in zip(rules, rows, strict=True):
        consequence, rest = f"{row[0]:<{sizes[0]}}", _GAP + _joined(row[1:], sizes[1:])
        style = STYLES[rule.severity]
        text = rule.summary if rule.default else f"(opt-in) {rule.summary}"
        if not beside:
            yield line((consequence, style), rest.rstrip())
            yield from (line(_INDENT, part) for part in wrapped(text, max((width or 0) - len(_INDENT), _LEAST)))
            continue
        first, *others = [text] if room is None else wrapped(text, room)
        yield line((consequence, style), rest, _GAP, first)
        yield from (line(" " * len(consequence + rest + _GAP), part) for part in others)


def _joined(cells: Iterable[str], sizes: Iterable[int]) -> str:
    return _GAP.join(f"{cell:<{size}}" for cell, size in zip(cells, sizes, strict=True))
