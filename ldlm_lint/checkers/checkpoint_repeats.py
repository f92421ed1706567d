"""Saves that a file repeats, and saves on several ranks, by the calls in the same file that lead to them."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.guards import RANK, guards_of
from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.walks import nodes_of

_DISTRIBUTED = lazily(
    r"torch\.distributed|\bdist\.|DistributedDataParallel|init_process_group|\baccelerate\b|\bAccelerator\(|deepspeed|LOCAL_RANK|\bDDP\("
)
_DEPTH = 2


def is_repeated(save: nodes.Call) -> bool:
    """Whether the file itself repeats a save: in a loop, or by calls in one."""
    return any(loops_around(one) for one in _places(save))


def saved_on_several_ranks(save: nodes.Call) -> bool:
    """Whether the file trains with several processes and no test of the rank is visible on the way to a save."""
    if not _DISTRIBUTED.search(save.root().as_string()):
        return False
    return not _is_guarded(save)


def _is_guarded(call: nodes.Call, depth: int = 0) -> bool:
    """Whether one rank is selected for a call, at its place or at all calls of its function."""
    if RANK in guards_of(call):
        return True
    callers = list(_callers(call)) if depth < _DEPTH else []
    return bool(callers) and all(_is_guarded(one, depth + 1) for one in callers)


def _places(save: nodes.Call, depth: int = 0) -> Iterator[nodes.Call]:
    """A call, and those that lead to it in the same file."""
    yield save
    for call in _callers(save) if depth < _DEPTH else ():
        yield from _places(call, depth + 1)


def _callers(node: nodes.Call) -> Iterator[nodes.Call]:
    """The calls of the function around a node in the same file."""
    function = function_of(node)
    if isinstance(function, nodes.FunctionDef):
        for call in nodes_of(node.root(), nodes.Call):
            if last_name(call.func) == function.name and function_of(call) is not function:
                yield call
