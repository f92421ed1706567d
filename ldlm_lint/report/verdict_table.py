"""The table of verdicts for people: verified first, then inconclusive ones with the command that would decide them, the
rest last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ldlm_lint.evidence import settling
from ldlm_lint.evidence.model import Judgement, Scope
from ldlm_lint.evidence.watched import OBSERVED_ON
from ldlm_lint.report.cells import clean
from ldlm_lint.report.console import console_of
from ldlm_lint.report.verdicts import (
    NOT_PRESENT,
    WORDS,
    figure,
    figure_in_full,
    groups,
    ordered,
    place,
    settling_command,
    summary,
)

# A verified verdict is an observed defect, so it has the colour of a warning.
STYLES = {"verified": "yellow", "refuted": "green", "inconclusive": "dim", NOT_PRESENT: "green"}
_INDENT = max(map(len, WORDS)) + 2
_LABELS = len("measured") + 2
_PIPE = 100_000


def write_verdicts(
    judgements: Iterable[Judgement],
    stream: TextIO,
    *,
    notes: Sequence[str] = (),
    answered: Collection[Judgement] = (),
    launch: Sequence[str] = (),
    experiments: bool = False,
) -> None:
    """Write judgements to a stream as a table, and below it ``notes``: what could not be observed, and why.

    ``answered`` are the judgements for a finding or an experiment; of the others, a refuted one reads "not present".
    ``launch`` is the command that was watched (empty: several, or unknown); ``experiments`` says that nothing was
    watched. On a terminal lines have its width; a pipe gets whole sentences, one per line.
    """
    console = console_of(stream)
    if not console.is_terminal:
        console.width = _PIPE
    found = ordered(judgements)
    common = _common_scope(found)
    if found:
        with console.capture() as captured:
            for line in _table(found, answered, None if experiments else launch, common, console.width):
                console.print(line)
        # Wrapped text has trailing blanks, which do not belong in a log.
        stream.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()) + "\n")
    for note in notes:
        console.print(Text.assemble(("note: ", "bold"), clean(note)), soft_wrap=True)
    console.print(summary(found, answered), soft_wrap=True)


def _common_scope(judgements: Sequence[Judgement]) -> Scope | None:
    """The scope that all judgements of a table have, so that it need not be read in each of them."""
    scopes = {one.scope for one in judgements}
    only = scopes.pop() if len(scopes) == 1 else None
    return only if only is not None and only.steps and len(judgements) > 1 else None


def _table(
    judgements: Sequence[Judgement],
    answered: Collection[Judgement],
    launch: Sequence[str] | None,
    common: Scope | None,
    width: int,
) -> Iterator[Text | Padding]:
    """The groups, a blank line between two; groups that a command would decide have it above them."""
    rules = max(len(_rule(one)) for one in judgements)
    if common:
        yield Text.assemble((f"Seen {common.words}:", "bold"))
    for number, (name, settled_by, group) in enumerate(groups(judgements, answered)):
        if common or number:
            yield Text()
        if settled_by:
            yield _todo(group[0], settled_by, launch)
        for one in group:
            yield from _head(one, name, rules, width)
            yield from _lines(one, common)


def _rule(judgement: Judgement) -> str:
    return clean(judgement.rule or "this machine")


def _head(judgement: Judgement, name: str, rules: int, width: int) -> Iterator[Text | Padding]:
    """The verdict, the rule and its place, in columns; a place that does not fit has its own line."""
    where = clean(place(judgement))
    beside = bool(where) and _INDENT + rules + 2 + cell_len(where) <= width
    rule = f"{_rule(judgement):{rules}}  {where}" if beside else _rule(judgement)
    head = Text.assemble((f"{name:{_INDENT}}", STYLES[name]), rule)
    head.stylize("bold", _INDENT, _INDENT + len(_rule(judgement)))
    yield head
    if where and not beside:
        yield _labelled("at", where)


def _lines(judgement: Judgement, common: Scope | None) -> Iterator[Padding]:
    """The claim, the observation, and the figure if the sentences do not contain it."""
    seen = judgement.reason.removesuffix(f" {common.words}").removesuffix(",") if common else judgement.reason
    if judgement.settled_by == settling.DEVICE and seen.startswith(OBSERVED_ON):
        # The line above the group already says it.
        seen = seen.partition("; ")[2] or seen
    yield _labelled("claim", judgement.claim)
    if seen and seen != judgement.claim:
        yield _labelled("seen", seen)
    measured = figure_in_full(judgement)
    if measured and figure(judgement.measured) not in seen:
        yield _labelled("measured", measured)


def _labelled(label: str, text: str) -> Padding:
    """A label, and a text that is folded next to it."""
    row = Table.grid()
    row.add_column(width=_LABELS, no_wrap=True)
    row.add_column(overflow="fold")
    row.add_row(Text(label, "dim"), Text(clean(text)))
    return Padding(row, (0, 0, 0, _INDENT))


def _todo(judgement: Judgement, settled_by: str, launch: Sequence[str] | None) -> Text:
    """The command that would decide a group; ``launch`` None: the experiments, which need no program."""
    command = settling_command(judgement, settled_by, launch)
    return Text.assemble((f"{settling.hint(judgement)}: ", "bold"), clean(command))
