"""What an optimizer is created for, and how it steps.

    @torch.compile                     opt.step = torch.compile(opt.step)      step = torch.compile(train_step)
    def update(): opt.step()
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.patterns import lazily
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class
from ldlm_lint.program.walks import Through, origins

if TYPE_CHECKING:
    from collections.abc import Collection

    from ldlm_lint.program.handles import Alternative, Expr, Function

_COMPILE = frozenset({"torch.compile"})
_LISTS = frozenset({"parameters", "named_parameters"})
_MAKES_NONE = ("torch.", "builtins.", "math.")
_MAY_MAKE_SOME = "torch.nn."
_FEW = 2
"""Tensors: the default implementation launches a few kernels for them, and so does the fused one."""
_MOVES = ("to", "cuda", "prepare")
_COMPLEX = frozenset({"cfloat", "complex64", "complex128", "cdouble"})
_PARAMETER = "torch.nn.Parameter"
_BACK = Through.NAMES | Through.CHOICES | Through.PARTS | Through.CONTENTS | Through.PARAMETERS | Through.ATTRIBUTES | Through.OUTSIDE | Through.RETURNS
_READERS = frozenset({"torch.load", "torch.serialization.load"})
_HOLD = frozenset({"copy", "deepcopy", "dict", "list", "tuple", "zip", "enumerate", "items", "values"})
# Functions that load a model and its optimizer from a file; functions that resume a training have such names, too. What
# a function of another package does with an optimizer is known only by its name.
_LOADS = lazily(r"^(?!.*train)(?:.*_)?(?:load|restore|resume)\w*(?:checkpoint|ckpt|state|weights|snapshot)", re.I)


class Optimizers(Concept):
    """Answers for the calls that create optimizers."""

    @staticmethod
    def of_torch(optimizer: Call, interfaces: Collection[str]) -> list[Alternative]:
        """Which classes of torch a call may create, directly or by one of the project that changes neither arguments nor step;
        without what is a fallback only."""
        found = optimizer.callee.alternatives(interfaces)
        return [one for one in found if not one.is_fallback and (one.owner is None or not one.owner.changes("__init__", "__new__", "step", "__call__"))]

    def only_of_torch(self, optimizer: Call, interfaces: Collection[str]) -> list[Alternative]:
        """The same if it surely creates one of them."""
        found = self.of_torch(optimizer, interfaces)
        return found if len(found) == optimizer.callee.count_of_values and optimizer.callee.is_known_whole else []

    @staticmethod
    def called(optimizer: Call, classes: Collection[Alternative]) -> str:
        """What the class of an optimizer is called where it is created; else which ones it may be."""
        name = optimizer.called_name
        return name if name.isidentifier() else " or ".join(sorted({one.last_name for one in classes}))

    def are_compiled(self, optimizer: Call) -> bool:
        """Whether all steps of an optimizer that are seen run in compiled functions."""
        if any(target.may_be_made_by(optimizer) and _compiles(value) for target, value in self.code.writes_of("step")):
            return True
        steps = [call for call in self.code.calls_named("step") if call.receiver is not None and call.receiver.may_be_made_by(optimizer)]
        return bool(steps) and all(self._is_inside_compiled(call.function, frozenset()) for call in steps)

    def _is_inside_compiled(self, function: Function, seen: frozenset[Function]) -> bool:
        """Whether a function is compiled, or called by such ones only."""
        if function.is_module or function in seen:
            return False
        if function in self._compiled or any(map(_compiles, function.decorators)):
            return True
        above = {call.function for call in function.callers}
        return bool(above) and all(self._is_inside_compiled(one, seen | {function}) for one in above)

    @cached_property
    def _compiled(self) -> frozenset[Function]:
        """The functions that are an argument of `torch.compile`."""
        models = (model for call in self.code.calls(_COMPILE) for model in call.argument("model", 0).values)
        return frozenset(function for model in models for function in model.functions)

    def has_few_tensors(self, optimizer: Call) -> bool:
        """Whether an optimizer gets a literal list of tensors, or the parameters of a model without layers, such as a
        temperature."""
        given = optimizer.argument("params", 0)
        if given.is_absent or any(map(_lists_tensors, given.values)):
            return True
        models = [_model_listed(one) for one in given.values]
        return bool(models) and all(one is not None and self._has_few(one) for one in models)

    def _has_few(self, model: Class) -> bool:
        """Whether the constructor of a module makes a parameter or two, and nothing that may have more."""
        made = 0
        for call in [] if len(model.bases) > 1 else [call for function in model.methods("__init__") for call in function.calls]:
            if _PARAMETER in call.callee.interfaces and not call.loops:
                made += 1
            elif not _makes_no_parameter(call):
                return False
        return 0 < made <= _FEW

    def is_only_loaded(self, optimizer: Call) -> bool:
        """``load_checkpoint(model, optimizer, path)`` and nothing else: an evaluation creates it for a function that
        requires one."""
        takers = [use.by for use in optimizer.uses()]
        loading = [one for one in takers if isinstance(one, Call) and _LOADS.search(one.callee.last_name)]
        return bool(takers) and len(loading) == len(takers)

    def restoring(self, optimizer: Call) -> list[Call]:
        """The calls that load a state of another run into an optimizer, those of its own file first."""
        return sorted(self._loads.get(optimizer, ()), key=lambda one: one.module is not optimizer.module)

    @cached_property
    def _loads(self) -> dict[Call, list[Call]]:
        """The calls that load a state of another run into what a call of another package's class makes."""
        found: dict[Call, list[Call]] = defaultdict(list)
        for load in self.code.calls_named("load_state_dict"):
            made = load.receiver
            optimizers = [] if made is None else [one for name in made.made_by for one in made.made_at(name)]
            for one in optimizers if optimizers and not _loads_own(load) else ():
                found[one].append(load)
        return found

    def set_in_groups(self, option: str, optimizer: Call) -> bool:
        """Whether code that may run with an optimizer sets an option in groups of parameters: ``group["fused"] = True``."""
        return any(map(optimizer.may_run_with, self._sets.get(option, ())))

    @cached_property
    def _sets(self) -> dict[object, list[Expr]]:
        found: dict[object, list[Expr]] = defaultdict(list)
        for one in self.code.updates:
            if one.index is not None and isinstance(one.index.constant, str):
                found[one.index.constant].append(one)
        return found

    def may_have_unsupported_parameters(self, optimizer: Call) -> bool:
        """Whether the file of an optimizer makes complex or sparse parameters, for which there are no fused kernels."""
        here = optimizer.module
        if any(one.last_name in _COMPLEX for one in self.code.expressions_in(here, "attr")):
            return True
        keywords = (keyword for call in self.code.calls_in(here) for keyword in call.keywords)
        return any(name == "sparse" and given.constant is True for name, given in keywords)

    def gets_model_moved_later(self, optimizer: Call) -> bool:
        """Whether the function that creates an optimizer moves the model to its device only afterwards, or is the model's
        own constructor."""
        inside = (one for one in optimizer.function.calls if optimizer.place <= one.place and one.end <= optimizer.end)
        model = next((one.receiver for one in inside if one.receiver is not None and one.callee.last_name in _LISTS), None)
        if model is None:
            return False
        if model.is_self:
            return optimizer.function.name == "__init__"
        moves = [one for one in optimizer.function.calls if _moves(one, model)]
        return bool(moves) and moves[0].place > optimizer.end and not _is_moved(model)


