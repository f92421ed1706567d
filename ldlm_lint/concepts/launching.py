"""Operations that may launch kernels; the opposite is plain Python work: reading, formatting, logging, filling
containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import HOST, HOST_TENSOR, MASK, MAY_BE_ON_DEVICE, Value
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.tensors import HOST_BUILTINS, HOST_LIBRARIES, HOST_METHODS, ONE_PASS, TO_HOST

if TYPE_CHECKING:
    from ldlm_lint.program import Program

# Code called through more functions than this is more than a log line.
_MOST_OPEN = 40
# These compute a result on the device; attributes, items and names only pass values on.
_COMPUTED = frozenset({"op", "un", "cmp"})
_READS = (TO_HOST | HOST_METHODS | frozenset({"cpu", "detach"})) - {"backward"}
_BUILTINS = HOST_BUILTINS | frozenset(["dict", "list", "tuple", "set", "zip", "enumerate", "getattr", "sorted", "super"])
# They write their arguments to a file, a terminal or a service.
_WRITERS = ("tqdm", "tensorboardX", "torch.utils.tensorboard", "swanlab", "mlflow", "rich", "absl", "loguru", "visdom")


class Launching:
    """Answers for the rows of a program; unknown rows may launch."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._functions: dict[int, bool] = {}
        self._calls_open = 0

    def launches(self, module: Module, number: int) -> bool:
        """Whether evaluating a row without its operands may launch kernels."""
        row = module.nodes[number]
        if row[0] == "call":
            return self._call_launches(module, number, row)
        if row[0] in ("def", "class"):
            return True
        if row[0] == "upd":
            # Only a container has texts as keys.
            return not isinstance(module.nodes[row[2]][-1], str) and self._is_on_device(module, row[1])
        if row[0] == "item":
            # A tensor as an index selects on the device; a number or a slice only looks at a part.
            return self._is_on_device(module, row[2])
        return row[0] in _COMPUTED and self._is_on_device(module, number, *(one for one in row[2:] if isinstance(one, int)))

    def is_small(self, module: Module, number: int) -> bool:
        """Whether all that a row launches reads its tensors once: ``loss.mean()``, ``x > 0``, and no product.

        What ``self.norm(x)`` computes is not known, for a module may have any name.
        """
        row = module.nodes[number]
        if row[0] != "call":
            return row[0] in ("cmp", "un", "item") or (row[0] == "op" and row[1] != "MatMult")
        if module.last_name(row[1]) not in ONE_PASS or self._program.targets_of.get(module.base | number):
            return False
        function = module.plain(row[1])
        is_method = function[0] == "attr" and self._is_on_device(module, function[1])
        return is_method or any(fields[1].startswith("torch.") for fields in self._program.atoms.kinds(self._value(module, row[1]), "x"))

    def _is_on_device(self, module: Module, *numbers: int) -> bool:
        return any(self._value(module, one) & MAY_BE_ON_DEVICE for one in numbers if one)

    def _value(self, module: Module, number: int) -> Value:
        return self._program.ask(module.base | number)

    def _call_launches(self, module: Module, number: int, row: tuple[object, ...]) -> bool:
        function = module.plain(row[1])  # type: ignore[arg-type]  # the second field of a call is a row
        if function[0] == "free" and function[2] in _BUILTINS:
            return False
        if function[0] == "attr" and function[2] in _READS:
            return False
        targets = self._program.targets_of.get(module.base | number, ())
        if targets:
            return any(self._function_launches(one) for one in targets)
        called = [fields[1] for fields in self._program.atoms.kinds(self._value(module, row[1]), "x")]  # type: ignore[arg-type]
        if called:
            return not all(map(_is_of_the_host, called))
        return function[0] != "attr" or not self._is_of_python(self._value(module, function[1]))

    def _is_of_python(self, receiver: Value) -> bool:
        """Whether an object is a container, a plain Python object, or made by a library that does not compute on a
        device."""
        if not receiver or receiver & MAY_BE_ON_DEVICE:
            return False
        atoms = self._program.atoms
        kinds = {kind for kind in ("d", "view", "k") if atoms.kinds(receiver, kind)}
        made = [fields[1] for fields in atoms.kinds(receiver, "o")]
        others = len(receiver - {HOST, HOST_TENSOR}) - sum(len(atoms.kinds(receiver, kind)) for kind in (*kinds, "o"))
        return HOST_TENSOR not in receiver and others == 0 and all(map(_is_of_the_host, made))

    def _function_launches(self, function: int) -> bool:
        """Whether a function of the project may launch kernels: one of its own rows does."""
        if function not in self._functions and self._calls_open >= _MOST_OPEN:
            return True
        if function not in self._functions:
            # A function that calls itself adds nothing to its other rows.
            self._functions[function] = False
            module = self._program.module_of(function)
            scope = module.scopes[function & MASK]
            # Its own ``def`` stands at its place.
            rows = (at for at, place in enumerate(module.table.places) if place and scope.place < place < scope.end)
            self._calls_open += 1
            self._functions[function] = any(self.launches(module, at) for at in rows)
            self._calls_open -= 1
        return self._functions[function]


def _is_of_the_host(name: str) -> bool:
    return name.partition(".")[0] in HOST_LIBRARIES or name.startswith(_WRITERS)


__all__ = ["Launching"]
