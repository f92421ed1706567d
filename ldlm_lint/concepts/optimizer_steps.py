"""How an optimizer steps: whether `torch.compile` makes kernels of its own for that, and whether it has more than a
parameter or two to step.

    @torch.compile                     opt.step = torch.compile(opt.step)      step = torch.compile(train_step)
    def update(): opt.step()
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_COMPILE = "torch.compile"
_LISTS = frozenset({"parameters", "named_parameters"})
_FEW = 2
"""Tensors: the default implementation launches a few kernels for them, and so does the fused one."""
_PARAMETER = "torch.nn.Parameter"


class OptimizerSteps(Concept):
    """Answers for the calls that create optimizers."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)


    def are_compiled(self, optimizer: int) -> bool:
        """Whether all steps of an optimizer that are seen run in compiled functions."""
        if any(self._is_of(target, optimizer) for target, value in self.program.other_writes.get("step", ()) if self._is_compiling(value)):
            return True
        steps = [call for call in self.program.calls.get("step", ()) if self._is_of(self._receiver(call), optimizer)]
        return bool(steps) and all(self._is_inside_compiled(self.program.function_of(one), frozenset()) for one in steps)

    def _receiver(self, call: int) -> int:
        module = self.program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        return module.base | (function[1] if function[0] == "attr" else 0)

    def _is_of(self, key: int, optimizer: int) -> bool:
        return any(fields[2:3] == (optimizer,) for fields in self.program.atoms.kinds(self.program.ask(key), "o"))

    def _is_compiling(self, key: int) -> bool:
        """Whether an expression is a call of `torch.compile`, or that function or a ``partial`` of it."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        function = module.base | row[1] if row[0] == "call" else key
        return _COMPILE in self.ask.names_of(self.program.ask(function)) or _COMPILE in self.ask.names_of(self.program.ask(key))

    def _is_inside_compiled(self, function: int, seen: frozenset[int]) -> bool:
        """Whether a function is compiled, or called by such ones only."""
        module = self.program.module_of(function)
        scope = module.scopes[function & MASK]
        if function & MASK == 0 or function in seen:
            return False
        if function in self._compiled or any(self._is_compiling(module.base | one) for one in scope.decorators):
            return True
        above = {self.program.function_of(edge.call) for edge in self.program.callers(function)}
        return bool(above) and all(self._is_inside_compiled(one, seen | {function}) for one in above)

    @cached_property
    def _compiled(self) -> frozenset[int]:
        """The functions that are an argument of `torch.compile`."""
        program, found = self.program, set[int]()
        for call, _ in self.ask.calls_of({_COMPILE}):
            for source in self.ask.argument(call, "model", 0).sources:
                value = program.ask(source)
                found.update(fields[1] for kind in ("f", "b") for fields in program.atoms.kinds(value, kind))
        return frozenset(found)

    def has_few_tensors(self, parameters: tuple[int, ...]) -> bool:
        """Whether the parameters that some expressions (keys) list are those of a model without layers, such as a
        temperature."""
        classes = [self._class_listed(one) for one in parameters]
        return bool(classes) and all(one is not None and self._has_few(one) for one in classes)

    def _class_listed(self, key: int) -> int | None:
        """The class of the project of a ``model.parameters()``."""
        module = self.program.module_of(key)
        row = module.plain(key & MASK)
        function = module.nodes[row[1]] if row[0] == "call" else ("",)
        if function[0] != "attr" or function[2] not in _LISTS:
            return None
        value = self.program.ask(module.base | function[1])
        classes = self.program.atoms.kinds(value, "i")
        return classes[0][1] if len(classes) == 1 == len(value) else None

    def _has_few(self, owner: int) -> bool:
        """Whether the constructor of a module makes a parameter or two, and nothing that may have more."""
        made = 0
        for function in self.program.methods(owner, "__init__") if len(self.program.order(owner)) == 1 else ():
            module = self.program.module_of(function)
            for call in module.scopes[function & MASK].calls:
                names = self.ask.names_of(self.program.ask(module.base | module.nodes[call][1]))
                if _PARAMETER in names and module.table.sites[call].loop < 0:
                    made += 1
                elif not self._makes_none(module, call, names):
                    return False
        return 0 < made <= _FEW

    @staticmethod
    def _makes_none(module: Module, call: int, names: set[str]) -> bool:
        """Whether a call makes no parameter: a tensor, a number, the base's constructor."""
        function = module.nodes[module.nodes[call][1]]
        if module.last_name(module.nodes[call][1]) == "super" or (function[0] == "attr" and module.last_name(function[1]) == "()super"):
            return True
        return bool(names) and all(name.startswith(("torch.", "builtins.", "math.")) and not name.startswith("torch.nn.") for name in names)
