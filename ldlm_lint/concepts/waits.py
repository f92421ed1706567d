"""Where Python waits for the device: explicit or implicit reads of device values.

Explicit tensor methods count for values that *may* be on the device; conditions, ``int()`` and formats only for values
that are *always* there, since they are also used for Python numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ldlm_lint.code.table import Event, Node
from ldlm_lint.concepts.entries import Entries
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.restarts import Restarts
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import (
    BOOLEAN,
    DEVICE,
    FALSE,
    FIRST,
    HOMES,
    HOST,
    HOST_TENSOR,
    IF_TENSOR,
    MARKS,
    MASK,
    MAY_BE_ON_DEVICE,
    NONE,
    OF_PYTHON,
    ON_DEVICE,
    SCALER_STATE,
    TENSOR,
    TRUE,
    Value,
)
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Function, event_of, expression
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.tensors import (
    SIZE_KEYWORDS,
    SIZES_OF_FUNCTIONS,
    SIZES_OF_METHODS,
    TENSOR_ATTRIBUTES,
    WAITING_FUNCTIONS,
    WAITING_METHODS,
    WRITERS_METHODS,
)

# Of a tensor on the device ``numpy()`` is an error and no wait: where it runs, the tensor is on the host.
_METHODS = frozenset(["item", "tolist", "cpu", "nonzero", "unique", "masked_select", "equal", "is_nonzero", "unique_consecutive", "argwhere"])
_BUILTINS = frozenset(["float", "int", "bool", "print", "min", "max", "range", "str", "round"])
_ASKED = frozenset({"call", "cmp", "elem", "part", "item"})
_ON_DEVICE = frozenset([DEVICE, TENSOR])
_OFF_DEVICE = frozenset([HOST, HOST_TENSOR])
_GIVEN = frozenset([IF_TENSOR, TENSOR])
_ORDERS = frozenset(["Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"])
_SWITCHES = frozenset([TRUE, FALSE])
_MOST_SOURCES = 100
_MOST_STEPS = 20
_THERE = frozenset([DEVICE, IF_TENSOR])
_ATTRIBUTES = WAITING_METHODS | WRITERS_METHODS | SIZES_OF_FUNCTIONS.keys() | SIZES_OF_METHODS.keys()


class Wait(NamedTuple):
    """A place where Python waits: its module, start and end, the waiting operation, and its function."""

    module: Module
    place: int
    end: int
    what: str
    function: int
    node: int
    guard: int = -1


class Waits(Concept):
    """The waits of all training steps."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._reach = code[Reach]
        self._entries = Entries(code.program)
        self._inverted: dict[int, frozenset[Node]] = {}

    def all(self) -> list[Wait]:
        """The waits that run in every step, by module and place."""
        return sorted(set(self._found()), key=lambda wait: (wait.module.path, wait.place, wait.what, wait.node))

    def _found(self) -> Iterator[Wait]:
        for function in self._reach.loops:
            module = self.program.module_of(function)
            scope = module.scopes[function & MASK]
            for call in scope.calls:
                if self._may_wait(module, call) and self._reach.runs(Call(self.code, module.base | call)):
                    what = self._of_call(module, call)
                    if what:
                        site = module.table.sites[call]
                        if not (what == "print" or _is_printed(module, call)) or not self._is_told_apart(module, site.guard):
                            yield Wait(module, site.place, site.end, what, function, call, site.guard)
            for event in scope.events:
                if event[0] in ("test", "format", "item", "store") and self._reach.runs_at(event_of(Function(self.code, function), event).spot):
                    what = self._of_event(module, event)
                    if what and not self._comes_rarely(module, event, what, function):
                        yield Wait(module, event[4], 0, what, function, event[1], event[3])

    def _comes_rarely(self, module: Module, event: Event, what: str, function: int) -> bool:
        if what == "format":
            return self._is_told_apart(module, event[3])
        return what == "test" and self.code[Restarts].settles(expression(self.code, module.base | event[1]), Function(self.code, function).spot)

    def _is_told_apart(self, module: Module, guard: int) -> bool:
        """Whether something is under a condition on the device: output there is occasional."""
        while guard >= 0:
            one = module.table.guards[guard]
            is_denied = bool(one.test) and module.nodes[one.test][0] == "not"
            test = module.nodes[one.test][1] if is_denied else one.test
            comes_true = one.kind == "if" or (one.kind == "rest" and one.holds is not is_denied)
            if comes_true and test and BOOLEAN in (value := self._get(module, test)) and DEVICE in value:
                return True
            guard = one.parent
        return False

    @staticmethod
    def _may_wait(module: Module, call: int) -> bool:
        row = module.plain(module.nodes[call][1])
        if row[0] == "attr":
            return row[2] in _ATTRIBUTES or _is_math(module, row[1])
        return row[0] == "free" and (row[2] in _BUILTINS or _is_from_math(module, row))

    def _get(self, module: Module, number: int) -> Value:
        # What is read as a tensor is one, whatever else it may be elsewhere.
        return self.program.get(module.base | number) - MARKS

    def _of_call(self, module: Module, call: int) -> str:
        row = module.nodes[call]
        function = module.plain(row[1])
        if function[0] == "free":
            name = "float" if function[2] not in _BUILTINS else function[2]
            return self._of_builtin(module, row, name)
        name = function[2]
        if _is_math(module, function[1]):
            return self._of_builtin(module, row, "float")
        outside = [fields[1] for fields in self.program.atoms.kinds(self._get(module, row[1]), "x")]
        if any(one.startswith("torch.") for one in outside):
            return self._of_sizes(module, row, SIZES_OF_FUNCTIONS.get(name)) or self._of_function(module, row, name)
        if outside:
            return ""
        receiver = self._get(module, function[1])
        if name in WRITERS_METHODS:
            return self._of_writer(module, call, row, name)
        if name in SIZES_OF_METHODS:
            is_tensor = bool(receiver & HOMES) and not self.program.targets_of.get(module.base | call)
            return self._of_sizes(module, row, SIZES_OF_METHODS[name]) if is_tensor else ""
        if name == "repeat_interleave":
            return name if DEVICE in receiver and self._repeats_by_tensor(module, row, 0) else ""
        if name in _METHODS:
            if receiver & MAY_BE_ON_DEVICE:
                return name if receiver & _THERE or HOST_TENSOR not in receiver else ""
            # An unknown object has no other method of this name; at the beginning of a step it may still be on the
            # host.
            is_unknown = name in ("item", "cpu") and not receiver and self._is_inside_step(module, call)
            return f"?{name}" if is_unknown and not self._comes_with_batch(module, function[1]) else ""
        return self._of_moving(module, call, row, name, receiver)

    def _of_writer(self, module: Module, call: int, row: Node, name: str) -> str:
        """TensorBoard's writer converts its argument to a Python number; a method of the project is analysed itself."""
        if self.program.targets_of.get(module.base | call):
            return ""
        given = dict(row[3]).get("scalar_value", row[2][1] if len(row[2]) > 1 else 0)
        return name if given and self.is_only_on_device(self._get(module, given)) else ""

    def _is_inside_step(self, module: Module, call: int) -> bool:
        """Whether a call is in a function that a step calls, or that a framework calls with device values."""
        function = module.base | module.table.sites[call].scope
        return function in self.program.hooks or function not in self._steps.loops

    def _comes_with_batch(self, module: Module, number: int) -> bool:
        """Whether a value is a part of the batch of a step's loop: it may still be on the host."""
        seen: set[int] = set()
        todo = [module.base | number]
        while todo and len(seen) < _MOST_SOURCES:
            key = todo.pop()
            if key in seen:
                continue
            seen.add(key)
            home = self.program.module_of(key)
            row = home.nodes[key & MASK]
            if row[0] in ("item", "attr", "part", "copy", "elem"):
                if row[0] == "elem" and self._repeats_steps(home, row[1]):
                    return True
                todo.append(home.base | row[1])
            elif row[0] == "phi":
                todo += [home.base | one for one in row[1]]
            elif row[0] == "param":
                todo += self.ask.given(home.base | row[1], row[2])
        return False

    def _repeats_steps(self, module: Module, iterable: int) -> bool:
        """Whether the loop of a step iterates over an iterable."""
        return module.base | iterable in self._steps.repeated

    def _of_function(self, module: Module, row: tuple[object, ...], name: str) -> str:
        args = row[2]
        given = self._get(module, args[0]) if isinstance(args, tuple) and args else frozenset()
        if not given & MAY_BE_ON_DEVICE:
            return ""
        if name in WAITING_FUNCTIONS or (name == "where" and isinstance(args, tuple) and len(args) == 1):
            return f"torch.{name}"
        return "torch.repeat_interleave" if name == "repeat_interleave" and self._repeats_by_tensor(module, row, 1) else ""

    def _of_sizes(self, module: Module, row: Node, places: slice | None) -> str:
        """A size passed as a device tensor is converted to a Python number first."""
        given = [] if places is None else [*row[2][places], *(value for keyword, value in row[3] if keyword in SIZE_KEYWORDS)]
        parts = [inner for one in given for inner in (module.nodes[one][2] if module.nodes[one][0] == "seq" else (one,))]
        return "size" if any(self._bounds_on_device(module, one) for one in parts) else ""

    def _repeats_by_tensor(self, module: Module, row: tuple[Any, ...], place: int) -> bool:
        """Whether ``repeat_interleave`` gets its counts as a tensor without ``output_size``."""
        keywords = dict(row[3])
        if "output_size" in keywords:
            return False
        counts = keywords.get("repeats", row[2][place] if len(row[2]) > place else 0)
        key = module.plain(counts)
        # Repeats along a dimension: for a device tensor torch requires the counts on the device.
        takes_part = key[0] == "item" and module.nodes[key[2]][:2] == ("seq", "Tuple")
        value = self._get(module, counts)
        return bool(counts) and (self.is_only_on_device(value) or (takes_part and value.isdisjoint(_OFF_DEVICE)))

    def _of_moving(self, module: Module, call: int, row: tuple[object, ...], name: str, receiver: Value) -> str:
        if DEVICE not in receiver:
            if name == "get_scale" and any("GradScaler" in fields[1] for fields in self.program.atoms.kinds(receiver, "o")):
                return name
            return ""
        result = self._get(module, call)
        if name == "to" and HOST_TENSOR in result and isinstance(row[2], tuple) and row[2]:
            return "to" if self._is_cpu(module, row[2][0]) else ""
        return "type" if name == "type" and result == frozenset([HOST_TENSOR]) else ""

    def _is_cpu(self, module: Module, number: int) -> bool:
        """Whether a device is the host on every path: ``self.device if wanted else "cpu"`` may be another one."""
        row = module.plain(number)
        if row[0] == "choice":
            return self._is_cpu(module, row[2]) and self._is_cpu(module, row[3])
        if row[0] == "phi":
            return all(self.program.is_cpu(self._get(module, one)) for one in row[1])
        return self.program.is_cpu(self._get(module, number))

    def _of_builtin(self, module: Module, row: tuple[object, ...], name: str) -> str:
        args = row[2] if isinstance(row[2], tuple) else ()
        if name in ("min", "max") and len(args) < 2:
            return ""
        return name if any(self._is_read_from_device(module, one) for one in args) else ""

    def _is_read_from_device(self, module: Module, number: int) -> bool:
        """Whether a value is on the device, or one of the entries that a loop iterates over is."""
        if self._may_only_be_on_device(module, number):
            return True
        return any(map(self.is_only_on_device, self._entries.of(module, number)))

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
        if row[0] != "cmp" and not value.isdisjoint(_SWITCHES):
            # An option with a default of Python, which a batch may contain as well.
            return ""
        if BOOLEAN in value and HOST not in value and (DEVICE in value or value >= _GIVEN):
            if row[0] == "call" and self._may_return_plain(module.base | node):
                return ""
            operands = (row[2], *row[3]) if row[0] == "cmp" else ()
            if operands and row[1][0] in ("Eq", "NotEq") and any(_is_state(module, one) for one in operands):
                return ""
            return "" if operands and not any(self._may_be_pure(module, one) for one in operands) else "test"
        homes = frozenset([DEVICE, HOST_TENSOR, TENSOR])
        return "truth" if DEVICE in value and value <= homes and row[0] in _ASKED else ""

    def _may_be_pure(self, module: Module, number: int) -> bool:
        """Whether an operand is a tensor, or one of its alternatives is a device tensor while others are numbers."""
        row = module.nodes[number]
        ways = [self._get(module, one) for one in row[1]] if row[0] == "phi" else []
        return self._is_pure(self._get(module, number)) or any(DEVICE in one and self._is_pure(one) for one in ways)

    def _may_return_plain(self, call: int) -> bool:
        """Whether a function that a call goes to returns a Python value for some caller: a comparison of sizes, for
        one."""
        program = self.program
        for function in program.targets_of.get(call, ()):
            module = program.module_of(function)
            if any(number and HOST in self._get(module, number) for number, _ in module.scopes[function & MASK].returns):
                return True
        return False

    def _of_index(self, module: Module, row: Node) -> str:
        base = self._get(module, row[1])
        key = module.nodes[row[2]]
        if key[0] == "const":
            return "scale" if key[1] == "scale" and SCALER_STATE in base else ""
        if key[0] == "slice":
            return "slice" if any(one and self._bounds_on_device(module, one) for one in key[1:]) else ""
        for one in (row[2],) if key[0] != "seq" else key[2]:
            if self._is_on_host(base) and BOOLEAN in (given := self._get(module, one)) and self.is_only_on_device(given):
                # Indexing a host value copies the mask to the host first.
                return "mask"
            if base & MAY_BE_ON_DEVICE and self._is_mask(module, one, base):
                # A number is filled in without a wait, a tensor needs the places.
                filled = self._get(module, row[3]) if row[0] == "upd" else ON_DEVICE
                return "mask" if DEVICE in filled or filled >= _GIVEN else ""
            inner = module.nodes[one]
            if inner[0] == "slice" and any(two and self._bounds_on_device(module, two) for two in inner[1:]):
                return "slice"
        return ""

    @staticmethod
    def _is_on_host(value: Value) -> bool:
        """Whether a value that is indexed can only be a tensor on the host; None cannot be indexed."""
        return HOST_TENSOR in value and value <= frozenset([HOST_TENSOR, BOOLEAN, NONE])

    def _bounds_on_device(self, module: Module, number: int) -> bool:
        """Whether a bound is a tensor on the device; the sizes in a container that was moved and unpacked stay
        numbers.
        """
        row = module.plain(number)
        while row[0] == "item":
            row = module.plain(row[1])
        if _is_of_record(module, row) and not self._is_row_of_tensor(module, number):
            return False
        return self.is_only_on_device(self._get(module, number))

    def _is_row_of_tensor(self, module: Module, number: int) -> bool:
        """Whether the unpacked value is a tensor from a torch function: ``for height, width in torch.stack(sizes)``."""
        for _ in range(_MOST_STEPS):
            row = module.nodes[number]
            if row[0] in ("part", "elem", "copy", "item"):
                number = row[1]
            elif row[0] == "phi":
                number = row[1][0]
            elif row[0] == "call" and module.last_name(row[1]) == "enumerate" and row[2]:
                number = row[2][0]
            else:
                break
        return self._is_made_by_torch(module.base | number)

    def _is_made_by_torch(self, key: int) -> bool:
        """Whether an expression is the result of a torch function, also through parameters."""
        seen: set[int] = set()
        todo = [key]
        while todo and len(seen) < _MOST_SOURCES:
            key = todo.pop()
            home = self.program.module_of(key)
            row = home.nodes[key & MASK]
            if key in seen:
                continue
            seen.add(key)
            if row[0] == "call" and any(one[1].startswith("torch.") for one in self.program.atoms.kinds(self._get(home, row[1]), "x")):
                return True
            if row[0] in ("copy", "phi"):
                todo += [home.base | one for one in (row[1] if row[0] == "phi" else (row[1],))]
            elif row[0] == "param":
                todo += self.ask.given(home.base | row[1], row[2])
        return False

    def _is_mask(self, module: Module, number: int, base: Value) -> bool:
        """Whether an index is a tensor of booleans on the device."""
        value = self._get(module, number)
        if value <= OF_PYTHON:
            return base == ON_DEVICE and self._compares_unknown(module, number)
        row = module.plain(number)
        # A mask on any device: its positions are copied to the device first.
        if HOST_TENSOR in value or not value & (_THERE | frozenset([TENSOR])):
            return False
        if HOST in value:
            # A comparison with None is plain Python and creates no index.
            return row[0] == "cmp" and BOOLEAN in value and any(self._is_pure(self._get(module, one)) for one in (row[2], *row[3]))
        # An inverted index is a mask: inverting positions would not give positions.
        return BOOLEAN in value or row[:2] == ("un", "Invert") or row in self._inverted_in(module)

    def _inverted_in(self, module: Module) -> frozenset[Node]:
        """The inverted values of a module (rows)."""
        if module.index not in self._inverted:
            values = (module.plain(row[2]) for row in module.nodes if row[:2] == ("un", "Invert"))
            self._inverted[module.index] = frozenset(row for row in values if row[0] == "param")
        return self._inverted[module.index]

    def _compares_unknown(self, module: Module, number: int) -> bool:
        """Whether an index compares unknown values; as an index into a device tensor it is not a Python truth value."""
        row = module.plain(number)
        if row[0] == "op" and row[1] in ("BitAnd", "BitOr"):
            return self._compares_unknown(module, row[2]) and self._compares_unknown(module, row[3])
        if row[0] != "cmp" or not _ORDERS.issuperset(row[1]):
            return False
        return any(not self._get(module, one) for one in (row[2], *row[3]))

    @staticmethod
    def _is_pure(value: Value) -> bool:
        """Whether an operand can only be a tensor; the argument of a module is one if a caller, or torch, has made it
        one."""
        allowed = _ON_DEVICE | frozenset([HOST_TENSOR, BOOLEAN, NONE])
        if DEVICE in value or value >= _GIVEN:
            allowed |= _GIVEN
        return bool(value & _ON_DEVICE) and value <= allowed

    @staticmethod
    def is_only_on_device(value: Value) -> bool:
        """Whether a value is a device tensor by everything that is known; unknown callers are ignored."""
        return DEVICE in value and HOST not in value and not any(one >= FIRST for one in value)

    def _may_only_be_on_device(self, module: Module, number: int) -> bool:
        """The same for one of the alternatives of an expression; the initial value of a sum is a number."""
        value = frozenset(one for one in self._get(module, number) if not self._is_number(one))
        row = module.nodes[number]
        return self.is_only_on_device(value) or (row[0] == "phi" and any(self.is_only_on_device(self._get(module, one)) for one in row[1]))

    def _is_number(self, atom: int) -> bool:
        """Whether an atom is a constant number."""
        fields = self.program.atoms.of[atom] if atom >= FIRST else ("",)
        return fields[0] == "k" and fields[1].__class__ in (int, float)


