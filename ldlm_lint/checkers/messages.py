"""Rules and findings as pylint knows them: definitions of messages, and messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pylint.interfaces import HIGH, INFERENCE

from ldlm_lint.model import Confidence, Finding, Rule
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from pylint.lint import PyLinter
    from pylint.typing import MessageDefinitionTuple

DOCS = "https://github.com/ldlm-lint/ldlm-lint/blob/main/docs/rules.md"
_LINE_SCOPE = "line-based-msg"


def message_definitions(rules: Iterable[Rule]) -> dict[str, MessageDefinitionTuple]:
    """pylint's ``msgs`` for rules: template, symbol, description with the docs link, and the extra options."""
    return {
        rule.code: (
            rule.message,
            rule.symbol,
            f"{rule.rationale} See {DOCS}#{rule.symbol}".replace("%", "%%"),
            {
                "scope": _LINE_SCOPE,
                "default_enabled": rule.default,
                "old_names": [(rule.code, name) for name in rule.old_names],
            },
        )
        for rule in rules
    }


def add_message(linter: PyLinter, finding: Finding, source: Source) -> None:
    """Make a finding a message of pylint, which counts columns from 0 in UTF-8 bytes."""
    line, column = _utf8_position(source, finding.span.start)
    end_line, end_column = _utf8_position(source, finding.span.end)
    linter.add_message(
        finding.rule,
        line=line,
        col_offset=column,
        end_lineno=end_line,
        end_col_offset=end_column,
        args=dict(finding.args) or None,
        confidence=HIGH if finding.confidence is Confidence.HIGH else INFERENCE,
    )


def _utf8_position(source: Source, offset: int) -> tuple[int, int]:
    line, column = source.position(offset)
    return line, len(source.lines[line - 1][: column - 1].encode())
