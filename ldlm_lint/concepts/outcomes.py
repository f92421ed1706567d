"""What tests come out as in a usual training step: tests of the training mode, of first steps, of numbers that went wrong,
of switches for details, of chance and of other devices.

    if step < 3 or torch.isnan(loss) or random.random() < 0.01:     # False in a usual step

For unknown functions (``if should_report(step):``) only the names in the test decide.
"""

from __future__ import annotations

from collections.abc import Iterable

from ldlm_lint.concepts.intervals import Intervals
from ldlm_lint.concepts.left_out import LeftOut
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import FALSY, NOTHING, TRUE, Value
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Guard
from ldlm_lint.program.walks import Through
from ldlm_lint.vocabulary.details import DETAILS
from ldlm_lint.vocabulary.past import NUMBERS, PAST, VERSION_NAMES
from ldlm_lint.vocabulary.rare import EVALUATION_WORD, GENERATES, HAS_DEVICE, RARE_NAME, TROUBLE

_MIRRORED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}
_FEW = {"Lt": True, "LtE": True, "Gt": False, "GtE": False}
_ALARMS = {"isnan": True, "isinf": True, "isfinite": False}
_OF_PARTS = frozenset({"any", "all", "item", "bool", "sum"})
_OTHER_DEVICES = frozenset({"cpu", "mps", "xla", "meta"})
_DRAWS = frozenset({"random", "rand", "uniform"})
_EQUAL = frozenset({"Eq", "Is", "In"})
_SELDOM = 0.1
"""One step in ten, or fewer."""