def _is_printed(module: Module, call: int) -> bool:
    """Whether the result of a call is printed right there."""
    return any(call in module.nodes[one][2] for one in module.table.named.get("print", ()))


def _is_state(module: Module, number: int) -> bool:
    """Whether an operand is an attribute that tensors do not have: ``parameter.ds_status``, which a library has set."""
    row = module.plain(number)
    return row[0] == "attr" and row[2] not in TENSOR_ATTRIBUTES


def _is_math(module: Module, number: int) -> bool:
    """Whether an expression is Python's `math`, whose functions only accept numbers."""
    row = module.plain(number)
    bound = module.scopes[0].bindings.get(row[2], ()) if row[0] == "free" else ()
    rows = [module.nodes[one] for one in bound] if row[0] == "free" else [row]
    return any(one == ("imp", "math", 0) for one in rows)


def _is_from_math(module: Module, row: Node) -> bool:
    """Whether a name is one imported from `math`: ``from math import sqrt``; ``from .math import rope`` is another."""
    return any(module.nodes[one][:2] == ("impf", "math") and module.nodes[one][3] == 0 for one in module.scopes[0].bindings.get(row[2], ()))


def _is_of_record(module: Module, row: Node) -> bool:
    """Whether a value is a part of a sequence's element: ``for edges, _, size in layers``; ``zip`` makes no such
    elements."""
    if row[0] != "part":
        return False
    base = module.plain(row[1])
    if base[0] == "part":
        element = module.plain(base[1])
        return element[0] == "elem" and module.plain(element[1])[0] == "call"
    iterable = module.plain(base[1]) if base[0] == "elem" else ("",)
    return iterable[0] in ("param", "attr", "comp")
