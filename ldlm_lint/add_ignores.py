"""Writes suppression comments for findings, so that a repository can adopt a rule now and fix its old findings later.

A comment goes to the end of the finding's first line. Where that is impossible (a continued line, a multi-line string,
a line that would grow too long), it goes on its own line above that line or above the statement. In a ``.env`` file and
a Dockerfile a comment always has its own line, since after a value it would be part of the value. Each position is
tried: the code must be unchanged, token by token, and the comment must silence the finding. A finding without such a
position is reported and left alone; this includes all findings in JSON, which has no comments.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ldlm_lint.identity import folded
from ldlm_lint.model import Finding, Problem, Rule, Span
from ldlm_lint.notebooks.text import frozen
from ldlm_lint.pragmas import comments
from ldlm_lint.rules.linter import INTERNAL_ERROR, UNREADABLE_FILE
from ldlm_lint.source import Kind, Source, UnreadableError
from ldlm_lint.suppress import PRAGMA, suppressions

REASON = "reason: ..."
LONGEST = 120
_LINES_ABOVE = 80
_HOPELESS = frozenset({INTERNAL_ERROR.symbol, UNREADABLE_FILE.symbol})

_WHOLE = frozenset({"string", "heredoc_body"})

_Insertion = tuple[int, str]
"""A byte offset and what is inserted there."""


class Ignored(NamedTuple):
    """New contents of the files that got comments, how many findings these silence, and those without a place."""

    contents: Mapping[str, bytes]
    silenced: int
    problems: tuple[Problem, ...]


def add_ignores(findings: Iterable[Finding], sources: Mapping[str, Source], rules: Mapping[str, Rule]) -> Ignored:
    """The contents of all files once every finding has its comment; nothing is written. ``rules`` are by symbol."""
    by_file: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.rule not in _HOPELESS:
            by_file.setdefault(finding.span.path, []).append(finding)
    contents: dict[str, bytes] = {}
    problems: list[Problem] = []
    for path, found in sorted(by_file.items()):
        source = sources[path]
        after, left = _commented(source, sorted(found, key=lambda one: one.order), rules)
        if after.data != source.data:
            contents[path] = after.data
        problems += left
    return Ignored(contents, sum(map(len, by_file.values())) - len(problems), tuple(problems))


def _commented(source: Source, findings: list[Finding], rules: Mapping[str, Rule]) -> tuple[Source, list[Problem]]:
    current = source
    inserted: list[_Insertion] = []
    problems: list[Problem] = []
    for finding in findings:
        moved = finding._replace(span=_moved(finding.span, inserted))
        rule = rules[finding.rule]
        if suppressions(current).covers(moved, rule):
            continue
        placed = _placed(current, moved, rule)
        if placed is None:
            line, _ = source.shown(finding.span.start)
            text = f"no ignore comment for {finding.rule} is possible here without changing the code"
            if source.kind is Kind.JSON:
                text = f"JSON has no comments: silence {finding.rule} here with `per-file-ignores`"
            problems.append(Problem(source.path, line, text))
        else:
            current, insertion = placed
            inserted.append(insertion)
    return current, problems


def _moved(span: Span, inserted: Iterable[_Insertion]) -> Span:
    """A span after insertions, made one after the other."""
    for offset, text in inserted:
        size = len(text.encode("ascii"))
        start = span.start + size * (offset <= span.start)
        span = span._replace(start=start, end=span.end + size * (offset < span.end))
    return span


def _placed(source: Source, finding: Finding, rule: Rule) -> tuple[Source, _Insertion] | None:
    """The source with a comment at the first place that will do."""
    for offset, text in _places(source, finding, rule.symbol):
        data = source.data[:offset] + text.encode("ascii") + source.data[offset:]
        try:
            after = Source.from_bytes(source.path, data, source.kind)
        except UnreadableError:
            continue
        moved = finding._replace(span=_moved(finding.span, [(offset, text)]))
        if after.encoding == source.encoding and same_code(source, after) and suppressions(after).covers(moved, rule):
            return after, (offset, text)
    return None


def _places(source: Source, finding: Finding, name: str) -> Iterator[_Insertion]:
    """The positions where a comment may go, the best first."""
    first, _ = source.position(finding.span.start)
    yield from _in_pragmas(source, first, name)
    comment = f"# ldlm-lint: ignore[{name}] {REASON}"
    if source.kind is Kind.JSON:
        return
    behind = list(_behind(source, first, comment))
    too_long = len(source.lines[first - 1]) + 2 + len(comment) > LONGEST
    if not too_long:
        yield from behind
    for line in range(first, max(first - _LINES_ABOVE, 0), -1):
        text = source.lines[line - 1]
        if not text.startswith("#!") and not (line > 1 and _continues(source.lines[line - 2])):
            indent = text[: len(text) - len(text.lstrip(" \t"))]
            yield source.line_starts[line - 1], f"{indent}{comment}{source.newline}"
    if too_long:
        yield from behind


def _behind(source: Source, line: int, comment: str) -> Iterator[_Insertion]:
    text = source.lines[line - 1]
    if source.kind in (Kind.DOTENV, Kind.DOCKERFILE):
        return
    if text.strip() and not text.lstrip().startswith("#") and not _continues(text):
        blanks = " " * (2 - min(len(text) - len(text.rstrip(" ")), 2))
        yield source.line_starts[line - 1] + len(text.encode(source.encoding)), blanks + comment


def _continues(line: str) -> bool:
    """Whether a backslash joins the next line to this one; tree-sitter would not mind a comment there, bash would."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1 and not line.lstrip().startswith("#")


