"""Graphs of autograd that are retained unnecessarily, or outlive their iteration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict, site_of
from ldlm_lint.evidence.settling import STEPS
from ldlm_lint.evidence.verdicts.by_place import counted
from ldlm_lint.evidence.verdicts.grouping import Place, judgement, parts, places
from ldlm_lint.evidence.watched import WatchedRun

# A walk over a graph ends here; the rest is unknown.
MOST_NODES = 20_000
# Losses of so many earlier iterations at the end mean that they are kept; for the opposite at least so many iterations.
FEWEST_KEPT, FEWEST_ITERATIONS = 3, 5
# Common windows keep the last 10, 20, 50 or 100 losses: code that also removes losses, or that was not found, may do it
# after so many.
FEWEST_BESIDE_REMOVALS, FEWEST_WITHOUT_NAME = 100, 32
# Some programs use a retained graph only in every fifth step, some in every tenth.
FEWEST_FOLLOWED = 10


def judge(run: WatchedRun) -> Iterable[Judgement]:
    """The judgements about backward passes and the losses behind them."""
    walks = places(parts(run, "graphs", "backwards"))
    for place in walks:
        yield from _retained(run, place)
    yield from _kept(run, [place.site for place in walks])


def _retained(run: WatchedRun, place: Place) -> Iterable[Judgement]:
    retained, observed, again = (place.total(key) for key in ("retained", "retained_observed", "walked_again"))
    if not retained or place.total("create_graph"):
        return
    followed = min((int(values.get("followed") or 0) for _, values in run.of("graphs")), default=0)
    settled_by = ""
    whole = all(number < MOST_NODES for one in place.records for number in one["nodes"])
    if again:
        verdict, reason = (
            Verdict.REFUTED,
            f"a later backward pass went through {again} of {counted(observed, 'retained graph')}",
        )
    elif more := place.total("with_more_passes"):
        passes = "pass, which" if more == 1 else "passes, which"
        reason = f"{counted(more, 'iteration')} had more backward {passes} could not be followed and may use the graph"
        verdict = Verdict.INCONCLUSIVE
    elif observed >= 2 and whole and followed >= FEWEST_FOLLOWED:
        verdict, reason = (
            Verdict.VERIFIED,
            f"no later backward pass went through any of {counted(observed, 'retained graph')}",
        )
    elif observed >= 2 and whole:
        seen = counted(followed or observed, "iteration")
        reason = f"not used again in {seen}; some programs use it only in every tenth"
        verdict, settled_by = Verdict.INCONCLUSIVE, STEPS
    else:
        verdict, reason = Verdict.INCONCLUSIVE, f"only {counted(observed, 'retained graph')} could be followed to the end"
    measured = Measurement("retained-graphs", again, "graphs used again", n=observed)
    claim = "the retained graph is not used again"
    made = judgement(run, "graph-retained-on-backward", claim, verdict, reason, (place.site,), measured)
    yield dataclasses.replace(made, settled_by=settled_by)


def _kept(run: WatchedRun, backwards: list[Site]) -> Iterable[Judgement]:
    found = list(run.of("graphs"))
    counts = [values["alive"] for _, values in found]
    lasting = [one for one in counts if one and one[-1] >= FEWEST_KEPT]
    keepers: list[Mapping[str, Any]] = []
    settled_by = ""
    if lasting:
        alive, steps = max((one[-1], len(one)) for one in lasting)
        keepers = [record for _, values in found for record in values["kept_by"]]
        by = f", kept by {_named(keepers)}" if keepers else ""
        reason = (
            f"losses of {alive} earlier iterations were alive with their graphs after {counted(steps, 'iteration')}{by}"
        )
        verdict, more, settled_by = _grown(lasting, keepers)
        reason += more
    elif counts and all(len(one) >= FEWEST_ITERATIONS and max(one) <= 1 for one in counts):
        alive, verdict = max(max(one) for one in counts), Verdict.REFUTED
        reason = "the graph of every loss was freed by the end of the next iteration"
    else:
        return
    sites = _sites(found) or backwards
    measured = Measurement(
        "live-autograd-nodes", alive, "losses", n=max(map(len, counts)), detail={"alive": list(counts[0])}
    )
    claim = "the graphs of past losses are kept alive"
    made = judgement(run, "loss-graph-accumulation", claim, verdict, reason, sites, measured)
    yield dataclasses.replace(made, settled_by=settled_by)


def _grown(counts: Sequence[Sequence[int]], keepers: Sequence[Mapping[str, Any]]) -> tuple[Verdict, str, str]:
    """The verdict on losses that are alive at the end: are more and more kept, or at most a number of them? With a text
    and what would decide it."""
    if all(map(_stopped, counts)):
        most = max(map(max, counts))
        return Verdict.REFUTED, f"; their number stopped growing at {most}, so they do not accumulate", ""
    alive = max(one[-1] for one in counts)
    limited = [one for one in keepers if one.get("most") is not None]
    # What is computed from the elements of a queue holds the same graphs.
    widest = max((one["iterations"] for one in keepers), default=0)
    if any(one["iterations"] == widest for one in limited):
        limits = {one["name"]: one["most"] for one in limited}
        if alive > sum(limits.values()):
            return Verdict.VERIFIED, "", ""
        shown = ", ".join(f"`{name}` holds at most {most}" for name, most in limits.items())
        return Verdict.INCONCLUSIVE, f"; {shown}", STEPS
    if not keepers and alive < FEWEST_WITHOUT_NAME:
        return Verdict.INCONCLUSIVE, "; what keeps them was not found, and it may keep a limited number", STEPS
    if keepers and all(one.get("shortened") for one in keepers) and alive < FEWEST_BESIDE_REMOVALS:
        return Verdict.INCONCLUSIVE, "; the program also removes from it, and may do so later", STEPS
    return Verdict.VERIFIED, "", ""


def _stopped(alive: Sequence[int]) -> bool:
    """Whether the number of kept losses stayed at its highest for longer than it took to reach it."""
    most = max(alive)
    first = alive.index(most)
    return len(alive) > 2 * first and min(alive[first:]) >= most - 1


def _named(keepers: list[Mapping[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(f"`{one['name']}` ({one['type']})" for one in keepers))


def _sites(found: list[tuple[Evidence, Mapping[str, Any]]]) -> list[Site]:
    """The lines that add to the containers of the graphs, each once."""
    sites = [site for _, values in found for one in values["kept_by"] if (site := site_of(one.get("site")))]
    return list({(one.path, one.line, one.end_line): one for one in sites}.values())
