"""Rules and findings in pylint's terms: message definitions and messages."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pylint.constants import MSG_TYPES
from pylint.interfaces import HIGH, INFERENCE
from pylint.utils import FileState

from ldlm_lint.model import Confidence, Finding, Rule, Severity
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import rule_url
from ldlm_lint.rules import by_symbol
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from pylint.interfaces import Confidence as Level
    from pylint.lint import PyLinter
    from pylint.typing import MessageDefinitionTuple

    from ldlm_lint.pylint_host.selection import Fault

_LINE_SCOPE = "line-based-msg"


def message_definitions(rules: Iterable[Rule]) -> dict[str, MessageDefinitionTuple]:
    """pylint's ``msgs`` for rules: template, symbol, description with the docs link, and the extra options.

    The template takes the whole text: pylint would show the fields of a longer one in its help.
    """
    return {
        rule.code: (
            "%s",
            rule.symbol,
            f"{rule.summary} {rule.rationale} See {rule_url(rule.symbol)}".replace("%", "%%"),
            {
                "scope": _LINE_SCOPE,
                "default_enabled": rule.default,
                # One checker declares all of them, whose ids pylint otherwise requires to be of one family.
                "shared": True,
                "old_names": [(rule.code, name) for name in rule.old_names],
            },
        )
        for rule in rules
    }


def add_message(linter: PyLinter, finding: Finding, source: Source, module: str) -> None:
    """Make a finding a message of pylint about any file, which counts columns from 0 in UTF-8 bytes and prints texts
    unchanged; the linter has selected and silenced it.

    A message has the letter of its rule; one at level info does not affect the exit status and the score.
    """
    turn_to(linter, module, finding.span.path)
    kind = MSG_TYPES[finding.code[0]]
    status, counted = linter.msg_status, getattr(linter.stats, kind)
    line, column = _utf8_position(source, finding.span.start)
    end_line, end_column = _utf8_position(source, finding.span.end)
    for definition in linter.msgs_store.get_message_definitions(finding.rule):
        linter.file_state.set_msg_status(definition, line, True, scope="line")
    linter.add_message(
        finding.rule,
        line=line,
        col_offset=column,
        end_lineno=end_line,
        end_col_offset=end_column,
        args=(_text(finding),),
        confidence=_confidence(finding),
    )
    if finding.severity is Severity.INFO and getattr(linter.stats, kind) > counted:
        linter.msg_status = status
        for name, number in ((kind, -1), ("info", 1)):
            linter.stats.increase_single_message_count(name, number)
            linter.stats.increase_single_module_message_count(linter.current_name, name, number)


def _text(finding: Finding) -> str:
    """The message of a finding, without control characters of the code that it quotes."""
    return by_symbol[finding.rule].text(tuple((name, clean(value) if isinstance(value, str) else value) for name, value in finding.args))


def _confidence(finding: Finding) -> Level:
    return HIGH if finding.confidence is Confidence.HIGH else INFERENCE


def add_fault(linter: PyLinter, fault: Fault) -> None:
    """Add a message about settings, at its line of the configuration file."""
    turn_to(linter, os.path.relpath(fault.path), fault.path)
    linter.add_message(fault.rule, line=fault.line or 1, args=(by_symbol[fault.rule].text(tuple(fault.args)),), confidence=HIGH)


@contextlib.contextmanager
def between_modules(linter: PyLinter) -> Iterator[None]:
    """Let messages be added about any file, and keep pylint's current module.

    Score, reports and the comparison with the last run depend on the state of the last module, and other checkers add
    messages to it when they are closed.
    """
    before = linter.file_state, linter.current_name, linter.current_file, linter.config
    try:
        yield
    finally:
        linter.file_state, linter.current_name, linter.current_file, linter.config = before


def turn_to(linter: PyLinter, module: str, path: str) -> None:
    """Make a file the current one, with its own state; the counts of its module are kept."""
    counted = linter.stats.by_module.get(module)
    linter.set_current_module(module, path)
    if counted is not None:
        linter.stats.by_module[module] = counted
    linter.file_state = FileState(module, linter.msgs_store)


def _utf8_position(source: Source, offset: int) -> tuple[int, int]:
    line, column = source.position(offset)
    return line, len(source.lines[line - 1][: column - 1].encode())
