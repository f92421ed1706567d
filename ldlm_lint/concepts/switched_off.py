"""Code that the defaults of options switch off and that no launch or configuration of the project switches on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator

from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard, Option
from ldlm_lint.program.spots import Spot

_OPERATORS: dict[str, Callable[..., object]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "In": lambda one, many: one in many,
    "NotIn": lambda one, many: one not in many,
}
_SEVERAL = 3
"""Options of one name above which it is not known which of them is meant."""


class SwitchedOff(Concept):
    """Answers for the guards of a program: ``if opt.show_oracle:`` with ``--show-oracle``, ``action="store_true"``; ``if
    self.task == "zero_shot":`` with ``--task``, ``default="forecast"``."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._off: dict[Expr, bool] = {}
        self._outcomes: dict[Expr, bool | None] = {}
        self._settings = code[ReadSettings]

    def is_one(self, spot: Spot) -> bool:
        """Whether code in a function is under such an option and the step is not: users who train pass
        ``--do_train``.
        """
        return any(not self._trains(one, spot.function) for one in self._options_around(spot))

    def is_by_default(self, spot: Spot) -> bool:
        """Whether code is under such an option, also where it trains: ``if args.micro_batches == 1: … return``."""
        return any(True for _ in self._options_around(spot))

    def _options_around(self, spot: Spot) -> Iterator[Guard]:
        """The guards around a place whose options are off."""
        for guard in spot.guards:
            if guard.is_test:
                asks = guard.kind == "if" and guard.holds
                if (asks and any(map(self._is_off, _parts(guard.test)))) or self._by_default(guard.test) is (not guard.holds):
                    yield guard

    def _by_default(self, test: Expr) -> bool | None:
        """What a test comes out as with the defaults of the options that it asks for; None if they do not decide."""
        if test not in self._outcomes:
            self._outcomes[test] = None
            self._outcomes[test] = self._outcome(test)
        return self._outcomes[test]

    def _outcome(self, test: Expr) -> bool | None:
        if test.kind in ("not", "copy"):
            inner = self._by_default(test.operands[0])
            return inner if inner is None or test.kind == "copy" else not inner
        if test.kind == "bool":
            parts = [self._by_default(one) for one in test.operands]
            decides = test.operator == "Or"
            return decides if decides in parts else (not decides) if all(one is (not decides) for one in parts) else None
        if test.kind == "cmp":
            return self._of_comparison(test, test.operands[0])
        if isinstance(test, Call) and (asked := _comparison_in(test)) is not None:
            return self._of_comparison(asked, test.positional[0])
        written = self._computed(test)
        if written:
            outcomes = set(map(self._by_default, written))
            return outcomes.pop() if len(outcomes) == 1 else None
        return _agreed(bool(one) for one in self._defaults(test) or ())

    def _computed(self, test: Expr) -> list[Expr]:
        """What an attribute of the parsed options is set to: ``args.distill = args.teacher is not None``."""
        writes = self.code.writes_of(test.name) if test.kind == "attr" else []
        return [value for _, value in writes] if writes and test.base is not None and test.base.may_be_options else []

    def _of_comparison(self, comparison: Expr, left: Expr) -> bool | None:
        compares, right = _OPERATORS.get(comparison.operator), comparison.operands[1]
        inside = [one.constant for one in right.operands] if right.kind == "seq" else []
        if compares is None or not (right.kind == "const" or (inside and ... not in inside)):
            return None
        try:
            return _agreed(bool(compares(one, tuple(inside) if inside else right.constant)) for one in self._defaults(left) or ())
        except TypeError:
            return None

    def _defaults(self, expr: Expr) -> set[object] | None:
        """The values of an expression if the options that it may come from are left out; None if it has others."""
        options = expr.options
        unset = self._settings.unset_value(expr) if not options else ...
        if unset is not ...:
            return {unset}
        if not options or not expr.is_of_constants_and_options:
            return None
        found = set(expr.may_be().constants)
        for one in options:
            default = one.meaning_of_default
            if not self._is_left(one) or not default.is_complete or len(default.constants) != len(default.value):
                return None
            found.update(default.constants)
        return found

    def _is_left(self, option: Option) -> bool:
        """Whether an option may be left out, and no launch or configuration gives it."""
        is_optional = option.flag.startswith("-") and not any(name == "required" for name, _ in option.keywords)
        return is_optional and not self.code.is_named_in_configurations(option.flag.lstrip("-"), option.destination)

    def _trains(self, guard: Guard, function: Function) -> bool:
        """Whether a step is under a guard, or the code that leads to its backward pass."""
        if self.code[Rhythm].steps_under(guard, function):
            return True
        return any(guard in call.guards for call in function.calls if self.code[Steps].is_leading(call))

    def _is_off(self, asked: Expr) -> bool:
        if asked not in self._off:
            self._off[asked] = self._is_never_asked_for(asked)
        return self._off[asked]

    def _is_never_asked_for(self, asked: Expr) -> bool:
        known = asked.options
        if asked.kind != "attr" or (asked.value and not known):
            return False
        options = known or asked.options_by_name
        if not 0 < len(options) <= _SEVERAL or not all(one.turns_on for one in options):
            return False
        names = {name for one in options for name in (one.flag.lstrip("-"), one.destination)}
        return not self.code.is_named_in_configurations(*sorted(names))


def _comparison_in(call: Call) -> Expr | None:
    """The comparison that a function of the project makes of its only argument: ``exists(folder)``."""
    if len(call.targets) != 1 or len(call.positional) != 1 or call.keywords or call.positional[0].kind != "attr":
        return None
    (target,) = call.targets
    made = target.returned[0] if len(target.returned) == 1 else None
    left = made.operands[0].plain if made is not None and made.kind == "cmp" else None
    return made if left is not None and left.kind == "param" and left.function == target else None


def _agreed(outcomes: Iterable[bool]) -> bool | None:
    """The only outcome; None if there are two, or none."""
    every = set(outcomes)
    return every.pop() if len(every) == 1 else None


def _parts(test: Expr) -> list[Expr]:
    """A test, or the conjuncts of it."""
    return test.operands if test.operator == "And" else [test]
