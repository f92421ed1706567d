"""The possible values of an expression, as a set of small numbers: the devices of tensors, a few constants of Python,
and interned objects.

Numbers below `FIRST` are fixed; those from it on stand for a tuple in `Atoms.of`, whose first field is the kind:

=====================================  ============================================================================
``("k", value)``                       a number or string; ``*`` inside a string stands for an unknown part
``("f", function)``                    a function of the project; ``("b", function, how, class)`` one bound to an object
``("c", class)``                       a class of the project; ``("i", class)`` an object of exactly this class
``("self", class)``                    an object of it or of a subclass; ``("self", class, "cls")`` the class itself
``("super", class)``                   what ``super()`` gives inside of a class
``("m", module)``                      a module of the project
``("x", name)``                        a function, class or module of another package, by its dotted name
``("o", name, call)``                  what a call of such a name gave; call 0 if it does not matter which
``("d", place)``                       a container, by the expression that made it
``("gen", function)``                  what a call of a generator function gave; with the call and how its arguments are bound, if
                                       it yields elements of an argument
``("view", how, place)``               what ``zip``, ``enumerate``, ``.items()`` and the like gave
``("pair", how, place)``               what iterating over such a view takes
``("partial", call)``                  what ``functools.partial`` gave
``("prep", call)``                     what an Accelerator's ``prepare`` gave; ``("init", place)``: `deepspeed.initialize`
``("ns", parser)``                     what ``parse_args`` gave; ``("flag", call)``: the value of an option, by the call that adds it
``("parsed", call)``                   what a parser of dataclasses gave, by the call that made the parser: one object for each class
``("p", key)``                         a parameter; ``("t", key)`` its tensor part; ``("n", key)``: asked for later (summaries only)
=====================================  ============================================================================

Functions, classes, places and calls are keys: ``module << SHIFT | number``.
"""

from __future__ import annotations

from typing import Any

SHIFT = 24
MASK = (1 << SHIFT) - 1
FIRST = 32
Value = frozenset[int]

(
    DEVICE,
    HOST_TENSOR,
    HOST,
    IF_TENSOR,
    TENSOR,
    BOOLEAN,
    TRUE,
    FALSE,
    NONE,
    CPU,
    A_DEVICE,
    PARAMETERS,
    LOADER,
    DEVICE_LOADER,
    SCALER_STATE,
    MANY_CONTAINERS,
    CROWD,
    MOVED,
    MAPPING,
) = range(1, 20)
"""On the device; a tensor on the host; something of Python; on the device if it is a tensor; a tensor somewhere; of booleans; …

`MOVED` comes with `DEVICE` if something unknown was moved there: it may be a module or a batch as well, whose attributes are
on the device only if they are tensors. `MAPPING` comes with it if the values of a mapping are there, and its keys are not."""

NOTHING: Value = frozenset()
ON_DEVICE: Value = frozenset([DEVICE])
ON_HOST: Value = frozenset([HOST_TENSOR])
OF_PYTHON: Value = frozenset([HOST])
WHERE_TENSOR: Value = frozenset([IF_TENSOR])
SOME_TENSOR: Value = frozenset([TENSOR])
HOMES: Value = frozenset([DEVICE, HOST_TENSOR, IF_TENSOR, TENSOR])
MAY_BE_ON_DEVICE: Value = frozenset([DEVICE, IF_TENSOR, TENSOR])
MARKS: Value = frozenset([MOVED, MAPPING])
"""What is not a device, and is only there together with one."""
FALSY: Value = frozenset([FALSE, NONE])


class Atoms:
    """The interned objects of a program."""

    def __init__(self) -> None:
        self.of: list[tuple[Any, ...]] = [("",)] * FIRST
        self.symbolic: set[int] = set()
        """Parameters and what rests on them: they are in summaries only."""
        self.opaque: set[int] = set()
        """Of these those that may be anything, not only a tensor."""
        self.selves: set[int] = set()
        self._numbers: dict[tuple[Any, ...], int] = {}

    def atom(self, *fields: Any) -> int:
        """The number of an object."""
        number = self._numbers.get(fields)
        if number is None:
            number = self._numbers[fields] = len(self.of)
            self.of.append(fields)
            if fields[0] == "self":
                self.selves.add(number)
        return number

    def constant(self, value: Any) -> int:
        """The number of a constant of Python."""
        if value is None:
            return NONE
        if value is True:
            return TRUE
        if value is False:
            return FALSE
        # 1 and 1.0 are equal, and different constants.
        return self.atom("k", value) if value.__class__ is not float else self.atom("k", value, "float")

    def symbol(self, kind: str, key: int) -> int:
        """The number of a symbol of a summary."""
        number = self.atom(kind, key)
        if number not in self.symbolic:
            self.symbolic.add(number)
            if kind != "t":
                self.opaque.add(number)
        return number

    def texts(self, value: Value) -> set[str]:
        """The strings that a value may be."""
        of = self.of
        return {of[one][1] for one in value if one >= FIRST and of[one][0] == "k" and of[one][1].__class__ is str}

    def numbers(self, value: Value) -> set[float]:
        """The numbers that a value may be; without booleans."""
        of = self.of
        return {of[one][1] for one in value if one >= FIRST and of[one][0] == "k" and of[one][1].__class__ is not str}

    def kinds(self, value: Value, kind: str) -> list[tuple[Any, ...]]:
        """The objects of a kind that a value may be, in a fixed order."""
        of = self.of
        found = [one for one in value if one >= FIRST and of[one][0] == kind]
        if len(found) > 1:
            found.sort()
        return [of[one] for one in found]
