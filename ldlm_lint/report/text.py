"""The text format: the worst first, one block for each rule with its first place in full, then a line for each rule with
findings at level info, and the summary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from ldlm_lint.model import Finding
from ldlm_lint.report import closing
from ldlm_lint.report.blocks import Blocks
from ldlm_lint.report.cells import clean
from ldlm_lint.report.consequences import is_minor
from ldlm_lint.report.differences import cut, difference, gist
from ldlm_lint.report.lines import Line, line
from ldlm_lint.report.lines import write as write_lines
from ldlm_lint.report.ranking import CONSEQUENCE, FILE, NONE, RULE, Group, grouped
from ldlm_lint.report.steps import step_lines
from ldlm_lint.report.summary import FIXABLE, count
from ldlm_lint.report.view import View

MOST_OTHERS = 3
MOST_MINOR = 3


def write(view: View, stream: TextIO) -> None:
    """Write a report to a stream, styled where the view has colour; lines are never wrapped."""
    write_lines(closing.closed(view, _shown(view)), stream, colour=view.colour)


def _shown(view: View) -> Iterator[Iterable[Line]]:
    """The blocks of the groups, each with an empty line after it."""
    by = view.group_by or RULE
    blocks = Blocks(view, brief=by != NONE)
    in_blocks, in_lines = _divided(view, by)
    for group in grouped(in_blocks, by):
        yield (*_HEADS[by](blocks, group), *blocks.lines(group.first), *_others(blocks, group, by), ())
    if in_lines:
        yield (*_minor(blocks, in_lines), ())


def _divided(view: View, by: str) -> tuple[list[Finding], list[Finding]]:
    """The findings that are shown in blocks, and those at level info that only get a line: where there are others, and
    the user has not asked for each of them."""
    findings = view.ordered(CONSEQUENCE)
    # Findings with a standing are only among them if the user asked for these.
    loud = [finding for finding in findings if not is_minor(finding) or finding.standing is not None]
    if by == NONE or not loud:
        return findings, []
    return loud, [finding for finding in findings if is_minor(finding) and finding.standing is None]


def _minor(blocks: Blocks, findings: Sequence[Finding]) -> Iterator[Line]:
    """The findings at level info: for each rule and reason how many, and where the first are."""
    kinds: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault((finding.rule, finding.why_minor), []).append(finding)
    yield line(("At level info", "bold"), ", in full with --format full:")
    for (rule, reason), same in kinds.items():
        places = ", ".join(blocks.place(one.span) for one in same[:MOST_MINOR])
        more = f" and {len(same) - MOST_MINOR} more" if len(same) > MOST_MINOR else ""
        why = f", {clean(reason)}" if reason else ""
        yield line(f"  {len(same)} ", (rule, "bold"), f" ({same[0].code}){why}: ", (f"{places}{more}", "dim"))


def _rule_head(blocks: Blocks, group: Group) -> Iterator[Line]:
    """The consequence, name and number of a rule's findings, then the message of the first."""
    first, view = group.first, blocks.view
    fixed, places = sum(view.applies(one.fix) for one in group.findings), len(group.findings)
    mark = f" {FIXABLE}" + (f" {fixed} of them" if fixed < places else "") if fixed else ""
    yield line(
        blocks.word(first),
        ": ",
        (first.rule, "bold"),
        f" ({first.code}), {count(places, 'place')}",
        (mark, "cyan"),
    )
    yield line(clean(view.message(first)))


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
    said = {gist(view.message(group.first))}
    new: list[Finding] = []
    again: list[Finding] = []
    for finding in group.others:
        message = gist(view.message(finding))
        (again if message in said else new).append(finding)
        said.add(message)
    return [*new, *again]


def _told(view: View, finding: Finding) -> str:
    return cut(f"{view.label(finding)}: {clean(view.message(finding))}")


def _said(view: View, finding: Finding, first: Finding) -> str:
    return difference(clean(view.message(finding)), clean(view.message(first)))