def _loads_own(load: Call) -> bool:
    """Whether a call loads a state that the same run took from an object, in no case one of a file:
    ``optimizer.load_state_dict(before)``."""
    states = load.argument("state_dict", 0).values
    behind = [one for state in states for one in origins(state, _BACK, _held) if isinstance(one, Call)]
    return any(one.called_name == "state_dict" for one in behind) and all(one.callee.interfaces.isdisjoint(_READERS) for one in behind)


def _held(expr: Expr) -> list[Expr]:
    """What a call of Python copies, or holds in a container or an iterator."""
    if not isinstance(expr, Call) or expr.called_name not in _HOLD:
        return []
    return [*expr.arguments, *([expr.receiver] if expr.receiver is not None else ())]


def _moves(call: Call, model: Expr) -> bool:
    """``model.to(device)``, ``accelerator.prepare(model)``."""
    name = call.callee.last_name
    if call.receiver is None or name not in _MOVES:
        return False
    moved = [call.receiver, *(call.positional if name == "prepare" else ())]
    return any(one == model or one.reads_same_name_as(model) for one in moved)


def _is_moved(model: Expr) -> bool:
    """Whether a model is the result of a move: ``model = model.to(device)``, ``DDP(model.to(device))``."""
    made = model.unnamed
    if not isinstance(made, Call):
        return False
    is_method = made.receiver is not None
    inner = [*made.positional, *([made.receiver] if made.receiver is not None else ())]
    return (is_method and made.callee.last_name in _MOVES) or any(map(_is_moved, inner))


def _compiles(expr: Expr) -> bool:
    """Whether an expression is a call of `torch.compile`, or that function or a ``partial`` of it."""
    return not _COMPILE.isdisjoint(expr.interfaces) or (isinstance(expr, Call) and not _COMPILE.isdisjoint(expr.callee.interfaces))


def _lists_tensors(params: Expr) -> bool:
    """Whether an expression is a literal list of tensors, not a list of groups or of results of calls."""
    written = params.unnamed
    if written.operator == "Add":
        return any(map(_lists_tensors, written.operands))
    # An empty list is filled later.
    return written.kind == "seq" and bool(written.operands) and not any(_is_many(one, written) for one in written.operands)


def _is_many(element: Expr, around: Expr) -> bool:
    """Whether an element of a list may be many tensors: a group, an unpacked value, or the result of a call."""
    written = element.unnamed
    return written.kind in ("map", "star") or (isinstance(written, Call) and written.place >= around.place)


def _model_listed(params: Expr) -> Class | None:
    """The class of the project of a ``model.parameters()``."""
    written = params.unnamed
    if not isinstance(written, Call) or written.receiver is None or written.callee.last_name not in _LISTS:
        return None
    classes = written.receiver.objects
    return classes[0] if len(classes) == 1 and isinstance(classes[0], Class) else None


def _makes_no_parameter(call: Call) -> bool:
    """Whether a call makes a tensor, a number, or calls the base's constructor."""
    if call.callee.last_name == "super" or (call.receiver is not None and call.receiver.last_name == "()super"):
        return True
    names = call.callee.interfaces
    return bool(names) and all(name.startswith(_MAKES_NONE) and not name.startswith(_MAY_MAKE_SOME) for name in names)
