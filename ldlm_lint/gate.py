"""The gate: holds back findings that the baseline knows, that are on unchanged lines, or that are too unsure."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.changes import UNCHANGED, Changes
from ldlm_lint.model import Confidence, Finding, Identity
from ldlm_lint.rules.linter import INTERNAL_ERROR, UNPARSABLE_FILE, UNREADABLE_FILE
from ldlm_lint.source import Source

if TYPE_CHECKING:
    from ldlm_lint.identity import Identifier

NEVER_HELD = frozenset({INTERNAL_ERROR.symbol, UNREADABLE_FILE.symbol})


class Sifted(NamedTuple):
    """The findings that a gate held back: the findings, those that the baseline knows first, and how many of them it
    knows.

    ``unsure`` is how many were held back for their confidence alone. ``gone`` are the known defects that were not
    found, with how many of each.
    """

    held: list[Finding]
    baselined: int
    unsure: int
    gone: Counter[Identity]


_Judged = tuple[bool, Finding]
"""A finding and whether its lines changed."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a run compares its findings with; by default nothing, and every finding passes.

    ``known`` says how many findings of each identity the baseline holds, ``changes`` which lines changed. ``edited``
    are files (absolute) that fixes have rewritten since: there a known defect stays known even if its code differs.
    Findings below ``confidence`` are held back too.
    """

    known: Mapping[Identity, int] = field(default_factory=dict)
    changes: Changes | None = None
    edited: frozenset[str] = frozenset()
    confidence: Confidence = Confidence.LOW

    def after(self, before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Gate:
        """The gate for the contents after fixes."""
        changes = self.changes.after(before, after) if self.changes is not None else None
        return replace(self, changes=changes, edited=frozenset(after))

    def sift(self, findings: Iterable[Finding], sources: Mapping[str, Source], root: str) -> Sifted:
        """Decide which findings to hold back; identities are relative to ``root``.

        Of equal defects those on unchanged lines are the known ones, then the ones that are first. A file that could
        not be read and an error of ours always pass, since without them an incomplete result would look complete.
        """
        judged = [(self._changed(one, sources), one) for one in findings if one.rule not in NEVER_HELD]
        gone = Counter(self.known)
        known: list[Finding] = []
        if gone:
            from ldlm_lint.identity import Identifier

            judged.sort(key=lambda one: (one[0], one[1].order))
            known, judged = self._subtract(judged, Identifier(sources, root), gone)
        unchanged = [one for changed, one in judged if not changed]
        unsure = [one for changed, one in judged if changed and one.confidence < self.confidence]
        return Sifted([*known, *unchanged, *unsure], len(known), len(unsure), +gone)

    def _changed(self, finding: Finding, sources: Mapping[str, Source]) -> bool:
        if self.changes is None:
            return True
        span, changes = finding.span, self.changes.of(finding.span.path)
        if finding.rule == UNPARSABLE_FILE.symbol:
            # Where a parser gives up is rarely where the mistake is.
            return changes != UNCHANGED
        data = sources[span.path].data
        first = data.count(b"\n", 0, span.start) + 1
        return changes.touch(first, first + data.count(b"\n", span.start, max(span.end - 1, span.start)))

    def _subtract(
        self, judged: list[_Judged], identifier: Identifier, gone: Counter[Identity]
    ) -> tuple[list[Finding], list[_Judged]]:
        """Split the findings into those in the baseline and the rest; ``gone`` keeps the entries that were not
        found.
        """
        known: list[Finding] = []
        others: list[tuple[_Judged, Identity]] = []
        for one in judged:
            identity = identifier.of(one[1])
            if gone[identity] > 0:
                gone[identity] -= 1
                known.append(one[1])
            else:
                others.append((one, identity))
        unknown: list[_Judged] = []
        for one, identity in others:
            before = self._before_fixes(one[1].span.path, identity, gone)
            if before is None:
                unknown.append(one)
            else:
                gone[before] -= 1
                known.append(one[1])
        return known, unknown

    def _before_fixes(self, path: str, identity: Identity, gone: Counter[Identity]) -> Identity | None:
        """The known defect whose code was changed by the fix of another one."""
        if path not in self.edited:
            return None
        return next((one for one in gone if gone[one] > 0 and one._replace(code=identity.code) == identity), None)


EVERYTHING = Gate()


def stale(
    gone: Mapping[Identity, int],
    root: str,
    requested: Sequence[Path],
    checked: Collection[str],
    applies: Callable[[str, str], bool],
) -> tuple[tuple[Identity, int], ...]:
    """The known defects that are permanently gone, with their counts, in order.

    Those of files that were not ``checked`` (absolute) and still exist, or of rules that do not apply in this run
    (asked by symbol and path), may still exist. A deleted file below a ``requested`` path has no defects.
    """
    found = []
    for identity, count in sorted(gone.items()):
        path = f"{root.rstrip('/')}/{identity.path}"
        if count > 0 and applies(identity.rule, path) and (path in checked or _deleted(path, requested)):
            found.append((identity, count))
    return tuple(found)


def _deleted(path: str, requested: Sequence[Path]) -> bool:
    return not os.path.lexists(path) and any(parent in requested for parent in Path(path).parents)

