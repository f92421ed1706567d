"""The text format: one block for each finding in the manner of ruff, and a footer with the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from rich.console import Console
from rich.text import Text

from ldlm_lint.model import Applicability, Edit, Finding, Fix, Report, Rule, Severity, Span
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import (
    fixable,
    has_edits,
    is_open,
    positions,
    settling,
    severities,
    shown_path,
    source_of,
    verdicts,
)
from ldlm_lint.report.excerpt import excerpt
from ldlm_lint.report.patch import Change, patch

MOST_CHANGES = 24
_STYLES = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.REFACTOR: "blue", Severity.INFO: "cyan"}
_FRAME = "blue"


@dataclass(frozen=True, slots=True)
class Fixed:
    """What a run did before the report was made: how many findings it fixed or silenced, in how many files."""

    findings: int
    files: int
    done: str = "Fixed"


class _Console(Console):
    """A console that leaves a closed pipe to the caller, who decides about the exit code."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def write(
    report: Report,
    stream: TextIO,
    *,
    base: Path,
    rules: Mapping[str, Rule],
    unsafe: bool = False,
    quiet: bool = False,
    fixed: Fixed | None = None,
) -> None:
    """Write a report to a stream, in colour where it is a terminal and NO_COLOR is not set.

    ``rules`` are by symbol, ``unsafe`` says that ``--unsafe-fixes`` was given, ``quiet`` leaves out the footer and the
    commands that would settle findings.
    Lines are never wrapped: what is long the terminal breaks by itself, and a pipe gets whole lines.
    """
    console = console_of(stream)
    blocks = _Blocks(report, base, rules, unsafe, quiet)
    for finding in report.findings:
        console.print(_joined(blocks.lines(finding)), soft_wrap=True)
        console.print()
    if not quiet:
        console.print(_joined(_footer(report, unsafe, fixed)), soft_wrap=True)


def console_of(stream: TextIO) -> Console:
    """What writes styled lines to a stream as they are, in colour where it is a terminal."""
    return _Console(file=stream, highlight=False, markup=False, emoji=False)


def finding_lines(report: Report, finding: Finding, *, base: Path, rules: Mapping[str, Rule]) -> Iterator[Text]:
    """The lines of one finding as the report shows them, without its fix."""
    yield from _Blocks(report, base, rules, True).finding(finding)


def _joined(lines: Iterator[Text]) -> Text:
    return Text("\n").join(lines)


@dataclass(frozen=True)
class _Blocks:
    """The blocks of one report; ``shown`` remembers the fixes that a block has spelt out already."""

    report: Report
    base: Path
    rules: Mapping[str, Rule]
    unsafe: bool
    quiet: bool = False
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
        command = settling(self.report, finding, self.rules[finding.rule], self.base)
        if command is not None and is_open(finding) and not self.quiet:
            yield Text.assemble(("probe: ", "bold magenta"), f"settle it with {clean(command)}")

    def _head(self, finding: Finding) -> Text:
        style = f"bold {_STYLES[finding.severity]}"
        mark = Text("[*]", "cyan") if self._applies(finding.fix) else Text()
        message = clean(self.rules[finding.rule].text(finding.args))
        return Text.assemble((finding.code, style), mark, " ", (finding.rule, "bold"), f": {message}")

    def _applies(self, fix: Fix | None) -> bool:
        """Whether the flags at hand would apply a fix."""
        limit = Applicability.UNSAFE if self.unsafe else Applicability.SAFE
        return fix is not None and has_edits(fix) and fix.applicability >= limit

    def _place(self, span: Span, *, column: bool = True) -> str:
        (line, character), _ = positions(self.report, span)
        place = f"{clean(shown_path(span.path, self.base))}:{line}"
        return f"{place}:{character}" if column else place

    def _gutter(self, finding: Finding) -> int:
        """The width of the widest line number of the block."""
        source = source_of(self.report, finding.span.path)
        _, (last, _) = positions(self.report, finding.span)
        return len(str(min(last + 1, len(source.lines)))) if source else 1

    def _excerpt(self, finding: Finding, gutter: int) -> Iterator[Text]:
        source = source_of(self.report, finding.span.path)
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
            source = source_of(self.report, path)
            if path != finding.span.path:
                yield Text.assemble(" " * gutter, ("--> ", _FRAME), clean(shown_path(path, self.base)))
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


def _footer(report: Report, unsafe: bool, fixed: Fixed | None) -> Iterator[Text]:
    if fixed is not None:
        yield Text(f"{fixed.done} {_count(fixed.findings, 'finding')} in {_count(fixed.files, 'file')}.")
    yield Text(_found(report, fixed is not None), "bold")
    hint = _fixable(report, unsafe)
    if hint:
        yield Text.assemble(("[*]", "cyan"), hint)
    yield Text(", ".join(_counts(report)) + ".")
    gone = sum(count for _, count in report.stale)
    if gone:
        yield Text(f"{_count(gone, 'known finding')} of the baseline gone, see ldlm-lint baseline --update")
    if report.findings:
        gravest = max(report.findings, key=lambda finding: finding.severity)
        yield Text(f"Why it matters and when not to follow: ldlm-lint explain {gravest.rule}")


def _found(report: Report, remaining: bool) -> str:
    total = len(report.findings)
    if not total:
        return "No findings remain." if remaining else "No findings."
    words = (
        (count, severity.label if severity is Severity.INFO else severity.label + ("s" if count != 1 else ""))
        for severity, count in severities(report.findings).items()
    )
    listed = ", ".join(f"{count} {word}" for count, word in words if count)
    verb = "remain" if total > 1 else "remains"
    return (
        f"{_count(total, 'finding')} {verb} ({listed})."
        if remaining
        else f"Found {_count(total, 'finding')} ({listed})."
    )


def _fixable(report: Report, unsafe: bool) -> str:
    """The hint at the flags that would fix something, empty where none would."""
    safe = fixable(report.findings, Applicability.SAFE)
    more = fixable(report.findings, Applicability.UNSAFE)
    if unsafe:
        return f" {safe + more} fixable with --fix --unsafe-fixes." if safe + more else ""
    parts = [f" {safe} fixable with --fix"] if safe else []
    parts += [f" {more} {'more' if safe else 'fixable'} with --fix --unsafe-fixes"] if more else []
    return f"{','.join(parts)}." if parts else ""


def _counts(report: Report) -> Iterator[str]:
    yield f"{_count(report.files, 'file')} read"
    if report.suppressed:
        yield f"{_count(report.suppressed, 'finding')} suppressed"
    if report.baselined:
        yield f"{_count(report.baselined, 'finding')} known from the baseline"
    if report.unchanged:
        yield f"{_count(report.unchanged, 'finding')} on unchanged lines"
    if report.unseen:
        yield f"{_count(report.unseen, 'stretch', 'stretches')} of scripts and configurations not understood"
    if report.excluded:
        yield f"{_count(report.excluded, 'named path')} excluded"
    if report.problems:
        yield f"{_count(len(report.problems), 'problem')}"
    if report.evidence is not None:
        settled = {word: count for word, count in verdicts(report).items() if count}
        listed = ", ".join(f"{count} {word}" for word, count in settled.items()) or "no verdict on them"
        yield f"probe: {listed}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
