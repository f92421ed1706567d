r"""Launch commands that end before their last line: ``\ # comment``, ``\`` and a blank, a lost ``\``, a line in between.

Read line by line: a parser sees two commands, not that they were meant as one.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from typing import NamedTuple, cast

from ldlm_lint.model import Applicability, Edit, Finding, Fix, Related, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.launch import TRUNCATED_COMMAND
from ldlm_lint.shell import launch_lost
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.script import Launch, Word
from ldlm_lint.shell.words import read_word
from ldlm_lint.source import Source

_QUOTED = lazily(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"")
# An escaped blank does not hide the `#` after it from the author, who meant it as a comment.
_HIDDEN = lazily(r"\\[^ \t]|'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_COMMENT = lazily(r"(?:^|(?<=[ \t]))#.*")
_LAST_WORD = lazily(r"\S*$")
_DASHED = lazily(r"--?[A-Za-z][\w.-]*(?=[=\s]|$)")
_OVERRIDE = lazily(r"[+~]{0,2}[A-Za-z_][\w/@-]*(?:\.[\w/@-]+)+=")
_ARGUMENT = lazily(r"[+~]{0,2}\w+=|[^\s;&|]+\.py(?=\s|$)|\"?\$[\w{@*]|\d*>|\|(?!\|)")
_NAMED = lazily(r"--?\w|[+~]{0,2}\w[\w./@-]*=")
_TOKEN = lazily(r"(?:[^\s'\"\\]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\")+")
_ENDED = lazily(r";;|<<(?!<)|[;&|]\s*$")
_REASON = "the launcher gets arguments that this script may never have run with"


class Line(NamedTuple):
    """One line: ``code`` is its text without comment and blanks at the end, ``start`` its offset in the file."""

    start: int
    text: str
    ending: str
    code: str
    comment: str

    @classmethod
    def of(cls, start: int, raw: str) -> Line:
        """Parse a line; quotes and escapes hide a ``#``."""
        text = raw.rstrip("\r\n")
        match = _COMMENT.search(_HIDDEN.sub(lambda hidden: "_" * len(hidden[0]), text)) if "#" in text else None
        cut = match.start() if match else len(text)
        return cls(start, text, raw[len(text) :], text[:cut].rstrip(" \t"), text[cut:])

    @property
    def backslash(self) -> bool:
        """Whether the code ends in a backslash that is not escaped itself."""
        return (len(self.code) - len(self.code.rstrip("\\"))) % 2 == 1

    @property
    def continued(self) -> bool:
        """Whether the next line belongs to the same command for the shell."""
        return self.backslash and self.code == self.text

    @property
    def indent(self) -> int:
        """How far the line is indented."""
        return len(self.text) - len(self.text.lstrip())

    def at(self, index: int) -> int:
        """The offset in the file of a character of the line."""
        return self.start + len(self.text[:index].encode())


class _Gap(NamedTuple):
    """Where a command ends early: after line ``line``, for a ``cause``; line ``orphan`` is where the rest begins."""

    line: int
    cause: str
    orphan: int


class Lines:
    """The lines of a script by index."""

    def __init__(self, source: Source) -> None:
        self.source = source
        offset, self.lines = source.bom, []
        for raw in re.findall(rb"[^\n]*\n|[^\n]+\Z", source.data[source.bom :]):
            self.lines.append(Line.of(offset, raw.decode(errors="replace")))
            offset += len(raw)
        self._starts = [line.start for line in self.lines]

    def index(self, offset: int) -> int:
        """The line that holds an offset of the file."""
        return bisect.bisect_right(self._starts, offset) - 1

    def end_of_command(self, index: int) -> int:
        """The last line of the command that a line belongs to."""
        while self.lines[index].continued and index + 1 < len(self.lines) and self.lines[index + 1].code:
            index += 1
        return index

    def head(self, index: int) -> int:
        """The first line of the command that a line belongs to."""
        while index > 0 and self.lines[index - 1].continued:
            index -= 1
        return index

    def gap(self, index: int, indent: int, known: int) -> _Gap | None:
        """The gap after a line that ends a command, if the next line was meant to belong to it.

        ``known`` is the offset of the file up to which the parser has read the command.
        """
        line = self.lines[index]
        rest = range(index + 1, len(self.lines))
        orphan = next((at for at in rest if self.lines[at].code), None)
        tail = line.code.encode()[max(known - line.start, 0) :].decode(errors="replace")
        if orphan is None or _is_closed(tail):
            return None
        explicit = line.backslash or line.comment.rstrip().endswith("\\")
        if not _is_argument(self.lines[orphan], indent, strict=not explicit):
            return None
        return _Gap(index, self._cause(line, self.lines[index + 1]), orphan)

    def _cause(self, line: Line, following: Line) -> str:
        if line.continued:
            return "the next line is a comment" if following.comment else "the next line is empty"
        if line.backslash:
            return "its `\\` is followed by a comment" if line.comment else "its `\\` is followed by a space"
        if line.comment.rstrip().endswith("\\"):
            return "its `\\` is inside a comment"
        return "the `\\` is missing"


