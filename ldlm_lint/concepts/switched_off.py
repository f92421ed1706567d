"""Code that the defaults of options switch off and that no launch or configuration of the project switches on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator

from ldlm_lint.code.table import Node
from ldlm_lint.concepts.rhythm import Rhythm
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.concepts.unset_settings import UnsetSettings
from ldlm_lint.program.atoms import FIRST, HOST, MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Expr, Function, Guard
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Flag, destination
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
_MOST = 3
"""Options of one name above which it is not known which of them is meant."""


class SwitchedOff(Concept):
    """Answers for the guards of a program: ``if opt.show_oracle:`` with ``--show-oracle``, ``action="store_true"``; ``if
    self.task == "zero_shot":`` with ``--task``, ``default="forecast"``."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._off: dict[int, bool] = {}
        self._outcomes: dict[int, bool | None] = {}
        self._unset = code[UnsetSettings]

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
                is_off = asks and any(self._is_off(test.key) for test in _parts(guard.test))
                if is_off or self._by_default(guard.module, guard.test.key & MASK) is (not guard.holds):
                    yield guard

    def _by_default(self, module: Module, test: int) -> bool | None:
        """What a test comes out as with the defaults of the options that it asks for; None if they do not decide."""
        key = module.base | test
        if key not in self._outcomes:
            self._outcomes[key] = None
            self._outcomes[key] = self._of_row(module, test)
        return self._outcomes[key]

    def _of_row(self, module: Module, test: int) -> bool | None:
        row = module.nodes[test]
        if row[0] in ("not", "copy"):
            inner = self._by_default(module, row[1])
            return inner if inner is None or row[0] == "copy" else not inner
        if row[0] == "bool":
            parts = [self._by_default(module, one) for one in row[2]]
            decides = row[1] == "Or"
            return decides if decides in parts else (not decides) if all(one is (not decides) for one in parts) else None
        if row[0] == "cmp":
            return self._of_comparison(module, row, module.base | row[2])
        if row[0] == "call" and (asked := self._asked(module, test)) is not None:
            return self._of_comparison(*asked)
        written = self._computed(module, row)
        if written:
            outcomes = {self._by_default(self.program.module_of(one), one & MASK) for one in written}
            return outcomes.pop() if len(outcomes) == 1 else None
        return _agreed(bool(one) for one in self._defaults(module.base | test) or ())

    def _computed(self, module: Module, row: Node) -> list[int]:
        """What an attribute of the parsed options is set to: ``args.distill = args.teacher is not None``."""
        program = self.program
        writes = program.other_writes.get(row[2], ()) if row[0] == "attr" else ()
        is_option = bool(writes) and bool(program.atoms.kinds(program.ask(module.base | row[1]), "ns"))
        return [written for _, written in writes] if is_option else []

    def _asked(self, module: Module, test: int) -> tuple[Module, Node, int] | None:
        """The comparison that a function of the project makes of its only argument, and that argument: ``exists(folder)``."""
        row = module.nodes[test]
        targets = self.program.targets_of.get(module.base | test, ())
        if len(targets) != 1 or len(row[2]) != 1 or row[3] or module.nodes[row[2][0]][0] != "attr":
            return None
        (target,) = targets
        home = self.program.module_of(target)
        scope = home.scopes[target & MASK]
        made = home.nodes[scope.returns[0][0]] if len(scope.returns) == 1 else ("",)
        is_own = made[0] == "cmp" and home.plain(made[2])[:1] == ("param",) and home.plain(made[2])[1] == target & MASK
        return (home, made, module.base | row[2][0]) if is_own else None

    def _of_comparison(self, module: Module, row: Node, left: int) -> bool | None:
        compares = _OPERATORS.get(row[1][0]) if len(row[1]) == 1 else None
        constant = module.nodes[row[3][0]]
        inside = [module.nodes[one] for one in constant[2]] if constant[0] == "seq" else []
        if compares is None or not (constant[0] == "const" or (inside and all(one[0] == "const" for one in inside))):
            return None
        right = tuple(one[1] for one in inside) if inside else constant[1]
        try:
            return _agreed(bool(compares(one, right)) for one in self._defaults(left) or ())
        except TypeError:
            return None

    def _defaults(self, key: int) -> set[object] | None:
        """The values of an expression if the options that it may come from are left out; None if it has others."""
        ask, atoms = self.ask, self.program.atoms
        value = self.program.ask(key)
        found: set[object] = set()
        flags = [fields[1] for fields in atoms.kinds(value, "flag")]
        unset = self._unset.value_of(self.program.module_of(key), key & MASK) if not flags else ...
        if unset is not ...:
            return {unset}
        if not flags or any(one >= FIRST and atoms.of[one][0] not in ("flag", "k") for one in value) or HOST in value:
            return None
        found.update(ask.meaning(key).constants)
        for one in flags:
            flag = ask.flag(one)
            default = ask.default_of(flag)
            if not self._is_left(one, flag) or not default.is_complete or len(default.constants) != len(default.value):
                return None
            found.update(default.constants)
        return found

    def _is_left(self, call: int, flag: Flag) -> bool:
        """Whether an option may be left out, and no launch or configuration gives it."""
        module = self.program.module_of(call)
        is_optional = flag.name.startswith("-") and not any(name == "required" for name, _ in module.nodes[call & MASK][3])
        return is_optional and not self.code.is_named_in_configurations(flag.name.lstrip("-"), destination(flag.name))

    def _trains(self, guard: Guard, function: Function) -> bool:
        """Whether a step is under a guard, or the code that leads to its backward pass."""
        if self.code[Rhythm].steps_under(guard, function):
            return True
        return any(guard in call.guards for call in function.calls if self.code[Steps].is_leading(call))

    def _is_off(self, key: int) -> bool:
        if key not in self._off:
            self._off[key] = self._is_never_asked_for(key)
        return self._off[key]

    def _is_never_asked_for(self, key: int) -> bool:
        module, ask = self.program.module_of(key), self.ask
        if module.nodes[key & MASK][0] != "attr":
            return False
        value = self.program.ask(key)
        known = [fields[1] for fields in self.program.atoms.kinds(value, "flag")]
        if value and not known:
            return False
        flags = [ask.flag(one) for one in known or ask.flags_by_name(key)]
        if not 0 < len(flags) <= _MOST or any(flag.action != "store_true" or flag.default is not None for flag in flags):
            return False
        names = {name for flag in flags for name in (flag.name.lstrip("-"), destination(flag.name))}
        return not self.code.is_named_in_configurations(*sorted(names))


def _agreed(outcomes: Iterable[bool]) -> bool | None:
    """The only outcome; None if there are two, or none."""
    every = set(outcomes)
    return every.pop() if len(every) == 1 else None


def _parts(test: Expr) -> list[Expr]:
    """A test, or the conjuncts of it."""
    return test.operands if test.operator == "And" else [test]
