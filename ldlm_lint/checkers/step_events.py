"""The events of a training step in a function, in order: backward, clipping, steps, schedules.

Helpers and closures of the same file are followed; each event has the loops and conditions around it, on the whole path
from the analysed function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.step_calls import LEAVES, StepCalls
from ldlm_lint.checkers.step_conditions import Condition, conditions_of, exclude
from ldlm_lint.checkers.step_kinds import Kind, kind_of, may_act
from ldlm_lint.checkers.step_names import last_name
from ldlm_lint.checkers.step_roots import acting_functions
from ldlm_lint.python.memo import remembered
from ldlm_lint.python.mode_calls import sets_mode
from ldlm_lint.python.names import bindings
from ldlm_lint.python.walks import nodes_of

_BLOCKS = {nodes.If, nodes.For, nodes.AsyncFor, nodes.While, nodes.With, nodes.AsyncWith, nodes.Try}
_PARTS = (nodes.Call, nodes.IfExp, nodes.Lambda, nodes.ComprehensionScope)
_DEPTH = 3
_BUDGET = 4000
# Events are compared pairwise; a function with so many events was not written by hand and is skipped.
_MOST_EVENTS = 500
_EVENTS = "_ldlm_events"


class Event(NamedTuple):
    """One call of a step.

    ``site`` is the call in the analysed function through which it is reached (``node`` itself if it is there),
    ``subject`` the text of the stepped, clipped or scaled object; ``guards`` are the tests around it with their branch,
    ``loops`` the loops, outermost first; ``left`` are the conditions that end the step before the place.
    """

    kind: Kind
    node: nodes.Call
    site: nodes.Call
    subject: str
    at: int
    conditions: frozenset[Condition]
    guards: tuple[tuple[nodes.If, bool], ...]
    loops: tuple[nodes.NodeNG, ...]
    left: tuple[frozenset[Condition], ...]

    def follows(self, other: Event) -> bool:
        """Whether this runs after the other on some path through one pass of the loops that both are in."""
        if self.at <= other.at or exclude(self.conditions, other.conditions):
            return False
        return not any(gone <= other.conditions for gone in self.left if gone not in other.left)

    def common_loops(self, other: Event) -> int:
        """How many loops, from the outermost, both are in."""
        pairs = zip(self.loops, other.loops, strict=False)
        return next(
            (at for at, (one, two) in enumerate(pairs) if one is not two), min(len(self.loops), len(other.loops))
        )


def events_of(function: nodes.NodeNG) -> list[Event]:
    """The events of a function or module in the order in which they happen."""
    known: list[Event] | None = function.__dict__.get(_EVENTS)
    if known is None:
        walk = _Walk(function.root())
        walk.suite(function.body)
        known = function.__dict__[_EVENTS] = walk.events if len(walk.events) <= _MOST_EVENTS else []
    return known


class _Walk:
    """One pass through a function, in the order of execution."""

    def __init__(self, module: nodes.NodeNG) -> None:
        self.events: list[Event] = []
        self._acting = acting = acting_functions(module)
        self._calls = remembered(module, ("step calls",), lambda: StepCalls(module, lambda name: name in acting or may_act(name)))
        self._conditions: list[frozenset[Condition]] = []
        self._guards: list[tuple[nodes.If, bool]] = []
        self._loops: list[nodes.NodeNG] = []
        self._left: list[tuple[frozenset[Condition], bool]] = []
        self._inside: list[tuple[nodes.FunctionDef, nodes.Call, dict[str, str]]] = []
        self._budget = _BUDGET

    def suite(self, statements: Iterable[nodes.NodeNG]) -> None:
        """Walk a block; code after an ``if`` that leaves it runs when the test is false."""
        pushed = 0
        for statement in statements:
            self._statement(statement)
            if isinstance(statement, nodes.If) and _leaves(statement.body) and not _leaves(statement.orelse):
                self._conditions.append(conditions_of(statement.test, False))
                self._guards.append((statement, False))
                pushed += 1
        for _ in range(pushed):
            self._conditions.pop()
            self._guards.pop()

    def _statement(self, node: nodes.NodeNG) -> None:
        if isinstance(node, (nodes.FunctionDef, nodes.ClassDef)):
            return
        if node.__class__ in _BLOCKS and (idle := self._calls.idle_block(node)) is not None:
            self._budget -= idle
        elif isinstance(node, nodes.If):
            self._branch(node)
        elif isinstance(node, (nodes.For, nodes.While)):
            self._expression(node.iter if isinstance(node, nodes.For) else node.test)
            self._loop(node)
        elif isinstance(node, nodes.With):
            for context, _ in node.items:
                self._expression(context)
            self.suite(node.body)
        elif isinstance(node, nodes.Try):
            self._attempt(node)
        elif isinstance(node, nodes.Match):
            for case in node.cases:
                self._under(frozenset({(f"match at {case.pattern.lineno}", True)}), case.body)
        else:
            self._expression(node)

    def _branch(self, node: nodes.If) -> None:
        self._expression(node.test)
        for block, holds in ((node.body, True), (node.orelse, False)):
            if not block:
                continue
            here = conditions_of(node.test, holds)
            self._guards.append((node, holds))
            # The operands of ``a or b`` exclude each other as a whole, too.
            whole_test = ((node.test.as_string(), holds),) if isinstance(node.test, nodes.BoolOp) else ()
            self._under(here.union(whole_test), block)
            self._guards.pop()
            if _leaves(block):
                whole = frozenset().union(here, *self._conditions)
                self._left.append((whole, isinstance(block[-1], (nodes.Continue, nodes.Break))))

    def _under(self, conditions: frozenset[Condition], block: Iterable[nodes.NodeNG]) -> None:
        self._conditions.append(conditions)
        self.suite(block)
        self._conditions.pop()

    def _loop(self, node: nodes.For | nodes.While) -> None:
        before = len(self._left)
        self._loops.append(node)
        self.suite(node.body)
        self._loops.pop()
        # A ``continue`` ends one pass only.
        self._left[before:] = [(gone, inner) for gone, inner in self._left[before:] if not inner]
        self.suite(node.orelse)

    def _attempt(self, node: nodes.Try) -> None:
        self.suite(node.body)
        failed = f"failure at {node.lineno}"
        for handler in node.handlers:
            self._under(frozenset({(failed, True), (f"{failed}: {handler.lineno}", True)}), handler.body)
        self._under(frozenset({(failed, False)}), node.orelse)
        self.suite(node.finalbody)

    def _expression(self, node: nodes.NodeNG) -> None:
        """The calls of an expression or simple statement; most have none, or no conditions or loops around them."""
        idle = self._calls.idle(node)
        if idle is not None:
            self._budget -= idle
            return
        found = list(nodes_of(node, _PARTS))
        if all(one.__class__ is nodes.Call for one in found):
            for call in _finished(found):
                self._call(call)
        else:
            self._part(node)

    def _part(self, node: nodes.NodeNG) -> None:
        if isinstance(node, (nodes.Lambda, nodes.FunctionDef, nodes.ClassDef)):
            return
        if isinstance(node, nodes.IfExp):
            self._part(node.test)
            for part, holds in ((node.body, True), (node.orelse, False)):
                self._conditions.append(conditions_of(node.test, holds))
                self._part(part)
                self._conditions.pop()
            return
        loops = node.generators if isinstance(node, nodes.ComprehensionScope) else []
        self._loops += loops
        for child in node.get_children():
            self._part(child)
        del self._loops[len(self._loops) - len(loops) :]
        if isinstance(node, nodes.Call):
            self._call(node)

    def _call(self, call: nodes.Call) -> None:
        self._budget -= 1
        name = last_name(call.func)
        if self._budget < 0 or not (name in self._acting or may_act(name)):
            return
        function = self._target(call)
        # A method of the own class is judged by its body, not its name: ``self.backward(batch)``.
        found = kind_of(call) if function is None or not _is_of_own_class(call, function) else None
        if found is not None:
            if found[0].steps:
                for closure in _closures(call):
                    self._follow(closure, call)
            self._add(found[0], call, found[1])
        elif function is not None:
            self._follow(function, call)

    def _target(self, call: nodes.Call) -> nodes.FunctionDef | None:
        """The function of the file that a call calls; None if it has no events of a step, or is followed already."""
        found = self._acting.get(last_name(call.func))
        if not found:
            return None
        if isinstance(call.func, nodes.Name):
            found = [one for one in bindings(call.func) if one in found]
        elif isinstance(call.func, nodes.Attribute) and last_name(call.func.expr) == "self":
            found = [one for one in found if one.parent in _classes_of(call)] or found
        elif not sets_mode(call):
            found = [one for one in found if isinstance(one.parent, nodes.ClassDef)]
        else:
            return None
        usable = isinstance(call.func, (nodes.Name, nodes.Attribute)) and len(found) == 1 and len(self._inside) < _DEPTH
        return found[0] if usable and all(found[0] is not one for one, _, _ in self._inside) else None

    def _follow(self, function: nodes.FunctionDef, call: nodes.Call) -> None:
        before, guards = len(self._left), len(self._guards)
        self._inside.append((function, call, self._bound(function, call)))
        self.suite(function.body)
        self._inside.pop()
        del self._left[before:], self._guards[guards:]

    def _bound(self, function: nodes.FunctionDef, call: nodes.Call) -> dict[str, str]:
        """The arguments by the parameters that hold them inside the function, as the outermost caller writes them."""
        params = [one.name for one in function.args.args or ()]
        if params[:1] == ["self"] and isinstance(call.func, nodes.Attribute):
            params = params[1:]
        bound = {name: self._text(node) for name, node in zip(params, call.args, strict=False)}
        return bound | {keyword.arg: self._text(keyword.value) for keyword in call.keywords if keyword.arg}

    def _text(self, node: nodes.NodeNG | None) -> str:
        text = node.as_string() if node is not None else ""
        bound = self._inside[-1][2] if self._inside else {}
        head = re.match(r"\w+", text)
        return bound[head[0]] + text[head.end() :] if head and head[0] in bound else text

    def _add(self, kind: Kind, call: nodes.Call, subject: nodes.NodeNG | None) -> None:
        self.events.append(
            Event(
                kind=kind,
                node=call,
                site=self._inside[0][1] if self._inside else call,
                subject=self._text(subject),
                at=len(self.events),
                conditions=frozenset().union(*self._conditions),
                guards=tuple(self._guards),
                loops=tuple(self._loops),
                left=tuple(gone for gone, _ in self._left),
            )
        )


def _finished(calls: Iterable[nodes.Call]) -> Iterator[nodes.Call]:
    """Calls that are in preorder, in the order in which they are made: arguments before the call."""
    begun: list[nodes.Call] = []
    for call in calls:
        while begun and begun[-1]._ldlm_end <= call._ldlm_start:
            yield begun.pop()
        begun.append(call)
    yield from reversed(begun)


def _leaves(block: list[nodes.NodeNG]) -> bool:
    return bool(block) and isinstance(block[-1], LEAVES)


def _is_of_own_class(call: nodes.Call, function: nodes.FunctionDef) -> bool:
    """Whether a method is called on ``self`` of its class, or on an object of that class created by the file."""
    receiver = call.func.expr if isinstance(call.func, nodes.Attribute) else None
    if not isinstance(receiver, nodes.Name):
        return False
    if receiver.name == "self":
        return function.parent in _classes_of(call)
    made = [one.parent.value for one in bindings(receiver) if isinstance(one.parent, nodes.Assign)]
    names = {last_name(one.func) for one in made if isinstance(one, nodes.Call)}
    return isinstance(function.parent, nodes.ClassDef) and names == {function.parent.name}


def _closures(call: nodes.Call) -> Iterator[nodes.FunctionDef]:
    for node in (*call.args, *(keyword.value for keyword in call.keywords)):
        if isinstance(node, nodes.Name):
            yield from (one for one in bindings(node) if isinstance(one, nodes.FunctionDef))


def _classes_of(call: nodes.Call) -> list[nodes.ClassDef]:
    """The class around a call, and those of its bases that the file defines."""
    owner = next((one for one in call.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
    found = [owner] if owner is not None else []
    for one in found:
        names = {last_name(base) for base in one.bases}
        for other in one.root().body:
            if isinstance(other, nodes.ClassDef) and other.name in names and other not in found:
                found.append(other)
    return found


__all__ = ["Event", "Kind", "events_of"]
