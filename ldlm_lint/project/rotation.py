"""Whether the older ones of numbered checkpoints may be deleted after a save, judged by all callers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.project.calls import Calls
from ldlm_lint.project.ranks import Ranks
from ldlm_lint.project.training import trainings_of
from ldlm_lint.project.trees import Trees
from ldlm_lint.python.choices import CHOSEN_LATER, is_chosen, speaks_of_worth
from ldlm_lint.python.flow import CallSite
from ldlm_lint.python.places import position_of
from ldlm_lint.python.walks import nodes_of

_DISTRIBUTED = lazily(
    rb"torch\.distributed|\bdist\.|DistributedDataParallel|init_process_group|\baccelerate\b|\bAccelerator\(|deepspeed|LOCAL_RANK|\bDDP\("
)
_CHOSEN_LATER = lazily(CHOSEN_LATER.pattern.encode(), re.I)
_READS = lazily(rb"load|\b(?:exists|is_?file|open)\b", re.I)
_DEPTH = 4

Place = tuple[str, CallSite]
"""A call and the file that it is in."""


def may_go(calls: Calls, ranks: Ranks, trees: Trees, path: str, position: str) -> bool:
    """Whether all known paths to a save allow it: no save of a best state, no later choice among the files, and with
    several ranks only one of them gets here."""
    project = calls.project
    save = next((one for one in project.flow(path).calls if one.position == position), None)
    if save is None:
        return False
    places = list(_places(calls, (path, save)))
    files = {path, *trainings_of(project, path), *(one for one, _ in places)}
    if any(_CHOSEN_LATER.search(project.data(one)) for one in files):
        return False
    if any(_is_chosen(trees, place) for place in places):
        return False
    if not any(_DISTRIBUTED.search(project.data(one)) for one in files):
        return True
    return _is_of_one_rank(calls, ranks, (path, save))


def saves_at(trees: Trees, path: str, positions: Sequence[str]) -> list[nodes.Call]:
    """The calls at some positions of a file."""
    module = trees.of(path)
    return [one for one in nodes_of(module, nodes.Call) if position_of(one) in positions] if module is not None else []


def lost_elsewhere(calls: Calls, trees: Trees, path: str, positions: Sequence[str]) -> str:
    """What other files of the project would lose with the older checkpoints of these saves; empty if nothing.

    A training may track a best value in one file and save in another; a script may evaluate or resume from a number.
    """
    from ldlm_lint.checkers.checkpoint_losses import chosen_by_number, unsaved_best
    from ldlm_lint.checkers.checkpoint_rotation import words_of_save

    project = calls.project
    saves = saves_at(trees, path, positions)
    words = list(dict.fromkeys(word for one in saves for word in words_of_save(one)))
    sites = [one for one in project.flow(path).calls if one.position in positions]
    training = {one for site in sites for one, _ in _places(calls, (path, site))} | {path, *trainings_of(project, path)}
    worth = [one for one in sorted(training) if speaks_of_worth(project.data(one).decode(errors="replace"))]
    lost = unsaved_best(_parsed(trees, worth), _parsed(trees, sorted(training.difference(worth))))
    others = (one for one in project.files if one != path and not project.is_test(one) and _may_read(project.data(one), words))
    return lost or next((f"{said} ({one.rpartition('/')[2]})" for one in others if (tree := trees.of(one)) is not None and (said := chosen_by_number(tree, words))), "")


def _parsed(trees: Trees, paths: Iterable[str]) -> Iterator[nodes.Module]:
    return (tree for one in paths if (tree := trees.of(one)) is not None)


def _may_read(data: bytes, words: Sequence[str]) -> bool:
    """Whether a file has a text next to a number, and code that reads or searches a file."""
    return any(word.encode() in data for word in words) and _READS.search(data) is not None


def _callers(calls: Calls, place: Place) -> list[Place]:
    path, call = place
    found = calls.callers(path, call.scope) if call.scope else ()
    return [one for one in found if not calls.project.is_test(one[0])]


def _places(calls: Calls, place: Place, depth: int = 0) -> Iterator[Place]:
    """A call, and those that lead to it."""
    yield place
    for caller in _callers(calls, place) if depth < _DEPTH else ():
        yield from _places(calls, caller, depth + 1)


def _is_chosen(trees: Trees, place: Place) -> bool:
    """Whether a call depends on the quality of a state; also true for an unknown call."""
    path, call = place
    module = trees.of(path)
    found = (one for one in nodes_of(module, nodes.Call) if position_of(one) == call.position) if module else ()
    node = next(iter(found), None)
    return node is None or is_chosen(node)


def _is_of_one_rank(calls: Calls, ranks: Ranks, place: Place, depth: int = 0) -> bool:
    path, call = place
    if ranks.guarded(path, call):
        return True
    callers = _callers(calls, place) if depth < _DEPTH else []
    return bool(callers) and all(_is_of_one_rank(calls, ranks, one, depth + 1) for one in callers)


__all__ = ["lost_elsewhere", "may_go", "saves_at"]
