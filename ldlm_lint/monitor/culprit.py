"""Finds the rank that blocked the others, from the watchdog messages of all ranks about one collective that timed out.

A waiting rank reports that; the blocking rank reports nothing, or that its last enqueued work is before the others'.
Without enough information no rank is named: a wrong rank costs more time than none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

# Uninitialised counters have been printed as numbers of this size.
_NONSENSE = 1 << 40
_SHOWN = 8
# The group of all ranks, in the lines of torch that name groups and of those that do not.
_DEFAULT_GROUPS = frozenset(("", "0"))


@dataclass(slots=True)
class Work:
    """The watchdog message of one rank: the collective it waits in and the last ones enqueued and completed."""

    seq: int | None = None
    op: str = ""
    enqueued: int | None = None
    completed: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The culprits (empty if unknown), and the reason, as the rest of a sentence."""

    culprits: tuple[int, ...]
    reason: str


@dataclass(slots=True)
class Incident:
    """All messages about one time-out, by process group (empty if the lines do not name it) and rank."""

    groups: dict[str, dict[int, Work]] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)
    waited_ms: int = 0
    limit_ms: int = 0

    def add(self, rank: int | None, details: Mapping[str, str]) -> None:
        """Take an event of kind ``nccl-timeout`` in."""
        if "missing" in details:
            self.missing.update(int(one) for one in details["missing"].split(","))
        self.limit_ms = max(self.limit_ms, int(details.get("limit", 0)))
        self.waited_ms = max(self.waited_ms, int(details.get("ran", 0)))
        if rank is None:
            return
        work = self._work(rank, details)
        work.op = details.get("op", work.op)
        for name in ("seq", "enqueued", "completed"):
            value = int(details.get(name, -1))
            if 0 <= value < _NONSENSE:
                setattr(work, name, value)

    def _work(self, rank: int, details: Mapping[str, str]) -> Work:
        """The rank's entry. The line with the operation names no group and comes before the one that does."""
        group, seq = details.get("pg", ""), details.get("seq")
        unnamed = self.groups.get("", {})
        if group and rank in unnamed and str(unnamed[rank].seq) == seq:
            self.groups.setdefault(group, {})[rank] = unnamed.pop(rank)
        elif not group and seq is not None:
            for known in self.groups.values():
                if rank in known and known[rank].seq == int(seq):
                    return known[rank]
        return self.groups.setdefault(group, {}).setdefault(rank, Work())

    @property
    def group(self) -> dict[int, Work]:
        """The group that most ranks report about, the first of equals; with the lines that name none, if it is the only one."""
        named = [one for name, one in self.groups.items() if name]
        if len(named) == 1:
            return {**self.groups.get("", {}), **named[0]}
        return max(self.groups.values(), key=len, default={})

    @property
    def waiting(self) -> tuple[int, ...]:
        """The ranks that reported a time-out, in any group."""
        return tuple(
            sorted({rank for one in self.groups.values() for rank, work in one.items() if work.op or work.seq})
        )

    def verdict(self, seen: Iterable[int], failed: Mapping[int, str]) -> Verdict:
        """The ranks that blocked the others. ``seen`` are all ranks of the log, ``failed`` the earlier failures of
        some."""
        if failed:
            ranks = tuple(sorted(failed))
            return Verdict(ranks, f"{_ranks(ranks)} had failed before: {failed[ranks[0]]}")
        if self.missing:
            ranks = tuple(sorted(self.missing))
            return Verdict(ranks, f"{_ranks(ranks)} did not join it, according to the other ranks")
        works = self.group
        stuck = min((one.seq for one in works.values() if one.seq is not None), default=None)
        return self._by_counts(works, stuck) or self._by_absence(seen) or self._none(works, stuck)

    @staticmethod
    def _by_counts(works: Mapping[int, Work], stuck: int | None) -> Verdict | None:
        """Ranks that had not enqueued the collective the others waited in, or that were in another operation there."""
        if stuck is None:
            return None
        last = {rank: one.enqueued for rank, one in works.items() if one.enqueued is not None}
        behind = tuple(sorted(rank for rank, enqueued in last.items() if enqueued < stuck))
        if behind and len(behind) < len(last):
            return Verdict(
                behind,
                f"{_ranks(behind)} {'is' if len(behind) == 1 else 'are'} behind: last enqueued work "
                f"{last[behind[0]]}, while the others wait in {stuck}",
            )
        at_stuck = {rank: one.op for rank, one in works.items() if one.seq == stuck and one.op}
        usual = Counter(at_stuck.values()).most_common()
        if len(usual) > 1:
            (common, most), (_, next_most) = usual[:2]
            odd = tuple(sorted(rank for rank, op in at_stuck.items() if op != common)) if most > next_most else ()
            said = ", ".join(f"{_ranks(sorted(r for r in at_stuck if at_stuck[r] == op))}: {op}" for op, _ in usual)
            return Verdict(odd, f"the ranks run different operations as number {stuck} ({said})")
        ahead = {rank: one.seq for rank, one in works.items() if one.seq is not None and one.seq > stuck}
        if ahead and len(ahead) < len(works):
            early = tuple(sorted(rank for rank in works if works[rank].seq == stuck))
            return Verdict(
                early if len(early) < len(ahead) else (),
                f"{_ranks(early)} wait{'s' if len(early) == 1 else ''} in {stuck} while {_ranks(sorted(ahead))} "
                f"{'is' if len(ahead) == 1 else 'are'} at {min(ahead.values())}",
            )
        return None

    def _by_absence(self, seen: Iterable[int]) -> Verdict | None:
        """Ranks that reported no time-out: the culprits, if they are the minority and the log has lines of them."""
        waiting, known = self.waiting, set(seen)
        silent = tuple(sorted((known | self._numbered(waiting)) - set(waiting)))
        if not silent or not waiting:
            return None
        if known.issuperset(silent) and len(silent) <= len(waiting):
            return Verdict(
                silent, f"{_ranks(silent)} reported no timeout: it hung, ended, or ran other code than the other ranks"
            )
        one = len(silent) == 1
        absent = "" if known.issuperset(silent) else f", or {'its' if one else 'their'} output is not in this log"
        return Verdict(
            (),
            f"rank{'' if one else 's'} {_spans(silent)} said nothing: {'it' if one else 'each of them'} hung, ended, or ran other "
            f"code{absent}; look at {'its' if one else 'their'} output first",
        )

    def _numbered(self, waiting: Sequence[int]) -> set[int]:
        """The ranks below the highest that waits: each exists, and in the default group each takes part."""
        return set(range(max(waiting))) if waiting and self.groups.keys() <= _DEFAULT_GROUPS else set()

    @staticmethod
    def _none(works: Mapping[int, Work], stuck: int | None) -> Verdict:
        if len(works) > 1 and stuck is not None:
            return Verdict(
                (),
                f"all {len(works)} ranks that report had enqueued it: no rank is behind; check the network and the tensor sizes",
            )
        return Verdict((), "too few ranks report to say which rank caused it; read the logs of all ranks together")


def _spans(ranks: Iterable[int]) -> str:
    """Ranks with the neighbours together.

    >>> _spans([1, 2, 3, 7, 9, 10])
    '1-3, 7, 9, 10'
    """
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and spans[-1][-1] == rank - 1:
            spans[-1].append(rank)
        else:
            spans.append([rank])
    shown = [f"{one[0]}-{one[-1]}" if len(one) > 2 else ", ".join(map(str, one)) for one in spans]
    return ", ".join(shown[:_SHOWN]) + (" and more" if len(shown) > _SHOWN else "")


def _ranks(ranks: Iterable[int]) -> str:
    listed = list(ranks)
    shown = ", ".join(map(str, listed[:_SHOWN])) + (f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else "")
    return f"rank{'s' if len(listed) != 1 else ''} {shown}"
