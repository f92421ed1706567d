"""What tests for the training mode come out as in a training step: ``self.training``, ``torch.is_grad_enabled()``.

    in_place = not (self.training or torch.is_grad_enabled())    # False in each training step
"""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module


class TrainingTests(Concept):
    """Answers for the tests of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[int, bool | None] = {}

    def outcome(self, module: Module, number: int) -> bool | None:
        """What a test comes out as in each training step; None if its mode does not decide."""
        key = module.base | number
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._of_row(module, number)
        return self._known[key]

    def _of_row(self, module: Module, number: int) -> bool | None:
        row = module.nodes[number]
        kind = row[0]
        if kind == "attr":
            return True if row[2] == "training" else None
        if kind == "not":
            inner = self.outcome(module, row[1])
            return None if inner is None else not inner
        if kind == "copy":
            return self.outcome(module, row[1])
        if kind == "bool":
            # One part decides an ``and`` that fails and an ``or`` that holds.
            parts = [self.outcome(module, one) for one in row[2]]
            decides = row[1] == "Or"
            return decides if decides in parts else _agreed(parts)
        if kind == "phi":
            return _agreed([self.outcome(module, one) for one in row[1]])
        if kind == "call":
            return True if module.last_name(row[1]) == "is_grad_enabled" else self._returned(module.base | number)
        return self._given(module.base | row[1], row[2]) if kind == "param" else None

    def _returned(self, call: int) -> bool | None:
        """What the functions of a call return."""
        found: list[bool | None] = []
        for function in self.program.targets_of.get(call, ()):
            home = self.program.module_of(function)
            found += [self.outcome(home, value) if value else None for value, _ in home.scopes[function & MASK].returns]
        return _agreed(found)

    def _given(self, function: int, name: str) -> bool | None:
        """What all known callers pass for a parameter."""
        found: list[bool | None] = []
        for edge in self.program.callers(function):
            node = self.program.argument_node(edge.call, function, edge.how, name) if edge.how != UNKNOWN else None
            found.append(None if node is None else self.outcome(self.program.module_of(node), node & MASK))
        return _agreed(found)


def _agreed(found: Iterable[bool | None]) -> bool | None:
    """The outcome of all; None if they differ, or there are none."""
    every = set(found)
    return every.pop() if len(every) == 1 else None
