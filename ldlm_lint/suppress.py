"""Suppression: which findings a comment in the source silences.

``# ldlm-lint: ignore[name, W7201] reason``
    silences these rules, ``# ldlm-lint: ignore`` all of them. At the end of a line it speaks about that line; behind
    the last line of a statement about the whole statement (in a shell script a continued command has no other
    place); alone on its line about the next statement, however many comments and blank lines stand between.
    A finding is silenced by its names on any of its lines, by the bare form on its first or last line only, so that
    a bare pragma inside a class does not silence what is said about the class.
``# ldlm-lint: ignore-file[name]``
    silences these rules (the bare form: all) in the file, wherever it stands.
``# pylint: disable=name``, ``disable-next=``, ``enable=``, ``skip-file``
    in Python, as pylint does: behind a statement that line, alone on a line the rest of the block around it, before
    the first statement of a function or class all of it. They are asked about a finding's first line, as pylint asks.

Names, codes, their numbers and old names are equal; a pragma that names no rule silences nothing, and neither does ``ignore[]``.
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
PRAGMA = lazily(r"#\s*ldlm-lint:\s*ignore(?P<file>-file)?(?:\[(?P<names>[^\]]*)\]|(?![\w\[-]))")


class Pragma(NamedTuple):
    """One ``ldlm-lint`` comment: the lines it speaks about (1-based, inclusive) and the names, None for all.

    ``match`` is where it stands in the text of ``comment``.
    """

    first: int
    last: int
    names: frozenset[str] | None
    comment: Comment
    match: re.Match[str]

    @property
    def listed(self) -> list[str]:
        """The names in the order in which they are written."""
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
        """Whether the pragma speaks of a rule by any of its names."""
        return self.names is None or any(rule.is_called(name) for name in self.names)


class Suppressions(NamedTuple):
    """The pragmas of one file."""

    source: Source
    file: tuple[Pragma, ...] = ()
    lines: tuple[Pragma, ...] = ()
    pylint: PylintPragmas | None = None

    def covers(self, finding: Finding, rule: Rule) -> bool:
        """Whether a finding of this file, made by ``rule``, is silenced."""
        if any(self.covering(finding, rule)):
            return True
        return self.pylint is not None and self.pylint.disables(rule, self.source.position(finding.span.start)[0])

    def covering(self, finding: Finding, rule: Rule) -> Iterator[Pragma]:
        """Those of our own comments that silence a finding."""
        yield from (pragma for pragma in self.file if pragma.names_rule(rule))
        if not self.lines:
            return
        first, _ = self.source.position(finding.span.start)
        last, _ = self.source.position(max(finding.span.end - 1, finding.span.start))
        yield from (pragma for pragma in self.lines if pragma.names_rule(rule) and _touches(pragma, first, last))


def suppressions(source: Source) -> Suppressions:
    """The pragmas of a file; cheap where it has none."""
    ours = MARK in source.data
    pylints = source.kind is Kind.PYTHON and b"pylint:" in source.data
    if not ours and not pylints:
        return Suppressions(source)
    found = comments(source)
    pragmas = [pragma for comment in found for pragma in _pragmas(comment)]
    return Suppressions(
        source,
        tuple(pragma for in_file, pragma in pragmas if in_file),
        tuple(pragma for in_file, pragma in pragmas if not in_file),
        _pylint(source, found) if pylints else None,
    )


def _pylint(source: Source, found: Sequence[Comment]) -> PylintPragmas | None:
    # astroid is imported only for a file that speaks to pylint.
    from ldlm_lint.pylint_pragmas import pylint_pragmas

    return pylint_pragmas(source, found)


def _pragmas(comment: Comment) -> list[tuple[bool, Pragma]]:
    """The pragmas of a comment, each with whether it speaks about the file."""
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
