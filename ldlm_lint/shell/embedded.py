"""Python inside a script: a here-document that python reads (``python - <<'EOF'``) and ``python -c '…'``.

Such code is linted like a file, at its real lines. It belongs to no module of the project, so a finding that rests on
other files is dropped; a here-document that is written to a file or that the shell fills in is data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tree_sitter import Node

from ldlm_lint.model import Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.rules.linter import INTERNAL_ERROR, UNPARSABLE_FILE
from ldlm_lint.shell import tree
from ldlm_lint.shell.inner_shells import padding
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.source import Kind, Source

_PYTHON = lazily(r"(?:\S*/)?python[\d.]*")
_OPTION = lazily(r"-[bBdEiIOqsSuvx]+")
_EXPANDED = lazily(rb"[$`\\]")
_WRAPPERS = frozenset({"nohup", "time", "exec", "command", "env", "srun", "uv", "run", "poetry", "timeout"})
# What a stretch of Python answers for without a place in the project.
_OWN_CLAIMS = frozenset(
    {
        "stands-outside-tests",
        "environment-variable-unread",
        "variable-is-read-nowhere-else",
        "no-heartbeat-elsewhere-is-wrong",
        "process-group-takes-timeout",
    }
)


def findings(code: Code, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings of the Python rules in the Python code of a script."""
    for start, end, quote in _stretches(code):
        data = code.text.data[start:end]
        if data != code.source.data[start + code.source.bom : end + code.source.bom]:
            # Other line ends than the parser has seen: the places would be wrong.
            continue
        at_risk = rules_at_risk(data, Kind.PYTHON)
        if at_risk:
            from ldlm_lint.checkers.host import lint

            first, last = start + code.source.bom, end + code.source.bom
            source = Source(code.source.path, _before(code.source.data[:first]) + data, Kind.PYTHON)
            for finding in lint(source, "__main__", options, at_risk).findings:
                yield from _kept(finding, first, last, quote)


def _before(data: bytes) -> bytes:
    """Python that does nothing in the place of what stands before the code, so that every offset stays the file's."""
    line = len(data) - data.rfind(b"\n") - 1
    blank = padding(data)
    return blank[:-line] + b"0" + b" " * (line - 2) + b";" if line > 1 else blank


def _kept(finding: Finding, start: int, end: int, quote: str) -> Iterator[Finding]:
    if finding.rule == UNPARSABLE_FILE.symbol or any(claim.kind not in _OWN_CLAIMS for claim in finding.claims):
        return
    if finding.rule == INTERNAL_ERROR.symbol:
        yield finding
        return
    spans = [finding.span, *(edit.span for edit in finding.fix.edits)] if finding.fix else [finding.span]
    if any(span.start < start or span.end > end for span in spans):
        return
    if finding.fix and quote and any(quote in edit.text for edit in finding.fix.edits):
        finding = finding._replace(fix=None)
    yield finding


def _stretches(code: Code) -> Iterator[tuple[int, int, str]]:
    """The Python code of a script: where it is, and the quote around it."""
    if b"python" not in code.text.data:
        return
    for command in code.nodes["command"]:
        kind = _reads(code, command)
        if kind is None:
            continue
        if kind.type == "heredoc_body":
            if not _is_indented(code, kind):
                yield kind.start_byte, kind.end_byte, ""
        elif kind.type == "raw_string":
            yield kind.start_byte + 1, kind.end_byte - 1, "'"
        elif not _EXPANDED.search(code.text.data, kind.start_byte, kind.end_byte):
            yield kind.start_byte + 1, kind.end_byte - 1, '"'


def _reads(code: Code, command: Node) -> Node | None:
    """The literal or the here-document that a command runs as Python."""
    written = tree.words(command)
    texts = [code.text.of_node(word) for word in written]
    index = next((place for place, text in enumerate(texts) if _PYTHON.fullmatch(text)), None)
    if index is None or any(text not in _WRAPPERS and not text.startswith("-") for text in texts[:index]):
        return None
    index += 1
    while index < len(texts) and _OPTION.fullmatch(texts[index]):
        index += 1
    if texts[index : index + 1] == ["-c"]:
        literal = written[index + 1] if index + 1 < len(written) else None
        return literal if literal is not None and literal.type in ("raw_string", "string") else None
    if texts[index : index + 1] not in ([], ["-"]):
        return None
    return _heredoc(code, command)


def _heredoc(code: Code, command: Node) -> Node | None:
    """The here-document of a command, if the shell changes nothing in it."""
    parent = command.parent
    if parent is None or parent.type != "redirected_statement":
        return None
    redirects = [child for child in parent.children if child.type == "heredoc_redirect"]
    if len(redirects) != 1:
        return None
    parts = {child.type: child for child in redirects[0].children}
    start, body = parts.get("heredoc_start"), parts.get("heredoc_body")
    if start is None or body is None or body.has_error:
        return None
    quoted = code.text.of_node(start)[:1] in "'\"\\"
    return body if quoted or not _EXPANDED.search(code.text.data, body.start_byte, body.end_byte) else None


def _is_indented(code: Code, body: Node) -> bool:
    """Whether ``<<-`` takes tabs away."""
    return code.text.data[body.start_byte : body.start_byte + 1] == b"\t"