class Outcomes(Concept):
    """Answers for the tests of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._steps = code[Steps]
        self._intervals = code[Intervals]
        self._left_out = code[LeftOut]
        self._in_training: dict[Expr, bool | None] = {}
        self._alarms: dict[Expr, bool | None] = {}
        self._given_counts: dict[tuple[Expr, int], bool] = {}

    def in_training(self, test: Expr) -> bool | None:
        """What a test comes out as in each training step, as ``self.training`` and ``torch.is_grad_enabled()`` do; None if
        its mode does not decide."""
        if test not in self._in_training:
            self._in_training[test] = None
            self._in_training[test] = self._by_mode(test)
        return self._in_training[test]

    def _by_mode(self, test: Expr) -> bool | None:
        if test.kind == "attr":
            return True if test.name == "training" else None
        if test.kind in ("not", "copy"):
            return _turned(test, self.in_training(test.operands[0]))
        if test.kind == "bool":
            # One part decides an ``and`` that fails and an ``or`` that holds.
            parts = [self.in_training(one) for one in test.operands]
            decides = test.operator == "Or"
            return decides if decides in parts else _agreed(parts)
        if test.kind == "phi":
            return _agreed(map(self.in_training, test.ways))
        if isinstance(test, Call):
            if test.called_name == "is_grad_enabled":
                return True
            return _agreed(self.in_training(one) for target in test.targets for one in target.returned)
        return _agreed(None if one.value is None else self.in_training(one.value) for one in test.passed)

    def at_start(self, test: Expr) -> bool | None:
        """Which outcome of a test is that of the first few steps alone, or of one step; None for any other test."""
        if test.kind == "not":
            return _turned(test, self.at_start(test.operands[0]))
        if test.kind == "bool":
            # An ``and`` holds where all of its parts do, so that one rare part is enough; an ``or`` fails likewise.
            wanted = test.operator == "And"
            return wanted if any(self.at_start(one) is wanted for one in test.operands) else None
        if test.kind != "cmp" or not test.operator:
            return None
        name, (left, right) = test.operator, test.operands
        if self.counts_steps(right):
            name, left, right = _MIRRORED.get(name, name), right, left
        elif not self.counts_steps(left):
            return None
        if name in ("Eq", "NotEq"):
            return name == "Eq"
        return _FEW.get(name) if right.plain.kind == "const" else None

    def counts_steps(self, number: Expr) -> bool:
        """Whether a number grows from step to step of one loop: a number from ``enumerate`` or ``range``, and sums with
        it."""
        if number.kind == "copy":
            return self.counts_steps(number.operands[0])
        if number.kind == "op":
            return number.operator in ("Add", "Sub") and any(map(self.counts_steps, number.operands))
        if number.kind == "param":
            return self._is_given_count(number)
        element = number.base if number.part == 0 else number
        taken = element.base if element is not None and element.kind == "elem" else None
        return taken is not None and self._steps.repeats(taken) and _is_of(taken, "enumerate" if number.part == 0 else "range")

    def _is_given_count(self, parameter: Expr) -> bool:
        """Whether all known callers pass such a number for a parameter."""
        given = [one.value for one in parameter.passed]
        # A function that passes a number on to itself does not count, and the result for these calls is reused.
        asked = parameter, len(given)
        if asked not in self._given_counts:
            self._given_counts[asked] = False
            self._given_counts[asked] = bool(given) and all(one is not None and self.counts_steps(one) for one in given)
        return self._given_counts[asked]

    def of_alarm(self, test: Expr) -> bool | None:
        """Which outcome of a test means that numbers have gone wrong; None for any other test."""
        if test not in self._alarms:
            self._alarms[test] = None
            self._alarms[test] = self._alarm(test)
        return self._alarms[test]

    def _alarm(self, test: Expr) -> bool | None:
        if test.kind == "not":
            return _turned(test, self.of_alarm(test.operands[0]))
        if test.kind == "bool":
            # Of an ``and`` each part has to hold, so that one rare one is enough.
            return _agreed(found for one in test.operands if (found := self.of_alarm(one)) is not None)
        if test.kind in ("copy", "phi"):
            return self.of_alarm(test.ways[0])
        if not isinstance(test, Call):
            return None
        if test.called_name not in _OF_PARTS:
            return _ALARMS.get(test.called_name)
        inside = test.receiver or next(iter(test.positional), None)
        return self.of_alarm(inside) if inside is not None else None

    def of_details(self, test: Expr) -> bool | None:
        """Which outcome of a test means that a user wants to look closer, ``opt.debug > 0``; None for any other test.

        A switch that the program itself turns on for everyone does not count.
        """
        if self._values(test) == frozenset([TRUE]):
            return None
        if test.kind in ("not", "copy"):
            return _turned(test, self.of_details(test.operands[0]))
        if test.kind == "bool":
            wanted = test.operator == "And"
            return wanted if any(self.of_details(one) is wanted for one in test.operands) else None
        if test.kind == "cmp" and test.operator:
            level, limit = test.operands
            if type(limit.constant) is not int or self.of_details(level) is not True:
                return None
            return _above_nothing(test.operator, limit.constant)
        return True if test.kind != "impf" and DETAILS.search(test.name) else None

    def may_hold(self, guard: Guard) -> bool:
        """Whether the known values of a guard's test allow the outcome that leads under it."""
        test, holds = guard.test, guard.holds
        if holds is None:
            return True
        if self._left_out.decides(test) not in (None, holds) or self._surely(test) is (not holds):
            return False
        if test.operator == "And" and holds:
            return not any(self._surely(one) is False for one in test.operands)
        if test.kind == "not":
            return self._surely(test.operands[0]) is not holds
        if test.operator in ("Eq", "NotEq", "Is", "IsNot"):
            return self._may_compare(test, (test.operator in ("Eq", "Is")) == holds)
        return True

    def _surely(self, test: Expr) -> bool | None:
        """What the known values of a test decide; None if both outcomes are possible."""
        value = self._values(test)
        return True if value == frozenset([TRUE]) else False if value and value <= FALSY else None

    def _may_compare(self, test: Expr, equal: bool) -> bool:
        """Whether the known values allow a value to equal, or to differ from, a constant that it is compared with."""
        left, right = test.operands
        value, atoms = self._values(left), self.program.atoms
        if right.constant is ... or not value:
            return True
        if not all(one in (*FALSY, TRUE) or atoms.of[one][0] == "k" for one in value):
            return True
        wanted = atoms.constant(right.constant)
        return wanted in value if equal else value != frozenset([wanted])

    def _values(self, test: Expr) -> Value:
        """The possible values of a test; empty if a path that leads to it is unknown."""
        asked = test.unnamed
        if asked.kind in ("choice", "phi") and not all(one.value for one in asked.ways):
            return NOTHING
        given = self._left_out.given_by_all(test)
        return test.value if given is None else given

    def rare(self, test: Expr) -> bool | None:
        """The outcome of a test that occurs in few steps; None if both are usual, or unknown."""
        if test.kind in ("not", "copy"):
            return _turned(test, self.rare(test.operands[0]))
        if test.kind == "bool":
            return self._rare_of_parts(test)
        for found in (self.at_start(test), self.of_alarm(test), self.of_details(test)):
            if found is not None:
                return found
        if self._intervals.is_periodic(test):
            return self._intervals.rare_outcome(test)
        if test.kind == "cmp":
            return self._rare_comparison(test) if test.operator else None
        if isinstance(test, Call):
            return self._rare_by_name(test)
        name = test.name if test.kind != "impf" else ""
        return False if HAS_DEVICE.search(name) else True if RARE_NAME.search(name) else None

    def _rare_of_parts(self, test: Expr) -> bool | None:
        parts = [self.rare(one) for one in test.operands]
        enough = test.operator == "And"
        if enough in parts:
            return enough
        # ``done or step % n == 0``: the condition added to the interval is the exception.
        due = not enough and any(found is True and self._intervals.is_periodic(one) for one, found in zip(test.operands, parts, strict=True))
        return not enough if due or all(found is (not enough) for found in parts) else None

    def _rare_by_name(self, call: Call) -> bool | None:
        """The outcome by the name of a function, unless it was analysed itself."""
        if self.program.atoms.kinds(call.callee.value, "f"):
            return None
        return False if call.called_name == "is_available" else True if RARE_NAME.search(call.called_name) else None

    def _rare_comparison(self, test: Expr) -> bool | None:
        operator, (left, right) = test.operator, test.operands
        equal = operator in _EQUAL
        if operator in _FEW and _is_of_the_past(left, right):
            return _FEW[operator]
        texts = [one.constant for one in (left, right) if isinstance(one.constant, str)]
        if "__main__" in texts:
            return equal
        if texts and "type" in (left.last_name, right.last_name):
            return equal if texts[0] in _OTHER_DEVICES else not equal if texts[0] == "cuda" else None
        named = (left.last_name, right.last_name)
        if any(map(EVALUATION_WORD.search, texts)) or (operator in ("In", "NotIn") and any(map(GENERATES.search, named))):
            return equal
        if operator in ("In", "Eq") and _counts_on(left):
            return True
        is_up = operator in ("Gt", "GtE", "Eq") and right.kind == "const" and bool(right.constant)
        if is_up and (TROUBLE.search(left.last_name) or (operator == "Eq" and _is_set_in_handler(left, right))):
            return True
        return _by_chance(test)


