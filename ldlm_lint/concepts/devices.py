"""Models and batches that stay on the host: the code that builds or moves them shows. And batches that cannot be pinned there.

    self.model = resnet50(num_classes=10)              # a parameter server: its clients move copies
    self.optimizer = SGD(self.model.parameters(), lr=0.1)

Everything that holds the model is followed: names, attributes of ``self``, parameters, results of functions. Where it goes
to code that is not known, or to a framework, it may be moved, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import CPU, DEVICE
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Class, Expr, Function
from ldlm_lint.program.walks import MOST, Through, reached, steps_back
from ldlm_lint.vocabulary.tensors import DEVICES, MODULE_METHODS

_MOVES = frozenset({"to", "to_empty", *DEVICES}) - {"cpu"}
_MOVES_BATCHES = frozenset({"to", "cuda", "npu", "xpu"})
_EVERYWHERE = ("set_default_device", "set_default_tensor_type")
_GIVES_BACK = ("torch.compile",)
_ONLY_LOOKS = ("torch.optim.", "torch.nn.init.", "torch.nn.utils.", "torch.futures.", "torch.save", "builtins.", "copy.", "logging.")
_BUILDS = ("torch.nn.", "torchvision.", "timm.", "transformers.", "segmentation_models_pytorch.", "monai.")
_LISTS = frozenset({"parameters", "named_parameters"})
_HOLDS = frozenset({"seq", "map", "star", "elem", "part", "enter"})
_NAMES = frozenset({"copy", "phi", "choice", "bool"})
_CONTAINERS = frozenset({"tuple", "list", "dict", "OrderedDict", "UserDict", "UserList", "Mapping", "MutableMapping", "Sequence", "NamedTuple", "Tensor"})
_ALIKE = frozenset({"tuple", "list", "dict"})
_PLAIN = frozenset({"builtins.object", "object", "abc.ABC", "typing.Generic"})
_HELD = Through.NAMES | Through.CHOICES | Through.PARTS | Through.CONTENTS


class _MovedError(Exception):
    """The model may be moved."""


class HostModels(Concept):
    """Answers for the parameters that optimizers get."""

    def are_all(self, parameters: Sequence[Expr]) -> bool:
        """Whether the parameters that some expressions list belong to models that stay on the host."""
        if any(True for _ in self.code.calls_named(*_EVERYWHERE)):
            return False
        try:
            models = [model for one in parameters for model in _models(one)]
            return bool(models) and all(map(self._stays, models))
        except _MovedError:
            return False

    def _stays(self, model: Expr) -> bool:
        """Whether nothing that holds a model moves it."""
        return sum(1 for _ in reached([model], lambda one: [*_before(one), *self._after(one)])) < MOST

    def _after(self, model: Expr) -> Iterator[Expr]:
        """The expressions that hold a model because this one does."""
        for user in model.users:
            yield from _through(model, user)
        for function in model.returned_by:
            yield from function.callers
        for write in (one for event in model.events if event.kind == "write" for one in event.spot.function.writes):
            if write.value == model:
                yield from self._reads(write.base, write.name)
        names = model.names
        yield from (one for one in self.code.expressions_in(model.module, "free") if one.name in names and model in one.bound_outside)

    def _reads(self, target: Expr, name: str) -> Iterator[Expr]:
        """The reads of an attribute that holds the model."""
        family = _family(target)
        if not family:
            raise _MovedError
        for module in self.code.modules:
            for one in self.code.expressions_in(module, "attr"):
                if one.name == name and one.base is not None and not family.isdisjoint(_owners(one.base)):
                    yield one


def _models(parameters: Expr) -> Iterator[Expr]:
    """The models whose parameters an expression lists."""
    if isinstance(parameters, Call):
        if parameters.receiver is not None and parameters.callee.name in _LISTS:
            yield parameters.receiver
        elif parameters.called_name in ("list", "filter", "tuple") and parameters.positional:
            yield from _models(parameters.positional[-1])
        else:
            raise _MovedError
        return
    if parameters.kind == "map":
        inner = [value for key, value in parameters.items if key.constant == "params"]
    elif parameters.kind in ("copy", "star", "comp", "elem", "enter", "phi", "seq"):
        inner = parameters.operands
    else:
        raise _MovedError
    for one in inner:
        yield from _models(one)


def _before(model: Expr) -> list[Expr]:
    """The expressions that a model is from; nothing where it is built."""
    if isinstance(model, Call):
        return _built_from(model)
    if model.kind in _NAMES:
        return [one for one in model.ways if one.kind not in ("const", "none")]
    if model.kind == "param":
        return _known(one.value for one in model.passed)
    if model.kind == "free":
        return _known(model.bound_outside)
    if model.kind == "attr" and model.base is not None:
        return _known(dict.fromkeys(one for owner in _family(model.base) for one in owner.written(model.name)))
    raise _MovedError


def _known(found: Iterable[Expr | None]) -> list[Expr]:
    every = list(found)
    if not every or None in every:
        raise _MovedError
    return [one for one in every if one is not None]


def _owners(base: Expr) -> set[Class]:
    """The classes that an object may be of."""
    own = base.owner_if_self
    return {own} if own is not None else set(base.classes_of)


def _family(base: Expr) -> set[Class]:
    """The same with their bases and subclasses; a part of a model is moved with the model."""
    owners = _owners(base)
    if any(one.is_module for one in owners):
        raise _MovedError
    return {other for one in owners for other in (*one.bases, *one.subclasses)}


def _built_from(call: Call) -> list[Expr]:
    """The model of a method that gives it back, or the results of a function; a constructor builds one."""
    names, classes = call.callee.interfaces, call.callee.as_classes
    if any(name in ("device", "device_map") for name, _ in call.keywords):
        raise _MovedError
    if call.receiver is not None and call.callee.name in MODULE_METHODS and not names:
        _check_method(call)
        return [call.receiver]
    if classes:
        for one in classes:
            _check_class(one)
        return []
    if not names:
        return _known(call.results)
    if not all(name.startswith((*_BUILDS, *_GIVES_BACK)) for name in names):
        raise _MovedError
    return call.positional[:1] if any(name.startswith(_GIVES_BACK) for name in names) else []


def _check_class(owner: Class) -> None:
    """A constructor that moves its parts, or makes them on a device."""
    for call in (call for function in owner.methods("__init__") for call in function.calls):
        if call.called_name in _MOVES or any(name == "device" for name, _ in call.keywords):
            raise _MovedError


def _check_method(call: Call) -> None:
    """A method that gives the model back: ``.to("cpu")`` leaves it, ``.to(device)`` does not."""
    if call.called_name not in _MOVES:
        return
    value = frozenset[int]().union(*(one.value for one in call.arguments))
    texts = frozenset[str]().union(*(one.texts for one in call.arguments))
    names = frozenset[str]().union(*(one.interfaces for one in call.arguments))
    is_host = value <= frozenset([CPU]) or texts == {"cpu"}
    is_dtype = bool(names) and all(name.startswith("torch.") and "device" not in name for name in names) and len(names) == len(value)
    if not value or not (is_host or is_dtype):
        raise _MovedError


def _through(model: Expr, user: Expr) -> Iterator[Expr]:
    """What holds a model because of a use."""
    if isinstance(user, Call):
        if user.callee == model:
            # A run on a batch that is on the device: the model is there, too.
            if any(DEVICE in one.value for one in user.positional):
                raise _MovedError
        else:
            yield from _given_to(model, user)
    elif user.kind in _NAMES:
        yield from [user] if user.test != model else []
    elif user.kind == "attr":
        for call in user.users:
            if isinstance(call, Call) and call.callee == user and user.name in MODULE_METHODS:
                _check_method(call)
                yield call
    elif user.kind in _HOLDS or user.put == model:
        raise _MovedError


def _given_to(model: Expr, call: Call) -> Iterator[Expr]:
    """The parameters that a call passes the model for."""
    for target in call.targets:
        parameters = [one for one in target.parameters.values() if call.given_for(one) == model]
        if not parameters:
            raise _MovedError
        yield from parameters
    if call.targets:
        return
    names = call.callee.interfaces or (call.receiver.made_by if call.receiver is not None else frozenset())
    if not names or not all(name.startswith((*_ONLY_LOOKS, *_GIVES_BACK)) for name in names):
        raise _MovedError
    if any(name.startswith(_GIVES_BACK) for name in names):
        yield call


class HostBatches(Concept):
    """Loops that put each batch on the CPU before their model sees it: such a training computes on the host."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[Function, bool] = {}

    def trains_on(self, function: Function) -> bool:
        """Whether a function trains on batches and puts every part of them on the CPU: ``batch[key] = value.to("cpu")``."""
        if function not in self._known:
            stored = (event.expr for event in function.events if event.kind == "store")
            on_host = any(self._is_batch(one) and one.put is not None and self._is_moved_to_host(one.put) for one in stored)
            self._known[function] = on_host and not any(map(self._moves, function.calls))
        return self._known[function]

    def _is_batch(self, stored: Expr) -> bool:
        """Whether a container is the batch of a step's loop."""
        behind = stored.origins(Through.NAMES | Through.PARTS)
        return any(one.kind == "elem" and one.base is not None and self.code[Steps].repeats(one.base) for one in behind)

    def _is_moved_to_host(self, expr: Expr) -> bool:
        call = expr.plain
        if not isinstance(call, Call):
            return False
        return call.called_name == "cpu" or (call.called_name == "to" and bool(call.positional) and self.program.is_cpu(call.positional[0].value))

    def _moves(self, call: Call) -> bool:
        """Whether a call moves something to the device in a loop."""
        return bool(call.loops) and call.receiver is not None and call.called_name in _MOVES_BATCHES and not self._is_moved_to_host(call)


