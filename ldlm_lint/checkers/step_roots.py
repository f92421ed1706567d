"""The functions of a file that do something of a training step, themselves or through each other, and what that may be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from astroid import nodes

from ldlm_lint.checkers.step_kinds import Kind, kind_of, may_schedule
from ldlm_lint.checkers.step_names import last_name
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.places import by_function
from ldlm_lint.python.walks import nodes_of

_DEPTH = 3
STEPS = frozenset(kind for kind in Kind if kind.steps)


def acting_functions(module: nodes.NodeNG) -> dict[str, list[nodes.FunctionDef]]:
    """The functions of a file, by name, that do something of a step, themselves or through each other."""
    return remembered(module, ("acting functions",), lambda: _acting(module))


def _acting(module: nodes.NodeNG) -> dict[str, list[nodes.FunctionDef]]:
    functions = list(nodes_of(module, nodes.FunctionDef))
    calls = {one: list(nodes_of(one, nodes.Call)) for one in functions}
    acting = {one for one in functions if any(kind_of(call) or may_schedule(call) for call in calls[one])}
    called = {one: _called(calls[one]) for one in functions}
    for _ in range(_DEPTH):
        names = {one.name for one in acting}
        acting |= {one for one in functions if not called[one].isdisjoint(names)}
    found: dict[str, list[nodes.FunctionDef]] = {}
    for one in functions:
        if one in acting:
            found.setdefault(one.name, []).append(one)
    return found


def roots_of(module: nodes.NodeNG, *wanted: frozenset[Kind]) -> list[nodes.NodeNG]:
    """The module and those of its acting functions from which one of each of the wanted kinds of events may be reached.

    Too many at times, never too few: whatever a function holds or is handed counts, and all functions of a name do.
    """
    kinds = remembered(module, ("kinds of events",), lambda: _reached(module))
    return [root for root, found in kinds.items() if not any(found.isdisjoint(one) for one in wanted)]


def _reached(module: nodes.NodeNG) -> dict[nodes.NodeNG, frozenset[Kind]]:
    acting = acting_functions(module)
    calls: dict[nodes.NodeNG, list[nodes.Call]] = {module: by_function(module, nodes_of(module, (nodes.FunctionDef, nodes.Call)))[module]}
    calls |= {one: list(nodes_of(one, nodes.Call)) for group in acting.values() for one in group}
    kinds = {root: frozenset(_kinds(made)) for root, made in calls.items()}
    every = frozenset(_kinds(nodes_of(module, nodes.Call)))
    for root, made in calls.items():
        # A closure that is handed to the step of an optimizer may be any function.
        if any(call.args or call.keywords for call in made if (found := kind_of(call)) is not None and found[0].steps):
            kinds[root] = every
    called = {root: _called(made) & acting.keys() for root, made in calls.items()}
    while True:
        wider = {root: found.union(*(kinds[one] for name in called[root] for one in acting[name])) for root, found in kinds.items()}
        if wider == kinds:
            return kinds
        kinds = wider


def _kinds(calls: Iterable[nodes.Call]) -> Iterator[Kind]:
    for call in calls:
        known = kind_of(call)
        if known is not None:
            yield known[0]
        elif may_schedule(call):
            yield Kind.MAY_SCHEDULE


def _called(calls: Iterable[nodes.Call]) -> set[str]:
    return {last_name(call.func) for call in calls}


__all__ = ["STEPS", "acting_functions", "roots_of"]
