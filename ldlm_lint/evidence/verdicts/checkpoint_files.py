"""What became of checkpoint files: new ones, written over, removed first, written by several ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict, site_of
from ldlm_lint.evidence.verdicts.by_place import by_site, counted, ranks_of
from ldlm_lint.evidence.watched import WatchedRun

# Rotations that keep three are common; fewer files than this tell them from no rotation at all.
_FEWEST_FILES = 5
_UNBOUNDED = "every save writes a new file, and none is removed"
_IN_PLACE = "the checkpoint is written over the one before it"
_EVERY_RANK = "several ranks write the same checkpoint"
_REMOVED_FIRST = "the checkpoint is removed before the one that replaces it is written"

Group = Sequence[tuple[Evidence, Any]]


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge the rules about saving, by the place that saves or removes."""
    saves = [(evidence, save) for evidence, record in run.of("checkpoint_files") for save in record["saves"]]
    changes = [(evidence, change) for evidence, record in run.of("checkpoint_files") for change in record["changes"]]
    for site, group in by_site(saves):
        yield from _unbounded(run, site, group, changes)
        yield from _in_place(run, site, group, changes)
        yield from _every_rank(run, site, group)
    yield from _removed_first(run, saves, changes)


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _last_name(evidence: Evidence, save: Any, changes: Group) -> str | None:
    """What a saved file is called in the end, after all renames of its rank; None where it was removed."""
    path = save["path"]
    for other, change in changes:
        if other is not evidence or change["order"] < save["order"] or not _below(path, change["paths"][0]):
            continue
        if change["event"] != "os.rename":
            return None
        path = change["paths"][-1] + path[len(change["paths"][0]) :]
    return path


def _unbounded(run: WatchedRun, site: Site, group: Group, changes: Group) -> Iterator[Judgement]:
    names = [(evidence.run.rank, _last_name(evidence, save, changes), save["bytes"]) for evidence, save in group]
    kept = {(rank, path): size for rank, path, size in names if path is not None}
    files = {path: size for (_, path), size in kept.items()}
    removed, size = sum(path is None for _, path, _ in names), sum(files.values())
    count = f"{counted(len(group), 'save')}, {counted(len(files), 'file')} left"
    figure = Measurement("bytes left behind", float(size), "bytes", n=len(group))
    if removed:
        verdict, reason = Verdict.REFUTED, f"{count}, {removed} removed"
    elif len(group) > 1 and len(kept) <= len(group) / 2:
        verdict, reason = Verdict.REFUTED, f"{count}: the same names are written again"
    elif len(files) >= _FEWEST_FILES and len(kept) == len(group):
        verdict, reason = Verdict.VERIFIED, f"{count} ({size:,} bytes), and none was removed"
    elif len(files) > 1:
        verdict, reason = Verdict.INCONCLUSIVE, f"{count}, none removed, too few to tell from a rotation"
    else:
        return
    yield Judgement(
        "unbounded-checkpoints", _UNBOUNDED, verdict, f"{reason} {run.scope().words}", run.scope(), (site,), figure
    )


def _writers(group: Group) -> dict[tuple[str, str], set[int]]:
    """The ranks that wrote each path, by machine."""
    writers: dict[tuple[str, str], set[int]] = {}
    for evidence, save in group:
        writers.setdefault((evidence.run.host, save["path"]), set()).add(evidence.run.rank)
    return writers


def _in_place(run: WatchedRun, site: Site, group: Group, changes: Group) -> Iterator[Judgement]:
    writers = _writers(group)
    # What several ranks write was there because another of them had just written it: that is another rule's defect.
    over = [save for one, save in group if save["existed"] and len(writers[one.run.host, save["path"]]) == 1]
    moved = {change["paths"][0] for _, change in changes if change["event"] == "os.rename"}
    if over and not any(save["path"] in moved for save in over):
        largest = max(save["bytes"] for save in over)
        verdict, reason = (
            Verdict.VERIFIED,
            f"{len(over)} of {counted(len(group), 'save')} wrote over a file of up to {largest:,} bytes",
        )
    elif group and all(save["path"] in moved for _, save in group):
        verdict, reason = (
            Verdict.REFUTED,
            f"each of {counted(len(group), 'save')} wrote another file, which was renamed",
        )
    else:
        return
    yield Judgement("non-atomic-checkpoint", _IN_PLACE, verdict, f"{reason} {run.scope().words}", run.scope(), (site,))


def _every_rank(run: WatchedRun, site: Site, group: Group) -> Iterator[Judgement]:
    if run.scope().world_size < 2:
        return
    most = max(_writers(group).values(), key=len)
    if len(most) > 1:
        verdict, reason = Verdict.VERIFIED, f"{len(most)} ranks wrote the same path"
    elif run.complete:
        verdict, reason = (
            Verdict.REFUTED,
            f"{counted(len(ranks_of(group)), 'rank')} saved here, each path by one rank only",
        )
    else:
        return
    yield Judgement(
        "checkpoint-saved-by-every-rank", _EVERY_RANK, verdict, f"{reason} {run.scope().words}", run.scope(), (site,)
    )


def _removed_first(run: WatchedRun, saves: Group, changes: Group) -> Iterator[Judgement]:
    """A file that was removed and, as the next thing saved by that rank, written again under its name."""
    found: dict[tuple[str, int], tuple[Site, int]] = {}
    for evidence, change in changes:
        site = site_of(change.get("site"))
        if change["event"] == "os.rename" or site is None:
            continue
        mine = [save for other, save in saves if other is evidence]
        before = [save for save in mine if save["order"] < change["order"]]
        later = [save for save in mine if save["order"] > change["order"]]
        removed = change["paths"][0]
        only = {save["path"] for save in before if _below(save["path"], removed)} and all(
            _below(save["path"], removed) for save in before
        )
        if only and later and _below(later[0]["path"], removed):
            seen = found.get((site.path, site.line), (site, 0))
            found[site.path, site.line] = (site, seen[1] + 1)
    for site, times in found.values():
        reason = f"removed here and then written again, {counted(times, 'time')} {run.scope().words}"
        rule = "checkpoint-removed-before-replacement"
        yield Judgement(rule, _REMOVED_FIRST, Verdict.VERIFIED, reason, run.scope(), (site,))
