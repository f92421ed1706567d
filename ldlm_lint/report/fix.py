"""One fix as shown for a decision: its finding, its effect, its safety, the findings that share it, and its diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from ldlm_lint.autofix.diff import patch_base, unified_diff
from ldlm_lint.model import Applicability, Finding, Fix, Report, Rule
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import positions, shown_path, source_of
from ldlm_lint.report.console import console_of
from ldlm_lint.report.full import finding_lines
from ldlm_lint.report.lines import Line, line, styled

_LEVELS = {
    Applicability.SAFE: ("safe fix", "green"),
    Applicability.UNSAFE: ("unsafe fix", "yellow"),
}
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def write_fix(
    report: Report,
    findings: Sequence[Finding],
    after: Mapping[str, bytes],
    stream: TextIO,
    *,
    base: Path,
    rules: Mapping[str, Rule],
    title: str,
) -> None:
    """Show the fix that ``findings`` share and that makes ``after`` of its files; ``title`` says which one it is."""
    first, fix = findings[0], findings[0].fix
    if fix is None:
        raise ValueError("findings without a fix")
    console = console_of(stream)
    lines = [
        *finding_lines(report, first, base=base, rules=rules),
        line((f"{title}: ", "bold cyan"), clean(fix.title)),
        _level(fix),
        *([line(("trade", "bold yellow"), f": {fix.trade}")] if fix.trade else []),
        *_sharing(report, findings[1:], base),
        *_diff(report, after, base),
    ]
    console.print(styled(lines), soft_wrap=True)


def _level(fix: Fix) -> Line:
    label, style = _LEVELS[fix.applicability]
    return line((label, f"bold {style}"), f": {clean(fix.reason)}" if fix.reason else "")


def _sharing(report: Report, others: Sequence[Finding], base: Path) -> Iterator[Line]:
    for one in others:
        (number, column), _ = positions(report, one.span)
        place = f"{clean(shown_path(one.span.path, base))}:{number}:{column}"
        yield line(("also for: ", "bold"), f"{one.code} {one.rule} at {place}")


def _diff(report: Report, after: Mapping[str, bytes], base: Path) -> Iterator[Line]:
    top = patch_base(base)
    for path in sorted(after):
        source = source_of(report, path)
        if source is None:
            continue
        patch = unified_diff(top, {path: source.data}, {path: after[path]}).split(b"\n")[1:-1]
        for number, row in enumerate(patch):
            text = clean(row.decode(source.encoding, errors="replace").removesuffix("\r"))
            style = "bold" if number < 2 else _STYLES.get(text[:1], "")
            yield line((text, style))
