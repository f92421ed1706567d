"""Which models recompute their activations in the backward pass: by calls of a checkpoint, by a switch of their own or of the
code that runs them, or by the engine of a training."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from ldlm_lint.concepts.left_off import LeftOff
from ldlm_lint.concepts.models import Models
from ldlm_lint.concepts.untrained import Untrained
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import FIRST
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.modules import Module
from ldlm_lint.program.walks import reached
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS
from ldlm_lint.vocabulary.blocks import RECOMPUTES, SWITCH, SWITCH_CALL
from ldlm_lint.vocabulary.wrappers import DDP, DDP_OPTIONS, TAKE_STRATEGY

CHECKPOINT, SEQUENTIAL = "torch.utils.checkpoint.checkpoint", "torch.utils.checkpoint.checkpoint_sequential"
CHECKPOINTS = frozenset({CHECKPOINT, SEQUENTIAL})
_FLAG = "use_reentrant"
_RUN = ("forward", "__call__", "training_step")
_SWITCH, _OPTIONS = "gradient_checkpointing_enable", "gradient_checkpointing_kwargs"
_HELPERS = ("checkpoint", "remat")
_KEEPS_STATISTICS = lazily(r"BatchNorm|BatchRenorm|InstanceNorm|VectorQuant|(^|_)VQ|EMA")
_CHANGES = lazily(r"[a-z]_$|^append$")
_CACHE = lazily(r"(^|_)(past|presents?|caches?|kv|mems?|incremental)(_|s?$)|inference_params|^generator$", re.I)
_OTHER_WAYS = re.compile(
    r"^fully_shard|FullyShardedDataParallel|^FSDP|parallelize_module|PipelineModule|ScriptModule|^functorch|forward_ad|make_graphed_callables|CUDAGraph"
)


class Recomputing(Concept):
    """Answers for the modules of a codebase."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._models = code[Models]

    def may_apply_to(self, owner: Class) -> bool:
        """Whether anything in the trainings of a module recomputes its activations, or offers to."""
        family = {*owner.bases, *owner.subclasses, *self._models.inside(owner)}
        if any(map(self._has_switch, family)):
            return True
        others = frozenset(one for one in self._modules if one not in family and owner not in self._models.inside(one))
        return self._is_spoken_of(self.code.path(owner.module), {self.code.path(one.module) for one in family}, others)

    def may_apply_in(self, module: Module) -> bool:
        """The same for a model of another package that code outside of classes builds."""
        return self._is_spoken_of(self.code.path(module), {self.code.path(module)}, frozenset())

    def _is_spoken_of(self, path: str, own: Collection[str], others: frozenset[Class]) -> bool:
        """Whether an engine, or a file around a model, mentions recomputation: the files that have to do with the model
        anywhere but in other models, those that have no models of their own anywhere."""
        bringing, around = self.code.trainings.bringing(path), self.code.trainings.around(path)
        for module in self.code.modules:
            here = self.code.path(module)
            is_near = here in own or here in bringing
            if (is_near or (here in around and module.path not in self._files_of_models)) and self._speaks(module, others):
                return True
        return self.code.trainings.recompute_by_engine(path)

    @cached_property
    def _files_of_models(self) -> frozenset[str]:
        return frozenset(one.module.path for one in self._modules)

    @cached_property
    def _modules(self) -> list[Class]:
        return [one for one in self.code.classes if one.is_module]

    def _has_switch(self, owner: Class) -> bool:
        """Whether a class has a name of a switch, or calls a checkpoint."""
        return owner.mentions(SWITCH) or any(SWITCH_CALL.search(call.called_name) for function in owner.functions for call in function.calls)

    def _speaks(self, module: Module, others: frozenset[Class]) -> bool:
        """Whether code of a file that is not in other modules recomputes, or says that it may."""
        if self.code.mentions.are_outside(module, others, RECOMPUTES):
            return True
        return any(others.isdisjoint(_classes_around(call.function)) for call in self._checkpoints.get(module.path, ()))

    @cached_property
    def _checkpoints(self) -> dict[str, list[Call]]:
        """The calls of torch's functions, and of a helper that is called like them and gets a function, by their files."""
        found: dict[str, list[Call]] = {}
        helpers = (one for one in self.code.calls_named(*_HELPERS) if one.receiver is None and len(one.arguments) > 1 and one.arguments[0].last_name)
        for call in (*self.code.calls(CHECKPOINTS), *helpers):
            found.setdefault(call.module.path, []).append(call)
        return found

    def may_run_twice(self, owner: Class) -> bool:
        """Whether the forward pass of a module may run a second time in a step: it sets nothing, changes no input, and all its
        random numbers are torch's."""
        return not any(any(self._has_effects(function) for function in one.functions if function.name != "__init__") for one in self._models.inside(owner)) and not any(
            _KEEPS_STATISTICS.search(call.called_name) for one in self._models.inside(owner) for function in one.functions for call in function.calls
        )

    @staticmethod
    def _has_effects(function: Function) -> bool:
        draws = (call for call in function.calls if any(name.startswith(("random.", "numpy.random.")) for name in call.callee.outside_names))
        changes = (call for call in function.calls if _CHANGES.search(call.called_name) or any(_CACHE.search(name) for name, _ in call.keywords))
        return any(function.writes) or any(function.events_of("add", "store")) or any(draws) or any(changes)

    def has_other_ways(self, module: Module) -> bool:
        """Whether a training of a file shards or cuts its models, scripts or captures them: checkpoints of blocks need care there."""
        around = self.code.trainings.around(self.code.path(module))
        return any(self.code.mentions.are_outside(one, frozenset(), _OTHER_WAYS) for one in self.code.modules if self.code.path(one) in around)

    def reentrant_under(self, wrap: Call) -> list[Call]:
        """The call that switches reentrant checkpoints on for the model that DDP gets with the options of a call, or else the
        reentrant checkpoints in its forward pass."""
        models = list(self._given_with(wrap))
        objects = frozenset[int]().union(*map(_objects, models))
        for switch in self.code.calls_named(_SWITCH):
            if switch.receiver is not None and objects & _objects(switch.receiver) and self._is_reentrant(switch):
                return [switch]
        found = self.reentrant_in({owner for one in models for owner in one.classes_of})
        return [one for one in found if not self.is_off(one) and not self.code[Untrained].trains_nothing(one)]

    def is_off(self, checkpoint: Call) -> bool:
        """Whether nothing switches a checkpoint on: also under ``getattr(config, "checkpointing", False)``, where nothing else in
        the project has this name."""
        tests = (guard.test for guard in checkpoint.guards if guard.is_test and guard.holds)
        parts = (one for test in tests for one in (test.operands if test.operator == "And" else [test]))
        names = {str(one.positional[1].constant) for one in parts if _is_off_by_default(one) and isinstance(one, Call)}
        return self.code[LeftOff].is_left_off(checkpoint) or not all(map(self._is_named, names))

    def _is_named(self, name: str) -> bool:
        """Whether code, a script or a configuration has a name otherwise than to look it up."""
        spelled = {f"{dashes}{one}" for dashes in ("", "--") for one in (name, name.replace("_", "-"))}
        if self.code.is_named_in_configurations(*spelled):
            return True
        for module in self.code.modules:
            texts = (one for one in self.code.expressions_in(module, "const") if one.constant in spelled)
            given = (key for call in self.code.calls_in(module) for key, _ in call.keywords)
            read = (one.name for one in self.code.expressions_in(module, "attr"))
            written = (write.name for function in self.code.functions_in(module) for write in function.writes)
            if name in (*given, *read, *written):
                return True
            if any(not isinstance(user, Call) or user.called_name != "getattr" for one in texts for user in one.users):
                return True
        return False

    def _is_reentrant(self, switch: Call) -> bool:
        """Whether a switch of transformers makes checkpoints reentrant: by its options, or by the default of old releases."""
        options = switch.argument(_OPTIONS, 0)
        if options.is_absent:
            return self.code.trainings.pin_transformers_before_5()
        chosen = [one for value in options.values for one in value.under("use_reentrant")] if options.is_given else []
        return bool(chosen) and all(one.is_just(True) for one in chosen)

    def _given_with(self, wrap: Call) -> Iterator[Expr]:
        """The models among the arguments of a call, and of the calls that get its result: ``Trainer(model, args)``, ``prepare(model)``.
        What a function of another package gives is, if it is not known, one of its arguments: ``get_peft_model(model, …)``."""
        taking = [wrap, *(call for call in self._takers.get(wrap, ()) if call.may_run_with(wrap))]
        if not wrap.callee.interfaces.isdisjoint(DDP_OPTIONS | TAKE_STRATEGY):
            taking += [call for call in self.code.calls_named("prepare", "fit") if call.may_run_with(wrap)]
        given = [one for call in taking for one in call.arguments]
        yield from reached(given, lambda at: at.plain.positional if isinstance(at.plain, Call) and not _objects(at) else [])

    @cached_property
    def _takers(self) -> dict[Call, list[Call]]:
        """The calls that get the options or arguments which a call makes for DDP."""
        made = {atom: call for call in self.code.calls(DDP | DDP_OPTIONS | TAKE_STRATEGY | TRAINING_ARGUMENTS) for atom in call.made}
        found: dict[Call, list[Call]] = {}
        for call, atom in self.code.calls_given(frozenset(made)):
            found.setdefault(made[atom], []).append(call)
        return found

    def reentrant_in(self, owners: Iterable[Class]) -> list[Call]:
        """The reentrant checkpoints that the forward passes of modules run, in parts that train."""
        todo = [function for owner in owners for function in self._runs(owner)] if self._reentrant else []
        seen, found = set(todo), set[Call]()
        while todo:
            function = todo.pop()
            found.update(self._reentrant.get(function, ()))
            new = {one for call in function.calls for one in call.targets if not self.code[Untrained].trains_nothing(call)} - seen
            seen |= new
            todo += new
        return sorted(found, key=lambda one: one.key)

    @cached_property
    def _reentrant(self) -> dict[Function, list[Call]]:
        """The calls that are reentrant for certain, by the functions that they are in, nested ones by those around them
        too."""
        found: dict[Function, list[Call]] = {}
        for call in self.code.calls(CHECKPOINTS):
            if self.is_reentrant(call):
                for function in call.function.around:
                    found.setdefault(function, []).append(call)
        return found

    def is_reentrant(self, checkpoint: Call) -> bool:
        """Whether a call uses the reentrant implementation for certain: it says so, or chooses none."""
        given = checkpoint.argument(_FLAG)
        told = given.is_given and all(one.is_just(True) or one.constant is None for one in given.values)
        return told or self.chooses_none(checkpoint)

    @staticmethod
    def chooses_none(checkpoint: Call) -> bool:
        """Whether a call surely leaves the implementation to the default; anyone may put it into the ``**options`` of a function.

        ``*args`` of ``checkpoint`` go to its function, those of ``checkpoint_sequential`` may have it in the fourth place.
        """
        is_sequential = SEQUENTIAL in checkpoint.callee.outside_names
        if any(one.plain.kind == "kwarg" for one in checkpoint.unpacked) or (is_sequential and any(one.kind == "star" for one in checkpoint.positional)):
            return False
        return checkpoint.argument(_FLAG, 3 if is_sequential else None).is_absent

    @staticmethod
    def _runs(owner: Class) -> Iterator[Function]:
        """The functions that run a module: the first one of each name in the order of its bases."""
        for name in _RUN:
            yield from ([function for one in owner.bases for function in one.functions if function.name == name][:1])


def _is_off_by_default(test: Expr) -> bool:
    return isinstance(test, Call) and test.called_name == "getattr" and len(test.positional) == 3 and test.positional[2].constant is False


def _objects(expr: Expr) -> frozenset[int]:
    """The objects that an expression may be, those of other packages by the calls that make them."""
    return frozenset(one for one in expr.value if one >= FIRST) if expr.made_by or expr.classes_of else frozenset()


def _classes_around(function: Function) -> set[Class]:
    return {one.owner for one in function.around if one.owner is not None}


__all__ = ["CHECKPOINT", "CHECKPOINTS", "SEQUENTIAL", "Recomputing"]
