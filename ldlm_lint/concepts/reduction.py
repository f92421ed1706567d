"""Who decides whether the gradients of a training's steps are reduced: facts about its loop, never words of a file."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.queries import Queries, State

if TYPE_CHECKING:
    from ldlm_lint.concepts.training import Training
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_SCOPES = ("no_sync", "accumulate", "set_requires_gradient_sync", "set_requires_all_reduce", "set_is_last_backward")
_FLAG = "require_backward_grad_sync"
_DDP = frozenset({"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"})
_SHARDS = ("fully_shard", "FullyShardedDataParallel", "FSDP")
_ENGINES = frozenset({"accelerate.Accelerator"})


class Reduction:
    """What takes care of the reduction in the steps of a program."""

    def __init__(self, training: Training, ask: Queries) -> None:
        self.training = training
        self.program: Program = training.program
        self.ask = ask
        self._found: dict[str, frozenset[int]] = {}
        """The modules of calls by a name that steps reach, or that somebody runs."""
        self._taken: dict[frozenset[int], bool] = {}

    def is_taken_care_of(self, module: Module) -> bool:
        """Whether something in the programs that a module takes part in decides on the reduction by itself.

        That is a scope or flag that a training step of the module's programs reaches, a static graph, a model that is sharded, or an engine.
        """
        near = self.program.together.programs_of(module)
        if near not in self._taken:
            self._taken[near] = self._decides(near)
        return self._taken[near]

    def _decides(self, near: frozenset[int]) -> bool:
        return (
            any(self._sets_flag(one) for one in near)
            or any(self._reaches(name, near) for name in _SCOPES)
            or any(self._is_called(name, near) for name in _SHARDS)
            or self._has_static_graph(near)
            or any(self._makes(call, near) for call, _ in self.ask.calls_of(_ENGINES))
        )

    @cached_property
    def _stepping(self) -> frozenset[int]:
        """The modules with a function that a step is seen to reach; of others nobody knows what runs there."""
        return frozenset(self.program.module_of(function).index for function in self.training.reached)

    def _sets_flag(self, index: int) -> bool:
        """Whether a function that a step reaches sets DDP's flag."""
        module = self.program.modules.all[index]
        return any(
            name == _FLAG and (module.base | number) in self.training.reached
            for number, scope in enumerate(module.scopes)
            for _, name, _, _ in scope.writes
        )

    def _reaches(self, name: str, near: frozenset[int]) -> bool:
        """Whether a step makes a call of this name, wherever a context manager for it is chosen."""
        if name not in self._found:
            calls = ((call, self.program.function_of(call)) for call in self.program.calls.get(name, ()))
            self._found[name] = frozenset(
                self.program.module_of(call).index
                for call, function in calls
                if ((loops := self.training.reached.get(function)) is not None and self._runs(self.program.module_of(call), call, function, loops))
                or self.program.module_of(call).index not in self._stepping
            )
        return not self._found[name].isdisjoint(near)

    def _runs(self, module: Module, call: int, function: int, loops: frozenset[int | None]) -> bool:
        site = module.table.sites[call & MASK]
        if None in loops:
            return True
        loop = site.loop
        while loop >= 0:
            if loop in loops:
                return True
            loop = module.table.loops[loop].parent
        # Bound before the loop: ``scope = model.no_sync``.
        return False

    def _is_called(self, name: str, near: frozenset[int]) -> bool:
        """Whether code that somebody runs shards a model."""
        if name not in self._found:
            calls = self.program.calls.get(name, ())
            run = [call for call in calls if self.is_run(self.program.function_of(call))]
            self._found[name] = frozenset(self.program.module_of(call).index for call in run)
        return not self._found[name].isdisjoint(near)

    def is_run(self, function: int) -> bool:
        """Whether a step reaches a function, or the code of a module calls it, through whatever other functions."""
        seen: set[int] = set()
        todo = [function]
        while todo:
            one = todo.pop()
            if one & MASK == 0:
                return True
            if one in seen:
                continue
            seen.add(one)
            self.program.ask(("callers", one))
            todo += [self.program.function_of(edge >> 2) for edge in self.program.ask(("edges", one))]
            if one in self.training.steps or one in self.training.reached:
                return True
        return False

    def _has_static_graph(self, near: frozenset[int]) -> bool:
        for call, _ in self.ask.calls_of(_DDP):
            argument = self.ask.argument(call, "static_graph")
            if self.program.module_of(call).index not in near or argument.state in (State.ABSENT, State.OPEN):
                continue
            if self.ask.meaning(*argument.sources).only is not False:
                return True
        return any(self._reaches(name, near) for name in ("_set_static_graph",))

    def _makes(self, call: int, near: frozenset[int]) -> bool:
        return self.program.module_of(call).index in near
