"""The text format: the worst first, one block for each rule with its first place in full, and the summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from ldlm_lint.model import Finding, Severity
from ldlm_lint.patterns import lazily
from ldlm_lint.report import closing
from ldlm_lint.report.blocks import Blocks
from ldlm_lint.report.cells import clean
from ldlm_lint.report.lines import Line, line
from ldlm_lint.report.lines import write as write_lines
from ldlm_lint.report.ranking import CONSEQUENCE, FILE, NONE, RULE, Group, grouped
from ldlm_lint.report.steps import step_lines
from ldlm_lint.report.summary import FIXABLE, count
from ldlm_lint.report.view import View

MOST_OTHERS = 3
LONGEST = 90
_KNOWN = 30
_LEAD = 3
# References to other places in messages; messages that differ only in them count as equal.
_REFERENCE = lazily(r"[\w.-]+\.\w+:\d+|\bline \d+")


def write(view: View, stream: TextIO) -> None:
    """Write a report to a stream, styled where the view has colour; lines are never wrapped."""
    write_lines(closing.closed(view, _shown(view)), stream, colour=view.colour)


def _shown(view: View) -> Iterator[Iterable[Line]]:
    """The blocks of the groups, each with an empty line after it."""
    by = view.group_by or RULE
    blocks = Blocks(view, brief=by != NONE)
    for group in grouped(view.ordered(CONSEQUENCE), by):
        yield (*_HEADS[by](blocks, group), *blocks.lines(group.first), *_others(blocks, group, by), ())


def _rule_head(blocks: Blocks, group: Group) -> Iterator[Line]:
    """The consequence, name and number of a rule's findings, then the message of the first."""
    first, view = group.first, blocks.view
    fixed, places = sum(view.applies(one.fix) for one in group.findings), len(group.findings)
    mark = f" {FIXABLE}" + (f" {fixed} of them" if fixed < places else "") if fixed else ""
    yield line(
        blocks.word(first),
        ": ",
        (first.rule, "bold"),
        f" ({first.code}), {count(places, 'place')}{_at_level_info(group)}",
        (mark, "cyan"),
    )
    yield line(clean(view.message(first)))


def _at_level_info(group: Group) -> str:
    """How many places of a rule that is more than information are only that."""
    low = sum(one.severity is Severity.INFO for one in group.findings)
    return f", {low} at level info" if 0 < low < len(group.findings) else ""


def _file_head(blocks: Blocks, group: Group) -> Iterator[Line]:
    """A file and how many findings it has, then the headline of the first one."""
    file = clean(blocks.view.place(group.first.span).path)
    yield line((file, "bold"), f", {count(len(group.findings), 'finding')}")
    yield blocks.headline(group.first)


def _plain_head(blocks: Blocks, group: Group) -> Iterator[Line]:
    yield blocks.headline(group.first)


_HEADS = {RULE: _rule_head, FILE: _file_head, NONE: _plain_head}


def _others(blocks: Blocks, group: Group, by: str) -> Iterator[Line]:
    """One line for each of the other findings of a group, and how to see the rest; findings in training steps per
    step.
    """
    if by == RULE and group.first.in_step is not None:
        lines, left = step_lines(blocks, group.first, group.others)
        yield from lines
        if left:
            yield line(f"… {left} more: {_choosing(blocks.view, group, by)} --format full")
        return
    others = _various(blocks.view, group)
    # A line that says that there is one more takes as much space as the finding itself.
    shown = others if len(others) <= MOST_OTHERS + 1 else others[:MOST_OTHERS]
    for finding in shown:
        words = _said(blocks.view, finding, group.first) if by == RULE else _told(blocks.view, finding)
        yield line(("also: ", "bold"), blocks.place(finding.span), (f"  {words}" if words else "", "dim"))
    more = len(others) - len(shown)
    if more:
        yield line(f"… {more} more: {_choosing(blocks.view, group, by)} --format full")


def _choosing(view: View, group: Group, by: str) -> str:
    """The words of a command line that choose the findings of a group."""
    if by == RULE:
        return f"--select {group.first.rule}"
    import shlex

    return clean(shlex.quote(view.place(group.first.span).path))


def _various(view: View, group: Group) -> Sequence[Finding]:
    """The other findings of a group, findings with new content first."""
    said = {_gist(view.message(group.first))}
    new: list[Finding] = []
    again: list[Finding] = []
    for finding in group.others:
        message = _gist(view.message(finding))
        (again if message in said else new).append(finding)
        said.add(message)
    return [*new, *again]


def _told(view: View, finding: Finding) -> str:
    return _cut(f"{view.label(finding)}: {clean(view.message(finding))}")


def _said(view: View, finding: Finding, first: Finding) -> str:
    """The part of a message that differs from the first one of its rule; empty if they are the same.

    Of a long common beginning the last words are kept as context.
    """
    message, other = clean(view.message(finding)), clean(view.message(first))
    words, others = _gist(message).split(" "), _gist(other).split(" ")
    if words == others:
        return ""
    same = _common(words, others)
    end = len(words) - min(_common(words[::-1], others[::-1]), len(words) - same, len(others) - same)
    words = message.split(" ")
    begin = max(same - _LEAD, 0) if len(" ".join(words[:same])) > _KNOWN else 0
    shown = words[begin : max(end, same) + _LEAD]
    head, tail = "… " * (begin > 0), " …" * (begin + len(shown) < len(words))
    return _cut(f"{head}{' '.join(shown)}{tail}", (": ", "; "))


def _gist(message: str) -> str:
    """A message without the numbers of the places that it refers to; it has as many words as before."""
    return _REFERENCE.sub(lambda found: "line" if " " not in found[0] else "line N", message)


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _cut(text: str, clauses: tuple[str, ...] = ()) -> str:
    """A text of at most `LONGEST` characters; one that is too long ends where one of the ``clauses`` begins, else a word."""
    if len(text) <= LONGEST:
        return text
    short = text[: LONGEST - 2]
    end = max((short.rfind(clause, _KNOWN) for clause in clauses), default=-1)
    return f"{short[: end if end > 0 else short.rfind(' ')].rstrip(' …')} …"
