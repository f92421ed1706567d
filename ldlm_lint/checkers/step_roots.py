"""The functions of a file with events of a training step, directly or through each other, and the kinds of events."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from astroid import nodes

from ldlm_lint.checkers.step_kinds import Kind, kind_of
from ldlm_lint.checkers.step_names import last_name
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.places import by_function, function_of
from ldlm_lint.python.walks import nodes_of

_DEPTH = 3
STEPS = frozenset(kind for kind in Kind if kind.steps)


def acting_functions(module: nodes.NodeNG) -> dict[str, list[nodes.FunctionDef]]:
    """The functions of a file, by name, with events of a step, directly or through each other."""
    return remembered(module, ("acting functions",), lambda: _acting(module))


def _acting(module: nodes.NodeNG) -> dict[str, list[nodes.FunctionDef]]:
    functions = list(nodes_of(module, nodes.FunctionDef))
    events = _events(module)
    acting = {one for one in functions if events.within(one)}
    called = {one: _called(nodes_of(one, nodes.Call)) for one in functions}
    for _ in range(_DEPTH):
        names = {one.name for one in acting}
        acting |= {one for one in functions if not called[one].isdisjoint(names)}
    found: dict[str, list[nodes.FunctionDef]] = {}
    for one in functions:
        if one in acting:
            found.setdefault(one.name, []).append(one)
    return found


def roots_of(module: nodes.NodeNG, *wanted: frozenset[Kind]) -> list[nodes.NodeNG]:
    """The module and those of its acting functions from which each wanted kind of event may be reached.

    Possibly too many, never too few: everything in a function and its arguments counts, and all functions of a name do.
    """
    every = frozenset(_events(module).kinds)
    if any(every.isdisjoint(one) for one in wanted):
        return []
    kinds = remembered(module, ("kinds of events",), lambda: _reached(module, every))
    return [root for root, found in kinds.items() if not any(found.isdisjoint(one) for one in wanted)]


def _reached(module: nodes.NodeNG, every: frozenset[Kind]) -> dict[nodes.NodeNG, frozenset[Kind]]:
    events, acting = _events(module), acting_functions(module)
    kinds: dict[nodes.NodeNG, frozenset[Kind]] = {module: frozenset()}
    called = {module: _called(by_function(module, nodes_of(module, (nodes.FunctionDef, nodes.Call)))[module]) & acting.keys()}
    for root in (one for group in acting.values() for one in group):
        called[root] = _called(nodes_of(root, nodes.Call)) & acting.keys()
        kinds[root] = frozenset(events.within(root))
    kinds[module] = frozenset(kind for kind, call in zip(events.kinds, events.calls, strict=True) if function_of(call) is module)
    for root, found in kinds.items():
        # A closure passed to the step of an optimizer is called there.
        kinds[root] = every if not found.isdisjoint(STEPS) and events.hands_over else found
    while True:
        wider = {root: found.union(*(kinds[one] for name in called[root] for one in acting[name])) for root, found in kinds.items()}
        if wider == kinds:
            return kinds
        kinds = wider


class _Events:
    """The calls of a file that are events of a step, in preorder, with their kinds."""

    def __init__(self, module: nodes.NodeNG) -> None:
        found = [(call, kind) for call in nodes_of(module, nodes.Call) if (kind := _kind(call)) is not None]
        self.calls = [call for call, _ in found]
        self.kinds = [kind for _, kind in found]
        functions = {one.name for one in nodes_of(module, nodes.FunctionDef)}
        steps = [call for call, kind in found if kind in STEPS]
        given = (one for call in steps for one in (*call.args, *(keyword.value for keyword in call.keywords)))
        self.hands_over = any(isinstance(one, nodes.Name) and one.name in functions for one in given)

    def within(self, node: nodes.NodeNG) -> list[Kind]:
        """The kinds of the calls inside a node."""
        first = bisect_left(self.calls, node._ldlm_start, key=_start)
        return self.kinds[first : bisect_left(self.calls, node._ldlm_end, first, key=_start)]


def _start(node: nodes.NodeNG) -> int:
    return node._ldlm_start


def _events(module: nodes.NodeNG) -> _Events:
    return remembered(module, ("events of steps",), lambda: _Events(module))


def _kind(call: nodes.Call) -> Kind | None:
    known = kind_of(call)
    return known[0] if known is not None else None


def _called(calls: Iterable[nodes.Call]) -> set[str]:
    return {last_name(call.func) for call in calls}


__all__ = ["STEPS", "acting_functions", "roots_of"]
