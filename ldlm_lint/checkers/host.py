"""The light host: drives the checkers over a light tree without pylint's linter.

It stands in for ``PyLinter`` with the few members that checkers and ``ASTWalker`` touch; on the 36 files of one
repository that hold a trigger it costs 0.5 s of CPU where the ``PyLinter`` API costs 2.0 s.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from astroid import nodes
from pylint.utils import ASTWalker

from ldlm_lint.checkers import CHECKERS
from ldlm_lint.model import FileResult, Finding
from ldlm_lint.python.flow import summarize
from ldlm_lint.python.skim import Skim
from ldlm_lint.python.tree import parse
from ldlm_lint.rules.linter import UNPARSABLE_FILE
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from pylint.config.arguments_provider import _ArgumentsProvider


class Host:
    """What a checker sees as its linter while one file is visited; without ``fixes`` findings carry none."""

    def __init__(self, source: Source, options: Mapping[str, object], *, fixes: bool = True) -> None:
        self.config = argparse.Namespace()
        self.ldlm_fixes = fixes
        self.ldlm_source = source
        self.ldlm_options = options
        self.findings: list[Finding] = []

    def ldlm_report(self, finding: Finding) -> None:
        """Take a finding from a checker."""
        self.findings.append(finding)

    def is_message_enabled(self, _message: str, _line: int | None = None) -> bool:
        """Every rule runs; the engine selects afterwards, since a fix may hang on a rule that is not shown."""
        return True

    def _register_options_provider(self, provider: _ArgumentsProvider) -> None:
        """Checkers register pylint options in their constructor; ours are read from ``[tool.ldlm-lint]``."""


def lint(
    source: Source, module_name: str, options: Mapping[str, object], at_risk: Collection[str] | None = None
) -> FileResult:
    """The findings of one Python file, those that wait for the project's facts among them.

    Only checkers with a rule ``at_risk`` (symbols) run; None runs all of them.
    """
    parsed = parse(source, module_name)
    # A file that does not parse cannot be shown to parse after an edit either.
    host = Host(source, options, fixes=not parsed.error_line)
    if parsed.module is not None:
        walk(parsed.module, host, at_risk)
    if parsed.error_line:
        host.ldlm_report(_syntax_error(source, parsed.error_line, parsed.error))
    findings = tuple(sorted(host.findings, key=lambda finding: finding.order))
    matters = parsed.module is not None and (Skim(source.data).trains or any(one.claims for one in findings))
    flow = summarize(parsed.module, source.path, complete=not parsed.error_line) if matters else None
    return FileResult(source.path, findings, flow=flow)


def walk(module: nodes.Module, host: Host, at_risk: Collection[str] | None = None) -> None:
    """Send every node of a tree to the checkers, or to those with a rule at risk only."""
    walker = ASTWalker(host)  # type: ignore[arg-type]
    for checker in CHECKERS:
        if at_risk is not None and not any(rule.symbol in at_risk for rule in checker.rules):
            continue
        walker.add_checker(checker(host))  # type: ignore[arg-type]
    walker.walk(module)


def _syntax_error(source: Source, line: int, message: str) -> Finding:
    line = min(line, len(source.lines))
    text = source.lines[line - 1]
    start = len(text) - len(text.lstrip())
    span = source.span_of(line, start, line, max(len(text.encode()), start))
    return Finding(UNPARSABLE_FILE.symbol, UNPARSABLE_FILE.code, span, (("error", message), ("checked", "only what stands before it was checked")))
