"""Values that are surely on the host: parts of a loader's batches, copies to the host, and results computed only from
these.

The program's devices of a value are possible ones; here every path to the value must be known.
"""

from __future__ import annotations

from ldlm_lint.code.table import Node
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import HOST_TENSOR, LOADER, MASK, ON_HOST
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module

_MOST = 200
_OF_BASE = frozenset({"item", "attr", "part", "elem", "upd", "copy", "star"})


class HostSide(Concept):
    """Answers for the expressions of a program; a query that is still in progress adds nothing."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]

    def is_on_host(self, module: Module, number: int) -> bool:
        """Whether an expression is a tensor on the host on every way that leads to it."""
        self._asked: set[int] = set()
        return self._is(module.base | number)

    def _is(self, key: int) -> bool:
        if key in self._asked:
            return True
        self._asked.add(key)
        if len(self._asked) > _MOST:
            return False
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if kind in ("elem", "part") and self._is_given_away(module, key & MASK):
            return False
        if kind == "elem" and self._gives_batches(module, row[1]):
            return True
        if kind in _OF_BASE:
            return self._is(module.base | row[1])
        if kind == "cmp":
            # Torch compares on one device.
            return any(self._is(module.base | one) for one in (row[2], *row[3]))
        if kind in ("phi", "op", "seq", "comp", "choice", "un"):
            return self._are(module, _operands(row))
        if kind == "param":
            given = self.ask.given(module.base | row[1], row[2])
            return bool(given) and all(map(self._is, given))
        return kind == "call" and self._is_result(module, key & MASK, row)

    def _gives_batches(self, module: Module, iterable: int) -> bool:
        """Whether the loop of a step, or a loader, iterates over an expression."""
        key = module.base | iterable
        return key in self._steps.repeated or LOADER in self.program.ask(key)

    @staticmethod
    def _is_given_away(module: Module, number: int) -> bool:
        """Whether a batch is handed to a function as a whole, which may move its parts."""
        row = module.nodes[number]
        return any(module.plain(one) is row for call in module.table.sites for one in module.nodes[call][2])

    def _are(self, module: Module, numbers: list[int]) -> bool:
        """Whether all of several operands are, numbers of Python aside."""
        tensors = [one for one in numbers if module.plain(one)[0] not in ("const", "none")]
        return bool(tensors) and all(self._is(module.base | one) for one in tensors)

    def _is_result(self, module: Module, call: int, row: Node) -> bool:
        """The operands of a result: the receiver of a method, the tensors of a torch function."""
        if self.program.ask(module.base | call) != ON_HOST:
            return False
        function = module.nodes[row[1]]
        if function[0] == "attr" and function[2] == "cpu":
            return True
        if any(fields[1].startswith("torch.") for fields in self.program.atoms.kinds(self.program.ask(module.base | row[1]), "x")):
            tensors = [one for one in row[2] if HOST_TENSOR in self.program.ask(module.base | one) or module.plain(one)[0] in ("seq", "comp")]
            return all(self._is(module.base | one) for one in tensors)
        return function[0] == "attr" and self._is(module.base | function[1])


def _operands(row: Node) -> list[int]:
    kind = row[0]
    if kind == "op":
        return [row[2], row[3]]
    if kind == "choice":
        return [row[2], row[3]]
    if kind == "comp":
        return [row[1]]
    return list(row[1]) if kind == "phi" else [row[2]] if kind == "un" else list(row[2])


__all__ = ["HostSide"]
