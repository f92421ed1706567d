"""Fixes that belong together become one fix, and a dangerous part of a fix is never offered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from ldlm_lint.files.edited import edit_key, overlap
from ldlm_lint.model import Edit, Finding, Fix


def merge_groups(findings: Iterable[Finding], withdrawn: Collection[Finding]) -> list[Finding]:
    """Give all findings of one `Fix.group` one merged fix.

    ``withdrawn`` are the suppressed and deselected findings: they are not returned (even if ``findings`` contains
    them), their edits take no part, and a group that loses a ``whole`` fix to them loses its fix. A member whose edits
    overlap those of an earlier one (in order of code, then position), or whose isolation is another one, keeps its own
    fix; in a whole group that again means no fix, since it could only be applied in parts. The order of the remaining
    findings is kept.
    """
    gone = _Members(withdrawn)
    live = [finding for finding in findings if finding not in gone]
    # A member that is not `whole` repeats edits of others, so the group does not need it.
    incomplete = {finding.fix.group for finding in withdrawn if finding.fix and finding.fix.whole}
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in live:
        if finding.fix and finding.fix.group:
            groups[finding.fix.group].append(finding)
    merged = {name: _Merged(members, name in incomplete) for name, members in groups.items()}
    return [
        finding._replace(fix=merged[finding.fix.group].fix_of(finding))
        if finding.fix and finding.fix.group
        else finding
        for finding in live
    ]


class _Members:
    """Membership by equality without hashing: a finding's arguments need not be hashable."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._by_order: dict[object, list[Finding]] = defaultdict(list)
        for finding in findings:
            self._by_order[finding.order].append(finding)

    def __contains__(self, finding: Finding) -> bool:
        return finding in self._by_order.get(finding.order, ())


class _Merged:
    """The fix of one group and the fixes that could not join it."""

    def __init__(self, members: Sequence[Finding], incomplete: bool) -> None:
        fixes = [finding.fix for finding in sorted(members, key=lambda f: (f.code, f.order)) if finding.fix]
        joined, self._separate = _partition(fixes)
        whole = any(fix.whole for fix in fixes)
        self._withdrawn = incomplete or (whole and bool(self._separate))
        self._fix = _join(joined)

    def fix_of(self, finding: Finding) -> Fix | None:
        """The fix that a member carries."""
        if self._withdrawn:
            return None
        return finding.fix if finding.fix in self._separate else self._fix


def _partition(fixes: Sequence[Fix]) -> tuple[list[Fix], list[Fix]]:
    """The fixes that can be one, and those that overlap an earlier one or are isolated from other fixes than it."""
    joined: list[Fix] = []
    separate: list[Fix] = []
    edits: list[Edit] = []
    isolation = next((fix.isolation for fix in fixes if fix.isolation), "")
    for fix in fixes:
        alone = fix.isolation not in ("", isolation)
        if alone or any(overlap(new, old) for new in fix.edits for old in edits):
            separate.append(fix)
        else:
            joined.append(fix)
            edits.extend(fix.edits)
    return joined, separate


def _join(fixes: Sequence[Fix]) -> Fix:
    first = fixes[0]
    if all(fix == first for fix in fixes):
        return first
    titles = list(dict.fromkeys(fix.title for fix in fixes))
    return Fix(
        title="; ".join([titles[0], *(_continued(title) for title in titles[1:])]),
        edits=_union(edit for fix in fixes for edit in fix.edits),
        applicability=min(fix.applicability for fix in fixes),
        reason="; ".join(dict.fromkeys(fix.reason for fix in fixes if fix.reason)),
        group=first.group,
        whole=any(fix.whole for fix in fixes),
        isolation=next((fix.isolation for fix in fixes if fix.isolation), ""),
        trade="; ".join(dict.fromkeys(fix.trade for fix in fixes if fix.trade)),
        needs=tuple(dict.fromkeys(one for fix in fixes for one in fix.needs)),
    )


def _union(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Identical edits once; insertions at one point are concatenated in the given order."""
    result: dict[object, Edit] = {}
    for edit in dict.fromkeys(edits):
        earlier = result.get(edit.span)
        result[edit.span] = edit._replace(text=earlier.text + edit.text) if earlier else edit
    return tuple(sorted(result.values(), key=edit_key))


def _continued(title: str) -> str:
    """A title as continued after a semicolon; names such as ``NCCL_TIMEOUT`` keep their case."""
    word = title.split(" ", 1)[0]
    return title[:1].lower() + title[1:] if word.istitle() else title
