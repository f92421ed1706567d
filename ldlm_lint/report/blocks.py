"""The parts of a finding on a terminal: place, source lines, related places, evidence, fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ldlm_lint.model import Applicability, Edit, Finding, Fix, Severity, Span
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import has_edits, positions, shown_path, source_of
from ldlm_lint.report.consequences import COSTLY, GRAVE, MINOR, tone
from ldlm_lint.report.excerpt import BRIEF, WHOLE, excerpt
from ldlm_lint.report.lines import Line, Piece, line, stripped
from ldlm_lint.report.patch import Change, patch
from ldlm_lint.report.summary import count
from ldlm_lint.report.view import View

_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.REFACTOR: "blue", Severity.INFO: "cyan"}
_STYLES_OF_TONES = {GRAVE: "bold red", COSTLY: "bold yellow", MINOR: "bold cyan"}
MOST_CHANGES, MOST_CHANGES_BRIEF = 24, 6
_FRAME = "blue"


@dataclass(frozen=True)
class Blocks:
    """The blocks of one report; ``shown`` are the fixes already shown in full.

    A ``brief`` finding shows only the marked source lines, and less of a long fix.
    """

    view: View
    brief: bool = False
    shown: dict[tuple[Edit, ...], str] = field(default_factory=dict)

    def lines(self, finding: Finding) -> Iterator[Line]:
        """The lines of one finding below its headline: place, source and fix."""
        yield from self.found(finding)
        if finding.fix is not None:
            yield from self._help(finding, finding.fix, self._gutter(finding))

    def found(self, finding: Finding) -> Iterator[Line]:
        """The lines of one finding below its headline, without its fix."""
        gutter = self._gutter(finding)
        yield line(" " * gutter, ("--> ", _FRAME), self.place(finding.span))
        yield from self._excerpt(finding, gutter)
        for related in finding.related:
            place = self.place(related.span, column=False)
            yield line(" " * gutter, ("::: ", _FRAME), f"{place} {clean(related.message)}")
        if finding.why_minor:
            yield line(("note: ", "bold"), clean(f"level info: {finding.why_minor}" if finding.standing is None else finding.why_minor))
        if finding.evidence is not None:
            yield line(("probe: ", "bold magenta"), clean(finding.evidence.words))

    def headline(self, finding: Finding) -> Line:
        """The consequence, code, name and message of one finding."""
        mark = ("[*]", "cyan") if self.view.applies(finding.fix) else ""
        message = clean(self.view.message(finding))
        return line(self.word(finding), " ", finding.code, mark, " ", (finding.rule, "bold"), f": {message}")

    def word(self, finding: Finding) -> Piece:
        """The consequence of a finding, coloured by severity; below its rule's level only "info"."""
        if finding.severity < self.view.rules[finding.rule].severity:
            return finding.severity.label, f"bold {_STYLES[finding.severity]}"
        consequence = self.view.rules[finding.rule].consequence
        return consequence.value, _STYLES_OF_TONES[tone(consequence)]

    def place(self, span: Span, *, column: bool = True) -> str:
        """The place of a span, safe for a terminal."""
        place = self.view.place(span)
        return clean(str(place) if column else f"{place.file}:{place.line}")

    def _gutter(self, finding: Finding) -> int:
        """The width of the widest line number of the block."""
        source = source_of(self.view.report, finding.span.path)
        _, (last, _) = positions(self.view.report, finding.span)
        return len(str(min(last + 1, len(source.lines)))) if source else 1

    def _excerpt(self, finding: Finding, gutter: int) -> Iterator[Line]:
        source = source_of(self.view.report, finding.span.path)
        if source is None or not source.data:
            return
        bar = [] if self.brief else [line((f"{'':{gutter}} |", _FRAME))]
        yield from bar
        for row in excerpt(source, finding.span, BRIEF if self.brief else WHOLE):
            number = "" if row.number is None else str(row.number)
            style = _STYLES[finding.severity] if row.marks else ""
            yield stripped(line((f"{number:>{gutter}} |", _FRAME), " ", (row.text, style)))
        yield from bar

    def _help(self, finding: Finding, fix: Fix, gutter: int) -> Iterator[Line]:
        earlier = self.shown.get(fix.edits) if has_edits(fix) else None
        if earlier:
            yield line(("help: ", "bold cyan"), f"{earlier} has the same fix, shown above")
            return
        yield line(("help: ", "bold cyan"), clean(fix.title))
        if has_edits(fix):
            self.shown[fix.edits] = f"{finding.code} at {self.place(finding.span)}"
            yield from self._changes(finding, fix, gutter)
        if fix.applicability is not Applicability.SAFE:
            label = "unsafe fix" if fix.applicability is Applicability.UNSAFE else "not applied by --fix"
            reason = f": {clean(fix.reason)}" if fix.reason else ""
            yield line(("note: ", "bold"), label, reason)
        if fix.trade:
            yield line(("note: ", "bold"), f"this fix trades {fix.trade}: use --interactive to decide, or --unsafe-fixes --select {finding.rule} to apply it")

    def _changes(self, finding: Finding, fix: Fix, gutter: int) -> Iterator[Line]:
        most, lines = MOST_CHANGES_BRIEF if self.brief else MOST_CHANGES, 0
        for path in sorted({edit.span.path for edit in fix.edits}, key=lambda path: (path != finding.span.path, path)):
            source = source_of(self.view.report, path)
            if path != finding.span.path:
                yield line(" " * gutter, ("--> ", _FRAME), clean(shown_path(path, self.view.base)))
            changes = patch(source, [edit for edit in fix.edits if edit.span.path == path]) if source else []
            yield from (_change(change, gutter) for change in changes[: max(most - lines, 0)])
            lines += len(changes)
        if lines > most:
            yield line((f"{'':{gutter}} ... {count(lines - most, 'more line')}, see --diff", "dim"))


def _change(change: Change, gutter: int) -> Line:
    if not change.sign:
        return line((f"{'':{gutter}} ...", "dim"))
    number = "" if change.number is None else str(change.number)
    style = "red" if change.sign == "-" else "green"
    return stripped(line(f"{number:>{gutter}} ", (f"{change.sign} {clean(change.text)}", style)))
