"""Where Python waits for the device: explicit or implicit reads of device values.

Explicit tensor methods count for values that *may* be on the device; conditions, ``int()`` and formats only for values
that are *always* there, since they are also used for Python numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from ldlm_lint.program.handles import Call, Expr
from ldlm_lint.program.mappings import Mappings
from ldlm_lint.program.spots import Event, Spot
from ldlm_lint.program.walks import Through
from ldlm_lint.vocabulary.tensors import (
    SIZE_KEYWORDS,
    SIZES_OF_FUNCTIONS,
    SIZES_OF_METHODS,
    TENSOR_ATTRIBUTES,
    WAITING_FUNCTIONS,
    WAITING_METHODS,
    WRITERS_METHODS,
)

if TYPE_CHECKING:
    from ldlm_lint.model import Span

# Of a tensor on the device ``numpy()`` is an error and no wait: where it runs, the tensor is on the host.
_METHODS = frozenset(["item", "tolist", "cpu", "nonzero", "unique", "masked_select", "equal", "is_nonzero", "unique_consecutive", "argwhere"])
_BUILTINS = frozenset(["float", "int", "bool", "print", "min", "max", "range", "str", "round"])
_EVENTS = ("test", "format", "item", "store")
_ASKED = frozenset({"call", "cmp", "elem", "part", "item"})
_ON_DEVICE = frozenset([DEVICE, TENSOR])
_OFF_DEVICE = frozenset([HOST, HOST_TENSOR])
_GIVEN = frozenset([IF_TENSOR, TENSOR])
_ORDERS = frozenset(["Eq", "NotEq", "Lt", "LtE", "Gt", "GtE"])
_SWITCHES = frozenset([TRUE, FALSE])
_THERE = frozenset([DEVICE, IF_TENSOR])
_ATTRIBUTES = WAITING_METHODS | WRITERS_METHODS | SIZES_OF_FUNCTIONS.keys() | SIZES_OF_METHODS.keys()


@dataclass(frozen=True)
class Wait:
    """A place where Python waits, and the operation that does: the name of a function, ``test``, ``format``, …; ``?item``
    where an object is a tensor by its method only."""

    what: str
    at: Call | Event

    @property
    def expr(self) -> Expr:
        """The call that waits, or the expression that is read."""
        return self.at.expr if isinstance(self.at, Event) else self.at

    @property
    def spot(self) -> Spot:
        """Where it runs."""
        return self.at.spot

    @property
    def span(self) -> Span:
        """Where it is written."""
        return self.at.span


class Waits(Concept):
    """The waits of all training steps."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._reach = code[Reach]
        self._mappings = Mappings(code.program)

    def all(self) -> list[Wait]:
        """The waits that run in every step, by file and place."""
        found = dict.fromkeys(self._found())
        return sorted(found, key=lambda wait: (wait.expr.module.path, wait.spot.place, wait.what, wait.expr.key))

    def _found(self) -> Iterator[Wait]:
        for function in self._reach.functions:
            for call in function.calls:
                what = self._of_call(call) if self._may_wait(call) and self._reach.runs(call) else ""
                if what and not ((what == "print" or _is_printed(call)) and self._is_told_apart(call.spot)):
                    yield Wait(what, call)
            for event in function.events_of(*_EVENTS):
                if self._reach.runs_at(event.spot):
                    what = self._of_event(event)
                    if what and not self._comes_rarely(event, what):
                        yield Wait(what, event)

    def _comes_rarely(self, event: Event, what: str) -> bool:
        if what == "format":
            return self._is_told_apart(event.spot)
        return what == "test" and self.code[Restarts].settles(event.expr, event.spot)

    @staticmethod
    def _is_told_apart(spot: Spot) -> bool:
        """Whether something is under a condition on the device: output there is occasional."""
        for guard in spot.guards:
            is_denied = guard.test.kind == "not"
            comes_true = guard.kind == "if" or (guard.kind == "rest" and guard.holds is not is_denied)
            value = _value(guard.test.operands[0] if is_denied else guard.test) if comes_true else frozenset()
            if BOOLEAN in value and DEVICE in value:
                return True
        return False

    @staticmethod
    def _may_wait(call: Call) -> bool:
        function = call.callee.plain
        if function.kind == "attr":
            return function.name in _ATTRIBUTES or _is_of_math(call)
        return function.kind == "free" and (function.name in _BUILTINS or _is_of_math(call))

    def _of_call(self, call: Call) -> str:
        function = call.callee.plain
        if function.base is None or _is_of_math(call):
            return self._of_builtin(call, function.name if function.base is None and function.name in _BUILTINS else "float")
        name, outside = function.name, call.callee.outside_names
        if any(one.startswith("torch.") for one in outside):
            return self._of_sizes(call, SIZES_OF_FUNCTIONS.get(name)) or self._of_function(call, name)
        if outside:
            return ""
        receiver = _value(function.base)
        if name in WRITERS_METHODS:
            return self._of_writer(call, name)
        if name in SIZES_OF_METHODS:
            return self._of_sizes(call, SIZES_OF_METHODS[name]) if receiver & HOMES and not call.targets else ""
        if name == "repeat_interleave":
            return name if DEVICE in receiver and self._repeats_by_tensor(call, 0) else ""
        if name in _METHODS:
            if receiver & MAY_BE_ON_DEVICE:
                return name if receiver & _THERE or HOST_TENSOR not in receiver else ""
            # An unknown object has no other method of this name; at the beginning of a step it may still be on the
            # host.
            is_unknown = name in ("item", "cpu") and not receiver and self._is_inside_step(call)
            return f"?{name}" if is_unknown and not self._comes_with_batch(function.base) else ""
        return self._of_moving(call, function.base, name)

    def _of_writer(self, call: Call, name: str) -> str:
        """TensorBoard's writer converts its argument to a Python number; a method of the project is analysed itself."""
        given = dict(call.keywords).get("scalar_value") or next(iter(call.positional[1:]), None)
        return name if given is not None and not call.targets and self.is_only_on_device(_value(given)) else ""

    def _is_inside_step(self, call: Call) -> bool:
        """Whether a call is in a function that a step calls, or that a framework calls with device values."""
        return call.function.is_hook or not self._steps.are_in(call.function)

    def _comes_with_batch(self, expr: Expr) -> bool:
        """Whether a value is a part of the batch of a step's loop: it may still be on the host."""
        behind = expr.origins(Through.NAMES | Through.PARTS | Through.PARAMETERS)
        return any(one.kind == "elem" and one.base is not None and self._steps.repeats(one.base) for one in behind)

    def _of_function(self, call: Call, name: str) -> str:
        if not call.positional or not _value(call.positional[0]) & MAY_BE_ON_DEVICE:
            return ""
        if name in WAITING_FUNCTIONS or (name == "where" and len(call.positional) == 1):
            return f"torch.{name}"
        return "torch.repeat_interleave" if name == "repeat_interleave" and self._repeats_by_tensor(call, 1) else ""

    def _of_sizes(self, call: Call, places: slice | None) -> str:
        """A size passed as a device tensor is converted to a Python number first."""
        named = [value for keyword, value in call.keywords if keyword in SIZE_KEYWORDS]
        given = [] if places is None else [*call.positional[places], *named]
        parts = [inner for one in given for inner in (one.operands if one.kind == "seq" else (one,))]
        return "size" if any(map(self._bounds_on_device, parts)) else ""

    def _repeats_by_tensor(self, call: Call, place: int) -> bool:
        """Whether ``repeat_interleave`` gets its counts as a tensor without ``output_size``."""
        keywords = dict(call.keywords)
        counts = keywords.get("repeats") or next(iter(call.positional[place:]), None)
        if counts is None or "output_size" in keywords:
            return False
        # Repeats along a dimension: for a device tensor torch requires the counts on the device.
        taken = counts.plain.index
        value = _value(counts)
        return self.is_only_on_device(value) or (taken is not None and taken.kind == "seq" and value.isdisjoint(_OFF_DEVICE))

    def _of_moving(self, call: Call, receiver: Expr, name: str) -> str:
        if DEVICE not in _value(receiver):
            return name if name == "get_scale" and any("GradScaler" in one for one in receiver.made_by) else ""
        result = _value(call)
        if name == "to" and HOST_TENSOR in result and call.positional:
            return "to" if self._is_cpu(call.positional[0]) else ""
        return "type" if name == "type" and result == frozenset([HOST_TENSOR]) else ""

    def _is_cpu(self, device: Expr) -> bool:
        """Whether a device is the host on every path: ``self.device if wanted else "cpu"`` may be another one."""
        at = device.plain
        return all(map(self._is_cpu, at.ways)) if at.kind == "choice" else self.program.is_cpu(_value(device))

    def _of_builtin(self, call: Call, name: str) -> str:
        if name in ("min", "max") and len(call.positional) < 2:
            return ""
        return name if any(map(self._is_read_from_device, call.positional)) else ""

    def _is_read_from_device(self, expr: Expr) -> bool:
        """Whether a value is on the device, or one of the entries that a loop iterates over is."""
        return self._may_only_be_on_device(expr) or any(map(self.is_only_on_device, self._entries(expr)))

    def _entries(self, expr: Expr) -> Iterator[Value]:
        """The possible values of the entries of a mapping, if a loop takes one after another: one on the device makes the
        loop wait.

            for name, value in losses.items():
                total[name] += float(value)        # losses contains a number of steps in addition to the loss
        """
        at, wanted = expr.plain, "values"
        if at.part == 1 and at.base is not None:
            at, wanted = at.base.plain, "items"
        atoms, value = self.program.atoms, at.base.value if at.kind == "elem" and at.base is not None else frozenset[int]()
        for how, place in (fields[1:3] for fields in atoms.kinds(value, "view")):
            mapping = frozenset(one for one in self.program.get(place) if one >= FIRST and atoms.of[one][0] == "d") if how == wanted else frozenset()
            for keys in self._mappings.keys(mapping).entries.values():
                yield frozenset[int]().union(*map(self.program.get, keys))

    def _of_event(self, event: Event) -> str:
        if event.kind == "test":
            return self._of_test(event.expr)
        if event.kind == "format":
            value = _value(event.expr)
            return "format" if DEVICE in value and value <= frozenset([DEVICE, HOST_TENSOR, IF_TENSOR]) else ""
        return self._of_index(event.expr)

    def _of_test(self, test: Expr) -> str:
        if test.kind in ("not", "bool", "const"):
            return ""
        value = _value(test)
        if test.kind != "cmp" and not value.isdisjoint(_SWITCHES):
            # An option with a default of Python, which a batch may contain as well.
            return ""
        if BOOLEAN in value and HOST not in value and (DEVICE in value or value >= _GIVEN):
            if isinstance(test, Call) and any(HOST in _value(one) for one in test.results):
                # For some caller it returns a Python value: a comparison of sizes, for one.
                return ""
            operands = test.operands if test.kind == "cmp" else []
            if test.operator in ("Eq", "NotEq") and any(map(_is_state, operands)):
                return ""
            return "" if operands and not any(map(self._may_be_pure, operands)) else "test"
        homes = frozenset([DEVICE, HOST_TENSOR, TENSOR])
        return "truth" if DEVICE in value and value <= homes and test.kind in _ASKED else ""

    def _may_be_pure(self, operand: Expr) -> bool:
        """Whether an operand is a tensor, or one of its alternatives is a device tensor while others are numbers."""
        ways = [_value(one) for one in operand.ways] if operand.kind == "phi" else []
        return _is_pure(_value(operand)) or any(DEVICE in one and _is_pure(one) for one in ways)

    def _of_index(self, item: Expr) -> str:
        key = item.index
        if item.base is None or key is None:
            return ""
        base = _value(item.base)
        if key.kind == "const":
            return "scale" if key.constant == "scale" and SCALER_STATE in base else ""
        if key.kind == "slice":
            return "slice" if any(map(self._bounds_on_device, key.operands)) else ""
        for one in key.operands if key.kind == "seq" else [key]:
            if _is_on_host(base) and BOOLEAN in (given := _value(one)) and self.is_only_on_device(given):
                # Indexing a host value copies the mask to the host first.
                return "mask"
            if base & MAY_BE_ON_DEVICE and _is_mask(one, base):
                # A number is filled in without a wait, a tensor needs the places.
                filled = _value(item.put) if item.put is not None else ON_DEVICE
                return "mask" if DEVICE in filled or filled >= _GIVEN else ""
            if one.kind == "slice" and any(map(self._bounds_on_device, one.operands)):
                return "slice"
        return ""

    def _bounds_on_device(self, bound: Expr) -> bool:
        """Whether a bound is a tensor on the device; the sizes in a container that was moved and unpacked stay
        numbers.
        """
        at = bound.plain
        while at.kind == "item" and at.base is not None:
            at = at.base.plain
        if _is_of_record(at) and not _is_row_of_tensor(bound):
            return False
        return self.is_only_on_device(_value(bound))

    @staticmethod
    def is_only_on_device(value: Value) -> bool:
        """Whether a value is a device tensor by everything that is known; unknown callers are ignored."""
        return DEVICE in value and HOST not in value and not any(one >= FIRST for one in value)

    def _may_only_be_on_device(self, expr: Expr) -> bool:
        """The same for one of the alternatives of an expression; the initial value of a sum is a number."""
        value = frozenset(one for one in _value(expr) if not self._is_number(one))
        return self.is_only_on_device(value) or (expr.kind == "phi" and any(self.is_only_on_device(_value(one)) for one in expr.ways))

    def _is_number(self, atom: int) -> bool:
        """Whether an atom is a constant number."""
        fields = self.program.atoms.of[atom] if atom >= FIRST else ("",)
        return fields[0] == "k" and fields[1].__class__ in (int, float)


