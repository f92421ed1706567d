"""Tests with an outcome that occurs in few steps only: random numbers, other devices, evaluation modes, early exits.

For unknown functions (``if should_report(step):``) only the names in the test decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.concepts.frequency import Frequency
from ldlm_lint.concepts.intervals import Intervals
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.origins import in_handler
from ldlm_lint.vocabulary.past import NUMBERS, PAST, VERSION_NAMES
from ldlm_lint.vocabulary.rare import EVALUATION_WORD, GENERATES, HAS_DEVICE, RARE_NAME, TROUBLE

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module

_OTHER_DEVICES = frozenset({"cpu", "mps", "xla", "meta"})
_DRAWS = frozenset({"random", "rand", "uniform"})
_SELDOM = 0.1
"""One step in ten, or fewer."""
_BELOW = {"Lt": True, "LtE": True, "Gt": False, "GtE": False}
_EQUAL = frozenset({"Eq", "Is", "In"})


class Rarity(Concept):
    """Answers for the tests of a program, next to those of `Frequency`."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._frequency = code[Frequency]
        self._intervals = code[Intervals]

    def outcome(self, module: Module, number: int) -> bool | None:
        """The outcome of a test that occurs in few steps; None if both are usual, or unknown."""
        row = module.nodes[number]
        if row[0] in ("not", "copy"):
            inner = self.outcome(module, row[1])
            return inner if inner is None or row[0] == "copy" else not inner
        if row[0] == "bool":
            return self._of_parts(module, row)
        found = self._known(module, number)
        return found if found is not None else self._of_row(module, row)

    def _of_parts(self, module: Module, row: Node) -> bool | None:
        parts = [self.outcome(module, one) for one in row[2]]
        # An ``and`` holds where all of its parts do, so that one rare part is enough; an ``or`` fails likewise.
        enough = row[1] == "And"
        if enough in parts:
            return enough
        # ``done or step % n == 0``: the condition added to the interval is the exception.
        due = not enough and any(found is True and self._intervals.is_periodic(module, one) for one, found in zip(row[2], parts, strict=True))
        return not enough if due or all(found is (not enough) for found in parts) else None

    def _known(self, module: Module, number: int) -> bool | None:
        """The decision of counters, alarms and switches."""
        frequency = self._frequency
        for found in (frequency.is_start(module, number), frequency.is_alarm(module, number), frequency.asks_for_details(module, number)):
            if found is not None:
                return found
        return self._intervals.rare_outcome(module, number) if self._intervals.is_periodic(module, number) else None

    def _of_row(self, module: Module, row: Node) -> bool | None:
        if row[0] == "cmp" and len(row[1]) == 1:
            return self._of_comparison(module, row)
        if row[0] == "call":
            return self._of_name(module.last_name(row[1])) if not self._leads_somewhere(module, row) else None
        name = str(row[2]) if row[0] in ("attr", "param", "free") else ""
        if HAS_DEVICE.search(name):
            return False
        return True if RARE_NAME.search(name) else None

    def _leads_somewhere(self, module: Module, row: Node) -> bool:
        """Whether a call goes to a function that was analysed itself."""
        return bool(self.program.atoms.kinds(self.program.ask(module.base | row[1]), "f"))

    @staticmethod
    def _of_name(name: str) -> bool | None:
        if name == "is_available":
            return False
        return True if RARE_NAME.search(name) else None

    def _of_comparison(self, module: Module, row: Node) -> bool | None:
        operator, left, right = row[1][0], row[2], row[3][0]
        equal = operator in _EQUAL
        if operator in _BELOW and self._is_of_the_past(module, left, right):
            return _BELOW[operator]
        texts = [module.nodes[one][1] for one in (left, right) if module.nodes[one][0] == "const" and module.nodes[one][1].__class__ is str]
        if "__main__" in texts:
            return equal
        named = [module.last_name(one) for one in (left, right)]
        if texts and "type" in named:
            return equal if texts[0] in _OTHER_DEVICES else not equal if texts[0] == "cuda" else None
        if any(map(EVALUATION_WORD.search, texts)) or (operator in ("In", "NotIn") and any(map(GENERATES.search, named))):
            return equal
        if operator in ("In", "Eq") and self._counts_on(module, left):
            return True
        is_up = operator in ("Gt", "GtE", "Eq") and module.nodes[right][0] == "const" and bool(module.nodes[right][1])
        if is_up and (TROUBLE.search(named[0]) or (operator == "Eq" and self._is_set_in_handler(module, left, right))):
            return True
        return self._by_chance(module, row)

    def _is_of_the_past(self, module: Module, version: int, number: int) -> bool:
        """Whether the version of torch is compared with one that is no longer used for training:
        ``parse(torch.__version__) < parse("1.8")``."""
        names = self.program.atoms.kinds(self.program.ask(module.base | _argument(module, version)), "x")
        row = module.nodes[_argument(module, number)]
        told = NUMBERS.search(row[1]) if row[0] == "const" and row[1].__class__ is str else None
        return told is not None and (int(told[1]), int(told[2] or 0)) < PAST and any(fields[1] in VERSION_NAMES for fields in names)

    def _is_set_in_handler(self, module: Module, number: int, constant: int) -> bool:
        """Whether a flag becomes a constant only in a handler, which runs after a failure."""
        todo, seen = [number], {number}
        while todo:
            row = module.nodes[todo.pop()]
            fresh = [one for one in (row[1] if row[0] == "phi" else (row[1],) if row[0] == "copy" else ()) if one not in seen]
            seen.update(fresh)
            todo += fresh
        bound = [event[3] for scope in module.scopes for event in scope.events if event[0] == "bind" and event[1] == constant]
        return constant in seen and bool(bound) and all(in_handler(module, guard) for guard in bound)

    def _counts_on(self, module: Module, number: int) -> bool:
        """Whether a class increases an attribute step by step."""
        row = module.plain(number)
        if row[0] != "attr":
            return False
        written = (module.nodes[value] for scope in module.scopes for _, name, value, _ in scope.writes if name == row[2])
        return any(one[:2] == ("op", "Add") and module.plain(one[2])[0::2] == ("attr", row[2]) for one in written)

    def _by_chance(self, module: Module, row: Node) -> bool | None:
        """``random.random() < 0.01``: the outcome that a random number between 0 and 1 rarely gives."""
        limit, drawn = module.nodes[row[3][0]], module.plain(row[2])
        if drawn[0] == "call" and module.last_name(drawn[1]) == "item":
            drawn = module.plain(module.nodes[drawn[1]][1])
        if drawn[0] != "call" or limit[0] != "const" or limit[1].__class__ is not float or module.last_name(drawn[1]) not in _DRAWS:
            return None
        chance = limit[1] if row[1][0] in ("Lt", "LtE") else 1 - limit[1]
        return True if chance <= _SELDOM else False if chance >= 1 - _SELDOM else None


def _argument(module: Module, number: int) -> int:
    """The first argument of a call, ``parse(torch.__version__)``; of anything else itself."""
    row = module.plain(number)
    return int(row[2][0]) if row[0] == "call" and row[2] else number
