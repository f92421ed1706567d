"""Code for a torch that is no longer used for training: the side of a test of its version that only such a torch takes.

    if parse(torch.__version__) < parse("1.11"): …             if check_version(torch.__version__, "1.11.0"): … else: …
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.vocabulary.past import NUMBERS, PAST, VERSION_NAMES

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module

_BELOW = {"Lt": True, "LtE": True, "Gt": False, "GtE": False}
"""The outcome of a comparison of torch's version with a number for an older torch."""


class OldTorch(Concept):
    """Answers for the places and tests of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)


    def is_needed_at(self, call: int) -> bool:
        """Whether only an old torch comes to a call."""
        module = self.program.module_of(call)
        guard = module.table.sites[call & MASK].guard
        while guard >= 0:
            one = module.table.guards[guard]
            if one.kind in ("if", "rest") and one.test and one.holds is not None and self.outcome(module, one.test) is one.holds:
                return True
            guard = one.parent
        return False

    def outcome(self, module: Module, test: int) -> bool | None:
        """The outcome of a test that only an old torch gives; None if there is none."""
        seen: set[int] = set()
        is_denied = False
        while (module.base | test) not in seen:
            seen.add(module.base | test)
            row = module.nodes[test]
            if row[0] == "not":
                is_denied = not is_denied
            elif row[0] == "free":
                bound = list(self.ask.bound_to(module, row))
                if len(bound) != 1:
                    return None
                test = bound[0] & MASK
                continue
            elif row[0] != "copy":
                found = self._of_row(module, row)
                return found if found is None else found is not is_denied
            test = row[1]
        return None

    def _of_row(self, module: Module, row: Node) -> bool | None:
        if row[0] == "cmp" and len(row[1]) == 1:
            return self._of_comparison(module, row)
        if row[0] == "bool":
            # All parts of an ``and`` hold, none of an ``or`` does.
            wanted = row[1] == "And"
            return wanted if any(self.outcome(module, one) is wanted for one in row[2]) else None
        return self._of_call(module, row) if row[0] == "call" else None

    def _of_comparison(self, module: Module, row: Node) -> bool | None:
        left, right = row[2], row[3][0]
        if self._is_version(module, left) and self._is_past(module, right):
            return _BELOW.get(row[1][0])
        if self._is_version(module, right) and self._is_past(module, left):
            found = _BELOW.get(row[1][0])
            return found if found is None else not found
        return None

    def _of_call(self, module: Module, row: Node) -> bool | None:
        """A function of the project that compares its first argument, torch's version, with its second one."""
        if len(row[2]) < 2 or not self._is_version(module, row[2][0]) or not self._is_past(module, row[2][1]):
            return None
        functions = self.program.atoms.kinds(self.program.ask(module.base | row[1]), "f")
        outcomes = {self._returned(fields[1]) for fields in functions}
        return outcomes.pop() if len(outcomes) == 1 else None

    def _returned(self, function: int) -> bool | None:
        """The outcome for an older version of the comparison of order that a function returns."""
        module = self.program.module_of(function)
        todo = [value for value, _ in module.scopes[function & MASK].returns]
        seen: set[int] = set()
        found: set[bool] = set()
        while todo:
            one = todo.pop()
            row = module.nodes[one]
            if one in seen:
                continue
            seen.add(one)
            if row[0] == "cmp" and row[1][0] in _BELOW:
                found.add(_BELOW[row[1][0]])
            elif row[0] in ("copy", "phi", "choice"):
                todo += [row[1]] if row[0] == "copy" else row[1] if row[0] == "phi" else row[2:4]
        return found.pop() if len(found) == 1 else None

    def _is_version(self, module: Module, number: int) -> bool:
        """Whether an expression is torch's version: parsed, split, or cut."""
        todo, seen = [(module, number)], set[int]()
        while todo:
            home, one = todo.pop()
            key = home.base | one
            if key in seen:
                continue
            seen.add(key)
            row = home.nodes[one]
            if any(fields[1] in VERSION_NAMES for fields in self.program.atoms.kinds(self.program.ask(key), "x")):
                return True
            if row[0] == "call":
                function = home.nodes[row[1]]
                todo += [(home, other) for other in (*row[2], *((function[1],) if function[0] == "attr" else ()))]
            elif row[0] in ("copy", "star", "comp", "item", "elem", "attr"):
                todo.append((home, row[1]))
            elif row[0] == "free":
                todo += [(home, bound & MASK) for bound in self.ask.bound_to(home, row)]
        return False

    def _is_past(self, module: Module, number: int) -> bool:
        """Whether an expression is the number of an old version: ``"1.8"``, ``parse("1.8.0")``, ``(1, 8)``."""
        row = module.nodes[number]
        while row[0] == "copy" or (row[0] == "call" and len(row[2]) == 1):
            row = module.nodes[row[1] if row[0] == "copy" else row[2][0]]
        if row[0] == "seq":
            parts = [module.nodes[one][1] for one in row[2] if module.nodes[one][0] == "const"]
            return bool(parts) and len(parts) == len(row[2]) and all(one.__class__ is int for one in parts) and tuple(parts[:2]) < PAST
        text = str(row[1]) if row[0] == "const" and row[1].__class__ in (str, float) else ""
        told = NUMBERS.search(text)
        return told is not None and (int(told[1]), int(told[2] or 0)) < PAST
