"""The assignments of a variable that reach a place of a script.

Branches add theirs, an assignment on the same path replaces those before it, subshells and pipelines keep theirs to
themselves, and a function takes effect where it is called.
"""

from __future__ import annotations

import bisect
import enum
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ldlm_lint.shell.regions import Kind, Region, Regions

_DEPTH = 12


class Change(enum.Enum):
    """How a statement changes a variable."""

    SET = "set"
    APPEND = "append"
    DEFAULT = "default"
    EACH = "each"
    UNKNOWN = "unknown"
    UNSET = "unset"


class Step(NamedTuple):
    """One change of a variable; ``[value_start, end)`` is the value, offsets count in the text.

    ``local``: it ends with the function around it. For ``EACH`` the value is the list that a loop runs over.
    """

    name: str
    change: Change
    start: int
    value_start: int
    end: int
    local: bool = False


class Call(NamedTuple):
    """A command that runs a function of the script, and the extents of the words of its arguments."""

    start: int
    words: tuple[tuple[int, int], ...]


class _Item(NamedTuple):
    """A step as it reaches a place: at ``start``, inside the regions ``rest``; ``sure`` if it then always runs."""

    start: int
    rest: tuple[Region, ...]
    steps: tuple[Step, ...]
    sure: bool = True


@dataclass(eq=False)
class Reaching:
    """The changes of all variables of one script; places are offsets of its text, which ends at ``size``."""

    regions: Regions
    steps: Mapping[str, Sequence[Step]]
    calls: Mapping[str, Sequence[Call]]
    size: int
    _functions: dict[str, dict[Region, list[Step]]] = field(default_factory=dict)

    def at(self, name: str, offset: int, depth: int = 0) -> tuple[tuple[Step, ...], bool]:
        """The possibly last changes before a place, and whether one of them always is."""
        steps = self.steps.get(name, ())
        if not steps or depth > _DEPTH:
            return (), False
        here = self.regions.around(offset)
        items = self._called(name, here, offset)
        # Changes after a place precede it only through enclosing loops.
        until = max([offset, *(region.end for region in here if region.kind is Kind.LOOP)])
        steps = steps[: bisect.bisect_left(steps, until, key=lambda step: step.start)]
        for step in reversed(steps):
            if (item := self._item(step, here, offset)) is not None:
                items.append(item)
                if item.sure and not item.rest:
                    # Everything before it is overwritten; without this, long scripts would take quadratic time.
                    break
        found, sure = _flow(sorted(items, key=lambda item: item.start), 0)
        function = self.function(offset)
        if function is not None and not sure:
            callers = [call.start for call in self.calls.get(function.name, ())] or [self.size]
            before = [self.at(name, place, depth + 1) for place in callers]
            found = tuple(dict.fromkeys((*(step for some, _ in before for step in some), *found)))
            sure = all(one for _, one in before)
        return found, sure

    def _item(self, step: Step, here: tuple[Region, ...], offset: int) -> _Item | None:
        around = self.regions.around(step.start)
        common = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(around, here, strict=False)))
        rest, left = around[common:], here[common:]
        again = any(region.kind is Kind.LOOP for region in around[:common])
        if step.end > offset and not again:
            return None
        if any(region.kind is Kind.FUNCTION for region in left) or any(region.kind is Kind.APART for region in rest):
            return None
        called = next((region for region in rest if region.kind is Kind.FUNCTION), None)
        if called is not None and (step.local or self.calls.get(called.name)):
            return None
        if rest and left and rest[0].group == left[0].group and not again:
            return None
        return _Item(step.start, rest, (step,), sure=step.end <= offset)

    def _called(self, name: str, here: tuple[Region, ...], offset: int) -> list[_Item]:
        """The changes of a variable that calls of functions make, at the places of the calls."""
        items = []
        for function, inside in self._inside_functions(name).items():
            if function in here or not (calls := self.calls.get(function.name)):
                continue
            end = function.end - 1
            around = self.regions.around(end)
            found, sure = _flow([item for step in inside if (item := self._item(step, around, end)) is not None], 0)
            for call in calls if found else ():
                moved = Step(name, Change.UNKNOWN, call.start, call.start, call.start)
                item = self._item(moved, here, offset)
                if item is not None:
                    items.append(_Item(call.start, item.rest, found, sure and item.sure))
        return items

    def _inside_functions(self, name: str) -> dict[Region, list[Step]]:
        """The changes of a variable that outlive the function that they are in, by function."""
        if name not in self._functions:
            found: dict[Region, list[Step]] = {}
            for step in self.steps.get(name, ()):
                inner = None if step.local else self.function(step.start)
                if inner is not None:
                    found.setdefault(inner, []).append(step)
            self._functions[name] = found
        return self._functions[name]

    def function(self, offset: int) -> Region | None:
        """The function that a place is in."""
        around = reversed(self.regions.around(offset))
        return next((region for region in around if region.kind is Kind.FUNCTION), None)


def _flow(items: Sequence[_Item], depth: int) -> tuple[tuple[Step, ...], bool]:
    """The steps that are in force after some items, and whether one of them surely is."""
    live: tuple[Step, ...] = ()
    sure = False
    for group, some in itertools.groupby(items, key=lambda item: item.rest[depth].group if len(item.rest) > depth else None):
        if group is None:
            for item in some:
                live = item.steps if item.sure else (*live, *item.steps)
                sure = sure or item.sure
            continue
        added: tuple[Step, ...] = ()
        always = group.ending
        for region, inside in itertools.groupby(some, key=lambda item: item.rest[depth]):
            if region.ends:
                continue
            found, certain = _flow(list(inside), depth + 1)
            added += found
            always += certain
        replaced = group.complete and always >= group.branches and bool(added)
        live, sure = (added if replaced else (*live, *added)), sure or replaced
    return tuple(dict.fromkeys(live)), sure
