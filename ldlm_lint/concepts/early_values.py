"""Values that are known before the model runs: they are computed from a batch alone, and could be where the batch is made.

    lengths = batch["mask"].cuda().sum(1)        # the batch was on the host before
    chosen = scores.sigmoid() > 0.5              # the model computed the scores
"""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.code.table import Node
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import HOMES, MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module
from ldlm_lint.program.operands import operands
from ldlm_lint.vocabulary.tensors import is_method_of_tensor

_MOST = 200
"""Expressions that are looked at for one value; of more nothing is known."""
_MADE_OF_PARTS = frozenset({"item", "attr", "part", "copy", "phi", "choice", "op", "un", "cmp", "bool", "not", "seq", "elem", "comp", "star", "enter"})


class EarlyValues(Concept):
    """Answers for the expressions of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]

    def are_of_batch(self, module: Module, numbers: list[int]) -> bool:
        """Whether expressions are surely made of a batch, and of nothing that a model, or anything unknown, computed."""
        todo = [module.base | one for one in numbers]
        seen: set[int] = set(todo)
        reaches = False
        while todo:
            key = todo.pop()
            if self._is_batch(key):
                reaches = True
                continue
            before = self._before(key)
            if before is None or len(seen) > _MOST:
                return False
            todo += [one for one in before if one not in seen]
            seen.update(before)
        return reaches

    def _is_batch(self, key: int) -> bool:
        """Whether an expression is what a loop of steps takes, or what a framework passes to a step."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] == "elem":
            return module.base | row[1] in self._steps.repeated
        if row[0] != "param":
            return False
        function = module.base | row[1]
        return None in self._steps.loops.get(function, ()) and module.scopes[row[1]].name != "forward"

    def _before(self, key: int) -> list[int] | None:
        """The expressions that one is made of; None if it is unknown, or computed by a model. A number of Python comes from
        no model."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        value = self.program.ask(key)
        if row[0] in ("const", "none") or (value and not value & HOMES):
            return []
        if row[0] == "param":
            return self.ask.given(module.base | row[1], row[2]) or None
        if row[0] == "attr" and (owner := self.program.class_of_self(module, row[1])) is not None:
            return list(self.program.own_writes.get((owner, row[2]), ())) or None
        if row[0] == "call":
            return self._before_call(module, key, row)
        return [module.base | one for one in operands(row) if one] if row[0] in _MADE_OF_PARTS else None

    def _before_call(self, module: Module, key: int, row: Node) -> list[int] | None:
        targets = self.program.targets_of.get(key, ())
        if targets:
            owners = (self.program.owner.get(one) for one in targets)
            computes = any(owner is not None and self.program.is_module(owner) for owner in owners)
            return None if computes else [one for target in targets for one in self._returned(target)]
        function = module.nodes[row[1]]
        names = [fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | row[1]), "x")]
        given = [*row[2], *(one for _, one in row[3])]
        if function[0] == "attr" and not names and is_method_of_tensor(function[2]):
            given.append(function[1])
        elif not names or not all(name.startswith(("torch.", "builtins.")) for name in names):
            return None
        return [module.base | one for one in given]

    def _returned(self, function: int) -> Iterator[int]:
        home = self.program.module_of(function)
        return (home.base | number for number, _ in home.scopes[function & MASK].returns if number)


__all__ = ["EarlyValues"]
