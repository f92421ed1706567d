"""The whole output for each fixture case, kept in one file per rule: ``tests/fixtures/<rule>/expected.out``.

Every case has a section there: each finding with its place, level, confidence and message, its related places, and the
title, level, reason and changed lines of its fix. ``python -m pytest tests/test_rules.py --update`` writes what the
engine says now; read the difference before you commit it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

from harness import FIXTURES, SNAPSHOT, Case

from ldlm_lint.files.edited import apply_edits
from ldlm_lint.model import Finding, Fix, Report
from ldlm_lint.rules import by_symbol

_HEAD = re.compile(r"^== (\S+)\n", re.M)


class Snapshots:
    """The recorded sections of all rules; with ``update`` what differs is recorded instead of reported."""

    def __init__(self, update: bool) -> None:
        self.update = update
        self._recorded: dict[str, dict[str, str]] = {}

    def of(self, case: Case) -> str:
        """What is recorded for a case, empty if nothing is."""
        return self._sections(case.symbol).get(case.path.name, "")

    def record(self, case: Case, text: str) -> None:
        """Keep the text of a case, for `write`."""
        self._sections(case.symbol)[case.path.name] = text

    def write(self, cases: list[Case]) -> None:
        """Write every rule's file; sections of cases that are gone go."""
        names = {(case.symbol, case.path.name) for case in cases}
        for symbol, sections in self._recorded.items():
            left = {name: text for name, text in sections.items() if (symbol, name) in names}
            text = "".join(f"== {name}\n{left[name]}" for name in sorted(left))
            (FIXTURES / symbol / SNAPSHOT).write_text(text, encoding="utf-8")

    def without_case(self, cases: list[Case]) -> list[tuple[str, str]]:
        """The sections that belong to no case: (rule, name)."""
        names = {(case.symbol, case.path.name) for case in cases}
        recorded = ((symbol, name) for symbol in {case.symbol for case in cases} for name in self._sections(symbol))
        return sorted(set(recorded) - names)

    def _sections(self, symbol: str) -> dict[str, str]:
        if symbol not in self._recorded:
            path = FIXTURES / symbol / SNAPSHOT
            parts = _HEAD.split(path.read_text(encoding="utf-8"))[1:] if path.exists() else []
            self._recorded[symbol] = dict(zip(parts[::2], parts[1::2], strict=True))
        return self._recorded[symbol]


def rendered(root: Path, report: Report) -> str:
    """The findings of a report on a case in its project at ``root``, as lines of text."""
    lines = (line for finding in sorted(report.findings, key=lambda one: one.order) for line in _lines(root, report, finding))
    return "".join(f"{line}\n" for line in lines)


def _lines(root: Path, report: Report, finding: Finding) -> Iterator[str]:
    rule = by_symbol[finding.rule]
    line, column = report.sources[finding.span.path].position(finding.span.start)
    said = f"{rule.symbol} {finding.severity.name.lower()}, confidence {finding.confidence.name.lower()}"
    yield f"{_relative(root, finding.span.path)}:{line}:{column} {said}"
    yield f"  {rule.text(finding.args)}"
    if finding.standing is not None:
        yield f"  standing {finding.standing}"
    for related in finding.related:
        number = Path(related.span.path).read_bytes().count(b"\n", 0, related.span.start) + 1
        yield f"  related {_relative(root, related.span.path)}:{number} {related.message}"
    if finding.fix is not None:
        yield from _of_fix(root, report, finding.fix)


def _of_fix(root: Path, report: Report, fix: Fix) -> Iterator[str]:
    reason = f" ({fix.reason})" if fix.reason else ""
    yield f"  fix {fix.applicability.name.lower()}: {fix.title}{reason}"
    for path in sorted({edit.span.path for edit in fix.edits}):
        source = report.sources[path]
        after = apply_edits(source.data, [edit for edit in fix.edits if edit.span.path == path], source.encoding)
        before, new = (data.decode(source.encoding, "replace").splitlines() for data in (source.data, after))
        changed = [line for line in difflib.unified_diff(before, new, n=0, lineterm="") if line[:2] not in ("--", "++")]
        yield f"    {_relative(root, path)}"
        yield from (f"    {line}".rstrip() for line in changed)


def _relative(root: Path, path: str) -> str:
    return Path(path).relative_to(root).as_posix() if Path(path).is_relative_to(root) else path
