"""How a program puts its model on several GPUs: with one process for all, or one process for each.

A wrapper in a function that is never called and leads to no training step is ignored; an uncalled function with a
training step is an entry point that users start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.replica_runs import DDP
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import leading_to

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Call, Expr, Function
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
_PER_PROCESS = ("DistributedDataParallel", "DDP", "MMDistributedDataParallel", "FullyShardedDataParallel", "FSDP", "fully_shard", "Accelerator")
_ENGINES = {"initialize": "deepspeed", "init": "horovod"}


class Replicas(Concept):
    """The ways by which the models of a program come on several GPUs."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps, self._reach = code[Steps], code[Reach]

    @cached_property
    def per_process(self) -> list[Call]:
        """The calls that give each GPU a process of its own, and that may run."""
        return [call for call in self._written if self._is_offered(call)]

    def train(self, wrapper: Call) -> bool:
        """Whether a model that a call wraps is trained: a function that leads there leads to a training step, too, or the
        files in which that begins are part of a training."""
        own, trainings = wrapper.function, self.code.trainings
        if any(self._leads_to_step(one) for one in own.leading if one == own or not one.is_module):
            return True
        files = {self.code.path(one.module) for one, is_first in own.leading.items() if is_first}
        return any(trainings.start_in(path) or trainings.trainings_of(path) for path in sorted(files))

    def may_be_wanted(self, wrapper: Call) -> bool:
        """Whether something starts several ranks, or no switch around a wrapper is off for good: ``if world_size > 1:``."""
        tests = [guard.test for guard in wrapper.guards if guard.kind == "if" and guard.holds]
        return self.code.trainings.may_use_ranks([name for test in tests for name in _switches(test)])

    def are_of_one_process(self, module: Module) -> bool:
        """Whether one process drives all GPUs in the programs of a module: there is a wrapper of that kind, and none
        for several processes."""
        near = self.code.modules_near(module)
        wrapped = any(call.module in near for call in self.code.calls(ONE_PROCESS))
        return wrapped and not any(one.shown.joins for one in near) and not any(call.module in near for call in self._written)

    @cached_property
    def _written(self) -> list[Call]:
        aliases = (self.program.aliases.get(name, ()) for name in _PER_PROCESS)
        found = {*self.code.calls_named(*{*_PER_PROCESS, *(alias for names in aliases for alias in names)}), *self.code.calls(DDP)}
        found.update(call for name, package in _ENGINES.items() for call in self.code.calls_named(name) if _is_of(call, package))
        return sorted(found, key=lambda call: call.key)

    def _is_offered(self, call: Call) -> bool:
        """Whether the code of a module makes a call, a training step does, or a function that users start."""
        above = leading_to([call.function])
        if any(one.is_module or self._reach.has(one) for one in above):
            return True
        return any(self._may_be_started(one) for one in above if not one.callers)

    def _may_be_started(self, function: Function) -> bool:
        """Whether unknown code may call a function: any but a plain one that is never named and leads to no step."""
        is_plain = not function.is_class and function.outer is not None and function.outer.is_module and not function.decorators
        return not is_plain or self._leads_to_step(function) or self.code.is_read(function.name)

    def _leads_to_step(self, function: Function) -> bool:
        """Whether a function contains a training step, or calls one that does."""
        todo = [function]
        seen = {function}
        for one in todo:
            if self._steps.are_in(one):
                return True
            todo += (fresh := {target for call in one.calls for target in call.targets} - seen)
            seen |= fresh
        return False

    def runs_in_step(self, call: Call) -> bool:
        """Whether a call is made in a training step."""
        return self._reach.runs(call)

    def is_stepped(self, wrapper: Call) -> bool:
        """Whether a training step runs the model that a call wraps; in the values of a program the result of a wrapper
        is the model."""
        return not self.code[Evaluation].is_set_by(wrapper.function) and not self._stepped.isdisjoint(wrapper.identities)

    @cached_property
    def _stepped(self) -> frozenset[object]:
        """The functions and objects that training steps call."""
        calls = (call for function in self._reach.functions for call in function.calls if self._reach.runs(call))
        return frozenset(one for call in calls for one in call.callee.identities)

    def is_default(self, call: Call, others: Collection[Call]) -> bool:
        """Whether a call is made with default options, and none of the others is."""
        return self._may_run(call) and not any(map(self._may_run, others))

    @staticmethod
    def _may_run(call: Call) -> bool:
        """Whether the defaults of options let a call be made, as far as they are known."""
        todo, seen = [call], {call}
        for one in todo:
            if one.may_run_by_default:
                if one.function.is_module or not one.function.callers:
                    return True
                fresh = [above for above in one.function.callers if above not in seen]
                todo += fresh
                seen.update(fresh)
        return False


def _is_of(call: Call, package: str) -> bool:
    return any(name.partition(".")[0] == package for name in call.callee.interfaces)


def _switches(test: Expr) -> Iterator[str]:
    """``distributed`` of ``self.distributed and x``, ``world_size`` of ``world_size > 1``."""
    test = test.unnamed
    if test.operator == "And":
        for one in test.operands:
            yield from _switches(one)
    elif test.operator in ("Gt", "GtE", "NotEq") and test.operands[1].constant is not ...:
        yield from _switches(test.operands[0])
    elif test.name:
        yield test.name
