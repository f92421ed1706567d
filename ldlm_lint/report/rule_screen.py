"""The screen of `explain` for a rule: one screen with the consequence, a small example before and after, and why."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ldlm_lint.examples import Small, small
from ldlm_lint.model import Applicability, Rule, Severity
from ldlm_lint.report.lines import Line, line, stripped, wrapped
from ldlm_lint.report.page import fix_level

WIDEST = 100
STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.REFACTOR: "blue", Severity.INFO: "cyan"}
_ARTEFACTS = {"py": "Python", "sh": "shell scripts", "cfg": "configuration files"}
_FIXED = {
    None: "fixed by hand",
    Applicability.DISPLAY: "fixed by hand",
    Applicability.UNSAFE: "after --fix --unsafe-fixes",
    Applicability.SAFE: "after --fix",
}
_SEPARATOR = " | "
_LABEL = 12
# Characters of each text on the screen; `explain --full` prints all of it.
_WHY, _COST, _EXCEPTIONS, _SAFETY = 420, 250, 300, 200
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


class Row(NamedTuple):
    """A line of an example before and after a fix, None if that side has none; ``reported``: the rule reports there."""

    before: str | None
    after: str | None
    reported: bool = False

    @property
    def changed(self) -> bool:
        """Whether the fix changes the line."""
        return self.before != self.after

    @property
    def signs(self) -> tuple[str, str]:
        """The marker of the line on each side."""
        left = ">" if self.reported else "-" if self.changed and self.before is not None else " "
        return left, "+" if self.changed and self.after is not None else " "


def screen(rule: Rule, width: int) -> Iterator[Line]:
    """The lines that explain a rule in at most ``width`` columns, but for words and code that are longer."""
    width = min(width, WIDEST)
    style = STYLES[rule.severity]
    yield line((rule.consequence.value, f"bold {style}"), " ", rule.code, " ", (rule.symbol, "bold"))
    yield from map(line, wrapped(rule.summary, width))
    yield from (line((text, "dim")) for text in wrapped(_facts(rule), width))
    yield ()
    if files := small(rule.symbol):
        yield from _example(files, _FIXED[rule.applicability] if files[0].applied else "fixed by hand", width, style)
        yield ()
    yield from _texts(rule, width)


def _facts(rule: Rule) -> str:
    reads = ", ".join(_ARTEFACTS[one] for one in rule.reads)
    facts = [f"severity {rule.severity.label}", f"confidence {rule.confidence.label}"]
    facts += ["on by default" if rule.default else "opt-in", f"{fix_level(rule)} fix" if rule.applicability is not None else "no fix"]
    facts += [f"reads {reads}"]
    facts += [f"deprecated: {rule.successor}"] if rule.successor else []
    return " · ".join(facts)


def _texts(rule: Rule, width: int) -> Iterator[Line]:
    yield from _labelled("Why", essential(rule.rationale, _WHY), width)
    yield from _labelled("Cost", essential(rule.cost_text, _COST), width)
    yield from _labelled("Exceptions", essential(rule.exceptions, _EXCEPTIONS), width)
    if rule.fix_safety:
        yield from _labelled("Fix", essential(rule.fix_safety, _SAFETY), width)
    for number, option in enumerate(rule.options):
        yield from _labelled("" if number else "Options", f"{option.name} = {option.default}", width)
    for number, source in enumerate(rule.references):
        yield from _labelled("" if number else "Sources", f"{source.title}: {source.url}", width)
    yield from _labelled("Silence", f"# ldlm-lint: ignore[{rule.symbol}] reason", width)
    yield from _labelled("More", f"ldlm-lint explain {rule.symbol} --full", width)


def _labelled(label: str, text: str, width: int) -> Iterator[Line]:
    """A paragraph with its label to the left of its first line."""
    for number, part in enumerate(wrapped(text, max(width - _LABEL, _LABEL))):
        yield line((f"{'' if number else label:<{_LABEL}}", "bold"), part)


def essential(text: str, most: int) -> str:
    """The first sentences of a text that fit into ``most`` characters, at least one; an ellipsis replaces the rest.

    >>> essential("One. Two. Three.", 10)
    'One. Two. ...'
    """
    sentences = _SENTENCES.split(text)
    ends = list(itertools.accumulate(len(one) + 1 for one in sentences))
    kept = max(sum(1 for end in ends if end - 1 <= most), 1)
    return " ".join(sentences[:kept]) + (" ..." if kept < len(sentences) else "")


def _example(files: Sequence[Small], fixed: str, width: int, style: str) -> Iterator[Line]:
    for file in files:
        rows = list(paired(file))
        if len(files) > 1:
            yield line((f"{file.name}:", "bold"))
        if not any(row.changed or row.reported for row in rows):
            yield from (stripped(line("    ", row.before or "")) for row in rows)
        elif (left := _left(rows)) + len(_SEPARATOR) + _right(rows) <= width:
            yield from _beside(rows, left, fixed, style)
        else:
            yield from _below(rows, fixed, style)


def paired(file: Small) -> Iterator[Row]:
    """The lines of an example, those before and after the fix that belong together in one row."""
    old, new = file.bad.splitlines(), file.fixed.splitlines()
    for _, start, end, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        pairs = itertools.zip_longest(range(start, end), range(first, last))
        for before, after in pairs:
            yield Row(
                None if before is None else old[before],
                None if after is None else new[after],
                before is not None and before + 1 in file.reported,
            )


def _left(rows: Sequence[Row]) -> int:
    return max(len("  > reported here"), *(len(row.before or "") + 4 for row in rows))


def _right(rows: Sequence[Row]) -> int:
    return max(len(row.after or "") + 2 for row in rows)


def _beside(rows: Sequence[Row], left: int, fixed: str, style: str) -> Iterator[Line]:
    """The two versions next to each other."""
    yield stripped(line((f"{'  > reported here':<{left}}", "dim"), (f"{_SEPARATOR}+ {fixed}", "dim")))
    for row in rows:
        before, after = row.signs
        yield stripped(
            line(
                (f"  {before} {row.before or '':<{left - 4}}", _style(before, style)),
                (_SEPARATOR, "dim"),
                (f"{after} {row.after or ''}", _style(after, style)),
            )
        )


def _below(rows: Sequence[Row], fixed: str, style: str) -> Iterator[Line]:
    """One column with removed and added lines, as in a patch; a sign in front of lines where the rule reports."""
    yield line((f"  > reported here, - before, + {fixed}", "dim"))
    for changed, group in itertools.groupby(rows, lambda row: row.changed):
        block = list(group)
        for row in block:
            if row.before is not None:
                mark, sign = ">" if row.reported else " ", "-" if changed else " "
                yield stripped(line((f"  {mark}{sign} {row.before}", _style(row.signs[0], style))))
        if changed:
            yield from (stripped(line((f"   + {row.after}", "green"))) for row in block if row.after is not None)


def _style(sign: str, style: str) -> str:
    return {">": f"bold {style}", "-": "red", "+": "green"}.get(sign, "")
