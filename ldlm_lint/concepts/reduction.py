"""What decides whether the gradients of a training's steps are reduced: facts about its loop, never words in a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.replica_runs import DDP, ReplicaRuns
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call
from ldlm_lint.program.walks import Through
from ldlm_lint.vocabulary.batch_sizes import COUNTS, COUNTS_NOT
from ldlm_lint.vocabulary.models import names_evaluation

if TYPE_CHECKING:
    from ldlm_lint.concepts.replica_runs import Replica
    from ldlm_lint.program.handles import Expr, Function

_SCOPES = ("accumulate", "set_requires_gradient_sync", "set_requires_all_reduce", "set_is_last_backward")
_FLAG = "require_backward_grad_sync"
_SHARDS = ("fully_shard", "FullyShardedDataParallel", "FSDP")
_ENGINES = frozenset({"accelerate.Accelerator"})

_OF_RANKS = frozenset(f"torch.distributed.autograd.{name}" for name in ("backward", "context", "get_gradients"))
"""What keeps the gradients of several ranks."""


class Reduction(Concept):
    """The handling of the reduction in the steps of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._reach, self._runs = code[Reach], code[ReplicaRuns]

    def is_taken_care_of(self, backward: Call, models: frozenset[Replica]) -> bool:
        """Whether something in the programs that a backward pass takes part in decides on the reduction of some models
        itself: a scope or flag that a training step reaches, a static graph, a model that is sharded, or an engine."""
        return (
            self.is_kept_local(backward, models)
            or any(one.name == _FLAG for function in self._reach.functions if backward.may_run_with(function) for one in function.writes)
            or self.may_be_sharded(backward)
            or self._has_static_graph(backward)
            or any(map(backward.may_run_with, self.code.calls(_ENGINES)))
        )

    def may_be_sharded(self, backward: Call) -> bool:
        """Whether code in the programs of a backward pass that runs shards a model: FSDP decides in the backward pass."""
        return any(backward.may_run_with(call) and self._is_run(call.function) for call in self.code.calls_named(*_SHARDS))

    def is_kept_local(self, backward: Call, models: frozenset[Replica] = frozenset()) -> bool:
        """Whether a step of the programs of a backward pass enters a scope that keeps gradients local; a scope that surely
        is of other models does not count."""
        if self._reaches(backward, *_SCOPES):
            return True
        called = [call for call in self.code.calls_named("no_sync") if backward.may_run_with(call)]
        if not all(self._is_for_others(call.receiver, models) for call in called) and self._reaches(backward, "no_sync"):
            return True
        return not all(self._is_for_others(model, models) for model in self._handed_on(backward))

    def detaches_gradients(self, wrapper: Call) -> bool:
        """Whether code that may run with a wrapper detaches gradients of parameters in place, which a view does not allow,
        or keeps them elsewhere; those of an input that requires gradients do not concern DDP."""
        if any(map(wrapper.may_run_with, self.code.calls(_OF_RANKS))):
            return True
        detached = [call.receiver.plain for call in self.code.calls_named("detach_") if call.receiver is not None and wrapper.may_run_with(call)]
        return any(one.kind == "attr" and one.name == "grad" and not _asks_for_gradient(one.operands[0]) for one in detached)

    def scope_of_first_step(self, wrapper: Call) -> Call | None:
        """The call of `no_sync` by which the first backward pass of a wrapped model keeps its gradients local; not one that an
        evaluation makes, or that a test spares the first step."""
        untrained = self.code[Untrained]
        for scope in self.code.calls_named("no_sync"):
            if scope.receiver is None or scope.arguments or not wrapper.may_run_with(scope) or _is_spared(scope):
                continue
            is_of_it = any(one.replica.wrapper == wrapper and not one.is_bare for one in self._runs.behind(scope.receiver))
            if is_of_it and not untrained.records_nothing(scope) and not any(names_evaluation(one.name) for one in scope.function.around):
                return scope
        return None

    def _is_for_others(self, model: Expr | None, models: frozenset[Replica]) -> bool:
        """Whether the model of a scope surely is none of some models."""
        behind = {one.replica for one in self._runs.behind(model)} if model is not None and models else set()
        return bool(behind) and behind.isdisjoint(models)

    def _handed_on(self, backward: Call) -> Iterator[Expr]:
        """The models whose ``no_sync`` is read and not called: ``model.no_sync if … else nullcontext``,
        ``getattr(model, "no_sync", nullcontext)``."""
        called = {call.callee for call in self.code.calls_named("no_sync")}
        for read in self.code.reads_of("no_sync", backward):
            if read not in called:
                yield read.operands[0]
        for call in self.code.calls_named("getattr"):
            if len(call.positional) > 1 and call.positional[1].constant == "no_sync" and backward.may_run_with(call):
                yield call.positional[0]

    def _reaches(self, backward: Call, *names: str) -> bool:
        """Whether a step makes a call of one of these names; for a file that no step is known to reach, what it calls may
        run."""
        stepping = {function.module for function in self._reach.functions}
        near = (call for call in self.code.calls_named(*names) if backward.may_run_with(call))
        return any(self._reach.is_inside(call) or call.module not in stepping for call in near)

    def _is_run(self, function: Function) -> bool:
        """Whether a step reaches a function, or the code of a module calls it, through any other functions."""
        todo, seen = [function], {function}
        for one in todo:
            if one.is_module or self._reach.has(one):
                return True
            above = {call.function for call in one.callers} - seen
            seen |= above
            todo += above
        return False

    def _has_static_graph(self, backward: Call) -> bool:
        given = (call.argument("static_graph") for call in self.code.calls(DDP) if backward.may_run_with(call))
        may_be_set = any(one.values and {value.may_be().only for value in one.values} != {False} for one in given)
        return may_be_set or self._reaches(backward, "_set_static_graph")


