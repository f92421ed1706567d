"""Questions about checkpoints: which processes write them."""

from __future__ import annotations

from ldlm_lint.concepts.path_patterns import PathPatterns
from ldlm_lint.model import Finding, Related, Span
from ldlm_lint.program.handles import Call
from ldlm_lint.project.node_launches import NodeLaunch, launches_on_nodes
from ldlm_lint.project.questions.base import Context, Question, Verdict
from ldlm_lint.project.ranks import Way
from ldlm_lint.python.checkpoint_words import disk_of
from ldlm_lint.python.flow import CallSite
from ldlm_lint.wording import quoted


def _every_rank_saves(context: Context, finding: Finding, subject: str) -> Verdict:
    """Every rank of a training reaches the save, or the first of every node, and the file name does not distinguish
    them."""
    path = finding.span.path
    position, names, parameters, disk = (*subject.split("|"), "", "", "")[:4]
    call = next((one for one in context.project.flow(path).calls if one.position == position), None)
    if call is None or context.project.is_test(path):
        return Verdict(False)
    ranks = context.ranks
    if ranks.named_by_rank_here(path, names.split()):
        return Verdict(False)
    for way in ranks.ways(path, call):
        # The texts of all trainings are read for this: to most saves no way leads.
        if ranks.named_by_rank(path, names.split()):
            return Verdict(False)
        if not _can_be_taken(context, path, call, way):
            continue
        if way.last is None:
            return Verdict(True, args=(("where", _name(path)),))
        caller, last = way.last
        if parameters and ranks.passes_rank(caller, last, (path, call.scope), parameters.split()):
            continue
        note = "every rank reaches this call and saves"
        return Verdict(True, (Related(_shown(context, way), note),), (("where", _name(way.start[0])),))
    return Verdict(False) if ranks.guarded(path, call) else _by_nodes(context, path, call, names, parameters, disk)


def _can_be_taken(context: Context, path: str, save: CallSite, way: Way) -> bool:
    """Whether the arguments on a way can lead to the save: ``checkpoint(path)`` may only load."""
    chain: list[Call] = []
    for where, one in ((path, save), *way.calls):
        call = _call_at(context, where, one.position)
        if call is None:
            break
        chain.append(call)
    return context.view.may_lead(chain)


def _shown(context: Context, way: Way) -> Span:
    """The call that shows a way: the last one, or the first that may go to several classes: which of them saves is decided by
    the run, and that all ranks come to this call is not."""
    path, call = next((one for one in reversed(way.calls) if _is_undecided(context, *one)), way.calls[0])
    return context.line_span(path, int(call.position.partition(":")[0]))


def _is_undecided(context: Context, path: str, call: CallSite) -> bool:
    found = _call_at(context, path, call.position)
    return found is not None and len(found.targets) > 1


def _call_at(context: Context, path: str, position: str) -> Call | None:
    """The call at a position, ``line:column``, of a file."""
    return context.view.call_written_at(path, position)


def _by_nodes(context: Context, path: str, call: CallSite, names: str, parameters: str, disk: str) -> Verdict:
    """Some launch runs the training on several nodes, whose first processes come to the save, on a disk that they share."""
    ranks = context.ranks
    started = _launch_on_nodes(context, path, disk or _disk_given(context, path, call.position, names.split()))
    for way in ranks.ways_into(path, call.scope, of_nodes=True) if started is not None else ():
        if started is None or ranks.named_by_rank(path, names.split()):
            break
        related = [Related(started.span, "this launch uses several nodes")]
        if not _can_be_taken(context, path, call, way):
            continue
        if way.last is not None:
            if parameters and ranks.passes_rank(*way.last, (path, call.scope), parameters.split()):
                continue
            related.append(Related(_shown(context, way), "the first rank of each node reaches this call and saves"))
        return Verdict(True, tuple(related), (("where", _name(way.start[0])), ("who", "one rank of each node"), ("why", "only the local rank is checked")))
    return Verdict(False)


def _launch_on_nodes(context: Context, path: str, disk: str) -> NodeLaunch | None:
    """A launch that runs a file on nodes which share the disk that it writes to: by the path, or because Slurm nodes
    do."""
    if disk == "node":
        return None
    found = launches_on_nodes(context.project, context.launches, path)
    return next((one for one in found if disk == "shared" or one.scheduled), None)


def _disk_given(context: Context, path: str, position: str, names: list[str]) -> str:
    """The disk of a path from options: by the launches' values of an option in it, else by the options' defaults."""
    given = [one for program in context.launches.running(path) for one in program.arguments if one.keys and one.keys[-1] in names]
    texts = {text for one in given for text in one.texts or ()}
    if not texts:
        call = _call_at(context, path, position)
        paths = call.argument("f", 1).values if call is not None else []
        texts = {text for one in paths for text in context.view[PathPatterns].of(one)}
    disks = {disk_of(text) for text in texts}
    return "node" if "node" in disks else "shared" if "shared" in disks else ""


def _every_node_saves(context: Context, finding: Finding, subject: str) -> Verdict:
    """As `_every_rank_saves`, for a save under a test of the local rank."""
    path, project = finding.span.path, context.project
    position, names, parameters, disk = (*subject.split("|"), "", "", "")[:4]
    call = next((one for one in project.flow(path).calls if one.position == position), None)
    if call is None or project.is_test(path) or context.ranks.named_by_rank_here(path, names.split()):
        return Verdict(False)
    verdict = _by_nodes(context, path, call, names, parameters, disk)
    return verdict._replace(args=tuple(one for one in verdict.args if one[0] == "where"))


def _name(path: str) -> str:
    return quoted(path.rpartition("/")[2])


QUESTIONS: dict[str, Question] = {
    "every-node-saves": _every_node_saves,
    "every-rank-saves": _every_rank_saves,
}
