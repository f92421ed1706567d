"""Graphs of autograd: which are retained, walked again, or kept alive beyond their iteration.

Nothing of a graph is held: a mark is put into the ``metadata`` of its nodes and dies with them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from ldlm_lint.probe.holders import holders
from ldlm_lint.probe.patches import watch
from ldlm_lint.probe.session import Observer, Phase, Session
from ldlm_lint.probe.sites import call_site
from ldlm_lint.probe.tallies import Tally

WALKED, LOSS = "ldlm-lint retained", "ldlm-lint loss"
# How far from the root of a backward pass a kept loss may be: a division, a scale, a mean.
DEEPEST = 5
MOST_NODES = 20_000
# With this many live graphs of earlier iterations, their owner is searched once.
ASK_FROM = 3
# Some programs use a retained graph only in every fifth or tenth step: so many timed iterations are followed, too. The
# walk takes time, so these are kept apart from the times of steps.
MOST_FOLLOWED = 10
FOLLOWED = "retained graphs were followed"


class Mark:
    """Stored in the metadata of nodes, and alive as long as one of them is."""

    __slots__ = ("__weakref__", "iteration", "serial")

    def __init__(self, iteration: int, serial: int) -> None:
        self.iteration = iteration
        self.serial = serial


class GraphObserver(Observer):
    """``backwards``: one record for each place of a backward pass; ``alive``: after each iteration, of how many earlier
    iterations a loss is alive; ``kept_by``: the names and lines that keep them, if they were found; ``followed``: in how
    many iterations later passes were searched for retained graphs."""

    topic = "graphs"

    def __init__(self) -> None:
        self._places = Tally(self._fresh)
        self._serial = 0
        self._marks: list[weakref.ref[Mark]] = []
        self._alive: list[int] = []
        self._held: list[dict[str, Any]] = []
        self._asked = False
        self._iteration: list[dict[str, Any]] = []
        self._retained: dict[int, dict[str, Any]] = {}
        self._followed = 0
        self._followed_timed = 0
        # The most backward passes of a followed iteration; one with more may use a graph in another way.
        self._usual_passes = 0

    @staticmethod
    def _fresh() -> dict[str, Any]:
        return {
            "calls": 0,
            "retained": 0,
            "retained_alone": 0,
            "retained_observed": 0,
            "walked_again": 0,
            "with_more_passes": 0,
            "create_graph": 0,
            "nodes": [],
        }

    def install(self, session: Session) -> None:
        autograd = session.torch.autograd
        current = getattr(session.torch._C, "_current_graph_task_id", lambda: -1)

        def backward(
            tensors: Any,
            grad_tensors: Any = None,
            retain_graph: Any = None,
            create_graph: Any = False,
            *_: Any,
            **__: Any,
        ) -> None:
            # Reentrant checkpointing calls it from inside a pass.
            if current() == -1:
                self._backward(
                    session, tensors, bool(create_graph if retain_graph is None else retain_graph), create_graph
                )

        watch(session, autograd, "backward", self.topic, before=backward)
        watch(session, autograd, "grad", self.topic, before=self._grad(session))

    def _grad(self, session: Session) -> Any:
        def grad(
            outputs: Any, inputs: Any = None, grad_outputs: Any = None, retain_graph: Any = None, *_: Any, **__: Any
        ) -> None:
            self._iteration.append({})
            if self._follows(session):
                self._look_for_reuse(_roots(outputs))

        return grad

    def _follows(self, session: Session) -> bool:
        """Whether the graphs of this iteration are followed: after the observed steps only while it is open whether a
        retained one is used again."""
        if session.phase is Phase.OBSERVE:
            return True
        is_open = any(one["retained"] and not one["walked_again"] for one in self._places.records)
        return session.phase is Phase.TIME and self._followed_timed < MOST_FOLLOWED and is_open

    def _backward(self, session: Session, tensors: Any, retained: bool, create_graph: Any) -> None:
        roots = _roots(tensors)
        place = self._places.at(call_site(session.root))
        place["calls"] += 1
        place["retained"] += int(retained)
        place["create_graph"] += int(bool(create_graph))
        self._iteration.append(place if retained else {})
        self._serial += 1
        mark = Mark(session.step, self._serial)
        if self._follows(session):
            if session.phase is Phase.TIME:
                session.disturb(FOLLOWED)
            count = self._look_for_reuse(roots)
            if len(place["nodes"]) < 32:
                place["nodes"].append(count)
            if retained:
                place["retained_observed"] += 1
                self._retained[mark.serial] = place
                _put(WALKED, Mark(session.step, self._serial), _nodes(roots))
        _put(LOSS, mark, _near(roots))
        self._marks.append(weakref.ref(mark))

    def _look_for_reuse(self, roots: list[Any]) -> int:
        """Count the nodes of the next pass, and return the retained graphs they belong to."""
        again: set[int] = set()
        count = 0
        for node in _nodes(roots):
            count += 1
            mark = _metadata(node).get(WALKED) if self._retained else None
            if mark is not None and mark.serial in self._retained:
                again.add(mark.serial)
        for serial in again:
            self._retained.pop(serial)["walked_again"] += 1
        return count

    def after_step(self, session: Session) -> None:
        if len(self._iteration) == 1 and self._iteration[0]:
            self._iteration[0]["retained_alone"] += 1
        self._count_passes(session)
        self._iteration = []
        living = [mark for reference in self._marks if (mark := reference()) is not None]
        self._marks = [weakref.ref(mark) for mark in living]
        earlier = {mark.iteration for mark in living if mark.iteration < session.step - 1}
        if len(self._alive) < 200:
            self._alive.append(len(earlier))
        if len(earlier) >= ASK_FROM and not self._asked:
            self._asked = True
            self._held = holders(session, self._marks_of)

    def _count_passes(self, session: Session) -> None:
        """Compare the number of backward passes of this iteration with those of the followed ones."""
        passes = len(self._iteration)
        if not any(self._iteration):
            return
        if self._follows(session):
            self._followed += 1
            self._usual_passes = max(self._usual_passes, passes)
            if session.phase is Phase.TIME:
                self._followed_timed += 1
        elif passes > self._usual_passes:
            for place in {id(one): one for one in self._iteration if one}.values():
                place["with_more_passes"] += 1

    def _marks_of(self, tensor: Any) -> set[int]:
        """The iterations of the losses in a tensor's graph, up to the search limit."""
        nodes = _nodes([tensor.grad_fn], 4000)
        return {mark.iteration for node in nodes if isinstance(mark := _metadata(node).get(LOSS), Mark)}

    def collect(self, session: Session) -> Any:
        if not self._places.records:
            return None
        return {
            "backwards": self._places.records,
            "alive": self._alive,
            "kept_by": self._held,
            "followed": self._followed,
        }


