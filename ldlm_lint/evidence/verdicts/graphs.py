"""Graphs of autograd that are retained unnecessarily, or outlive their iteration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ldlm_lint.evidence.model import Evidence, Judgement, Measurement, Site, Verdict, site_of
from ldlm_lint.evidence.verdicts.by_place import counted
from ldlm_lint.evidence.verdicts.grouping import Place, judgement, parts, places
from ldlm_lint.evidence.watched import WatchedRun

# A walk over a graph ends here; the rest is unknown.
MOST_NODES = 20_000
# Losses of so many earlier iterations at the end mean that they are kept; for the opposite at least so many iterations.
FEWEST_KEPT, FEWEST_ITERATIONS = 3, 5


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
    whole = all(number < MOST_NODES for one in place.records for number in one["nodes"])
    if again:
        verdict, reason = (
            Verdict.REFUTED,
            f"a later backward pass went through {again} of {counted(observed, 'retained graph')}",
        )
    elif observed >= 2 and whole:
        verdict, reason = (
            Verdict.VERIFIED,
            f"no later backward pass went through any of {counted(observed, 'retained graph')}",
        )
    else:
        verdict, reason = Verdict.INCONCLUSIVE, f"only {counted(observed, 'retained graph')} could be followed to the end"
    measured = Measurement("retained-graphs", again, "graphs used again", n=observed)
    claim = "the retained graph is not used again"
    yield judgement(run, "graph-retained-on-backward", claim, verdict, reason, (place.site,), measured)


def _kept(run: WatchedRun, backwards: list[Site]) -> Iterable[Judgement]:
    found = list(run.of("graphs"))
    counts = [values["alive"] for _, values in found]
    lasting = [one for one in counts if one and one[-1] >= FEWEST_KEPT]
    if lasting:
        alive, steps = max((one[-1], len(one)) for one in lasting)
        keepers = [record for _, values in found for record in values["kept_by"]]
        verdict = Verdict.VERIFIED
        by = f", kept by {_named(keepers)}" if keepers else ""
        reason = (
            f"losses of {alive} earlier iterations were alive with their graphs after {counted(steps, 'iteration')}{by}"
        )
    elif counts and all(len(one) >= FEWEST_ITERATIONS and max(one) <= 1 for one in counts):
        alive, keepers, verdict = max(max(one) for one in counts), [], Verdict.REFUTED
        reason = "the graph of every loss was freed by the end of the next iteration"
    else:
        return
    sites = _sites(found) or backwards
    measured = Measurement(
        "live-autograd-nodes", alive, "losses", n=max(map(len, counts)), detail={"alive": list(counts[0])}
    )
    claim = "the graphs of past losses are kept alive"
    yield judgement(run, "loss-graph-accumulation", claim, verdict, reason, sites, measured)


def _named(keepers: list[Mapping[str, Any]]) -> str:
    return ", ".join(dict.fromkeys(f"`{one['name']}` ({one['type']})" for one in keepers))


def _sites(found: list[tuple[Evidence, Mapping[str, Any]]]) -> list[Site]:
    """The lines that add to the containers of the graphs, each once."""
    sites = [site for _, values in found for one in values["kept_by"] if (site := site_of(one.get("site")))]
    return list({(one.path, one.line, one.end_line): one for one in sites}.values())
