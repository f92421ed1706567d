"""Plans the bytes to delete when settings are removed together from a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ldlm_lint.model import Edit, Span
from ldlm_lint.rules.settings import Removal, Setting
from ldlm_lint.shell.script import Assignment, Block, Statement
from ldlm_lint.source import Source

_SUBSTITUTES = "the value runs a command, which would no longer run"
_EMPTY = "the block around it would be empty, or end with the exit status of another command, so a `:` stays"
_NOT_ALONE = "the command has other parts, so a `:` stays"


class ScriptEditor(NamedTuple):
    """Removes settings from a script; the assignments of a statement and the statements of a block are handled
    together."""

    source: Source
    assignments: Mapping[Setting, Assignment]

    def removals(self, groups: Mapping[Setting, str]) -> dict[Setting, Removal]:
        """See `ldlm_lint.rules.settings.Editor`."""
        going: dict[Statement, list[Setting]] = {}
        for setting in groups:
            going.setdefault(self.assignments[setting].statement, []).append(setting)
        complete = {
            statement
            for statement, some in going.items()
            if _can_go(statement) and _all_go(statement, some) and len({groups[one] for one in some}) == 1
        }
        kept = _kept(complete)
        plans: dict[Setting, Removal] = {}
        for statement, some in going.items():
            if statement in complete:
                removal = self._whole(statement, some, statement in kept)
                plans |= {setting: removal for setting in some if removal is not None}
            elif statement.after is not None or _can_go(statement) or not _all_go(statement, some):
                plans |= self._parts(statement, some, groups)
        return _merged(plans, groups)

    def _whole(self, statement: Statement, settings: Sequence[Setting], keep: bool) -> Removal | None:
        if statement.deletion is not None and not keep:
            return Removal((Edit(statement.deletion, ""),), reason=self._reason(settings))
        if statement.noop is not None:
            return Removal((Edit(statement.noop, ":"),), False, _EMPTY if keep else _NOT_ALONE)
        return None

    def _reason(self, settings: Sequence[Setting]) -> str:
        return _SUBSTITUTES if any(self.assignments[setting].substitutes for setting in settings) else ""

    def _parts(
        self, statement: Statement, settings: Sequence[Setting], groups: Mapping[Setting, str]
    ) -> dict[Setting, Removal]:
        """Removals of single words: neighbours of one group are removed in one edit."""
        places = {self.assignments[setting].span: setting for setting in settings}
        plans: dict[Setting, Removal] = {}
        for first, last in _runs(statement.parts, places, groups):
            edit = _without(self.source, statement, first, last)
            run = [places[part] for part in statement.parts[first : last + 1]]
            if edit is not None:
                plans |= {setting: Removal((edit,), reason=self._reason(run)) for setting in run}
        return plans


def _merged(plans: Mapping[Setting, Removal], groups: Mapping[Setting, str]) -> dict[Setting, Removal]:
    """The same plans with overlapping deletions of one group merged: neighbours on a line share their ``;``."""
    merged: dict[Setting, Removal] = {}
    previous: list[Setting] = []
    for setting in sorted(plans, key=lambda one: (groups[one], plans[one].edits)):
        edit = plans[setting].edits[0]
        last = merged[previous[-1]].edits[0] if previous and groups[previous[-1]] == groups[setting] else None
        if last is not None and edit.span.start < last.span.end and not edit.text and not last.text:
            edit = Edit(_like(last.span, last.span.start, max(last.span.end, edit.span.end)), "")
            previous.append(setting)
        else:
            previous = [setting]
        for one in previous:
            merged[one] = plans[one]._replace(edits=(edit,))
    return merged


def _all_go(statement: Statement, settings: Sequence[Setting]) -> bool:
    return len(settings) == len(statement.parts)


def _can_go(statement: Statement) -> bool:
    return statement.noop is not None or statement.deletion is not None


def _kept(complete: set[Statement]) -> set[Statement]:
    """For every block that would lose all its statements, or all that succeed at its end, the one that remains."""
    blocks: dict[Block, list[Statement]] = {}
    for statement in complete:
        if statement.block is not None:
            blocks.setdefault(statement.block, []).append(statement)
    kept = set()
    for block, some in blocks.items():
        ending = [one for one in some if one.tail]
        if len(some) == block.size and not block.may_be_empty:
            kept.add(min(some, key=lambda one: one.span))
        elif ending and len(ending) == ending[0].tail:
            kept.add(min(ending, key=lambda one: one.span))
    return kept


def _runs(
    parts: Sequence[Span], places: Mapping[Span, Setting], groups: Mapping[Setting, str]
) -> Iterator[tuple[int, int]]:
    """First and last index of each longest row of neighbouring parts that go together."""
    first = 0
    while first < len(parts):
        last = first
        if parts[first] in places:
            group = groups[places[parts[first]]]
            while last + 1 < len(parts) and parts[last + 1] in places and groups[places[parts[last + 1]]] == group:
                last += 1
            yield first, last
        first = last + 1


def _without(source: Source, statement: Statement, first: int, last: int) -> Edit | None:
    """The edit that removes parts, with the blanks on both sides; a continued line stays continued.

    Edits of neighbouring parts overlap on purpose: fixes of two rules are then applied one after the other, and the
    second then sees a separate statement.
    """
    parts = statement.parts
    start = parts[first - 1].end if first else statement.before
    end = parts[last + 1].start if last + 1 < len(parts) else statement.after
    if start is not None and end is not None:
        gaps = (source.slice(_like(parts[first], *gap)) for gap in ((parts[last].end, end), (start, parts[first].start)))
        return Edit(_like(parts[first], start, end), next((gap for gap in gaps if "\n" in gap), " "))
    if start is not None:
        return Edit(_like(parts[first], start, parts[last].end), "")
    return None if end is None else Edit(_like(parts[first], parts[first].start, end), "")


def _like(span: Span, start: int, end: int) -> Span:
    return Span(span.path, start, end, span.cell)
