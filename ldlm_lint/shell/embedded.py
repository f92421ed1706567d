"""Python inside a script: a here-document that python reads (``python - <<'EOF'``) and ``python -c '…'``.

Such code is linted like a file, at its real lines, and is a program of the project: what rests on other files is asked as of a
file that lies beside the script. A here-document that is written to a file or that the shell fills in is data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from ldlm_lint.model import Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.prefilter import rules_at_risk
from ldlm_lint.rules.linter import INTERNAL_ERROR, UNPARSABLE_FILE
from ldlm_lint.shell import launchers, tree
from ldlm_lint.shell.embedded_paths import as_of_script, inner_path, start_of
from ldlm_lint.shell.inner_shells import padding
from ldlm_lint.shell.launch_code import Code, codes
from ldlm_lint.shell.scanner import scan
from ldlm_lint.source import Kind, Source, UnreadableError

_PYTHON = lazily(r"(?:\S*/)?python[\d.]*")
_OPTION = lazily(r"-[bBdEiIOqsSuvx]+")
# A backslash in front of another character stays as it is.
_EXPANDED = lazily(rb"[$`]|\\[$`\\\n]")
_MAY_HOLD = lazily(rb"python[\w.]*\b[^\n]*(?:<<|[ \t]-c\b)")
_ABOUT_TRAINING = lazily(rb"torch|transformers|accelerate|lightning|deepspeed|environ")
_WRAPPERS = frozenset({"nohup", "time", "exec", "command", "env", "srun", "uv", "run", "poetry", "timeout"})


class Inner(NamedTuple):
    """A Python program ``[start, end)`` of a script's file; ``quote`` is what stands around it, ``source`` the program at its real places."""

    start: int
    end: int
    quote: str
    source: Source


def findings(code: Code, options: Mapping[str, object]) -> Iterator[Finding]:
    """The findings of the Python rules in the Python code of a script; those that the project decides are of the program's own path."""
    for inner in programs(code):
        at_risk = rules_at_risk(inner.source.data[inner.start :], Kind.PYTHON)
        if at_risk:
            from ldlm_lint.checkers.host import lint

            for finding in lint(inner.source, "__main__", options, at_risk).findings:
                yield from _kept(finding, inner.start, inner.end, inner.quote)


def programs(code: Code) -> Iterator[Inner]:
    """The Python programs in a script."""
    for start, end, quote in _stretches(code):
        data = code.text.data[start:end]
        first, last = start + code.source.bom, end + code.source.bom
        # With other line ends than the parser has seen the places would be wrong.
        if data == code.source.data[first:last]:
            path = inner_path(code.source.path, first)
            yield Inner(first, last, quote, Source(path, _before(code.source.data[:first]) + data, Kind.PYTHON))


def programs_in(path: str, data: bytes) -> dict[str, bytes]:
    """The Python programs in the script of some path that may hold what a rule is about, by the path that each has in the project."""
    if not _MAY_HOLD.search(data) or not _ABOUT_TRAINING.search(data):
        return {}
    try:
        source = Source.from_bytes(path, data, Kind.SHELL)
        if tree.problem_of(tree.without_carriage_returns(source.data)):
            return {}
        code = codes(source, scan(source))[0]
    except (UnreadableError, RecursionError):
        # Its own lint says so.
        return {}
    return {one.source.path: one.source.data for one in programs(code)}


def _before(data: bytes) -> bytes:
    """Python that does nothing in the place of what stands before the code, so that every offset stays the file's."""
    line = len(data) - data.rfind(b"\n") - 1
    blank = padding(data)
    return blank[:-line] + b"0" + b" " * (line - 2) + b";" if line > 1 else blank


def of_inner_program(finding: Finding, script: bytes, program: bytes) -> Iterator[Finding]:
    """A finding about a program inside of a script, as `programs_in` gives its text, at its place in the script."""
    start = start_of(finding.span.path)
    before = script[start - 1 : start].decode("latin-1")
    yield from _kept(finding._replace(claims=()), start, len(program), before if before in ("'", '"') else "")


def _kept(finding: Finding, start: int, end: int, quote: str) -> Iterator[Finding]:
    if finding.rule == UNPARSABLE_FILE.symbol:
        return
    if finding.rule == INTERNAL_ERROR.symbol:
        yield as_of_script(finding)
        return
    spans = [finding.span, *(edit.span for edit in finding.fix.edits)] if finding.fix else [finding.span]
    if any(span.start < start or span.end > end for span in spans):
        return
    if finding.fix and quote and any(quote in edit.text for edit in finding.fix.edits):
        finding = finding._replace(fix=None)
    yield finding if finding.claims else as_of_script(finding)


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
        elif not _EXPANDED.search(code.text.data, kind.start_byte, kind.end_byte) and b'\\"' not in code.text.data[kind.start_byte : kind.end_byte]:
            yield kind.start_byte + 1, kind.end_byte - 1, '"'


def _reads(code: Code, command: Node) -> Node | None:
    """The literal or the here-document that a command runs as Python."""
    written = tree.words(command)
    texts = [code.text.of_node(word) for word in written]
    index = next((place for place, text in enumerate(texts) if _PYTHON.fullmatch(text)), None)
    if index is None or not (_is_wrapped(texts[:index]) or launchers.launcher_of(texts) == "python"):
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


def _is_wrapped(texts: Sequence[str]) -> bool:
    """Whether words in front of python only start it: ``srun -n 1``, ``timeout 60``, ``env X=1``."""
    for before, text in zip(("", *texts), texts, strict=False):
        value = before.startswith("-") or before == "timeout" or "=" in text
        if text not in _WRAPPERS and not text.startswith("-") and not (before and value):
            return False
    return True


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
