"""Loops that put each batch on the CPU before their model sees it: what such a training computes lies on the host."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.host_time_calls import moved_roots, moves_to
from ldlm_lint.python.flow import is_backward
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.names import last_name
from ldlm_lint.python.walks import nodes_of

_LOOPS = (nodes.For, nodes.AsyncFor)


def trains_on_host(function: nodes.NodeNG) -> bool:
    """Whether a function trains on batches of which it puts every part on the CPU."""
    return remembered(function, ("trains on host",), lambda: any(map(_feeds_from_host, nodes_of(function, _LOOPS))))


def _feeds_from_host(loop: nodes.For) -> bool:
    batches = {one.name for one in nodes_of(loop.target, nodes.AssignName)}
    if batches.isdisjoint(_put_on_host(loop)) or moved_roots(loop):
        return False
    return any(map(is_backward, nodes_of(loop, nodes.Call)))


def _put_on_host(loop: nodes.For) -> Iterator[str]:
    """``batch[key] = value.to("cpu")``: the names of which an element is moved to the host and put back."""
    for statement in nodes_of(loop, nodes.Assign):
        call = statement.value
        if not isinstance(call, nodes.Call) or last_name(call.func) not in ("to", "cpu"):
            continue
        if last_name(call.func) == "to" and moves_to(call) != "cpu":
            continue
        for target in statement.targets:
            if isinstance(target, nodes.Subscript) and isinstance(target.value, nodes.Name):
                yield target.value.name


__all__ = ["trains_on_host"]