def _in_pragmas(source: Source, line: int, name: str) -> Iterator[_Insertion]:
    """The end of the list of names in each pragma that already applies to a line."""
    if b"ldlm-lint:" not in source.data:
        return
    for comment in comments(source):
        column = source.lines[comment.line - 1].find(comment.text)
        if not comment.first <= line <= comment.last or column < 0:
            continue
        for match in PRAGMA.finditer(comment.text):
            if match["names"] is not None and not match["file"]:
                before = source.lines[comment.line - 1][: column + match.end("names")]
                offset = source.line_starts[comment.line - 1] + len(before.encode(source.encoding))
                yield offset, f", {name}" if match["names"].strip() else name


def same_code(before: Source, after: Source) -> bool:
    """Whether two sources differ in comments and layout only."""
    if before.parts and frozen(before.data) != frozen(after.data):
        return False
    if before.kind is Kind.SHELL:
        return _shell_words(before) == _shell_words(after)
    if before.kind in (Kind.YAML, Kind.TOML) and (values := _values(before)) is not None:
        return _values(after) == values
    return folded(before.text, before.kind) == folded(after.text, after.kind) and _tree(before) == _tree(after)


def _values(source: Source) -> list[tuple[object, ...]] | None:
    """The keys and values of a document, None if it is not a mapping or sequence."""
    from ldlm_lint.configs.document import DocumentError
    from ldlm_lint.configs.read import read

    try:
        return [(one.document, one.path, one.shape, one.text, one.tag, one.shared) for one in read(source).entries]
    except DocumentError:
        return None


def _tree(source: Source) -> str:
    """The syntax of a Python file, empty if it has none."""
    if source.kind is not Kind.PYTHON:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.dump(ast.parse(source.text))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""


def _shell_words(source: Source) -> list[tuple[int, str, bytes]]:
    """Every word and sign of a script with its kind and depth, comments and line ends left out."""
    from ldlm_lint.shell import tree

    data = tree.without_carriage_returns(source.data[source.bom :])
    words: list[tuple[int, str, bytes]] = []
    waiting = [(tree.parse(data), 0)]
    while waiting:
        node, depth = waiting.pop()
        text = data[node.start_byte : node.end_byte]
        if node.type == "comment":
            continue
        if node.type in _WHOLE or (not node.children and (text.strip() or node.is_missing)):
            words.append((depth, node.type, text))
        waiting += [(child, depth + 1) for child in reversed(node.children)]
    return words
