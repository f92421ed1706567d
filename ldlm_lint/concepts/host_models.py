"""Models that stay on the host: the code that builds one shows, and nothing that has it moves it.

    self.model = resnet50(num_classes=10)              # a parameter server: its clients move copies
    self.optimizer = SGD(self.model.parameters(), lr=0.1)

Everything that holds the model is followed: names, attributes of ``self``, parameters, results of functions. Where it goes
to code that is not known, or to a framework, it may be moved, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import CPU, DEVICE, FIRST, MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.operands import readers
from ldlm_lint.vocabulary.tensors import DEVICES, MODULE_METHODS

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_MOVES = frozenset({"to", "to_empty", *DEVICES}) - {"cpu"}
_EVERYWHERE = ("set_default_device", "set_default_tensor_type")
_GIVES_BACK = ("torch.compile",)
_ONLY_LOOKS = ("torch.optim.", "torch.nn.init.", "torch.nn.utils.", "torch.futures.", "torch.save", "builtins.", "copy.", "logging.")
_BUILDS = ("torch.nn.", "torchvision.", "timm.", "transformers.", "segmentation_models_pytorch.", "monai.")
_LISTS = frozenset({"parameters", "named_parameters"})
_MOST = 400
"""Expressions that may hold one model; a model in more of them is not followed."""


class _MovedError(Exception):
    """The model may be moved."""


class HostModels(Concept):
    """Answers for the parameters that optimizers get."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._readers: dict[int, dict[int, list[int]]] = {}

    def are_all(self, parameters: tuple[int, ...]) -> bool:
        """Whether the parameters that some expressions (keys) list belong to models that stay on the host."""
        if any(self.program.calls.get(name) for name in _EVERYWHERE):
            return False
        try:
            models = [model for one in parameters for model in self._models(one)]
            return bool(models) and all(map(self._stays, models))
        except _MovedError:
            return False

    def _models(self, key: int) -> Iterator[int]:
        """The models (keys) whose parameters an expression lists."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if kind in ("copy", "star", "comp", "elem", "enter"):
            yield from self._models(module.base | row[1])
        elif kind == "phi":
            for one in row[1]:
                yield from self._models(module.base | one)
        elif kind == "seq":
            for one in row[2]:
                yield from self._models(module.base | one)
        elif kind == "map":
            for name, value in zip(row[1], row[2], strict=True):
                if module.nodes[name] == ("const", "params"):
                    yield from self._models(module.base | value)
        elif kind == "call":
            function = module.nodes[row[1]]
            if function[0] == "attr" and function[2] in _LISTS:
                yield module.base | function[1]
            elif module.last_name(row[1]) in ("list", "filter", "tuple") and row[2]:
                yield from self._models(module.base | row[2][-1])
            else:
                raise _MovedError
        else:
            raise _MovedError

    def _stays(self, model: int) -> bool:
        """Whether nothing that holds a model moves it."""
        held, todo = {model}, [model]
        while todo:
            one = todo.pop()
            for other in (*self._before(one), *self._after(one)):
                if other not in held:
                    held.add(other)
                    todo.append(other)
            if len(held) > _MOST:
                return False
        return True

    def _before(self, key: int) -> Iterator[int]:
        """The expressions that a model is from; nothing where it is built."""
        program = self.program
        module = program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if kind in ("copy", "phi", "choice", "bool"):
            parts = (row[1],) if kind == "copy" else row[1] if kind == "phi" else row[2:4] if kind == "choice" else row[2]
            yield from (module.base | one for one in parts if module.nodes[one][0] not in ("const", "none"))
        elif kind == "param":
            yield from self._known(self._arguments(module.base | row[1], row[2]))
        elif kind == "free":
            yield from self._known(self.ask.bound_to(module, row))
        elif kind == "attr":
            yield from self._known(self._written(module, row))
        elif kind == "call":
            yield from self._results(key)
        else:
            raise _MovedError

    @staticmethod
    def _known(found: Iterable[int]) -> list[int]:
        keys = list(found)
        if not keys:
            raise _MovedError
        return keys

    def _arguments(self, function: int, name: str) -> Iterator[int]:
        for edge in self.program.callers(function):
            node = None if edge.how == UNKNOWN else self.program.argument_node(edge.call, function, edge.how, name)
            if node is None:
                raise _MovedError
            yield node

    def _written(self, module: Module, row: tuple[object, ...]) -> Iterator[int]:
        """What the classes of an object set an attribute to."""
        for one in self._family(module, int(str(row[1]))):
            yield from self.program.own_writes.get((one, str(row[2])), ())

    def _family(self, module: Module, number: int) -> set[int]:
        """The classes that an object may be of; a part of a model is moved with the model."""
        own = self.program.class_of_self(module, number)
        of = self.program.atoms.of
        value = () if own is not None else self.program.ask(module.base | number)
        owners = {own} if own is not None else {of[one][1] for one in value if one >= FIRST and of[one][0] in ("i", "self")}
        if any(map(self.program.is_module, owners)):
            raise _MovedError
        return {other for one in owners for other in (*self.program.order(one), *self.program.below(one))}

    def _results(self, call: int) -> Iterator[int]:
        """The model of a method that gives it back, or the results of a function; a constructor builds one."""
        program = self.program
        module = program.module_of(call)
        row = module.nodes[call & MASK]
        function = module.nodes[row[1]]
        value = program.ask(module.base | row[1])
        names = self.ask.names_of(value)
        classes = program.atoms.kinds(value, "c")
        if any(name in ("device", "device_map") for name, _ in row[3]):
            raise _MovedError
        if function[0] == "attr" and function[2] in MODULE_METHODS and not names:
            self._check_method(module, call & MASK)
            yield module.base | function[1]
        elif classes:
            for fields in classes:
                self._check_class(fields[1])
        elif names:
            if not all(name.startswith((*_BUILDS, *_GIVES_BACK)) for name in names):
                raise _MovedError
            if any(name.startswith(_GIVES_BACK) for name in names) and row[2]:
                yield module.base | row[2][0]
        else:
            targets = sorted(program.targets_of.get(call, ()))
            yield from self._known(
                program.module_of(one).base | value for one in targets for value, _ in program.module_of(one).scopes[one & MASK].returns if value
            )

    def _check_class(self, owner: int) -> None:
        """A constructor that moves its parts, or makes them on a device."""
        for function in self.program.methods(owner, "__init__"):
            module = self.program.module_of(function)
            for call in module.scopes[function & MASK].calls:
                row = module.nodes[call]
                if module.last_name(row[1]) in _MOVES or any(name == "device" for name, _ in row[3]):
                    raise _MovedError

    def _after(self, key: int) -> Iterator[int]:
        """The expressions that hold a model because this one does."""
        program = self.program
        module = program.module_of(key)
        number = key & MASK
        if module.index not in self._readers:
            self._readers[module.index] = readers(module)
        for reader in self._readers[module.index].get(number, ()):
            yield from self._through(module, reader, number)
        self._check_runs(module, number)
        for scope in module.scopes:
            if any(value == number for value, _ in scope.returns):
                yield from (edge.call for edge in program.callers(module.base | module.scopes.index(scope)))
            for target, name, value, _ in scope.writes:
                if value == number:
                    yield from self._reads(module, target, name)
        yield from self._closures(module, number)

    def _through(self, module: Module, reader: int, number: int) -> Iterator[int]:
        row = module.nodes[reader]
        if row[0] in ("copy", "phi", "choice", "bool"):
            yield module.base | reader
        elif row[0] == "attr":
            for call in module.table.sites:
                if module.nodes[call][1] == reader and row[2] in MODULE_METHODS:
                    self._check_method(module, call)
                    yield module.base | call
        elif row[0] == "call":
            yield from self._given_to(module, reader, number)
        elif row[0] != "item":
            raise _MovedError

    def _check_method(self, module: Module, call: int) -> None:
        """A method that gives the model back: ``.to("cpu")`` leaves it, ``.to(device)`` does not."""
        row = module.nodes[call]
        if module.last_name(row[1]) not in _MOVES:
            return
        value = frozenset().union(*(self.program.ask(module.base | one) for one in (*row[2], *(value for _, value in row[3]))))
        is_host = value <= frozenset([CPU]) or self.program.atoms.texts(value) == {"cpu"}
        names = self.ask.names_of(value)
        is_dtype = bool(names) and all(name.startswith("torch.") and "device" not in name for name in names) and len(names) == len(value)
        if not value or not (is_host or is_dtype):
            raise _MovedError

    def _given_to(self, module: Module, call: int, number: int) -> Iterator[int]:
        """The parameters that a call passes the model for."""
        program = self.program
        key = module.base | call
        row = module.nodes[call]
        targets = program.targets_of.get(key, set())
        for target in sorted(targets):
            home = program.module_of(target)
            how = next((edge.how for edge in program.callers(target) if edge.call == key), UNKNOWN)
            names = [
                one
                for one in home.scopes[target & MASK].params
                if how != UNKNOWN and program.argument_node(key, target, how, one) == module.base | number
            ]
            if not names:
                raise _MovedError
            yield from (home.base | home.scopes[target & MASK].parameters[one] for one in names)
        if targets:
            return
        names_ = self.ask.names_of(program.ask(module.base | row[1]))
        function = module.nodes[row[1]]
        if not names_ and function[0] == "attr":
            receiver = program.atoms.kinds(program.ask(module.base | function[1]), "o")
            names_ = {fields[1] for fields in receiver}
        if not names_ or not all(name.startswith((*_ONLY_LOOKS, *_GIVES_BACK)) for name in names_):
            raise _MovedError
        if any(name.startswith(_GIVES_BACK) for name in names_):
            yield key

    def _check_runs(self, module: Module, number: int) -> None:
        """A run on a batch that is on the device: the model is there, too."""
        for call in module.table.sites:
            row = module.nodes[call]
            if row[1] == number and any(DEVICE in self.program.ask(module.base | one) for one in row[2]):
                raise _MovedError

    def _reads(self, module: Module, target: int, name: str) -> Iterator[int]:
        """The reads of an attribute that holds the model."""
        family = self._family(module, target)
        if not family:
            raise _MovedError
        for other in self.program.live:
            for number, row in enumerate(other.nodes):
                if row[0] == "attr" and row[2] == name and self._is_of(other, row[1], family):
                    yield other.base | number

    def _is_of(self, module: Module, number: int, family: set[int]) -> bool:
        own = self.program.class_of_self(module, number)
        if own is not None:
            return own in family
        of = self.program.atoms.of
        value = self.program.ask(module.base | number)
        return any(of[one][1] in family for one in value if one >= FIRST and of[one][0] in ("i", "self"))

    def _closures(self, module: Module, number: int) -> Iterator[int]:
        """The reads of a name in scopes inside the one that binds it, and in modules that import it."""
        key = module.base | number
        for name in self.program.names_of(key):
            for other, row in enumerate(module.nodes):
                if row[0] == "free" and row[2] == name and key in self.ask.bound_to(module, row):
                    yield module.base | other
