"""Applying fixes to contents in memory, in rounds until nothing changes, each round validated."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ldlm_lint.autofix.resolve import choose, well_formed
from ldlm_lint.autofix.validate import VALIDATORS, Validator, kind_of
from ldlm_lint.files.edited import apply_edits, edit_key
from ldlm_lint.model import Applicability, Edit, Finding, Fix
from ldlm_lint.source import Kind, Source, UnreadableError

MAX_ROUNDS = 20

Contents = Mapping[str, bytes]
"""Paths, as `Span.path` has them, to the bytes of the files."""

FixIdentity = tuple[tuple[str, bytes, bytes, str], ...]
"""What `identity_of` knows a fix by."""


class Rejection(NamedTuple):
    """A fix that was left out: the rules that proposed it, the file it would have broken, and how."""

    rules: tuple[str, ...]
    path: str
    title: str
    reason: str


class Applied(NamedTuple):
    """A fixed finding: its rule, and where it was in the text that its round began with (in a notebook: in which cell)."""

    rule: str
    path: str
    line: int
    cell: int | None = None


class FixResult(NamedTuple):
    """What fixing would change; nothing is written yet.

    ``changed`` holds the new bytes of the files that differ, ``places`` the fixed findings in the order of rounds and files,
    ``rounds`` how many rounds changed something. Without ``converged`` the rules in ``unsettled`` were
    still proposing fixes after the last round.
    """

    changed: Contents
    places: tuple[Applied, ...] = ()
    rejected: tuple[Rejection, ...] = ()
    rounds: int = 0
    converged: bool = True
    unsettled: tuple[str, ...] = ()

    @property
    def applied(self) -> Mapping[str, int]:
        """The number of fixed findings by rule symbol."""
        return dict(Counter(place.rule for place in self.places))


def fix_files(
    report_of: Callable[[Contents], Iterable[Finding]],
    files: Contents,
    limit: Applicability,
    *,
    validators: Mapping[Kind, Validator] = VALIDATORS,
    kind_of: Callable[[str, bytes], Kind] = kind_of,
    max_rounds: int = MAX_ROUNDS,
    applied_to: Callable[[Contents, Iterable[Edit]], None] = lambda _before, _edits: None,
) -> FixResult:
    """Apply all fixes of at least ``limit`` until no more are proposed, at most ``max_rounds`` times.

    ``report_of`` lints with the given files instead of those on disk and returns findings with merged fixes; ``files``
    are the files that may be changed. If a round breaks a file, according to the validator of its kind, it is reverted
    for that file; then the fixes at fault are found and left out permanently. A fix over several files is applied to
    all of them or to none. ``applied_to`` is called after each round with the edits and contents, to follow places
    through them.
    """
    kinds = _Kinds(validators, kind_of)
    current = dict(files)
    places: list[Applied] = []
    rejected: dict[FixIdentity, Rejection] = {}
    rounds = 0
    step = _Step()
    for attempt in range(max_rounds + 1):
        changed = {path: data for path, data in current.items() if data != files[path]}
        step = _step(report_of(changed), current, limit, rejected.keys(), kinds)
        rejected.update(step.rejected)
        if not step.new and not step.rejected:
            return FixResult(changed, tuple(places), _unique(rejected.values()), rounds)
        if attempt < max_rounds:
            applied_to(current, step.edits)
            current.update(step.new)
            places += step.applied
            rounds += bool(step.new)
    unsettled = tuple(sorted({*(place.rule for place in step.applied), *(rule for r in step.rejected.values() for rule in r.rules)}))
    return FixResult(changed, tuple(places), _unique(rejected.values()), rounds, False, unsettled)


class _Kinds(NamedTuple):
    """The parts that depend on the kind of a file: its validator and its encoding."""

    validators: Mapping[Kind, Validator]
    kind_of: Callable[[str, bytes], Kind]

    def problem(self, current: Contents, fixes: Sequence[Fix], paths: Collection[str]) -> tuple[str, str] | None:
        """The first of the files at ``paths`` that the fixes would break, and how."""
        new = self.contents(fixes, current)
        for path in sorted(paths):
            edits = {edit for fix in fixes for edit in fix.edits if edit.span.path == path}
            reason = self.validators[self.kind_of(path, current[path])](current[path], new[path], edits)
            if reason:
                return path, reason
        return None

    def contents(self, fixes: Iterable[Fix], current: Contents) -> dict[str, bytes]:
        """The new bytes of all files that the fixes edit; raises the errors of `apply_edits` and `Source`."""
        edits: dict[str, list[Edit]] = defaultdict(list)
        for fix in fixes:
            for edit in fix.edits:
                edits[edit.span.path].append(edit)
        return {path: apply_edits(current[path], group, self._encoding(path, current)) for path, group in edits.items()}

    def _encoding(self, path: str, current: Contents) -> str:
        data = current[path]
        return Source.from_bytes(path, data, self.kind_of(path, data)).encoding


@dataclass(frozen=True, slots=True)
class _Step:
    """The result of one round: new bytes and their edits, the fixed findings, fixes that must not be tried again."""

    new: Contents = field(default_factory=dict)
    edits: frozenset[Edit] = frozenset()
    applied: tuple[Applied, ...] = ()
    rejected: Mapping[FixIdentity, Rejection] = field(default_factory=dict)


def _step(
    findings: Iterable[Finding],
    current: Contents,
    limit: Applicability,
    excluded: Collection[FixIdentity],
    kinds: _Kinds,
) -> _Step:
    """One round: of the usable fixes the disjoint ones, and of those the ones that break nothing."""
    fixed: dict[frozenset[Edit], list[Finding]] = defaultdict(list)
    fixes: list[Fix] = []
    for finding in findings:
        if finding.fix and finding.fix.edits and finding.fix.reaches(limit):
            fixed[frozenset(finding.fix.edits)].append(finding)
            fixes.append(finding.fix)
    usable: list[Fix] = []
    rejected: dict[FixIdentity, Rejection] = {}

    def reject(fix: Fix, path: str, reason: str) -> None:
        names = tuple(sorted({finding.rule for finding in fixed[frozenset(fix.edits)]}))
        rejected[identity_of(fix, current)] = Rejection(names, path, fix.title, reason)

    for fix in fixes:
        if identity_of(fix, current) in excluded:
            continue
        defect = _defect(fix, current, kinds)
        if defect:
            reject(fix, *defect)
        elif any(current[path] != data for path, data in kinds.contents([fix], current).items()):
            usable.append(fix)
    accepted, broken = _sift(choose(usable, limit), current, kinds)
    for fix, path, reason in broken:
        reject(fix, path, reason)
    found = (_applied(finding, current) for fix in accepted for finding in fixed[frozenset(fix.edits)])
    applied = sorted(found, key=lambda one: (one.path, one.line, one.rule))
    edits = frozenset(edit for fix in accepted for edit in fix.edits)
    return _Step(kinds.contents(accepted, current), edits, tuple(applied), rejected)


def _applied(finding: Finding, current: Contents) -> Applied:
    """Where a finding is that is being fixed."""
    path, start, _, cell = finding.span
    return Applied(finding.rule, path, current.get(path, b"").count(b"\n", 0, start) + 1, cell)


def _defect(fix: Fix, current: Contents, kinds: _Kinds) -> tuple[str, str] | None:
    """The file and the reason for which a fix cannot be applied to begin with."""
    first = fix.edits[0].span.path
    for edit in fix.edits:
        if edit.span.path not in current:
            return edit.span.path, "the file is not among the files to fix"
    if not well_formed(fix):
        return first, "its edits overlap"
    try:
        kinds.contents([fix], current)
    except (ValueError, UnreadableError) as error:
        return first, str(error)
    return None


def _sift(
    chosen: Sequence[Fix], current: Contents, kinds: _Kinds, kept: Sequence[Fix] = ()
) -> tuple[list[Fix], list[tuple[Fix, str, str]]]:
    """Split disjoint fixes into those that can stay and those that break a file, with that file and the reason.

    ``kept`` are fixes already accepted. A group that breaks a file is halved until each fix at fault is isolated.
    """
    paths = {edit.span.path for fix in chosen for edit in fix.edits}
    problem = kinds.problem(current, [*kept, *chosen], paths)
    if problem is None:
        return [*kept, *chosen], []
    if len(chosen) == 1:
        return list(kept), [(chosen[0], *problem)]
    half = len(chosen) // 2
    stay, broken = _sift(chosen[:half], current, kinds, kept)
    stay, more = _sift(chosen[half:], current, kinds, stay)
    return stay, broken + more


def identity_of(fix: Fix, current: Contents) -> FixIdentity:
    """The identity of a fix in later rounds, when its bytes may have moved: its changes and lines."""
    parts = []
    for edit in sorted(fix.edits, key=edit_key):
        data, span = current.get(edit.span.path, b""), edit.span
        start = data.rfind(b"\n", 0, span.start) + 1
        end = data.find(b"\n", span.end)
        parts.append((span.path, data[start : end if end >= 0 else len(data)], data[span.start : span.end], edit.text))
    return tuple(parts)


def _unique(rejections: Iterable[Rejection]) -> tuple[Rejection, ...]:
    """The rejections once each, in an order that does not depend on the order of findings."""
    return tuple(sorted(set(rejections), key=lambda r: (r.path, r.rules, r.title, r.reason)))