class PinnedBatches(Concept):
    """Batches that ``pin_memory=True`` cannot pin: torch pins tensors, and those in its own and Python's containers; an object
    of another class only by its method ``pin_memory``."""

    @staticmethod
    def are_unpinnable(collate: Expr) -> bool:
        """Whether what a collate function gives is, or has in it, an object that torch leaves as it is."""
        return any(_is_unpinnable(owner) for function in collate.callables for owner in _made_in(function))


def _is_unpinnable(owner: Class) -> bool:
    # A class of another package may bring the method.
    return not owner.methods("pin_memory") and owner.outside_bases <= _PLAIN and _CONTAINERS.isdisjoint(one.rpartition(".")[2] for one in owner.outside_bases)


def _made_in(function: Function) -> list[Class]:
    """The classes of the project whose objects a function returns, itself or in a container."""
    behind = reached(function.returned, _behind)
    return [owner for one in behind if isinstance(one, Call) for owner in one.callee.as_classes]


def _behind(expr: Expr) -> list[Expr]:
    """What a value is from, and what is in a container."""
    if not isinstance(expr, Call):
        return list(steps_back(expr, _HELD))
    made = [one for target in expr.targets if target.name != "__init__" for one in target.returned]
    return [*(expr.positional if expr.called_name in _ALIKE else []), *made]


__all__ = ["HostBatches", "HostModels", "PinnedBatches"]
