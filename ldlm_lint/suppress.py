"""Suppression: which findings a comment in the source silences.

``# ldlm-lint: ignore[name, W7201] reason`` silences these rules, ``# ldlm-lint: ignore`` all of them. At the end of a
line it applies to that line; after the last line of a statement to the whole statement (in a shell script a continued
command has no other position for it); alone on its line to the next statement, with any number of comments and blank
lines in between. With names it silences a finding on any of the finding's lines, without names on the first or last
line only, so that a bare pragma inside a class does not silence findings about the class. ``# ldlm-lint:
ignore-file[name]`` silences these rules (without names: all) in the file, from any line. ``# noqa: W7604, W7105
reason`` silences the rules of ours among the codes, numbers and names, on the lines that ``ldlm-lint: ignore`` would
apply to. A bare ``# noqa`` is meant for other linters and silences nothing here. ``# pylint: disable=name``,
``disable-next=``, ``enable=``, ``skip-file`` work in Python as in pylint: after a statement for that line, alone on a
line for the rest of the block, before the first statement of a function or class for all of it. As in pylint, only a
finding's first line counts.

Names, codes, their numbers and old names are equivalent; a pragma that names no rule silences nothing, nor does
``ignore[]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.model import Finding, Rule, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.pragmas import Comment, comments
from ldlm_lint.source import Kind, Source

if TYPE_CHECKING:
    from ldlm_lint.pylint_pragmas import PylintPragmas

MARK = b"ldlm-lint:"
NOQA_MARKS = (b"noqa", b"NOQA")
PRAGMA = lazily(r"#\s*ldlm-lint:\s*ignore(?P<file>-file)?(?:\[(?P<names>[^\]]*)\]|(?![\w\[-]))")
_NOQA = r"#[ \t]*noqa[ \t]*:[ \t]*(?P<names>[\w-]+(?:(?:[ \t]*,[ \t]*|[ \t]+)[\w-]+)*)"
NOQA = lazily(_NOQA, re.I)
_NOQA_IN_BYTES = lazily(_NOQA.encode(), re.I)
BARE_NOQA = lazily(r"#[ \t]*noqa\b(?![ \t]*:)", re.I)
# A possible code, number or name of ours; codes with three digits or several letters belong to other linters.
_OURS = lazily(r"[EWRI]?\d{4}|[a-z]+(?:-[a-z0-9]+)+", re.I)
_BETWEEN = lazily(r"[,\s]+")


class Pragma(NamedTuple):
    """One comment that silences: the lines it applies to (1-based, inclusive) and the names, None for all.

    ``match`` is its match in the text of ``comment``; with ``noqa`` a match of `NOQA`.
    """

    first: int
    last: int
    names: frozenset[str] | None
    comment: Comment
    match: re.Match[str]
    noqa: bool = False

    @property
    def listed(self) -> list[str]:
        """The names in the order in which they are written; for a ``noqa`` those that may be ours."""
        if self.noqa:
            return _ours(self.match["names"])
        return [name.strip() for name in (self.match["names"] or "").split(",") if name.strip()]

    def span(self, source: Source) -> Span:
        """The bytes of the pragma."""
        return self.part(source, *self.match.span())

    def part(self, source: Source, first: int, last: int) -> Span:
        """The bytes of some characters of the comment."""
        line = source.lines[self.comment.line - 1]
        column = max(line.rfind(self.comment.text), 0)
        start = source.line_starts[self.comment.line - 1]
        ends = (len(line[: column + end].encode(source.encoding)) for end in (first, last))
        return source.span(*(start + end for end in ends))

    def names_rule(self, rule: Rule) -> bool:
        """Whether the pragma mentions a rule by any of its names."""
        return self.names is None or any(rule.is_called(name) for name in self.names)


class Suppressions(NamedTuple):
    """The pragmas of one file."""

    source: Source
    file: tuple[Pragma, ...] = ()
    lines: tuple[Pragma, ...] = ()
    noqa: tuple[Pragma, ...] = ()
    pylint: PylintPragmas | None = None

    def covers(self, finding: Finding, rule: Rule) -> bool:
        """Whether a finding of ``rule`` in this file is silenced."""
        if any(self.covering(finding, rule)):
            return True
        return self.pylint is not None and self.pylint.disables(rule, self.source.position(finding.span.start)[0])

    def covering(self, finding: Finding, rule: Rule) -> Iterator[Pragma]:
        """The comments that silence a finding, but for pylint's."""
        yield from (pragma for pragma in self.file if pragma.names_rule(rule))
        if not self.lines and not self.noqa:
            return
        first, _ = self.source.position(finding.span.start)
        last, _ = self.source.position(max(finding.span.end - 1, finding.span.start))
        yield from (pragma for pragma in (*self.lines, *self.noqa) if pragma.names_rule(rule) and _touches(pragma, first, last))


def suppressions(source: Source) -> Suppressions:
    """The pragmas of a file; cheap where it has none."""
    ours = MARK in source.data
    noqa = has_noqa(source)
    pylints = source.kind is Kind.PYTHON and b"pylint:" in source.data
    if not ours and not noqa and not pylints:
        return Suppressions(source)
    found = comments(source)
    pragmas = [pragma for comment in found for pragma in _pragmas(comment)]
    return Suppressions(
        source,
        tuple(pragma for in_file, pragma in pragmas if in_file),
        tuple(pragma for in_file, pragma in pragmas if not in_file),
        tuple(pragma for comment in found for pragma in _noqa(comment)) if noqa else (),
        _pylint(source, found) if pylints else None,
    )


def has_noqa(source: Source) -> bool:
    """Whether a ``noqa`` comment of a file may name a rule of ours; cheap, since most are for other linters."""
    if not any(mark in source.data for mark in NOQA_MARKS):
        return False
    return any(_ours(match["names"].decode(errors="replace")) for match in _NOQA_IN_BYTES.finditer(source.data))


def _ours(names: str) -> list[str]:
    return [name for name in _BETWEEN.split(names) if _OURS.fullmatch(name)]


def _noqa(comment: Comment) -> Iterator[Pragma]:
    for match in NOQA.finditer(comment.text):
        if names := frozenset(_ours(match["names"])):
            yield Pragma(comment.first, comment.last, names, comment, match, noqa=True)


def _pylint(source: Source, found: Sequence[Comment]) -> PylintPragmas | None:
    # astroid is imported only for a file that addresses pylint.
    from ldlm_lint.pylint_pragmas import pylint_pragmas

    return pylint_pragmas(source, found)


def _pragmas(comment: Comment) -> list[tuple[bool, Pragma]]:
    """The pragmas of a comment, each with whether it applies to the whole file."""
    result = []
    for match in PRAGMA.finditer(comment.text):
        listed = match["names"]
        names = None if listed is None else frozenset(name.strip() for name in listed.split(",")) - {""}
        result.append((bool(match["file"]), Pragma(comment.first, comment.last, names, comment, match)))
    return result


def _touches(pragma: Pragma, first: int, last: int) -> bool:
    if pragma.names is None:
        return pragma.first <= first <= pragma.last or pragma.first <= last <= pragma.last
    return pragma.first <= last and first <= pragma.last