def _value(expr: Expr) -> Value:
    # What is read as a tensor is one, whatever else it may be elsewhere.
    return expr.value - MARKS


def _is_on_host(value: Value) -> bool:
    """Whether a value that is indexed can only be a tensor on the host; None cannot be indexed."""
    return HOST_TENSOR in value and value <= frozenset([HOST_TENSOR, BOOLEAN, NONE])


def _is_pure(value: Value) -> bool:
    """Whether an operand can only be a tensor; the argument of a module is one if a caller, or torch, has made it one."""
    allowed = _ON_DEVICE | frozenset([HOST_TENSOR, BOOLEAN, NONE])
    if DEVICE in value or value >= _GIVEN:
        allowed |= _GIVEN
    return bool(value & _ON_DEVICE) and value <= allowed


def _is_mask(index: Expr, base: Value) -> bool:
    """Whether an index is a tensor of booleans on the device."""
    value, at = _value(index), index.plain
    if value <= OF_PYTHON:
        return base == ON_DEVICE and _compares_unknown(index)
    # A mask on any device: its positions are copied to the device first.
    if HOST_TENSOR in value or not value & (_THERE | frozenset([TENSOR])):
        return False
    if HOST in value:
        # A comparison with None is plain Python and creates no index.
        return at.kind == "cmp" and BOOLEAN in value and any(_is_pure(_value(one)) for one in at.operands)
    # An inverted index is a mask: inverting positions would not give positions.
    return BOOLEAN in value or at.operator == "Invert" or (at.kind == "param" and _is_inverted(at))


