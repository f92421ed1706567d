"""The text format: one block for each finding in the manner of ruff, and a footer with the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from rich.text import Text

from ldlm_lint.model import Applicability, Edit, Finding, Fix, Report, Rule, Severity, Span
from ldlm_lint.report import summary
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import has_edits, is_open, positions, settling, shown_path, source_of
from ldlm_lint.report.console import console_of
from ldlm_lint.report.excerpt import excerpt
from ldlm_lint.report.patch import Change, patch
from ldlm_lint.report.statistics import table
from ldlm_lint.report.view import View

MOST_CHANGES = 24
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.REFACTOR: "blue", Severity.INFO: "cyan"}
_FRAME = "blue"


def write(view: View, stream: TextIO) -> None:
    """Write a report to a stream, styled where the view has colour.

    Lines are never wrapped: what is long the terminal breaks by itself, and a pipe gets whole lines.
    """
    console = console_of(stream, colour=view.colour)
    if view.statistics:
        console.print(Text(table(view.report.findings, unsafe=view.unsafe)), soft_wrap=True, end="")
    else:
        blocks = _Blocks(view)
        for finding in view.report.findings:
            console.print(_joined(blocks.lines(finding)), soft_wrap=True)
            console.print()
    if not view.quiet:
        console.print(_joined(_footer(view)), soft_wrap=True)


def finding_lines(report: Report, finding: Finding, *, base: Path, rules: Mapping[str, Rule]) -> Iterator[Text]:
    """The lines of one finding as the report shows them, without its fix."""
    yield from _Blocks(View(report, base, rules, unsafe=True)).finding(finding)


def _joined(lines: Iterator[Text]) -> Text:
    return Text("\n").join(lines)


@dataclass(frozen=True)
class _Blocks:
    """The blocks of one report; ``shown`` remembers the fixes that a block has spelt out already."""

    view: View
    shown: dict[tuple[Edit, ...], str] = field(default_factory=dict)

    def lines(self, finding: Finding) -> Iterator[Text]:
        """The lines of one finding and its fix."""
        yield from self.finding(finding)
        if finding.fix is not None:
            yield from self._help(finding, finding.fix, self._gutter(finding))
        yield from self._settling(finding)

    def finding(self, finding: Finding) -> Iterator[Text]:
        """The lines of one finding without its fix."""
        gutter = self._gutter(finding)
        yield self._head(finding)
        yield Text.assemble(" " * gutter, ("--> ", _FRAME), self._place(finding.span))
        yield from self._excerpt(finding, gutter)
        for related in finding.related:
            place = self._place(related.span, column=False)
            yield Text.assemble(" " * gutter, ("::: ", _FRAME), f"{place} {clean(related.message)}")
        if finding.evidence is not None:
            yield Text.assemble(("probe: ", "bold magenta"), clean(finding.evidence.words))

    def _settling(self, finding: Finding) -> Iterator[Text]:
        """The command that would settle the finding, until one has."""
        command = settling(self.view.report, finding, self.view.rules[finding.rule], self.view.base)
        if command is not None and is_open(finding) and not self.view.quiet:
            yield Text.assemble(("probe: ", "bold magenta"), f"settle it with {clean(command)}")

    def _head(self, finding: Finding) -> Text:
        style = f"bold {_STYLES[finding.severity]}"
        mark = Text("[*]", "cyan") if self.view.applies(finding.fix) else Text()
        message = clean(self.view.message(finding))
        return Text.assemble((finding.code, style), mark, " ", (finding.rule, "bold"), f": {message}")

    def _place(self, span: Span, *, column: bool = True) -> str:
        place = self.view.place(span)
        return clean(str(place) if column else f"{place.file}:{place.line}")

    def _gutter(self, finding: Finding) -> int:
        """The width of the widest line number of the block."""
        source = source_of(self.view.report, finding.span.path)
        _, (last, _) = positions(self.view.report, finding.span)
        return len(str(min(last + 1, len(source.lines)))) if source else 1

    def _excerpt(self, finding: Finding, gutter: int) -> Iterator[Text]:
        source = source_of(self.view.report, finding.span.path)
        if source is None or not source.data:
            return
        bar = Text(f"{'':{gutter}} |", _FRAME)
        yield bar
        for row in excerpt(source, finding.span):
            number = "" if row.number is None else str(row.number)
            style = _STYLES[finding.severity] if row.marks else ""
            text = Text.assemble((f"{number:>{gutter}} |", _FRAME), " ", (row.text, style))
            text.rstrip()
            yield text
        yield bar

    def _help(self, finding: Finding, fix: Fix, gutter: int) -> Iterator[Text]:
        earlier = self.shown.get(fix.edits) if has_edits(fix) else None
        if earlier:
            yield Text.assemble(("help: ", "bold cyan"), f"one fix with {earlier}, shown there")
            return
        yield Text.assemble(("help: ", "bold cyan"), clean(fix.title))
        if has_edits(fix):
            self.shown[fix.edits] = f"{finding.code} at {self._place(finding.span)}"
            yield from self._changes(finding, fix, gutter)
        if fix.applicability is not Applicability.SAFE:
            label = "unsafe fix" if fix.applicability is Applicability.UNSAFE else "not applied by --fix"
            reason = f": {clean(fix.reason)}" if fix.reason else ""
            yield Text.assemble(("note: ", "bold"), label, reason)

    def _changes(self, finding: Finding, fix: Fix, gutter: int) -> Iterator[Text]:
        lines = 0
        for path in sorted({edit.span.path for edit in fix.edits}, key=lambda path: (path != finding.span.path, path)):
            source = source_of(self.view.report, path)
            if path != finding.span.path:
                yield Text.assemble(" " * gutter, ("--> ", _FRAME), clean(shown_path(path, self.view.base)))
            changes = patch(source, [edit for edit in fix.edits if edit.span.path == path]) if source else []
            yield from (_change(change, gutter) for change in changes[: max(MOST_CHANGES - lines, 0)])
            lines += len(changes)
        if lines > MOST_CHANGES:
            yield Text(f"{'':{gutter}} ... {lines - MOST_CHANGES} more lines, see --diff", "dim")


def _change(change: Change, gutter: int) -> Text:
    if not change.sign:
        return Text(f"{'':{gutter}} ...", "dim")
    number = "" if change.number is None else str(change.number)
    style = "red" if change.sign == "-" else "green"
    text = Text.assemble(f"{number:>{gutter}} ", (f"{change.sign} {clean(change.text)}", style))
    text.rstrip()
    return text


def _footer(view: View) -> Iterator[Text]:
    for line in summary.lines(view):
        if line.startswith(summary.FIXABLE):
            yield Text.assemble((summary.FIXABLE, "cyan"), line.removeprefix(summary.FIXABLE))
        else:
            yield Text(line, "bold" if line == summary.found(view.report, remaining=view.fixed is not None) else "")
    if view.report.findings:
        gravest = max(view.report.findings, key=lambda finding: finding.severity)
        yield Text(f"Why it matters and when not to follow: ldlm-lint explain {gravest.rule}")
