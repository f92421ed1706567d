"""Code under an option that is off by default and that no launch or configuration of the project turns on."""

from __future__ import annotations

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code.table import guards_above
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import destination

_MOST = 3
"""Options of one name above which it is not known which of them is meant."""


class SwitchedOff:
    """Answers for the guards of a program: ``if opt.show_oracle:`` with ``--show-oracle``, ``action="store_true"``."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._off: dict[int, bool] = {}

    def is_one(self, module: Module, guard: int, function: int) -> bool:
        """Whether code in a function is under such an option and the step is not: users who train pass
        ``--do_train``.
        """
        while guard >= 0:
            one = module.table.guards[guard]
            asks = one.kind == "if" and one.test and one.holds is True
            if asks and any(self._is_off(module.base | test) for test in _parts(module, one.test)) and not self._trains(module, guard, function):
                return True
            guard = one.parent
        return False

    def _trains(self, module: Module, guard: int, function: int) -> bool:
        """Whether a step is under a guard, or the code that leads to its backward pass."""
        frequency = self.view.training.frequency
        if frequency.steps_under(module, guard, function):
            return True
        leading = (call for call in module.scopes[function & MASK].calls if module.base | call in frequency.leading)
        return any(guard in guards_above(module.table.guards, module.table.sites[call].guard) for call in leading)

    def _is_off(self, key: int) -> bool:
        if key not in self._off:
            self._off[key] = self._is_never_asked_for(key)
        return self._off[key]

    def _is_never_asked_for(self, key: int) -> bool:
        module, ask = self.view.program.module_of(key), self.view.ask
        if module.nodes[key & MASK][0] != "attr":
            return False
        value = self.view.program.ask(key)
        known = [fields[1] for fields in self.view.program.atoms.kinds(value, "flag")]
        if value and not known:
            return False
        flags = [ask.flag(one) for one in known or ask.flags_by_name(key)]
        if not 0 < len(flags) <= _MOST or any(flag.action != "store_true" or flag.default is not None for flag in flags):
            return False
        names = {name for flag in flags for name in (flag.name.lstrip("-"), destination(flag.name))}
        return not self.view.is_named_in_configurations(*sorted(names))


def _parts(module: Module, test: int) -> list[int]:
    """A test, or the conjuncts of it."""
    row = module.nodes[test]
    return list(row[2]) if row[0] == "bool" and row[1] == "And" else [test]
