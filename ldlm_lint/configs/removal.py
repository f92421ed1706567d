"""Plans the bytes to delete when settings are removed together from a configuration file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ldlm_lint.model import Edit, Span
from ldlm_lint.rules.settings import Removal, Setting
from ldlm_lint.source import Source


class Holder(NamedTuple):
    """The list, mapping or instruction that settings are in.

    ``parts`` is everything in it, in order; ``lines`` the lines of each part on its own lines (empty if parts share
    lines, None for a part that cannot be removed). ``emptied`` is the edit if nothing else remains, with the ``reason``
    why that may change more than the variables; a ``free`` holder may become empty. ``noted``: a comment may be between
    two parts and stays.
    """

    parts: tuple[Span, ...]
    lines: tuple[Span | None, ...] = ()
    emptied: Edit | None = None
    reason: str = ""
    free: bool = False
    noted: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a setting: the part of a holder with this index."""

    holder: Holder
    index: int


class ConfigEditor(NamedTuple):
    """Removes settings from a configuration file; the parts of one holder are handled together."""

    places: Mapping[Setting, Place]

    def removals(self, groups: Mapping[Setting, str]) -> dict[Setting, Removal]:
        """See `ldlm_lint.rules.settings.Editor`."""
        going: dict[Holder, list[Setting]] = {}
        for setting in groups:
            if setting in self.places:
                going.setdefault(self.places[setting].holder, []).append(setting)
        plans: dict[Setting, Removal] = {}
        for holder, some in going.items():
            some.sort(key=lambda one: self.places[one].index)
            if len(some) == len(holder.parts) and not holder.free:
                if len({groups[one] for one in some}) == 1:
                    if holder.emptied is not None:
                        removal = Removal((holder.emptied,), not holder.reason, holder.reason)
                        plans |= dict.fromkeys(some, removal)
                    continue
                # The rest is removed in a later round, as a whole.
                some = some[1:]
            plans |= self._parts(holder, some, groups)
        return plans

    def _parts(
        self, holder: Holder, settings: Sequence[Setting], groups: Mapping[Setting, str]
    ) -> dict[Setting, Removal]:
        places = {self.places[one].index: one for one in settings}
        if holder.lines:
            found = ((one, holder.lines[index]) for index, one in places.items())
            return {one: Removal((Edit(lines, ""),)) for one, lines in found if lines is not None}
        plans: dict[Setting, Removal] = {}
        for first, last in _runs({index: groups[one] for index, one in places.items()}):
            edit = Edit(_joint(holder, first, last), "")
            plans |= {places[index]: Removal((edit,)) for index in range(first, last + 1)}
        return plans


def _runs(groups: Mapping[int, str]) -> Iterator[tuple[int, int]]:
    """First and last index of each maximal sequence of neighbours of one group."""
    first = last = None
    for index in sorted(groups):
        if first is not None and last is not None and index == last + 1 and groups[index] == groups[first]:
            last = index
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = index
    if first is not None and last is not None:
        yield first, last


def _joint(holder: Holder, first: int, last: int) -> Span:
    """The parts from ``first`` to ``last`` with the text that joins them to the remaining ones: a comma, blanks, a
    continued line."""
    parts = holder.parts
    if first:
        return _between(parts[first], parts[first - 1].end, parts[last].end)
    noted = bool(holder.noted) and holder.noted[last]
    return _between(parts[first], parts[first].start, parts[last].end if noted else parts[last + 1].start)


def whole_lines(source: Source, start: int, end: int) -> Span | None:
    """The lines of the bytes ``[start, end)`` with the comment after them; None if there is other text."""
    data = source.data
    line = data.rfind(b"\n", 0, start) + 1
    below = data.find(b"\n", end)
    below = len(data) if below < 0 else below + 1
    head, tail = data[line:start].strip(b" \t\xef\xbb\xbf"), data[end:below].strip()
    if head not in (b"", b"-") or (tail and not tail.startswith(b"#")):
        return None
    return Span(source.path, max(line, source.bom), below)


def _between(span: Span, start: int, end: int) -> Span:
    return Span(span.path, start, end, span.cell)