def _is_spared(scope: Call) -> bool:
    """Whether a test around a call prevents it in the first step."""
    around = [(guard.test, guard.holds is True) for guard in scope.guards if guard.is_test]
    chosen = [(one.test, one.ways[0].unnamed == scope) for one in scope.users if one.kind == "choice" and one.test is not None]
    return any(_fails_first(test, holds) for test, holds in (*around, *chosen))


def _fails_first(test: Expr, holds: bool) -> bool:
    """Whether a test has the other outcome where the counters of steps and micro-batches are 0."""
    test = test.unnamed
    if test.operator == "Not":
        return _fails_first(test.operands[0], not holds)
    if test.operator in ("And", "Or"):
        return (test.operator == "And") is holds and any(_fails_first(one, holds) for one in test.operands)
    if test.operator == "Mod":
        return holds and _starts_at_zero(test.operands[0])
    if test.kind != "cmp" or len(test.operands) != 2:
        return False
    left, limit = (one.unnamed for one in test.operands)
    if left.operator == "Mod" and _starts_at_zero(left.operands[0]):
        return limit.constant == 0 and test.operator in (("NotEq", "Gt") if holds else ("Eq",))
    is_first = holds and _starts_at_zero(left) and limit.constant is not None
    return is_first and (test.operator in ("Gt", "NotEq") or (test.operator == "GtE" and limit.constant != 0))


def _starts_at_zero(counter: Expr) -> bool:
    """A counter that starts at 0: of ``enumerate`` and ``range``, or one by its name."""
    counter = counter.unnamed
    element = counter.operands[0] if counter.kind == "part" and counter.part == 0 else counter
    made = element.operands[0].unnamed if element.kind == "elem" else None
    if isinstance(made, Call) and made.called_name == "enumerate" and counter.kind == "part":
        start = made.argument("start", 1)
        return start.is_absent or start.only == 0
    if isinstance(made, Call) and made.called_name == "range":
        return len(made.positional) == 1 or made.positional[0].constant == 0
    if counter.kind == "phi":
        return any(one.constant == 0 for one in counter.origins(Through.NAMES))
    return COUNTS.search(counter.name) is not None and COUNTS_NOT.search(counter.name) is None


def _asks_for_gradient(tensor: Expr) -> bool:
    """Whether an expression creates a tensor that requires gradients: an input, not a parameter of a model."""
    made = tensor.plain
    if not isinstance(made, Call):
        return False
    if made.called_name == "requires_grad_" or "requires_grad" in dict(made.keywords):
        return True
    asked = [call.receiver for call in tensor.code.calls_named("requires_grad_") if call.module is tensor.module]
    set_on = [base for base, _ in tensor.code.writes_of("requires_grad")]
    return tensor in asked or tensor in set_on


__all__ = ["Reduction"]
