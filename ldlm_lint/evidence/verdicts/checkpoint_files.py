"""The fate of checkpoint files: new, overwritten, removed first, written by several ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ldlm_lint.evidence.model import Judgement, Site, Status, Verdict, site_of
from ldlm_lint.evidence.verdicts.by_place import by_site, counted, ranks_of
from ldlm_lint.evidence.verdicts.checkpoint_series import Group, below, piled_up
from ldlm_lint.evidence.watched import WatchedRun

_UNBOUNDED = "every save writes a new file, and none is removed"
_IN_PLACE = "the checkpoint overwrites the previous one"
_EVERY_RANK = "several ranks write the same checkpoint"
_REMOVED_FIRST = "the checkpoint is removed before its replacement is written"


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """Judge the rules about saving, by the place that saves or removes."""
    saves = [(evidence, save) for evidence, record in run.of("checkpoint_files") for save in record["saves"]]
    changes = [(evidence, change) for evidence, record in run.of("checkpoint_files") for change in record["changes"]]
    first = _written_from(saves, changes)
    for site, group in by_site(saves):
        places = (site, *_callers(group))
        if (piled := piled_up(run, group, changes)) is not None:
            verdict, reason, figure = piled
            yield Judgement("unbounded-checkpoints", _UNBOUNDED, verdict, reason, run.scope(), places, figure)
        yield from _in_place(run, places, group, changes, first)
        yield from _every_rank(run, places, group)
    yield from _removed_first(run, saves, changes)


def _callers(group: Group) -> tuple[Site, ...]:
    """Where the function that saves was called from, the innermost first; empty if that differed."""
    chains = {tuple(map(site_of, save.get("callers", ()))) for _, save in group}
    return tuple(one for one in chains.pop() if one is not None) if len(chains) == 1 else ()


def _writers(group: Group) -> dict[tuple[str, str], set[int]]:
    """The ranks that wrote each path, by machine."""
    writers: dict[tuple[str, str], set[int]] = {}
    for evidence, save in group:
        writers.setdefault((evidence.run.host, save["path"]), set()).add(evidence.run.rank)
    return writers


def _in_place(
    run: WatchedRun, places: tuple[Site, ...], group: Group, changes: Group, first: Mapping[tuple[int, str], int]
) -> Iterator[Judgement]:
    # Of a sharded checkpoint only the last written file was seen.
    group = [(one, save) for one, save in group if not save.get("sharded")]
    writers = _writers(group)
    existed = [(one, save) for one, save in group if save["existed"]]
    moved = {change["paths"][0] for _, change in changes if change["event"] == "os.rename"}
    # Overwriting another rank's new file is another rule's defect. A file of an earlier run is overwritten once, which
    # shows nothing about this run's own checkpoints.
    over = [save for one, save in existed if first[id(one), save["path"]] < save["order"]]
    existed = [(one, save) for one, save in existed if len(writers[one.run.host, save["path"]]) == 1]
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
    elif existed and not over and not any(save["path"] in moved for _, save in existed):
        verdict, reason = (
            Verdict.INCONCLUSIVE,
            f"{counted(len(existed), 'save')} overwrote a file from before the run, none a file of the run",
        )
    else:
        return
    yield Judgement("non-atomic-checkpoint", _IN_PLACE, verdict, f"{reason} {run.scope().words}", run.scope(), places)


def _written_from(saves: Group, changes: Group) -> dict[tuple[int, str], int]:
    """For each process and file, when in its order it was first written, or got its name, in this run."""
    first: dict[tuple[int, str], int] = {}
    moves = [(one, change["paths"][-1], change["order"]) for one, change in changes if change["event"] == "os.rename"]
    for one, path, order in [*((one, save["path"], save["order"]) for one, save in saves), *moves]:
        first[id(one), path] = min(order, first.get((id(one), path), order))
    return first


def _had_its_chance(run: WatchedRun, save: Any) -> bool:
    """Whether each rank continued after the step of a save: one killed there might have saved as well."""
    return all(one.run.steps > save["step"] or one.run.status is Status.FINISHED for one in run.ranks)


def _every_rank(run: WatchedRun, places: tuple[Site, ...], group: Group) -> Iterator[Judgement]:
    if run.scope().world_size < 2:
        return
    most = max(_writers(group).values(), key=len)
    if len(most) > 1:
        verdict, reason = Verdict.VERIFIED, f"{len(most)} ranks wrote the same path"
    elif run.complete and any(_had_its_chance(run, save) for _, save in group):
        verdict, reason = (
            Verdict.REFUTED,
            f"{counted(len(ranks_of(group)), 'rank')} saved here, each path by one rank only",
        )
    else:
        return
    yield Judgement(
        "checkpoint-saved-by-every-rank", _EVERY_RANK, verdict, f"{reason} {run.scope().words}", run.scope(), places
    )


def _removed_first(run: WatchedRun, saves: Group, changes: Group) -> Iterator[Judgement]:
    """A file that was removed and written again under its name as the next save of that rank."""
    found: dict[tuple[str, int], tuple[Site, int]] = {}
    for evidence, change in changes:
        site = site_of(change.get("site"))
        if change["event"] == "os.rename" or site is None:
            continue
        mine = [save for other, save in saves if other is evidence]
        before = [save for save in mine if save["order"] < change["order"]]
        later = [save for save in mine if save["order"] > change["order"]]
        removed = change["paths"][0]
        # A file that is deleted right after writing (to measure its size) is not a replaced checkpoint.
        if before and before[-1]["step"] >= change["step"]:
            continue
        only = {save["path"] for save in before if below(save["path"], removed)} and all(
            below(save["path"], removed) for save in before
        )
        if only and later and below(later[0]["path"], removed):
            seen = found.get((site.path, site.line), (site, 0))
            found[site.path, site.line] = (site, seen[1] + 1)
    for site, times in found.values():
        reason = f"removed here and then written again, {counted(times, 'time')} {run.scope().words}"
        rule = "checkpoint-removed-before-replacement"
        yield Judgement(rule, _REMOVED_FIRST, Verdict.VERIFIED, reason, run.scope(), (site,))
