"""Checkpoints that pile up: saves are grouped into checkpoints, checkpoints into series, with the end of a series."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ldlm_lint.evidence.model import Evidence, Measurement, Status, Verdict
from ldlm_lint.evidence.verdicts.by_place import counted
from ldlm_lint.evidence.watched import WatchedRun

Group = Sequence[tuple[Evidence, Any]]

# Rotations that keep three are common; with fewer checkpoints than this they cannot be distinguished from no rotation.
FEWEST = 5
# Where the program has code that deletes: ten is the largest limit that libraries have by default.
FEWEST_BESIDE_DELETIONS = 11
# Where it has code that deletes checkpoints: a number written by hand may be 20, 50 or 100.
FEWEST_BESIDE_ROTATION = 101
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class Series:
    """Checkpoints whose files differ only in their numbers; files of one step are one checkpoint (shards, ranks)."""

    name: str
    # By step: the names that the files of this checkpoint have in the end.
    steps: dict[int, set[tuple[int, str]]] = field(default_factory=dict)
    removed: set[int] = field(default_factory=set)
    # Whether files are renamed repeatedly, as numbered backups are: the last of them is written over.
    shifted: bool = False
    # Checkpoints after which the training continued: code that removes old ones had its chance.
    passed: set[int] = field(default_factory=set)

    @property
    def numbered(self) -> bool:
        """Whether the names of the files or of their folder count."""
        return any("#" in part for part in self.name.split("/")[-2:])

    @property
    def names(self) -> int:
        """How many checkpoints are left: a name that is written again replaces the previous file."""
        known: set[tuple[int, str]] = set()
        count = 0
        for names in self.steps.values():
            count += bool(names - known)
            known |= names
        return count


def below(path: str, folder: str) -> bool:
    """Whether a path is a folder, or in it."""
    return path == folder or path.startswith(f"{folder}/")


class Fate(NamedTuple):
    """The fate of a saved file: its last name, how often it was renamed, and whether it was removed."""

    name: str
    renames: int
    removed: bool


def fate_of(evidence: Evidence, save: Any, changes: Group) -> Fate:
    """The fate of a saved file, after all renames by its rank and removals by any rank."""
    path, renames = save["path"], 0
    for other, change in changes:
        if not below(path, change["paths"][0]):
            continue
        renamed = change["event"] == "os.rename"
        if other is not evidence:
            # Orders of two ranks cannot be compared, steps can.
            if not renamed and other.run.host == evidence.run.host and change["step"] > save["step"]:
                return Fate(path, renames, True)
        elif change["order"] >= save["order"]:
            if not renamed:
                return Fate(path, renames, True)
            renames += 1
            path = change["paths"][-1] + path[len(change["paths"][0]) :]
    return Fate(path, renames, False)


def piled_up(run: WatchedRun, group: Group, changes: Group) -> tuple[Verdict, str, Measurement] | None:
    """Whether the checkpoints of one place pile up, as text and bytes; None if unknown."""
    files: dict[str, int] = {}
    series: dict[str, Series] = {}
    # Files that another process removed.
    missing = {id(one): frozenset(record.get("missing", ())) for one, record in run.of("checkpoint_files")}
    for evidence, save in group:
        fate = fate_of(evidence, save, changes)
        name = _NUMBER.sub("#", fate.name)
        one = series.setdefault(name, Series(name))
        one.steps.setdefault(save["step"], set()).add((evidence.run.rank, fate.name))
        if save["step"] < evidence.run.steps or evidence.run.status is Status.FINISHED:
            one.passed.add(save["step"])
        one.shifted |= fate.renames > 1
        if fate.removed or fate.name in missing[id(evidence)]:
            one.removed.add(save["step"])
        else:
            files[fate.name] = save["bytes"]
    rotation = _Rotation.of(run, group, any(one.removed for one in series.values()))
    found = _together(series.values(), rotation)
    if found is None:
        return None
    size = sum(files.values())
    figure = Measurement("bytes left behind", float(size), "bytes", n=len(group))
    left = f" ({counted(len(files), 'file')}, {size:,} bytes left)" if files else ""
    return found.verdict, f"{found.reason}{left} {run.scope().words}", figure


@dataclass(frozen=True, slots=True)
class _Rotation:
    """A possible remover of checkpoints of a place: the limit as text and number, or code that has not deleted yet;
    ``fewest`` checkpoints without a removal show that it does not remove."""

    limit: str = ""
    number: int = 0
    deletes: str = ""
    tracked: bool = False
    fewest: int = FEWEST

    @classmethod
    def of(cls, run: WatchedRun, group: Group, removes: bool) -> _Rotation:
        libraries = {name for _, save in group for name in save.get("by", ())}
        records = [record for _, record in run.of("checkpoint_files")]
        limits = [one for record in records for one in record.get("limits", ())]
        mine = [one for one in limits if not one["library"] or one["library"] in libraries]
        least = min((one for one in mine if (one["value"] or 0) > 0), key=lambda one: one["value"], default=None)
        if least is not None:
            # One callback may keep a few and another all.
            values = dict.fromkeys(str(one["value"]) for one in mine if one["name"] == least["name"])
            others = [one for one in values if one != str(least["value"])]
            beside = f" (elsewhere {', '.join(others)})" if others else ""
            return cls(f"{least['name']}={least['value']}{beside}", least["value"])
        if removes:
            return cls(deletes="the program removes other checkpoints", fewest=FEWEST_BESIDE_DELETIONS)
        records = [record for record in records if record["saves"]]
        if any("may_remove" not in record for record in records):
            reason = "the evidence does not record whether the program deletes files"
            return cls(deletes=reason, fewest=FEWEST_BESIDE_DELETIONS)
        # A library that is configured to keep all keeps all.
        unlimited = {one["library"] for one in mine} & libraries
        files = {name for record in records for name in record["may_remove"] if name.split("/")[0] not in unlimited}
        if files:
            how = next((words for record in records for words in record.get("tracks", ())), "")
            tracks = f", and the program {how}" if how else ""
            pruning = files & {name for record in records for name in record.get("prunes", ())}
            what, first = ("checkpoints", min(pruning)) if pruning else ("files", min(files))
            fewest = FEWEST_BESIDE_ROTATION if pruning else FEWEST_BESIDE_DELETIONS
            return cls(deletes=f"{first} has code that deletes {what}{tracks}", tracked=bool(how), fewest=fewest)
        named = {name for record in records for name in record["may_limit"]} if not unlimited else ()
        return cls(deletes=f"{min(named)} names a limit", fewest=FEWEST_BESIDE_DELETIONS) if named else cls()


@dataclass(frozen=True, slots=True)
class _Decided:
    verdict: Verdict
    saved: int
    reason: str


def _of_series(one: Series, rotation: _Rotation) -> _Decided | None:
    """The verdict on one series; None if there is only one checkpoint."""
    saved, kept = len(one.steps), one.names
    count = counted(saved, "checkpoint")
    if one.removed:
        return _Decided(Verdict.REFUTED, saved, f"{count} saved, {len(one.removed)} removed")
    if saved > 1 and kept <= saved / 2:
        return _Decided(Verdict.REFUTED, saved, f"{count} saved, {kept} left: the same names are written again")
    if rotation.limit:
        chance = ", so none had to be removed yet" if saved <= rotation.number else ", and none was removed"
        return _Decided(Verdict.INCONCLUSIVE, saved, f"{count} saved, and {rotation.limit} is set{chance}")
    if saved < 2:
        return None
    if one.shifted:
        return _Decided(Verdict.INCONCLUSIVE, saved, f"{count} saved, and older ones are renamed in turn")
    if kept < saved:
        return _Decided(Verdict.INCONCLUSIVE, saved, f"{count} saved, {kept} left: some names are written again")
    if not rotation.tracked and len(one.passed) >= rotation.fewest:
        return _Decided(Verdict.VERIFIED, saved, f"{count} saved, and none was removed")
    beside = f"; {rotation.deletes}" if rotation.deletes else ""
    reason = f"{count} saved, none removed, too few to exclude a rotation{beside}"
    return _Decided(Verdict.INCONCLUSIVE, saved, reason)


def _together(series: Iterable[Series], rotation: _Rotation) -> _Decided | None:
    """One verdict for the series of a place: one that piles up is enough, and an undecided one makes it
    inconclusive.
    """
    found = [(one, _of_series(one, rotation)) for one in series]
    decided = [verdict for _, verdict in found if verdict is not None]
    for wanted in (Verdict.VERIFIED, Verdict.INCONCLUSIVE, Verdict.REFUTED):
        if any(one.verdict is wanted for one in decided):
            best = max((one for one in decided if one.verdict is wanted), key=lambda one: one.saved)
            # A file under a fixed name is overwritten the next time; a numbered one may be the first of many.
            if wanted is Verdict.REFUTED and any(verdict is None and one.numbered for one, verdict in found):
                return _Decided(Verdict.INCONCLUSIVE, best.saved, f"{best.reason}; there is only one of each other file")
            return best
    return None
