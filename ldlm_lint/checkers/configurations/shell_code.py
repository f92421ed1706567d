"""The rules of scripts in the shell code of configuration files.

A rule reports here only if it reads configurations, and a fix is kept only if it stays inside the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ldlm_lint.configs.commands import Code
from ldlm_lint.model import Edit, Finding, Fix, Span
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.rules import by_symbol
from ldlm_lint.rules.environment_watchdog import HEARTBEAT
from ldlm_lint.source import Kind, Source

_OF_SHELLS = frozenset({"pipeline-hides-failure"})


def findings(source: Source, code: Code, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings of the shell rules about code in a configuration file."""
    if not rules_at_risk(code.data, Kind.SHELL):
        return
    # The reader of scripts is loaded only where there is something to read.
    from ldlm_lint.checkers.scripts.lint import lint

    script = code.source(source)
    for finding in lint(script, options).findings:
        if "cfg" not in by_symbol[finding.rule].reads or ((code.words or code.pipefail) and finding.rule in _OF_SHELLS):
            continue
        yield finding._replace(fix=_kept(source, code, finding.fix))


def _kept(source: Source, code: Code, fix: Fix | None) -> Fix | None:
    """The fix, if it stays inside of the code, leaves a part of it, and breaks neither its quotes nor its
    indentation.
    """
    if fix is None:
        return None
    start, end = code.start, len(code.data)
    edits = tuple(_moved(source, code, edit) for edit in fix.edits)
    if any(edit.span.start < start or edit.span.end > end for edit in edits):
        return None
    if fix.group and source.data.count(HEARTBEAT.encode()) > code.data.count(HEARTBEAT.encode()):
        # Its other half is in another part of the file, which is not visible here.
        return None
    if code.listed and not all(_stays_a_list(source.data, edit) for edit in edits):
        return None
    if not code.listed and not all(_fits(source.data, start, edit.text) for edit in edits):
        return None
    left = bytearray(code.data)
    for edit in sorted(edits, reverse=True):
        left[edit.span.start : edit.span.end] = edit.text.encode()
    return fix._replace(edits=edits) if bytes(left[start:]).strip() else None


def _moved(source: Source, code: Code, edit: Edit) -> Edit:
    """An insertion at the head of the script, which is the head of the file, as one at the head of a block of lines."""
    if edit.span.end >= code.start or edit.span.start != edit.span.end or not _in_lines(source.data, code.start):
        return edit
    line = source.data.rfind(b"\n", 0, code.start) + 1
    indent = source.data[line : code.start].decode()
    if indent.strip() or source.data.startswith(b"#!", code.start):
        return edit
    return Edit(Span(edit.span.path, code.start, code.start, edit.span.cell), edit.text + indent)


def _fits(data: bytes, start: int, text: str) -> bool:
    """Whether a text can be in code: in a block of lines after its indentation, elsewhere without line ends and
    quotes.
    """
    if not _in_lines(data, start):
        return re.search(r"[\"'\n]", text) is None
    indent = data[data.rfind(b"\n", 0, start) + 1 : start].decode()
    return all(line.startswith(indent) for line in text.split("\n")[1:] if line.strip())


def _in_lines(data: bytes, start: int) -> bool:
    """Whether code begins on its own line, as a literal block does."""
    return not data[data.rfind(b"\n", 0, start) + 1 : start].strip()


def _stays_a_list(data: bytes, edit: Edit) -> bool:
    """Whether a list of words remains a list after an edit: inside a word, or from one into another with the same
    quotes."""
    span = edit.span
    if not edit.text or re.search(r"\s", edit.text):
        return False
    before, after = data[span.start - 1 : span.start], data[span.end : span.end + 1]
    inside = re.search(rb"[\s\"',]", data[span.start : span.end]) is None
    return inside or before == after or not {before, after} & {b'"', b"'"}