def _turned(test: Expr, inner: bool | None) -> bool | None:
    """The outcome of ``not x`` by that of ``x``; of another name for ``x`` the same."""
    return inner if inner is None or test.kind != "not" else not inner


def _agreed(found: Iterable[bool | None]) -> bool | None:
    """The outcome of all; None if they differ, or there are none."""
    every = set(found)
    return every.pop() if len(every) == 1 else None


def _is_of(iterable: Expr, name: str) -> bool:
    """Whether an iterable is the result of a builtin, or a progress bar around it."""
    at, seen = iterable.plain, set[Expr]()
    while isinstance(at, Call) and at.positional and at.called_name != name and at not in seen:
        seen.add(at)
        at = at.positional[0].plain
    return isinstance(at, Call) and bool(at.positional) and at.called_name == name


def _above_nothing(operator: str, limit: int) -> bool | None:
    """Whether a verbosity level that is 0 by default exceeds a limit, by the comparison; None if that is undecided."""
    if operator in ("Eq", "NotEq"):
        return (operator == "Eq") == bool(limit)
    return {"Gt": True, "GtE": True if limit > 0 else None, "Lt": False if limit > 0 else None, "LtE": False}.get(operator)


def _is_of_the_past(version: Expr, number: Expr) -> bool:
    """Whether the version of torch is compared with one that is no longer used for training:
    ``parse(torch.__version__) < parse("1.8")``."""
    text = _parsed(number).constant
    told = NUMBERS.search(text) if isinstance(text, str) else None
    return told is not None and (int(told[1]), int(told[2] or 0)) < PAST and not _parsed(version).outside_names.isdisjoint(VERSION_NAMES)


def _parsed(version: Expr) -> Expr:
    """The first argument of a call, ``parse(torch.__version__)``; of anything else itself."""
    call = version.plain
    return call.positional[0] if isinstance(call, Call) and call.positional else version


def _is_set_in_handler(flag: Expr, constant: Expr) -> bool:
    """Whether a flag becomes a constant only in a handler, which runs after a failure."""
    bound = [event.spot for event in constant.events if event.kind == "bind"]
    reaches = bool(bound) and any(one == constant for one in flag.origins(Through.NAMES))
    return reaches and all(any(guard.kind == "except" for guard in spot.guards) for spot in bound)


def _counts_on(number: Expr) -> bool:
    """Whether a class increases an attribute step by step."""
    counter = number.plain
    return any(one.operator == "Add" and one.operands[0].plain.name == counter.name for one in counter.set_to)


def _by_chance(test: Expr) -> bool | None:
    """``random.random() < 0.01``: the outcome that a random number between 0 and 1 rarely gives."""
    drawn, limit = test.operands[0].plain, test.operands[1].constant
    if isinstance(drawn, Call) and drawn.called_name == "item" and drawn.receiver is not None:
        drawn = drawn.receiver.plain
    if not isinstance(drawn, Call) or not isinstance(limit, float) or drawn.called_name not in _DRAWS:
        return None
    chance = limit if test.operator in ("Lt", "LtE") else 1 - limit
    return True if chance <= _SELDOM else False if chance >= 1 - _SELDOM else None


__all__ = ["Outcomes"]
