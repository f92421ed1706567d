"""How a program puts its model on several GPUs: with one process for all, or one process for each.

A wrapper in a function that is never called and leads to no training step is ignored; an uncalled function with a
training step is an entry point that users start.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.arms import Arms
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

ONE_PROCESS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.data_parallel.DataParallel",
    }
)
"""Wrappers that drive all GPUs from one process."""
IN_ONE_CALL = frozenset({"torch.nn.parallel.data_parallel", "torch.nn.parallel.data_parallel.data_parallel"})
"""The same as a function, of a module and its input."""
_PER_PROCESS = frozenset(
    {"DistributedDataParallel", "DDP", "MMDistributedDataParallel", "FullyShardedDataParallel", "FSDP", "fully_shard", "Accelerator"}
)
_ENGINES = {"initialize": "deepspeed", "init": "horovod"}


class Replicas(Concept):
    """The ways by which the models of a program come on several GPUs."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps].loops
        self._reach = code[Reach]
        self._by_default = Arms(code.ask, by_default=True)
        self._read: dict[str, bool] = {}

    @cached_property
    def per_process(self) -> list[int]:
        """The calls that give each GPU a process of its own, and that may run."""
        return [call for call in self._written if self._is_offered(call)]

    def are_of_one_process(self, module: Module) -> bool:
        """Whether one process drives all GPUs in the programs of a module: there is a wrapper of that kind, and none
        for several processes."""
        near = self.program.together.programs_of(module)

        def stands_near(call: int) -> bool:
            return self.program.module_of(call).index in near

        wrapped = any(stands_near(call) for call, _ in self.ask.calls_of(ONE_PROCESS))
        joins = any(self.program.modules.all[index].shown.joins for index in near)
        return wrapped and not joins and not any(map(stands_near, self._written))

    @cached_property
    def _written(self) -> list[int]:
        program = self.program
        names = set(_PER_PROCESS).union(*(program.aliases.get(name, ()) for name in _PER_PROCESS))
        found = {call for name in names for call in program.calls.get(name, ())}
        for name, package in _ENGINES.items():
            found.update(call for call in program.calls.get(name, ()) if self._is_of(call, package))
        wraps = {call for call, _ in self.ask.calls_of({"torch.nn.parallel.DistributedDataParallel"})}
        return sorted(found | wraps)

    def _is_of(self, call: int, package: str) -> bool:
        module = self.program.module_of(call)
        names = self.ask.names_of(self.program.ask(module.base | module.nodes[call & MASK][1]))
        return any(name.partition(".")[0] == package for name in names)

    def in_modules(self, modules: Collection[int]) -> list[int]:
        """Those calls of them that are in some modules, by their numbers."""
        return [call for call in self.per_process if self.program.module_of(call).index in modules]

    def _is_offered(self, call: int) -> bool:
        """Whether the code of a module makes a call, a training step does, or a function that users start."""
        tops = self._tops(self.program.function_of(call))
        return tops is None or any(self._may_be_started(one) for one in tops)

    def _tops(self, function: int) -> set[int] | None:
        """The functions without callers that lead to one; None if a module or a step does."""
        tops: set[int] = set()
        seen: set[int] = set()
        todo = [function]
        while todo:
            one = todo.pop()
            if one in seen:
                continue
            seen.add(one)
            if one & MASK == 0 or one in self._reach.loops:
                return None
            above = [self.program.function_of(edge.call) for edge in self.program.callers(one)]
            todo += above
            if not above:
                tops.add(one)
        return tops

    def _may_be_started(self, function: int) -> bool:
        """Whether unknown code may call a function: any but a plain one that is never named and leads to no step."""
        module = self.program.module_of(function)
        scope = module.scopes[function & MASK]
        if scope.kind != "def" or scope.parent != 0 or scope.decorators or self._leads_to_step(function):
            return True
        if scope.name not in self._read:
            self._read[scope.name] = any(self._mentions(one.nodes, scope.name) for one in self.program.live)
        return self._read[scope.name]

    @staticmethod
    def _mentions(nodes: list[tuple[object, ...]], name: str) -> bool:
        return any((row[0] in ("free", "attr", "impf") and row[2] == name) or (row[0] == "const" and row[1] == name) for row in nodes)

    def _leads_to_step(self, function: int) -> bool:
        """Whether a function contains a training step, or calls one that does."""
        seen = {function}
        todo = [function]
        while todo:
            one = todo.pop()
            if one in self._steps:
                return True
            module = self.program.module_of(one)
            for call in module.scopes[one & MASK].calls:
                new = self.program.targets_of.get(module.base | call, set()) - seen
                seen |= new
                todo += new
        return False

    def runs_in_step(self, call: int) -> bool:
        """Whether a call is made in a training step."""
        return self._reach.runs(Call(self.code, call))

    def is_stepped(self, wrapper: int) -> bool:
        """Whether a training step runs the model that a call wraps; in the values of a program the result of a wrapper
        is the model."""
        if self.code[Evaluation].is_set_by(Call(self.code, wrapper).function):
            return False
        return not self._stepped.isdisjoint(one for one in self.program.ask(wrapper) if one >= FIRST)

    @cached_property
    def _stepped(self) -> frozenset[int]:
        """The functions that training steps call."""
        program = self.program
        found: set[int] = set()
        for function in self._reach.functions:
            for call in function.calls:
                if self._reach.runs(call):
                    found |= program.ask(call.callee.key)
        return frozenset(found)

    def is_default(self, call: int, others: Collection[int]) -> bool:
        """Whether a call is made with default options, and none of the others is."""
        return self._may_run(call, set()) and not any(self._may_run(one, set()) for one in others)

    def _may_run(self, call: int, seen: set[int]) -> bool:
        """Whether the defaults of options let a call be made, as far as they are known."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        if not self._by_default.may_take(module, site.guard, ()):
            return False
        function = module.base | site.scope
        if site.scope == 0 or function in seen:
            return True
        seen.add(function)
        edges = self.program.callers(function)
        return not edges or any(self._may_run(edge.call, seen) for edge in edges)
