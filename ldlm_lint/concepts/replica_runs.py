"""Whether a step runs a model through the wrapper that reduces its gradients, or past it: ``model.module(x)``.

A forward pass of the inner module prepares no reduction: nothing is reduced in the backward pass, with or without
`no_sync`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, expression
from ldlm_lint.program.ways_back import Held, WaysBack
from ldlm_lint.vocabulary.tensors import MODULE_METHODS

DDP = frozenset({"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"})
_SAME_MODEL = ("torch.compile", "torch.nn.SyncBatchNorm.convert", "torch.nn.modules.batchnorm.SyncBatchNorm.convert", "copy.")
"""Functions that give the model they get, or a copy of it."""
_TAKES_OFF = frozenset({"unwrap_model", "extract_model_from_parallel"})
"""Functions of Accelerate and timm that give the inner module of a wrapper; by their names, not compared with a release."""
_PREPARES = frozenset({"prepare", "prepare_model"})
_RUNS_NOTHING = ("builtins.", "torch.", "contextlib.", "numpy.", "time.", "logging.", "accelerate.", "wandb.")
_MOST = 4000
"""Expressions that are looked at for one question: a walk through very large programs is given up, and nothing is said."""


@dataclass(frozen=True)
class Replica:
    """A model in a wrapper: the call that wraps it, or that lets Accelerate do so, and the calls that lead there from where
    it is used: two calls of one function wrap two models."""

    wrapper: Call
    made_for: tuple[Call, ...] = ()


@dataclass(frozen=True)
class Runs:
    """The replicas that run ``through`` their wrappers, and those whose inner module runs ``past`` them."""

    through: frozenset[Replica]
    past: frozenset[Replica]


@dataclass(frozen=True)
class Wrapped:
    """A replica that an expression may be, or its inner module."""

    replica: Replica
    is_bare: bool


class ReplicaRuns(Concept):
    """The forward passes of a program's replicated models."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._back = WaysBack(self.program)
        self._wraps = frozenset(code.calls(DDP))
        self._known: dict[Expr, frozenset[Wrapped]] = {}
        self._steps: dict[tuple[Held, bool], list[tuple[Held, bool]]] = {}
        """The steps back that were taken: many expressions lead to the same ones."""

    def of(self, backward: Call) -> Runs:
        """The replicas that the loop around a backward pass runs, in its functions too."""
        return self.run_by(backward.loops[0].calls if backward.loops else backward.function.calls)

    def run_by(self, calls: Iterable[Call]) -> Runs:
        """The replicas that some calls run, and the functions that they go to."""
        through: set[Replica] = set()
        past: set[Replica] = set()
        for call in self._with_targets(calls):
            for one in self._run_itself(call):
                (past if one.is_bare else through).add(one.replica)
            if self._may_run_its_arguments(call):
                through.update(one.replica for value in call.arguments for one in self.behind(value) if not one.is_bare)
        return Runs(frozenset(through), frozenset(past))

    def behind(self, model: Expr) -> frozenset[Wrapped]:
        """The replicas that an expression may be, and whether it is the inner module."""
        if model not in self._known:
            self._known[model] = frozenset(self._walk(model))
        return self._known[model]

    def is_always_wrapped(self, model: Expr) -> bool:
        """Whether an expression is a model in a wrapper, whatever way leads to it."""
        return all(not is_made or (self._is_wrapper(self._at(held)) and not is_bare) for held, is_bare, is_made in self._ways(model))

    def _walk(self, model: Expr) -> Iterator[Wrapped]:
        for held, is_bare, is_made in self._ways(model):
            at = self._at(held)
            if isinstance(at, Call) and self._is_wrapper(at):
                yield Wrapped(Replica(at, tuple(Call(self.code, one.call) for one in held.entered)), is_bare)
            elif is_made:
                yield from (Wrapped(Replica(one), is_bare=True) for one in self._wrappers_of.get(held, ()))

    def _at(self, held: Held) -> Expr:
        return expression(self.code, held.key)

    def _ways(self, model: Expr) -> Iterator[tuple[Held, bool, bool]]:
        """Everything that an expression may be, up to a wrapper: whether that is taken off, and whether it is made there."""
        todo = [(Held(model.key), False)]
        seen = set(todo)
        while todo and len(seen) < _MOST:
            held, is_bare = todo.pop()
            before = self._steps.get((held, is_bare))
            if before is None:
                at = self._at(held)
                before = self._steps[held, is_bare] = list(self._before(at, held, is_bare)) if not self._is_wrapper(at) else []
            yield held, is_bare, not before
            todo += (fresh := [one for one in before if one not in seen])
            seen.update(fresh)

    @cached_property
    def _wrappers_of(self) -> dict[Held, set[Call]]:
        """The wrappers of a model, by the expression that makes it: ``net`` of ``model = DDP(net)`` is the inner module."""
        found: dict[Held, set[Call]] = {}
        for wrapper in sorted(self._wraps, key=lambda one: one.key):
            for source in wrapper.argument("module", 0).values:
                for held, _, is_made in self._ways(source):
                    if is_made and isinstance(self._at(held), Call):
                        found.setdefault(held, set()).add(wrapper)
        return found

    def _is_wrapper(self, at: Expr) -> bool:
        """Whether an expression wraps a model itself, or is ``accelerator.prepare(model, …)``: which of its results is a
        model, its use says."""
        if not isinstance(at, Call) or at in self._wraps or at.callee.kind != "attr" or at.called_name not in _PREPARES:
            return at in self._wraps
        return at.receiver is not None and any(name.startswith("accelerate.") for name in at.receiver.made_by)

    def _before(self, at: Expr, held: Held, is_bare: bool) -> Iterator[tuple[Held, bool]]:
        if _is_inner(at):
            yield held._replace(key=at.operands[0].key), True
        if isinstance(at, Call):
            inner, same = self._taken_off(at), self._same_model(at)
            if inner is not None or same is not None:
                model = inner or same
                assert model is not None
                yield held._replace(key=model.key), is_bare or inner is not None
                return
        ways = list(self._back.before(held))
        if at.kind in ("phi", "choice"):
            # ``model.module if is_wrapped(model) else model`` is the inner module where there is a wrapper.
            bases = {one.operands[0].unnamed for one in (self._at(way).unnamed for way in ways) if _is_inner(one)}
            ways = [way for way in ways if self._at(way).unnamed not in bases]
        yield from ((way, is_bare) for way in ways)

    @staticmethod
    def _taken_off(call: Call) -> Expr | None:
        """The wrapped model from which a call takes the inner module: ``getattr(model, "module", model)``,
        ``accelerator.unwrap_model(model)``."""
        given = call.positional
        if call.callee.interfaces == {"builtins.getattr"}:
            return given[0] if len(given) > 1 and given[1].constant == "module" else None
        return given[0] if given and call.called_name in _TAKES_OFF and not call.targets else None

    @staticmethod
    def _same_model(call: Call) -> Expr | None:
        """The model that a call gives back: ``torch.compile(model)``, ``model.to(device)``."""
        gives = any(name.startswith(_SAME_MODEL) for name in call.callee.interfaces)
        if gives:
            return call.positional[0] if call.positional else None
        return call.receiver if call.called_name in MODULE_METHODS and not call.targets else None

    def _run_itself(self, call: Call) -> Iterator[Wrapped]:
        """The replicas that a call runs: the called object, or the object whose own method is called."""
        yield from self.behind(call.callee)
        receiver, name = call.receiver, call.called_name
        if receiver is not None and name != "module" and (name == "forward" or call.targets):
            yield from (found for found in self.behind(receiver) if found.is_bare or name == "forward")

    def _may_run_its_arguments(self, call: Call) -> bool:
        """Whether a call goes to unknown code, or to a package that runs the models it gets."""
        if call.targets or self._taken_off(call) is not None:
            return False
        names = call.callee.interfaces or (call.receiver.made_by if call.receiver is not None else frozenset())
        if names:
            return not all(one.startswith(_RUNS_NOTHING) for one in names) or any(one.endswith(".checkpoint") for one in names)
        return not call.callee.value

    @staticmethod
    def _with_targets(calls: Iterable[Call]) -> list[Call]:
        """Some calls, and those of the functions that they go to."""
        found = list(calls)
        functions = set()
        for call in found:
            if len(found) > _MOST:
                break
            for function in call.targets:
                if function not in functions:
                    functions.add(function)
                    found += function.calls
        return found


def _is_inner(expr: Expr) -> bool:
    """``model.module``."""
    return expr.kind == "attr" and expr.name == "module"


__all__ = ["DDP", "Replica", "ReplicaRuns", "Runs", "Wrapped"]