def _is_inverted(parameter: Expr) -> bool:
    """Whether a parameter is inverted somewhere, also under another name."""
    return any(one.operator == "Invert" for user in (parameter, *parameter.users) for one in user.users if user.kind in ("param", "copy", "phi"))


def _compares_unknown(index: Expr) -> bool:
    """Whether an index compares unknown values; as an index into a device tensor it is not a Python truth value."""
    at = index.plain
    if at.operator in ("BitAnd", "BitOr"):
        return all(map(_compares_unknown, at.operands))
    return at.operator in _ORDERS and any(not _value(one) for one in at.operands)


def _is_row_of_tensor(expr: Expr) -> bool:
    """Whether the unpacked value is a tensor from a torch function: ``for height, width in torch.stack(sizes)``."""
    at, seen = expr, set[Expr]()
    while at not in seen:
        seen.add(at)
        if isinstance(at, Call) and at.called_name == "enumerate" and at.positional:
            at = at.positional[0]
        elif at.kind in ("part", "elem", "copy", "item", "phi"):
            at = at.ways[0] if at.ways else at.base or at
    made = at.origins(Through.NAMES | Through.PARAMETERS)
    return any(isinstance(one, Call) and any(name.startswith("torch.") for name in one.callee.outside_names) for one in made)


def _is_printed(call: Call) -> bool:
    """Whether the result of a call is printed right there."""
    return any(isinstance(user, Call) and user.called_name == "print" and call in user.positional for user in call.users)


def _is_state(operand: Expr) -> bool:
    """Whether an operand is an attribute that tensors do not have: ``parameter.ds_status``, which a library has set."""
    at = operand.plain
    return at.kind == "attr" and at.name not in TENSOR_ATTRIBUTES


def _is_of_math(call: Call) -> bool:
    """Whether a function is one of Python's `math`, which only accept numbers."""
    return any(name.startswith("math.") for name in call.callee.outside_names)


def _is_of_record(at: Expr) -> bool:
    """Whether a value is a part of a sequence's element: ``for edges, _, size in layers``; ``zip`` makes no such
    elements."""
    base = at.base.plain if at.kind == "part" and at.base is not None else at
    if base is at or base.base is None:
        return False
    inner = base.base.plain
    if base.kind == "part":
        return inner.kind == "elem" and inner.base is not None and inner.base.plain.kind == "call"
    return base.kind == "elem" and inner.kind in ("param", "attr", "comp")


__all__ = ["Wait", "Waits"]
