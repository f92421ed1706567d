"""Where Python waits for the device: reads of values that are there, spelt out or implied.

An explicit method of tensors counts on what *may* be on the device; conditions, ``int()`` and formats on what is *only* there:
they are written for numbers of Python as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.code.table import Event, Node
from ldlm_lint.concepts.training import Training
from ldlm_lint.program.atoms import (
    BOOLEAN,
    DEVICE,
    FIRST,
    HOST,
    HOST_TENSOR,
    IF_TENSOR,
    MASK,
    MAY_BE_ON_DEVICE,
    NONE,
    ON_DEVICE,
    SCALER_STATE,
    TENSOR,
    Value,
)
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.tensors import WAITING_FUNCTIONS, WAITING_METHODS

# Of a tensor on the device ``numpy()`` is an error and no wait: where it runs, the tensor is on the host.
_METHODS = frozenset(["item", "tolist", "cpu", "nonzero", "unique", "masked_select", "equal", "is_nonzero", "unique_consecutive", "argwhere"])
_BUILTINS = frozenset(["float", "int", "bool", "print", "min", "max", "range", "str", "round", "list", "sum"])
_ASKED = frozenset({"call", "cmp", "elem", "part", "item"})
_ON_DEVICE = frozenset([DEVICE, TENSOR])


class Wait(NamedTuple):
    """A place where Python waits: its module, begin and end, what waits, and the function it stands in."""

    module: Module
    place: int
    end: int
    what: str
    function: int
    node: int


class Waits:
    """The waits of all training steps."""

    def __init__(self, training: Training) -> None:
        self.training = training
        self.program = training.program

    def all(self) -> list[Wait]:
        """The waits that run in every step, by module and place."""
        # What is asked for the first time may let other values grow.
        for _ in self._found():
            pass
        self.program.solve()
        return sorted(set(self._found()), key=lambda wait: (wait.module.path, wait.place, wait.what))

    def _found(self) -> Iterator[Wait]:
        for function, loops in self.training.reached.items():
            module = self.program.module_of(function)
            scope = module.scopes[function & MASK]
            for call in scope.calls:
                if self._may_wait(module, call) and self.training.runs(module, call, function, loops):
                    what = self._of_call(module, call)
                    if what:
                        site = module.table.sites[call]
                        yield Wait(module, site.place, site.end, what, function, call)
            for event in scope.events:
                if event[0] in ("test", "format", "item", "store") and self._runs(module, event, function, loops):
                    what = self._of_event(module, event)
                    if what:
                        yield Wait(module, event[4], 0, what, function, event[1])

    def _runs(self, module: Module, event: Event, function: int, loops: frozenset[int | None]) -> bool:
        training = self.training
        return training.is_inside(module, event[2], event[3], function, loops) and training.frequency.passes(
            module, event[3], function
        )

    @staticmethod
    def _may_wait(module: Module, call: int) -> bool:
        row = module.plain(module.nodes[call][1])
        if row[0] == "attr":
            return row[2] in WAITING_METHODS
        return row[0] == "free" and row[2] in _BUILTINS

    def _get(self, module: Module, number: int) -> Value:
        return self.program.get(module.base | number)

    def _of_call(self, module: Module, call: int) -> str:
        row = module.nodes[call]
        function = module.plain(row[1])
        if function[0] == "free":
            return self._of_builtin(module, row, function[2])
        name = function[2]
        outside = [fields[1] for fields in self.program.atoms.kinds(self._get(module, row[1]), "x")]
        if any(one.startswith("torch.") for one in outside):
            return self._of_function(module, row, name)
        if outside:
            return ""
        receiver = self._get(module, function[1])
        if name in _METHODS:
            if receiver & MAY_BE_ON_DEVICE:
                return name
            # What nothing is known of has no other method of this name; where a step begins it may lie on the host still.
            return f"?{name}" if name in ("item", "cpu") and not receiver and self._is_inside_step(module, call) else ""
        return self._of_moving(module, call, row, name, receiver)

    def _is_inside_step(self, module: Module, call: int) -> bool:
        """Whether a call stands in a function that a step calls, or that a framework gives what is on the device."""
        function = module.base | module.table.sites[call].scope
        return function in self.program.hooks or function not in self.training.steps

    def _of_function(self, module: Module, row: tuple[object, ...], name: str) -> str:
        args = row[2]
        given = self._get(module, args[0]) if isinstance(args, tuple) and args else frozenset()
        if not given & MAY_BE_ON_DEVICE:
            return ""
        if name in WAITING_FUNCTIONS or (name == "where" and isinstance(args, tuple) and len(args) == 1):
            return f"torch.{name}"
        return ""

    def _of_moving(self, module: Module, call: int, row: tuple[object, ...], name: str, receiver: Value) -> str:
        if DEVICE not in receiver:
            if name == "get_scale" and any("GradScaler" in fields[1] for fields in self.program.atoms.kinds(receiver, "o")):
                return name
            return ""
        result = self._get(module, call)
        if name == "to" and HOST_TENSOR in result and isinstance(row[2], tuple) and row[2]:
            return "to" if self.program.is_cpu(self._get(module, row[2][0])) else ""
        return "type" if name == "type" and result == frozenset([HOST_TENSOR]) else ""

    def _of_builtin(self, module: Module, row: tuple[object, ...], name: str) -> str:
        args = row[2] if isinstance(row[2], tuple) else ()
        if name in ("min", "max") and len(args) < 2:
            return ""
        return name if any(self.is_only_on_device(self._get(module, one)) for one in args) else ""

    def _of_event(self, module: Module, event: Event) -> str:
        kind, node = event[0], event[1]
        row = module.nodes[node]
        if kind == "test":
            return self._of_test(module, node, row)
        if kind == "format":
            value = self._get(module, node)
            return "format" if DEVICE in value and value <= frozenset([DEVICE, HOST_TENSOR, IF_TENSOR]) else ""
        return self._of_index(module, row)

    def _of_test(self, module: Module, node: int, row: Node) -> str:
        if row[0] in ("not", "bool", "const"):
            return ""
        value = self._get(module, node)
        if BOOLEAN in value and DEVICE in value and HOST not in value:
            operands = (row[2], *row[3]) if row[0] == "cmp" else ()
            return "" if operands and not any(self._is_pure(self._get(module, one)) for one in operands) else "test"
        homes = frozenset([DEVICE, HOST_TENSOR, TENSOR])
        return "truth" if DEVICE in value and value <= homes and row[0] in _ASKED else ""

    def _of_index(self, module: Module, row: Node) -> str:
        base = self._get(module, row[1])
        key = module.nodes[row[2]]
        if key[0] == "const":
            return "scale" if key[1] == "scale" and SCALER_STATE in base else ""
        if key[0] == "slice":
            return "slice" if any(one and self.is_only_on_device(self._get(module, one)) for one in key[1:]) else ""
        for one in (row[2],) if key[0] != "seq" else key[2]:
            value = self._get(module, one)
            if BOOLEAN in value and DEVICE in value and HOST not in value and base & MAY_BE_ON_DEVICE:
                # A number is filled in without a wait, a tensor needs the places.
                return "mask" if row[0] != "upd" or DEVICE in self._get(module, row[3]) else ""
            inner = module.nodes[one]
            if inner[0] == "slice" and any(two and self.is_only_on_device(self._get(module, two)) for two in inner[1:]):
                return "slice"
        return ""

    @staticmethod
    def _is_pure(value: Value) -> bool:
        known = _ON_DEVICE if IF_TENSOR not in value else ON_DEVICE
        return bool(value & known) and value <= _ON_DEVICE | frozenset([HOST_TENSOR, BOOLEAN, NONE, IF_TENSOR])

    @staticmethod
    def is_only_on_device(value: Value) -> bool:
        """Whether a value is a tensor on the device and nothing else that is known; callers whom nobody sees count for nothing."""
        return DEVICE in value and HOST not in value and not any(one >= FIRST for one in value)
