"""Python inside a script: ``python - <<'EOF'``, ``python -c '…'``, and ``cat > train.py <<'EOF'`` where a launch runs
that file.

Such code is linted like a file, at its real lines, and is a program of the project: questions about other files treat
it as a file next to the script. Shell expansions are unknown values (`stand_ins`); a file that the script does not
start is data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from ldlm_lint.model import Finding
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.linter import INTERNAL_ERROR, UNPARSABLE_FILE
from ldlm_lint.shell import launchers, tree
from ldlm_lint.shell.embedded_paths import as_of_script, inner_path, start_of
from ldlm_lint.shell.inner_shells import padding
from ldlm_lint.shell.launch_code import Code, codes
from ldlm_lint.shell.scanner import scan
from ldlm_lint.shell.stand_ins import Filled, as_written, changes, filled
from ldlm_lint.shell.written_programs import is_started
from ldlm_lint.source import Kind, Source, UnreadableError

_PYTHON = lazily(r"(?:\S*/)?python[\d.]*")
_OPTION = lazily(r"-[bBdEiIOqsSuvx]+")
_MAY_HOLD = lazily(rb"python[\w.]*\b[^\n]*(?:<<|[ \t]-c\b)|\b(?:cat|tee)\b[^\n]*<<")
_ABOUT_TRAINING = lazily(rb"torch|transformers|accelerate|lightning|deepspeed|environ")
_WRAPPERS = frozenset({"nohup", "time", "exec", "command", "env", "srun", "uv", "run", "poetry", "timeout"})


class Inner(NamedTuple):
    """A Python program ``[start, end)`` of a script's file; ``quote`` is its quoting, ``source`` the program with real
    positions.

    ``written`` maps stand-ins to the script's text, see `stand_ins`.
    """

    start: int
    end: int
    quote: str
    source: Source
    written: Mapping[str, str]


class _Stretch(NamedTuple):
    """Python code ``[start, end)`` of a script's text; the shell ``fills`` it in, or does not change it."""

    start: int
    end: int
    quote: str = ""
    fills: bool = False


def programs(code: Code) -> Iterator[Inner]:
    """The Python programs in a script."""
    for one in _stretches(code):
        data = code.text.data[one.start : one.end]
        first, last = one.start + code.source.bom, one.end + code.source.bom
        # With different line ends than in the parser's text the positions would be wrong.
        if data != code.source.data[first:last]:
            continue
        python = filled(data) if one.fills and changes(data) else Filled(data, {})
        if python is not None:
            path = inner_path(code.source.path, first)
            yield Inner(first, last, one.quote, Source(path, _before(code.source.data[:first]) + python.data, Kind.PYTHON), python.written)


def programs_in(path: str, data: bytes) -> dict[str, bytes]:
    """The Python programs in the script at a path that may break a rule, by their paths in the project."""
    if not _MAY_HOLD.search(data) or not _ABOUT_TRAINING.search(data):
        return {}
    try:
        source = Source.from_bytes(path, data, Kind.SHELL)
        if tree.problem_of(tree.without_carriage_returns(source.data)):
            return {}
        code = codes(source, scan(source))[0]
    except (UnreadableError, RecursionError):
        # Its own lint reports that.
        return {}
    return {one.source.path: one.source.data for one in programs(code)}


def _before(data: bytes) -> bytes:
    """Python without effect instead of the text before the code, so that every offset stays the file's."""
    line = len(data) - data.rfind(b"\n") - 1
    blank = padding(data)
    return blank[:-line] + b"0" + b" " * (line - 2) + b";" if line > 1 else blank


def of_program(finding: Finding, script: bytes, program: bytes) -> Iterator[Finding]:
    """A finding of the linked program about a ``program`` inside a ``script``, at its place there; None if it exceeds
    the code."""
    path = finding.span.path
    start, end = start_of(path), len(program)
    quote = script[start - 1 : start].decode(errors="replace")
    written = {}
    if program[start:] != script[start:end]:
        python = filled(script[start:end])
        written = {} if python is None else dict(python.written)
    inner = Inner(start, end, quote if quote in "'\"" else "", Source(path, program, Kind.PYTHON), written)
    yield from map(as_of_script, kept(finding, inner))


def kept(finding: Finding, inner: Inner) -> Iterator[Finding]:
    """A finding of a program, at its place in the script; none where it, or its fix, exceeds the code."""
    if finding.rule == UNPARSABLE_FILE.symbol:
        return
    if finding.rule == INTERNAL_ERROR.symbol:
        yield as_of_script(finding)
        return
    spans = [finding.span, *(edit.span for edit in finding.fix.edits)] if finding.fix else [finding.span]
    spans = [span for span in spans if span.path == finding.span.path]
    if any(span.start < inner.start or span.end > inner.end for span in spans):
        return
    if finding.fix and inner.quote and any(inner.quote in edit.text for edit in finding.fix.edits):
        finding = finding._replace(fix=None)
    if inner.written:
        finding = as_written(finding, inner.written)
    yield finding if finding.claims else as_of_script(finding)


def _stretches(code: Code) -> Iterator[_Stretch]:
    """The Python code of a script."""
    if not _MAY_HOLD.search(code.text.data):
        return
    for command in code.nodes["command"]:
        kind = _reads(code, command)
        if kind is None:
            continue
        if kind.type == "heredoc_body":
            if not _is_indented(code, kind):
                yield _Stretch(kind.start_byte, kind.end_byte, fills=not _is_quoted(code, kind))
        elif kind.type == "raw_string":
            yield _Stretch(kind.start_byte + 1, kind.end_byte - 1, "'")
        elif b'\\"' not in code.text.data[kind.start_byte : kind.end_byte]:
            yield _Stretch(kind.start_byte + 1, kind.end_byte - 1, '"', fills=True)


def _reads(code: Code, command: Node) -> Node | None:
    """The literal or the here-document that a command runs as Python, or writes into a file that is run as Python."""
    written = tree.words(command)
    texts = [code.text.of_node(word) for word in written]
    if texts[:1] in (["cat"], ["tee"]):
        return _heredoc(code, command) if is_started(code, command) else None
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
    """The here-document of a command."""
    parent = command.parent
    if parent is None or parent.type != "redirected_statement":
        return None
    redirects = [child for child in parent.children if child.type == "heredoc_redirect"]
    if len(redirects) != 1:
        return None
    body = next((child for child in redirects[0].children if child.type == "heredoc_body"), None)
    return None if body is None or body.has_error else body


def _is_quoted(code: Code, body: Node) -> bool:
    """Whether the word that ends a here-document is quoted, so that the shell does not expand it."""
    siblings = body.parent.children if body.parent is not None else []
    return any(one.type == "heredoc_start" and code.text.of_node(one)[:1] in "'\"\\" for one in siblings)


def _is_indented(code: Code, body: Node) -> bool:
    """Whether ``<<-`` removes tabs."""
    return code.text.data[body.start_byte : body.start_byte + 1] == b"\t"
