"""Models that run for their results only: in programs that load weights and train nothing, and in loops between the
trainings of one function.

    model.load_state_dict(torch.load(path))
    for image in images:
        save(model(image))                        # records a graph that nothing uses
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from ldlm_lint.concepts.evaluation import Evaluation
from ldlm_lint.concepts.losses import BACKWARD
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr, Function, Loop
from ldlm_lint.program.identity import Identity
from ldlm_lint.program.modules import Module
from ldlm_lint.program.together import closure
from ldlm_lint.vocabulary.frozen_texts import is_frozen
from ldlm_lint.vocabulary.models import SPEAKS_OF_GRADIENTS, STOPPERS, looks_like_model
from ldlm_lint.vocabulary.purposes import says_evaluation

_WEIGHTS, _PRETRAINED = "load_state_dict", "from_pretrained"
_DIFFERENTIATES = ("backward", "manual_backward", "grad", "set_grad_enabled", "_set_grad_enabled", "requires_grad_")
"""What is called where gradients are wanted, or switched for the whole process."""
_NAMES = lazily(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*(?![\w'\"])")
_MODELS = lazily(r"Model|For[A-Z]")
"""The classes of transformers and diffusers that are modules: tokenizers and pipelines come by the same method."""
_LEARNS = frozenset({*BACKWARD, "step", "zero_grad", "grad"})
_WRAPS = frozenset({"enumerate", "tqdm", "zip", "iter", "trange"})


class Predictions(Concept):
    """The runs of models for their results in a program that no code around them keeps from recording."""

    def all(self) -> Iterator[Call]:
        """The first repeated run in each function of a program without training, and in each loop between trainings."""
        for module in self.code.modules:
            loaded = self._loaded(module)
            found = list(self._predicting(module, loaded)) if loaded else []
            yield from found if found and self._trains_nothing(module) else []
        for function in self.code[Steps].functions:
            yield from self._validating(function)

    @cached_property
    def _loading(self) -> dict[Module, frozenset[object]]:
        """The objects whose weights are loaded, by the files that do so."""
        found: dict[Module, set[object]] = defaultdict(set)
        for call in self.code.calls_named(_WEIGHTS, _PRETRAINED):
            if call.called_name == _WEIGHTS:
                found[call.module] |= (call.receiver or call).identities
            elif call.receiver is not None and _MODELS.search(call.receiver.last_name):
                found[call.module] |= call.identities
        return {module: frozenset(objects) for module, objects in found.items()}

    def _loaded(self, module: Module) -> frozenset[object]:
        """The objects whose weights a file loads, itself or, in a script that is not imported, through its imports."""
        own = self._loading.get(module, frozenset())
        linked = self.code.imported_by(module) if self._loading and module not in self._imported else frozenset()
        return own.union(*(self._loading.get(one, frozenset()) for one in linked))

    @cached_property
    def _imported(self) -> frozenset[Module]:
        return frozenset[Module]().union(*map(self.code.imported_by, self.code.modules))

    def _trains_nothing(self, module: Module) -> bool:
        """Whether a file neither trains nor belongs to a training."""
        # Code that updates parameters also differentiates.
        names = [name for one in module.table.imports for name in one[:2]] + [one.name for one in self.code.expressions_in(module, "attr")]
        if any("optim" in name for name in names) or not self._differentiating.isdisjoint(self._called_from(module)):
            return False
        path = self.code.path(module)
        return not self.code.trainings.start_in(path) and not self.code.trainings.trainings_of(path)

    @cached_property
    def _differentiating(self) -> frozenset[Function]:
        """The functions that compute gradients, or switch gradients for the whole process."""
        return frozenset(call.function for call in self.code.calls_named(*_DIFFERENTIATES))

    def _called_from(self, module: Module) -> set[Function]:
        """The functions of a file, its top level, the top level of its imports, and the functions that these call."""
        imported = closure({module}, self.code.imported_by).intersection(self.code.modules)
        tops = {one for other in imported for one in self.code.functions_in(other) if one.is_module}
        return closure({*self.code.functions_in(module), *tops}, lambda one: {target for call in one.calls for target in call.targets})

    def _predicting(self, module: Module, loaded: frozenset[object]) -> Iterator[Call]:
        """The first run in each function of a file."""
        seen: set[Function] = set()
        for call in self.code.calls_in(module):
            if call.function not in seen and call.arguments and _runs(call, loaded) and _is_repeated(call) and self._is_recorded(call):
                seen.add(call.function)
                yield call

    def _is_recorded(self, call: Call) -> bool:
        """Whether no code around a call can turn gradients off, its model is not frozen, and it does more than warm a device up."""
        if any(guard.kind == "with" and not _goes_on_recording(guard.test) for guard in call.guards):
            return False
        owner = call.function.owner
        if (owner is not None and owner.is_module) or self.code[Evaluation].is_warm_up(call):
            # The caller of the module decides.
            return False
        decorators = (one for scope in call.function.enclosing for one in scope.decorators)
        if any(SPEAKS_OF_GRADIENTS.search(one.last_name.removeprefix("()")) for one in decorators):
            return False
        name = self.name_of(call)
        return bool(name) and not is_frozen(name, self.code.source(call.module).text)

    @staticmethod
    def name_of(call: Call) -> str:
        """The names that a call of a model begins with: ``self.nets`` of ``self.nets[0].forward(x)``."""
        found = _NAMES.match(call.text)
        return found.group() if found is not None else ""

    def _validating(self, function: Function) -> Iterator[Call]:
        """The first run of the trained model in each loop of a training's function that only evaluates it."""
        steps = self.code[Steps].step_loops(function)
        trained = {_model(call) for loop in steps for call in loop.calls} - {()}
        for loop in function.loops if trained else ():
            if self._only_evaluates(loop, steps):
                first = next((call for call in loop.calls if _model(call) in trained), None)
                if first is not None and self._is_recorded(first):
                    yield first

    def _only_evaluates(self, loop: Loop, steps: list[Loop]) -> bool:
        """Whether a loop iterates over an evaluation set by name, updates nothing, and no later code in the function
        does.
        """
        if loop.kind == "while" or any(loop in one.around or one in loop.around for one in steps):
            return False
        behind = (call for call in loop.function.calls if call.spot.place > loop.spot.place)
        return says_evaluation(_names(loop.value), "", ()) and not any(map(self._learns, behind))

    def _learns(self, call: Call) -> bool:
        """Whether a call computes gradients or changes parameters, or goes to a function of the project that is a training step."""
        return call.called_name in _LEARNS or any(self.code[Reach].has(one) for one in call.targets if not _is_forward(one))


