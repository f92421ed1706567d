r"""Variables that were meant for a launch, but end at an empty line or a comment before it: ``NAME=value \``.

The shell then sets its own variables, which no process inherits, and starts the launch without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.model import Applicability, Edit, Finding, Fix, Related
from ldlm_lint.patterns import lazily
from ldlm_lint.rules.launch import TRUNCATED_COMMAND
from ldlm_lint.shell.launch_code import Code
from ldlm_lint.shell.launch_lines import Line, Lines
from ldlm_lint.shell.script import Form, Launch
from ldlm_lint.wording import listed

_WORD = r"(?:[^\s'\"\\;&|<>()`]|\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\([^()]*\))*"
_ASSIGNMENTS = lazily(rf"\s*(?:[A-Za-z_]\w*={_WORD}\s+)*[A-Za-z_]\w*={_WORD}\s*")
_NAMES = lazily(rf"(?:^|\s)([A-Za-z_]\w*)=({_WORD})")
_EXPORTS_ALL = re.compile(rb"^[ \t]*set[ \t]+-(?:\w*a\b|o[ \t]+allexport)", re.M)
_MOST_LINES = 50
_REASON = "the launch gets variables that this script may never have run with"


class _Lost(NamedTuple):
    """Lines of assignments, from ``first`` to ``last``, whose continuation leads nowhere."""

    first: int
    last: int
    names: tuple[str, ...]


def detached(code: Code) -> Iterator[Finding]:
    """One finding for each launch whose variables end before it."""
    if not re.search(rb"=[^\n]*\\\n[ \t]*(?:#[^\n]*)?\r?\n", code.source.data):
        return
    lines = Lines(code.source)
    for launch in code.script.launches:
        head = lines.head(lines.index(launch.words[0].span.start)) if launch.words else 0
        lost = _before(lines, head)
        names = tuple(one for one in lost.names if not _arrives(code, one)) if lost is not None else ()
        if lost is not None and names:
            yield _finding(lines, launch, lost, names, head)


def _before(lines: Lines, head: int) -> _Lost | None:
    """The assignments above a command, with only empty lines and comments in between, whose last line is continued."""
    last = head - 1
    while last >= 0 and not lines.lines[last].code.strip():
        last -= 1
    if last < 0 or last == head - 1 or not lines.lines[last].continued:
        return None
    first = last
    while first > 0 and last - first < _MOST_LINES and lines.lines[first - 1].continued:
        first -= 1
    written = [one.code.rstrip("\\") for one in lines.lines[first : last + 1]]
    if not all(map(_ASSIGNMENTS.fullmatch, written)):
        return None
    return _Lost(first, last, tuple(match[1] for one in written for match in _NAMES.finditer(one)))


def _arrives(code: Code, name: str) -> bool:
    """Whether processes inherit a variable anyway, or the script itself uses it."""
    if _EXPORTS_ALL.search(code.text.data) or any(one.name == name for one in code.script.expansions):
        return True
    exported = any(one.name == name and one.exported and one.form is not Form.PREFIX for one in code.script.assignments)
    return exported or re.search(rb"\b(?:export|declare[ \t]+-\w*x\w*)\b[^\n;&|]*\b%s\b" % name.encode(), code.text.data) is not None


def _finding(lines: Lines, launch: Launch, written: _Lost, names: tuple[str, ...], head: int) -> Finding:
    rule, line = TRUNCATED_COMMAND, lines.lines[written.last]
    between = lines.lines[written.last + 1]
    cause = "the next line is a comment" if between.comment else "the next line is empty"
    place = lines.source.span(line.at(len(line.code) - 1), line.at(len(line.text)))
    args = {"launcher": launch.launcher, "cause": cause, "lost": listed(list(names))}
    related = (Related(launch.words[0].span, "this command was meant to get the variables"),)
    return Finding(rule.symbol, rule.code, place, tuple(sorted(args.items())), related=related, fix=_fix(lines, written, head))


def _fix(lines: Lines, lost: _Lost, head: int) -> Fix:
    """Take the lines in between out; comments among them go above the variables."""
    start, end = lines.lines[lost.last + 1], lines.lines[head]
    edits = [Edit(lines.source.span(start.start, end.start), "")]
    comments = [one for one in lines.lines[lost.last + 1 : head] if one.comment]
    if comments:
        first = lines.lines[lost.first]
        edits.insert(0, Edit(lines.source.span(first.start, first.start), "".join(map(_whole, comments))))
    return Fix("continue the command", tuple(edits), Applicability.DISPLAY, _REASON)


def _whole(line: Line) -> str:
    return f"{line.text}{line.ending}"


__all__ = ["detached"]
