"""What decides whether the gradients of a training's steps are reduced: facts about its loop, never words in a file."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.concepts.reach import Reach
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.program.queries import Queries, State

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_SCOPES = ("no_sync", "accumulate", "set_requires_gradient_sync", "set_requires_all_reduce", "set_is_last_backward")
_FLAG = "require_backward_grad_sync"
_DDP = frozenset({"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"})
_SHARDS = ("fully_shard", "FullyShardedDataParallel", "FSDP")
_STEPS = 20
_ENGINES = frozenset({"accelerate.Accelerator"})


class Reduction(Concept):
    """The handling of the reduction in the steps of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._reach = code[Reach]
        self._found: dict[str, frozenset[int]] = {}
        """The modules of calls by a name that steps reach, or that is run."""
        self._handed_on: dict[int, list[int]] = {}
        self._taken: dict[tuple[frozenset[int], frozenset[int]], bool] = {}

    def is_taken_care_of(self, module: Module, models: frozenset[int] = frozenset()) -> bool:
        """Whether something in the programs that a module takes part in decides on the reduction itself.

        That is a scope or flag that a training step of the module's programs reaches, a static graph, a model that is
        sharded, or an engine. The scope of a model that is surely not among ``models`` (see `models_of`) decides
        nothing for those.
        """
        near = self.program.together.programs_of(module)
        if (near, models) not in self._taken:
            self._taken[near, models] = self._decides(near, models)
        return self._taken[near, models]

    def models_of(self, backward: int) -> frozenset[int]:
        """Where DDP wraps the models (keys of calls) that the loop of a backward pass calls by plain names; unknown
        ones are left out."""
        module = self.program.module_of(backward)
        site = module.table.sites[backward & MASK]
        inside = (one for one in module.scopes[site.scope].calls if module.table.sites[one].loop == site.loop)
        called = {module.nodes[one][1] for one in inside if module.nodes[module.nodes[one][1]][0] in ("copy", "param", "free")}
        return frozenset(one for one in map(self._wrapped_by, (module.base | one for one in called)) if one is not None)

    def _wrapped_by(self, key: int) -> int | None:
        """The call that makes a DDP model: of the class, or of a function that does nothing else with the wrapped
        model."""
        call = model_behind(self.program, self.ask, key)
        return call if call is not None and self._wraps(call) else None

    def _wraps(self, call: int) -> bool:
        module = self.program.module_of(call)
        function = self.program.ask(module.base | module.nodes[call & MASK][1])
        names = {fields[1] for fields in self.program.atoms.kinds(function, "x")}
        if names:
            return names <= _DDP
        made = self.program.atoms.kinds(function, "f")
        return len(made) == len(function) == 1 and self._returns_wrapped(made[0][1])

    def _returns_wrapped(self, function: int) -> bool:
        module = self.program.module_of(function)
        returns = module.scopes[function & MASK].returns
        rows = [module.plain(number) for number, _ in returns]
        values = [self.program.ask(module.base | row[1]) for row in rows if row[0] == "call"]
        names = {fields[1] for value in values for fields in self.program.atoms.kinds(value, "x")}
        return bool(returns) and len(values) == len(returns) and bool(names) and names <= _DDP

    def _decides(self, near: frozenset[int], models: frozenset[int]) -> bool:
        return (
            any(self._sets_flag(one) for one in near)
            or self._keeps_local(near, models)
            or any(self._is_called(name, near) for name in _SHARDS)
            or self._has_static_graph(near)
            or any(self._makes(call, near) for call, _ in self.ask.calls_of(_ENGINES))
        )

    def keeps_local(self, module: Module) -> bool:
        """Whether a step of a module's programs enters a scope that keeps gradients local."""
        return self._keeps_local(self.program.together.programs_of(module), frozenset())

    def _keeps_local(self, near: frozenset[int], models: frozenset[int]) -> bool:
        scopes = [name for name in _SCOPES if name != "no_sync" or not (models and self._is_for_others(near, models))]
        return any(self._reaches(name, near) for name in scopes) or self._hands_on_scope(near, models)

    def _hands_on_scope(self, near: frozenset[int], models: frozenset[int]) -> bool:
        """Whether code of some modules reads ``model.no_sync`` without calling it: ``with ctx():`` does, where ``ctx`` was
        chosen, or a ``partial`` of it."""
        for index in sorted(near - self.program.modules.dropped):
            module = self.program.modules.all[index]
            for number in self._models_of_scopes(module):
                model = self._wrapped_by(module.base | number) if models else None
                if model is None or model in models:
                    return True
        return False

    def _models_of_scopes(self, module: Module) -> list[int]:
        """The models (rows) whose ``no_sync`` is read and not called: ``model.no_sync if … else nullcontext``,
        ``getattr(model, "no_sync", nullcontext)``."""
        if module.index not in self._handed_on:
            called = {module.nodes[one][1] for one in module.table.named.get("no_sync", ())}
            reads = [row[1] for number, row in enumerate(module.nodes) if row[0] == "attr" and row[2] == "no_sync" and number not in called]
            given = [module.nodes[one][2] for one in module.table.named.get("getattr", ())]
            named = [args[0] for args in given if len(args) > 1 and module.nodes[args[1]][:2] == ("const", "no_sync")]
            self._handed_on[module.index] = reads + named
        return self._handed_on[module.index]

    @cached_property
    def _stepping(self) -> frozenset[int]:
        """The modules with a function that a step is known to reach; for others it is unknown what runs there."""
        return frozenset(function.module.index for function in self._reach.functions)

    def _sets_flag(self, index: int) -> bool:
        """Whether a function that a step reaches sets DDP's flag."""
        module = self.program.modules.all[index]
        return any(
            name == _FLAG and (module.base | number) in self._reach.loops
            for number, scope in enumerate(module.scopes)
            for _, name, _, _ in scope.writes
        )

    def _reaches(self, name: str, near: frozenset[int]) -> bool:
        """Whether a step makes a call of this name, also if the context manager is selected elsewhere."""
        if name not in self._found:
            calls = [Call(self.code, call) for call in self.program.calls.get(name, ())]
            found = (call.module.index for call in calls if self._reach.is_inside(call) or call.module.index not in self._stepping)
            self._found[name] = frozenset(found)
        return not self._found[name].isdisjoint(near)

    def _is_for_others(self, near: frozenset[int], models: frozenset[int]) -> bool:
        """Whether every ``no_sync`` of some modules surely belongs to another model."""
        calls = [one for one in self.program.calls.get("no_sync", ()) if self.program.module_of(one).index in near]
        behind = [self._model_of_scope(one) for one in calls]
        return all(one is not None and one not in models for one in behind)

    def _model_of_scope(self, call: int) -> int | None:
        module = self.program.module_of(call)
        function = module.nodes[module.nodes[call & MASK][1]]
        return self._wrapped_by(module.base | function[1]) if function[0] == "attr" else None

    def _is_called(self, name: str, near: frozenset[int]) -> bool:
        """Whether code that runs shards a model."""
        if name not in self._found:
            calls = self.program.calls.get(name, ())
            run = [call for call in calls if self.is_run(self.program.function_of(call))]
            self._found[name] = frozenset(self.program.module_of(call).index for call in run)
        return not self._found[name].isdisjoint(near)

    def is_run(self, function: int) -> bool:
        """Whether a step reaches a function, or the code of a module calls it, through any other functions."""
        seen: set[int] = set()
        todo = [function]
        while todo:
            one = todo.pop()
            if one & MASK == 0:
                return True
            if one in seen:
                continue
            seen.add(one)
            todo += [self.program.function_of(edge.call) for edge in self.program.callers(one)]
            if one in self._reach.loops:
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


def model_behind(program: Program, ask: Queries, key: int) -> int | None:
    """The call (key) that created the value of an expression, through names and the parameters of functions with one
    caller; None if unknown."""
    for _ in range(_STEPS):
        module = program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] == "call":
            return key
        if row[0] == "copy":
            key = module.base | row[1]
        elif row[0] == "free":
            bound = list(ask.bound_to(module, row))
            if len(bound) != 1:
                return None
            key = bound[0]
        elif row[0] == "param":
            edges = program.callers(module.base | row[1])
            given = (
                program.argument_node(edges[0].call, module.base | row[1], edges[0].how, row[2])
                if len(edges) == 1 and edges[0].how != UNKNOWN
                else None
            )
            if given is None:
                return None
            key = given
        else:
            return None
    return None