def _runs(call: Call, loaded: frozenset[object]) -> bool:
    """Whether a call runs a loaded model itself, not a method of it."""
    if call.receiver is not None and not loaded.isdisjoint(call.receiver.identities):
        return False
    # The modules of other packages record no gradients of torch.
    owners = call.callee.classes_of
    return not loaded.isdisjoint(call.callee.identities) and (not owners or any(one.is_module for one in owners))


def _is_repeated(call: Call) -> bool:
    """Whether a call is in a loop, or a loop calls its function."""
    return bool(call.loops) or (not call.function.is_module and any(one.loops for one in call.function.callers))


def _goes_on_recording(context: Expr) -> bool:
    """Whether a context manager is known, and no switch of gradients."""
    names = context.callee.interfaces if isinstance(context, Call) else frozenset[str]()
    is_known = bool(names) or context.last_name.removeprefix("()") == "open"
    return is_known and not any(name.rpartition(".")[2] in STOPPERS for name in names)


def _model(call: Call) -> Identity:
    """What a called model is, if it is a parameter or an attribute and gets an argument; else empty."""
    at = call.callee.plain
    is_given = at.kind == "param" or (at.kind == "attr" and at.base is not None and at.base.plain.kind == "param")
    if not call.positional or not is_given:
        return ()
    is_model = any(one.is_module for one in call.callee.classes_of) or looks_like_model(call.called_name)
    return call.callee.identity if is_model else ()


def _is_forward(function: Function) -> bool:
    return function.owner is not None and function.owner.is_module


def _names(iterable: Expr) -> list[str]:
    """The names of a loop's iterable, inside of ``enumerate`` and the like."""
    if isinstance(iterable, Call) and iterable.positional and iterable.called_name in _WRAPS:
        return [name for one in iterable.positional for name in _names(one)]
    return [iterable.last_name] if iterable.last_name else []


__all__ = ["Predictions"]