def _is_closed(code: str) -> bool:
    """Whether a line ends more than its last word: a list, a branch of ``case``, a subshell; or starts a heredoc."""
    bare = _QUOTED.sub("", code.rstrip("\\"))
    return _ENDED.search(bare) is not None or bare.count(")") > bare.count("(") or bare.count("}") > bare.count("{")


def _is_argument(line: Line, indent: int, strict: bool) -> bool:
    """Whether a line can only be the rest of a command; ``strict`` if only the line itself shows that."""
    code = line.code.strip()
    if dashed := _DASHED.match(code):
        # `--help)` is a branch of `case`.
        return not re.match(r"\s*[|)]", code[dashed.end() :])
    if _OVERRIDE.match(code):
        return True
    return not strict and line.indent > indent and _ARGUMENT.match(code) is not None


def truncated(code: Code) -> Iterator[Finding]:
    """One finding for each launch command of a script that loses lines, with all places where it does."""
    lines = Lines(code.source)
    seen = -1
    for launch in sorted(code.script.launches, key=lambda one: one.span):
        first = lines.index(launch.span.start)
        if first <= seen:
            continue
        gaps: list[_Gap] = []
        indent = lines.lines[lines.head(first)].indent
        seen = lines.end_of_command(lines.index(max(launch.span.end - 1, launch.span.start)))
        while gap := lines.gap(seen, indent, launch.span.end):
            gaps.append(gap)
            seen = lines.end_of_command(gap.orphan)
        if gaps:
            yield _finding(lines, launch, gaps)


def _finding(lines: Lines, launch: Launch, gaps: list[_Gap]) -> Finding:
    rule = TRUNCATED_COMMAND
    lost = launch_lost.described(launch, _tokens(lines, gaps))
    args = {"launcher": launch.launcher, "cause": gaps[0].cause, "lost": lost}
    others = tuple(Related(_place(lines, gap), f"the command would end here too: {gap.cause}") for gap in gaps[1:])
    return Finding(
        rule.symbol,
        rule.code,
        _place(lines, gaps[0]),
        tuple(sorted(args.items())),
        related=others,
        fix=_fix(lines, launch, gaps),
    )


def _place(lines: Lines, gap: _Gap) -> Span:
    """The place to show: the backslash and the text after it, the comment, or the last word of the line."""
    line = lines.lines[gap.line]
    if line.continued and lines.lines[gap.line + 1].comment:
        line = lines.lines[gap.line + 1]
        return lines.source.span(line.at(line.indent), line.at(len(line.text)))
    if line.backslash:
        start = len(line.code) - 1
    else:
        # A line that ends with a blank has no word at its end.
        last = cast("re.Match[str]", _LAST_WORD.search(line.code))
        start = len(line.code) if line.comment else last.start()
    start += len(line.text[start:]) - len(line.text[start:].lstrip())
    return lines.source.span(line.at(start), line.at(len(line.text)))


def _tokens(lines: Lines, gaps: list[_Gap]) -> list[Word]:
    """The words that the gaps separate from their command, without redirections; at least one."""
    found = []
    for gap in gaps:
        for line in lines.lines[gap.orphan : lines.end_of_command(gap.orphan) + 1]:
            for match in _TOKEN.finditer(line.code.rstrip("\\")):
                span = lines.source.span(line.at(match.start()), line.at(match.end()))
                found.append(Word(read_word(match[0]), span, "$" not in match[0]))
    return found


def _remark(line: Line) -> str:
    """The comment at the end of a line for a place above the command, with the argument that it was about."""
    named = [token.partition("=")[0] for token in _TOKEN.findall(line.code) if _NAMED.match(token)]
    said = line.comment.lstrip("# \t")
    return f"# {named[-1]}: {said}" if named else line.comment


def _fix(lines: Lines, launch: Launch, gaps: list[_Gap]) -> Fix:
    """Join each line with the rest of its command, and move the comments in between above it."""
    edits, comments = [], []
    for gap in gaps:
        line, rest = lines.lines[gap.line], lines.lines[gap.orphan]
        end = len(line.code)
        joined = "" if line.backslash else " \\"
        edits.append(Edit(lines.source.span(line.at(end), rest.start), f"{joined}{line.ending}"))
        comments += [_remark(line)] if line.comment else []
        comments += [one.comment for one in lines.lines[gap.line + 1 : gap.orphan] if one.comment]
    if comments:
        head = lines.lines[lines.head(lines.index(launch.span.start))]
        remarks = (one.rstrip(" \t\\") for one in comments)
        above = "".join(f"{head.text[: head.indent]}{one}{head.ending}" for one in remarks)
        edits.insert(0, Edit(lines.source.span(head.start, head.start), above))
    title = "continue the command, with its comments above it" if comments else "continue the command"
    return Fix(title, tuple(edits), Applicability.UNSAFE, _REASON)
