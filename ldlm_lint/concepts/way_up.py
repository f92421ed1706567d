"""The way up from a backward pass: over the functions that it is in and their callers, to the loops that repeat it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from ldlm_lint.concepts.intervals import Intervals
from ldlm_lint.concepts.losses import BackwardPasses
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase
from ldlm_lint.program.handles import Call, Function, expression
from ldlm_lint.program.modules import Module

Loops = set[int | None]
"""Loops of a function that are steps; None stands for all of it."""


class WayUp:
    """The way up from one backward pass; ``stepping`` are the loops that step an optimizer, each with its module."""

    def __init__(self, code: Codebase, backward: Call, stepping: Collection[tuple[int, int]]) -> None:
        self.program = code.program
        self.backward = backward
        self.loops: dict[int, Loops] = defaultdict(set)
        """The loops that repeat it, by their functions."""
        self.gates: dict[tuple[int, int], list[int]] = defaultdict(list)
        """The intervals that what leads to it is under in a loop of a function, -1 for none."""
        self.places: set[tuple[int, int]] = set()
        """The functions that lead to it, each with the loop around the call that does, -1 for none."""
        self.calls: set[int] = set()
        """The backward pass, and the calls that lead to it."""
        self._code = code
        self._stepping = stepping
        self._named: dict[int, tuple[str, str]] = {}
        self._todo: list[int] = []
        self._seen: set[int] = set()
        self._go_up()

    @property
    def functions(self) -> set[int]:
        """The functions that lead to it."""
        return {function for function, _ in self.places}

    def _go_up(self) -> None:
        self._come_to(self.backward.key, is_pass=True)
        while self._todo:
            function = Function(self._code, self._todo.pop())
            if function.is_module:
                continue
            calls = [call.key for call in function.callers]
            if not calls:
                self.loops[function.key].add(None)
            for call in calls:
                if self._may_name(call, function.key):
                    self._named.update(self._named_at(call, function))
                    self._come_to(call, is_pass=False)

    def _come_to(self, call: int, is_pass: bool) -> None:
        """Take down where a call is; the way goes on above its function, unless the loop around it is the step."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        function = module.base | site.scope
        self.places.add((function, site.loop))
        self.calls.add(call)
        loop = site.loop if is_pass else _repeating(module, call & MASK, site.loop)
        if loop < 0:
            self._go_on_above(function)
            return
        self.gates[function, loop].append(self._gate(module, site.guard))
        self.loops[function].add(loop)
        steps_itself = is_pass and self._code[BackwardPasses].steps_itself(self.backward)
        if (module.index, loop) in self._stepping or steps_itself:
            return
        # Micro-batches: the loop around them steps.
        parent = module.table.loops[loop].parent
        if parent >= 0 and (module.index, parent) in self._stepping:
            self.loops[function].add(parent)
        elif is_pass:
            self._go_on_above(function)

    def _go_on_above(self, function: int) -> None:
        if function not in self._seen:
            self._seen.add(function)
            self._todo.append(function)

    def _named_at(self, call: int, method: Function) -> dict[int, tuple[str, str]]:
        """For a call ``getattr(hook, name)()`` the function that it is in, the parameter that has the name, and the
        name that leads to a method."""
        module = self.program.module_of(call)
        row = module.nodes[module.nodes[call & MASK][1]]
        key = module.plain(row[2][1]) if row[0] == "call" and module.last_name(row[1]) == "getattr" and len(row[2]) > 1 else ("",)
        return {module.base | key[1]: (key[2], method.name)} if key[0] == "param" else {}

    def _may_name(self, call: int, function: int) -> bool:
        """Whether a call of a function may pass the name of a method that leads to the backward pass."""
        program, named = self.program, self._named.get(function)
        edges = [edge for edge in program.callers(function) if edge.call == call] if named is not None else []
        if named is None or not edges or edges[0].how == UNKNOWN:
            return True
        node = program.argument_node(call, function, edges[0].how, named[0])
        texts = program.atoms.texts(program.ask(node)) if node is not None else set()
        return not texts or named[1] in texts

    def _gate(self, module: Module, guard: int) -> int:
        """The outermost interval around the code, -1 if there is none."""
        gate = -1
        while guard >= 0:
            one = module.table.guards[guard]
            if one.test and one.kind in ("if", "rest") and one.holds is True and self._code[Intervals].is_periodic(expression(self._code, module.base | one.test)):
                gate = guard
            guard = one.parent
        return gate


def _repeating(module: Module, call: int, loop: int) -> int:
    """The loop that repeats a call that leads to a step: ``for hook in self.hooks: hook.after_step()`` repeats none."""
    return module.table.loops[loop].parent if loop >= 0 and _calls_element(module, call, loop) else loop


def _calls_element(module: Module, call: int, loop: int) -> bool:
    """Whether a call is a method call on a loop's element, by a literal or a computed name."""
    row = module.nodes[module.nodes[call][1]]
    if row[0] == "call" and module.last_name(row[1]) == "getattr" and row[2]:
        return is_element(module, row[2][0], loop)
    return row[0] == "attr" and is_element(module, row[1], loop)


def is_element(module: Module, number: int, loop: int) -> bool:
    """Whether an expression is the element of a loop, or a part of it."""
    row, seen = module.plain(number), {number}
    while row[0] == "part" and row[1] not in seen:
        seen.add(row[1])
        row = module.plain(row[1])
    return bool(row[0] == "elem" and row[1] == module.table.loops[loop].value)
