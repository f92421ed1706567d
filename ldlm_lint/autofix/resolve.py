"""Selects fixes that can be applied together: by position alone, independent of the order of findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ldlm_lint.files.edited import edit_key, overlap
from ldlm_lint.model import Applicability, Edit, Fix


def choose(fixes: Iterable[Fix], limit: Applicability) -> list[Fix]:
    """The fixes of at least ``limit`` that can be applied in one go, ordered by their first edit.

    A fix is taken if all its edits are disjoint from those taken before; an edit that equals a taken one is no
    conflict, and fixes with the same edits are taken once. Of those with the same `Fix.isolation` the first one is
    taken. A fix without edits or with conflicting edits is never taken. The others get their turn in the next round.
    """
    chosen: list[Fix] = []
    seen: set[frozenset[Edit]] = set()
    isolated: set[str] = set()
    taken: dict[str, list[Edit]] = defaultdict(list)
    for fix in sorted((fix for fix in fixes if fix.reaches(limit) and well_formed(fix)), key=_fix_key):
        edits = frozenset(fix.edits)
        if (
            edits in seen
            or fix.isolation in isolated
            or any(conflict(edit, other) for edit in edits for other in taken[edit.span.path])
        ):
            continue
        chosen.append(fix)
        seen.add(edits)
        isolated.update([fix.isolation] if fix.isolation else ())
        for edit in edits:
            taken[edit.span.path].append(edit)
    return chosen


def well_formed(fix: Fix) -> bool:
    """Whether a fix has edits and none of them overlaps another one of the same fix."""
    edits = sorted(set(fix.edits), key=edit_key)
    return bool(edits) and not any(
        overlap(left, right) or _same_point(left, right)
        for index, left in enumerate(edits)
        for right in edits[index + 1 :]
    )


def conflict(left: Edit, right: Edit) -> bool:
    """Whether edits of two fixes conflict.

    Stricter than `overlap`: text inserted where the other fix inserts, or at the border of what it replaces, may depend
    on removed bytes (a comma next to an argument that is deleted), so it waits for the next round.
    """
    if left == right or left.span.path != right.span.path:
        return False
    if left.span.start == left.span.end or right.span.start == right.span.end:
        return left.span.start <= right.span.end and right.span.start <= left.span.end
    return overlap(left, right)




def _same_point(left: Edit, right: Edit) -> bool:
    return left.span == right.span


def _fix_key(fix: Fix) -> tuple[object, ...]:
    """A total order, so that even of fixes with the same edits always the same one is taken."""
    keys = [edit_key(edit) for edit in fix.edits]
    return (sorted(set(keys)), -fix.applicability, fix.title, fix.reason, fix.group, fix.whole, fix.isolation, fix.trade, keys)
