"""Whether a step runs a model through the wrapper that reduces its gradients, or past it: ``model.module(x)``.

A forward pass of the inner module prepares no reduction: nothing is reduced in the backward pass, with or without
`no_sync`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.ways_back import Held, WaysBack
from ldlm_lint.vocabulary.tensors import MODULE_METHODS

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_WRAPPERS = frozenset({"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"})
_SAME_MODEL = ("torch.compile", "torch.nn.SyncBatchNorm.convert", "torch.nn.modules.batchnorm.SyncBatchNorm.convert", "copy.")
"""Functions that give the model they get, or a copy of it."""
_TAKES_OFF = frozenset({"unwrap_model", "extract_model_from_parallel"})
"""Functions of Accelerate and timm that give the inner module of a wrapper; by their names, not compared with a release."""
_PREPARES = frozenset({"prepare", "prepare_model"})
_RUNS_NOTHING = ("builtins.", "torch.", "contextlib.", "numpy.", "time.", "logging.", "accelerate.", "wandb.")
_MOST = 4000
"""Expressions that are looked at for one question: a walk through very large programs is given up, and nothing is said."""


class Runs(NamedTuple):
    """The wrappers (keys of the calls that wrap) whose model runs ``through`` them, and those whose inner module runs
    ``past`` them."""

    through: frozenset[int]
    past: frozenset[int]


class _Wrapped(NamedTuple):
    wrapper: int
    is_bare: bool


class ReplicaRuns(Concept):
    """The forward passes of a program's replicated models."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._back = WaysBack(self.program)
        self._wraps = frozenset(call for call, _ in code.ask.calls_of(_WRAPPERS))
        self._known: dict[int, frozenset[_Wrapped]] = {}
        self._steps: dict[tuple[Held, bool], list[tuple[Held, bool]]] = {}
        """The steps back that were taken: many expressions lead to the same ones."""

    def is_past(self, backward: int, wrapper: int) -> bool:
        """Whether all forward passes before a backward pass (key) that are seen run the inner module of a wrapper (the
        call that wraps, or that prepares)."""
        runs = self.of(backward)
        return wrapper in runs.past and wrapper not in runs.through

    def of(self, backward: int) -> Runs:
        """The wrappers that the loop of a backward pass runs models of, in its functions too."""
        through: set[int] = set()
        past: set[int] = set()
        for call in self._calls_around(backward):
            module = self.program.module_of(call)
            row = module.nodes[call & MASK]
            for one in self._run_by(module, row):
                (past if one.is_bare else through).add(one.wrapper)
            if self._may_run_its_arguments(call):
                given = (*row[2], *(value for _, value in row[3]))
                through.update(one.wrapper for value in given for one in self.behind(module.base | value) if not one.is_bare)
        return Runs(frozenset(through), frozenset(past))

    def behind(self, key: int) -> frozenset[_Wrapped]:
        """The wrappers that an expression may be, and whether it is the inner module."""
        if key not in self._known:
            self._known[key] = frozenset(self._walk(key))
        return self._known[key]

    def _walk(self, key: int) -> Iterator[_Wrapped]:
        for held, is_bare, is_made in self._ways(key):
            wrapper = self._wrapper(held)
            if wrapper is not None:
                yield _Wrapped(wrapper, is_bare)
            elif is_made:
                yield from (_Wrapped(one, True) for one in self._wrappers_of.get(held, ()))

    def _ways(self, key: int) -> Iterator[tuple[Held, bool, bool]]:
        """Everything that an expression may be, up to a wrapper: whether that is taken off, and whether it is made
        there."""
        todo = [(Held(key), False)]
        seen = set(todo)
        while todo and len(seen) < _MOST:
            held, is_bare = todo.pop()
            before = self._steps.get((held, is_bare))
            if before is None:
                before = self._steps[held, is_bare] = list(self._before(held, is_bare)) if self._wrapper(held) is None else []
            yield held, is_bare, not before
            todo += (fresh := [one for one in before if one not in seen])
            seen.update(fresh)

    @cached_property
    def _wrappers_of(self) -> dict[Held, set[int]]:
        """The wrappers of a model, by the expression that makes it: ``net`` of ``model = DDP(net)`` is the inner module."""
        found: dict[Held, set[int]] = {}
        for wrapper in sorted(self._wraps):
            for source in self.ask.argument(wrapper, "module", 0).sources:
                for held, _, is_made in self._ways(source):
                    if is_made and self.program.module_of(held.key).nodes[held.key & MASK][0] == "call":
                        found.setdefault(held, set()).add(wrapper)
        return found

    def _wrapper(self, held: Held) -> int | None:
        """The call that an expression is, if that wraps a model."""
        if held.key in self._wraps or self._prepares(held):
            return held.key
        return None

    def _prepares(self, held: Held) -> bool:
        """``accelerator.prepare(model, …)``: which of its results is a model, its use says."""
        module = self.program.module_of(held.key)
        row = module.nodes[held.key & MASK]
        function = module.nodes[row[1]] if row[0] == "call" else ("",)
        if function[0] != "attr" or function[2] not in _PREPARES:
            return False
        names = {fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | function[1]), "o")}
        return any(name.startswith("accelerate.") for name in names)

    def _before(self, held: Held, is_bare: bool) -> Iterator[tuple[Held, bool]]:
        module = self.program.module_of(held.key)
        row = module.nodes[held.key & MASK]
        if row[0] == "attr" and row[2] == "module":
            yield held._replace(key=module.base | row[1]), True
        if row[0] == "call":
            inner = self._taken_off(module, row)
            if inner is not None:
                yield held._replace(key=module.base | inner), True
                return
            same = self._same_model(module, row)
            if same is not None:
                yield held._replace(key=module.base | same), is_bare
                return
        if row[0] in ("phi", "choice"):
            yield from self._chosen(module, row, held, is_bare)
            return
        yield from ((one, is_bare) for one in self._back.before(held))

    def _chosen(self, module: Module, row: tuple[object, ...], held: Held, is_bare: bool) -> Iterator[tuple[Held, bool]]:
        """``model.module if is_wrapped(model) else model`` is the inner module where there is a wrapper."""
        ways = list(self._back.before(held))
        bases = {base for way in ways for base in (self._module_of(module, way.key & MASK),) if base is not None}
        for way in ways:
            if module.uncopied(way.key & MASK) not in bases:
                yield way, is_bare

    def _module_of(self, module: Module, number: int) -> int | None:
        """The ``x`` of ``x.module``."""
        row = module.nodes[module.uncopied(number)]
        return module.uncopied(row[1]) if row[0] == "attr" and row[2] == "module" else None

    def _taken_off(self, module: Module, row: tuple[object, ...]) -> int | None:
        """The wrapped model from which a call takes the inner module: ``getattr(model, "module", model)``,
        ``accelerator.unwrap_model(model)``."""
        function, args = int(str(row[1])), row[2]
        if not isinstance(args, tuple) or not args:
            return None
        names = self.ask.names_of(self.program.ask(module.base | function))
        if names == {"builtins.getattr"}:
            return args[0] if len(args) > 1 and module.nodes[args[1]][:2] == ("const", "module") else None
        is_outside = module.last_name(function) in _TAKES_OFF and not self._goes_into_project(module.base | function)
        return args[0] if is_outside else None

    def _goes_into_project(self, function: int) -> bool:
        value = self.program.ask(function)
        return bool(self.program.atoms.kinds(value, "f") or self.program.atoms.kinds(value, "b"))

    def _same_model(self, module: Module, row: tuple[object, ...]) -> int | None:
        """The model that a call gives back: ``torch.compile(model)``, ``model.to(device)``."""
        function, args = module.nodes[int(str(row[1]))], row[2]
        if function[0] == "attr" and function[2] in MODULE_METHODS and not self._goes_into_project(module.base | int(str(row[1]))):
            names = self.ask.names_of(self.program.ask(module.base | int(str(row[1]))))
            if not any(one.startswith(_SAME_MODEL) for one in names):
                return int(str(function[1]))
        names = self.ask.names_of(self.program.ask(module.base | int(str(row[1]))))
        given = isinstance(args, tuple) and args and any(one.startswith(_SAME_MODEL) for one in names)
        return args[0] if given and isinstance(args, tuple) else None

    def _run_by(self, module: Module, row: tuple[object, ...]) -> Iterator[_Wrapped]:
        """The wrappers whose model a call runs: of the called object, or of the object whose own method is called."""
        function = int(str(row[1]))
        yield from self.behind(module.base | function)
        one = module.nodes[function]
        if one[0] == "attr" and one[2] != "module" and (one[2] == "forward" or self._goes_into_project(module.base | function)):
            yield from (found for found in self.behind(module.base | one[1]) if found.is_bare or one[2] == "forward")

    def _may_run_its_arguments(self, call: int) -> bool:
        """Whether a call goes to unknown code, or to a package that runs the models it gets."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        if self.program.targets_of.get(call) or self._taken_off(module, row) is not None:
            return False
        value = self.program.ask(module.base | row[1])
        names = self.ask.names_of(value) or self._names_of_receiver(module, module.nodes[row[1]])
        if names:
            return not all(one.startswith(_RUNS_NOTHING) for one in names) or any(one.endswith(".checkpoint") for one in names)
        return not value

    def _names_of_receiver(self, module: Module, function: tuple[object, ...]) -> set[str]:
        """The classes of other packages whose method a call calls."""
        if function[0] != "attr":
            return set()
        return {str(fields[1]) for fields in self.program.atoms.kinds(self.program.ask(module.base | int(str(function[1]))), "o")}

    def _calls_around(self, backward: int) -> list[int]:
        """The calls of the loop that a backward pass is in, and of the functions that they go to."""
        program = self.program
        home = program.module_of(backward)
        site = home.table.sites[backward & MASK]
        inside = [one for one in home.scopes[site.scope].calls if self._is_in(home, home.table.sites[one].loop, site.loop)]
        found = [home.base | one for one in inside]
        functions: set[int] = set()
        for call in found:
            if len(found) > _MOST:
                break
            for function in sorted(program.targets_of.get(call, set()) - functions):
                functions.add(function)
                module = program.module_of(function)
                found += [module.base | one for one in module.scopes[function & MASK].calls]
        return found

    @staticmethod
    def _is_in(module: Module, loop: int, wanted: int) -> bool:
        while loop != wanted and loop >= 0:
            loop = module.table.loops[loop].parent
        return loop == wanted


__all__ = ["ReplicaRuns", "Runs"]