def _roots(tensors: Any) -> list[Any]:
    several = tensors if isinstance(tensors, (list, tuple)) else [tensors]
    return [node for one in several if (node := getattr(one, "grad_fn", None)) is not None]


def _near(roots: list[Any]) -> Iterator[Any]:
    """The nodes next to the roots, along the first branch of each."""
    for node in roots[:4]:
        for _ in range(DEEPEST):
            if node is None or hasattr(node, "variable"):
                break
            yield node
            node = node.next_functions[0][0] if node.next_functions else None


def _nodes(roots: list[Any], most: int = MOST_NODES) -> Iterator[Any]:
    """The nodes of graphs, each once and without the leaves, at most ``most`` of them."""
    seen, waiting = set(roots), list(roots)
    while waiting and most:
        node = waiting.pop()
        most -= 1
        yield node
        for one, _ in node.next_functions:
            if one is not None and one not in seen and not hasattr(one, "variable"):
                seen.add(one)
                waiting.append(one)


def _metadata(node: Any) -> dict[Any, Any]:
    return getattr(node, "metadata", None) or {}


def _put(key: str, mark: Mark, nodes: Iterator[Any]) -> None:
    for node in list(nodes):
        metadata = getattr(node, "metadata", None)
        if metadata is not None:
            metadata[key] = mark
