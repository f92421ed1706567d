"""Evidence as input of a check: every judgement with its run, and the files of that run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ldlm_lint.evidence import files
from ldlm_lint.evidence.model import Evidence, Judgement, Site
from ldlm_lint.evidence.places import followed, line_map
from ldlm_lint.evidence.verdicts import assess
from ldlm_lint.model import Edit

MOST_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement and its origin: the root that its paths are relative to, and the kind of the run.

    ``hashes`` are the files that the run is known to have used, by path: statements about the whole run are stale as
    soon as one of them has changed. ``seen`` are the places where it observed something, for any rule.
    """

    judgement: Judgement
    root: str = ""
    kind: str = "watch"
    hashes: Mapping[str, str] = field(default_factory=dict)
    seen: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Dossier:
    """All evidence of one check.

    ``notes`` list evidence that could not be judged. ``started`` are the contents of files (by absolute path) before
    this run changed them: while fixes are applied, evidence is compared with these, and ``moves`` maps their lines to
    the current ones. ``answered`` are the judgements (by index) that findings had before the fixes: they create no
    separate finding once their defect is fixed.
    """

    judged: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()
    started: Mapping[str, bytes] = field(default_factory=dict)
    moves: Mapping[str, Sequence[int]] = field(default_factory=dict)
    answered: frozenset[int] = frozenset()

    def before(self, contents: Mapping[str, bytes]) -> Dossier:
        """The dossier for rounds of fixes that begin with these contents."""
        return dataclasses.replace(self, started=contents)

    def after(self, contents: Mapping[str, bytes], edits: Iterable[Edit]) -> Dossier:
        """The dossier after edits to these contents."""
        by_path: dict[str, list[Edit]] = {}
        for edit in edits:
            by_path.setdefault(edit.span.path, []).append(edit)
        maps = {path: line_map(contents[path], found) for path, found in by_path.items()}
        moves = {path: followed(self.moves[path], then) if path in self.moves else then for path, then in maps.items()}
        return dataclasses.replace(self, moves={**self.moves, **moves})

    def without(self, answered: frozenset[int]) -> Dossier:
        """The dossier for the remaining findings after fixes; these judgements had findings before."""
        return dataclasses.replace(self, answered=answered)


def load(places: Sequence[Path], target: str = "") -> Dossier:
    """Read and judge evidence files or folders of them; raises EvidenceError for an unusable one.

    ``target`` is the device that the verdicts are about, ``cpu`` or ``cuda``; empty: an accelerator.
    """
    found, faults = files.gather(places)
    made = dossier(found, target)
    return dataclasses.replace(made, notes=(*faults, *made.notes))


def dossier(evidence: Sequence[Evidence], target: str = "") -> Dossier:
    """The judgements of evidence, run by run, so that each has the root of its paths."""
    runs: dict[tuple[str, str], list[Evidence]] = {}
    for one in evidence:
        runs.setdefault((one.run.kind, one.run.run_id), []).append(one)
    judged: list[Judged] = []
    notes: list[str] = []
    for (kind, _), ranks in runs.items():
        assessed = assess(ranks, target)
        seen = tuple(dict.fromkeys(site for one in ranks for site in _sites(one.observations, 0)))
        hashes = {site.path: site.sha256 for site in seen}
        judged += [Judged(judgement, ranks[0].run.root, kind, hashes, seen) for judgement in assessed.judgements]
        notes += assessed.notes
    return Dossier(tuple(judged), tuple(dict.fromkeys(notes)))


def _sites(value: Any, depth: int) -> Iterator[Site]:
    """All sites inside of observations; deeper nesting than our files have is ignored."""
    if depth > MOST_DEPTH:
        return
    if isinstance(value, Mapping):
        path, sha, line = value.get("path"), value.get("sha256"), value.get("line")
        if isinstance(path, str) and isinstance(sha, str) and path and sha:
            yield Site(path, line if isinstance(line, int) else 0, sha256=sha)
        for one in value.values():
            yield from _sites(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            yield from _sites(one, depth + 1)
