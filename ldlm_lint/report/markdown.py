"""A summary in Markdown for the page of a CI job, or with ``--since`` a comment for a pull request: the worst first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TextIO

from ldlm_lint.model import Applicability, Finding, Span
from ldlm_lint.patterns import lazily
from ldlm_lint.report import summary
from ldlm_lint.report.cells import clean
from ldlm_lint.report.common import fixable, rule_url, shown_path, unsaid
from ldlm_lint.report.ranking import CONSEQUENCE, RULE, Group, grouped
from ldlm_lint.report.view import View

# GitHub refuses a summary of more than 1 MiB, and a comment of more than 65,536 characters.
MOST_BYTES, MOST_OF_A_COMMENT = 900_000, 64_000
MARK = "<!-- ldlm-lint -->"
_LONGEST = 400
_SPECIAL = lazily(r"([\\`*_\[\]<>|#~$])")
# Text that GitHub turns into a mention, a reference or a link.
_LINKED = lazily(r"(?i)(@|#|www(?=\.)|:(?=//))")


def write(view: View, stream: TextIO) -> None:
    """Write the summary."""
    stream.write(render(view))


def render(view: View) -> str:
    """The whole page; with very many rules and findings only the first ones, and the number of the others."""
    limit = MOST_OF_A_COMMENT if view.since else MOST_BYTES
    around = [list(_head_lines(view)), list(_problems(view, limit // 8)), [] if view.quiet else [_closing(view)]]
    left = limit - sum(_size(line) for block in around for line in block)
    rules = list(_rules(view, left // 2))
    left -= sum(map(_size, rules))
    blocks = [around[0], rules, [] if view.statistics else list(_findings(view, left)), *around[1:]]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _head_lines(view: View) -> Iterator[str]:
    if view.since:
        # A marker by which a workflow can find the comment.
        yield MARK
    yield f"## ldlm-lint: {_title(view)}{' on changed lines' if view.since else ''}"
    if view.shown:
        yield f"\n{', '.join(f'{number} {word}' for word, number in summary.consequences(view).items())}"


def _title(view: View) -> str:
    report, shown = view.report, len(view.shown)
    nothing = "no findings" if report.files else "nothing was checked"
    title = summary.count(shown, "finding") if shown else nothing
    return f"{title}, {summary.count(len(report.problems), 'problem')}" if report.problems else title


def _closing(view: View) -> str:
    """The summary without the parts in the title."""
    found = summary.found(view)
    return _escaped(" ".join(line for line in summary.lines(view) if line != found or not view.shown))


def _rules(view: View, room: int) -> Iterator[str]:
    groups = grouped(view.ordered(CONSEQUENCE), RULE)
    if groups:
        yield from _head("consequence", "rule", "findings", "safe fix", "after a decision", "first place", "what", numbers=(2, 3, 4))
        yield from _bounded([_rule(view, group) for group in groups], room, "rule")


def _rule(view: View, group: Group) -> str:
    first = group.first
    numbers = (
        len(group.findings),
        fixable(group.findings, Applicability.SAFE),
        fixable(group.findings, Applicability.UNSAFE),
    )
    return _row(
        view.rules[first.rule].consequence.value,
        f"{first.code} {_linked(first.rule)}",
        *map(str, numbers),
        _place(view, first.span),
        _cell(view.message(first)),
    )


def _findings(view: View, room: int) -> Iterator[str]:
    """All findings, folded until a reader opens them."""
    findings = view.ordered(CONSEQUENCE)
    if not findings:
        return
    yield f"<details>\n<summary>{'All ' * (len(findings) > 1)}{summary.count(len(findings), 'finding')}</summary>\n"
    yield from _head("place", "rule", "what")
    rows = [
        _row(_place(view, one.span), f"{view.label(one).removesuffix(one.rule)}{_linked(one.rule)}", _what(view, one))
        for one in findings
    ]
    yield from _bounded(rows, room, "finding")
    yield "\n</details>"


def _what(view: View, finding: Finding) -> str:
    """The message and its evidence."""
    said = f"<br>probe: {_cell(finding.evidence.words)}" if finding.evidence is not None else ""
    return f"{_cell(view.told(finding))}{said}"


def _problems(view: View, room: int) -> Iterator[str]:
    problems = unsaid(view.report)
    if problems:
        yield "Not checked:\n"
        places = (f"{shown_path(one.path, view.base)}: " if one.path else "" for one in problems)
        rows = [f"- {_cell(place + one.message)}" for place, one in zip(places, problems, strict=True)]
        yield from _bounded(rows, room, "problem")


def _bounded(rows: Sequence[str], room: int, noun: str) -> Iterator[str]:
    """As many rows as fit (in bytes), and how many more there are."""
    for index, row in enumerate(rows):
        room -= _size(row)
        if room < 0:
            yield f"\n... and {summary.count(len(rows) - index, f'more {noun}')}."
            return
        yield row


def _size(line: str) -> int:
    return len(line.encode(errors="replace")) + 1


def _linked(symbol: str) -> str:
    return f"[{symbol}]({rule_url(symbol)})"


def _place(view: View, span: Span) -> str:
    return _cell(str(view.place(span)))


def _head(*titles: str, numbers: Iterable[int] = ()) -> Iterable[str]:
    """The first two lines of a table; the columns in ``numbers`` hold numbers."""
    marks = ["---:" if at in numbers else "---" for at in range(len(titles))]
    return (_row(*titles), _row(*marks))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Text of an untrusted file for a table or a list, the end of a very long one left out."""
    return _escaped(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


def _escaped(text: str) -> str:
    """Text of an untrusted file as plain text: no markup, mention, reference or link."""
    return _LINKED.sub(r"\1<!-- -->", _SPECIAL.sub(r"\\\1", clean(text)))
