"""Values that are on the device because a loss made of them is run backward, back through the operations that made it.

    loss = ratio * F.mse_loss(output, target) + losses["shape"].mean()    # so are the output, the target and the shape loss
    loss.backward()
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.concepts.backward import BackwardPasses
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Expr
from ldlm_lint.program.modules import Module

_KEEPS = frozenset({"mean", "sum", "float", "div"})
_NO_TENSORS = frozenset({"const", "none"})
_BOUND_ELSEWHERE = frozenset({"const", "none", "free", "def", "class"})


class Losses(Concept):
    """The losses that backward passes run, and what they are made of."""

    @cached_property
    def on_device(self) -> list[Expr]:
        """All such values, with every other reading of the same entry or attribute in the file."""
        made = (one for one in self._made if one.kind not in _BOUND_ELSEWHERE)
        return [again for one in made for again in self._read_again(one)]

    @cached_property
    def containers(self) -> list[Expr]:
        """The containers of losses; they have other values computed with them: ``results["loss"].backward()``."""
        return [Expr(self.code, one.module.base | one.row[1]) for one in self._made if self._is_entry(one)]

    @cached_property
    def _made(self) -> list[Expr]:
        """The losses, and what each is made of."""
        passes = self.code[BackwardPasses]
        todo = [loss for call in passes.calls if (loss := passes.loss(call)) is not None]
        found = dict.fromkeys(todo)
        while todo:
            for source in self._sources(todo.pop()):
                if source not in found and source.kind not in _NO_TENSORS:
                    found[source] = None
                    todo.append(source)
        return list(found)

    @staticmethod
    def _is_entry(loss: Expr) -> bool:
        return loss.kind == "item" and loss.module.plain(loss.row[1])[0] in ("call", "dcomp", "param")

    def _read_again(self, loss: Expr) -> list[Expr]:
        """A value, and every other reading of the same entry or attribute: ``losses["shape"]``, ``output.loss`` here and
        there."""
        module, row = loss.module, loss.row
        if row[0] != "attr" and not (row[0] == "item" and module.nodes[row[2]][0] == "const"):
            return [loss]
        return [Expr(self.code, module.base | number) for number, other in enumerate(module.nodes) if other == row]

    def _sources(self, loss: Expr) -> Iterator[Expr]:
        """What has to be on the device because a value is."""
        module, row = loss.module, loss.row
        if row[0] == "param":
            yield from (Expr(self.code, one) for one in self.ask.given(module.base | row[1], row[2]))
        else:
            yield from (Expr(self.code, module.base | number) for number in self._operands(loss))

    def _operands(self, loss: Expr) -> list[int]:
        module, row = loss.module, loss.row
        kind = row[0]
        if kind == "op":
            return [row[2], row[3]] if row[1] in ("Add", "Sub") else [row[3] if _is_factor(module, row[2]) else row[2]]
        if kind == "phi":
            return list(row[1])
        if kind in ("copy", "un"):
            return [row[1] if kind == "copy" else row[2]]
        return self._of_call(loss) if kind == "call" else []

    def _of_call(self, loss: Expr) -> list[int]:
        """Of a call whose result is on the device the arguments that have to be there, too."""
        module, row = loss.module, loss.row
        function = module.plain(row[1])
        if function[0] == "free" and function[2] == "sum" and row[2]:
            summed = module.plain(row[2][0])
            return [summed[1]] if summed[0] == "comp" else list(summed[2]) if summed[0] == "seq" else []
        if function[0] == "attr" and function[2] == "scale" and row[2]:
            return [row[2][0]]
        if function[0] == "attr" and function[2] in _KEEPS and not row[2]:
            return [function[1]]
        value = self.program.ask(module.base | row[1])
        names = [fields[1] for kind in ("x", "o") for fields in self.program.atoms.kinds(value, kind)]
        # torch computes on one device: the operands of a loss are on the same device.
        is_loss = any(name.startswith("torch.nn.") for name in names)
        return [one for one in row[2][:2] if module.nodes[one][0] not in ("const", "star")] if is_loss else []


def _is_factor(module: Module, number: int) -> bool:
    """Whether an operand is written as a number that a loss is weighed with: ``(1 - self.ratio) * loss``."""
    row = module.nodes[number]
    if row[0] == "op":
        return _is_factor(module, row[2]) and _is_factor(module, row[3])
    return row[0] in ("const", "attr")
