"""Which branches of a function one of its calls takes: ``batches(data, training=False)`` skips the branch under ``if
training:``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.established import Established
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Meaning, Queries

_EITHER = frozenset([True, False])
_COMPARED = {"Eq": True, "Is": True, "NotEq": False, "IsNot": False}
_ORDERED = {"Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge}
_ENVIRONMENT = frozenset({"os.environ.get", "os.getenv"})
_STEPS = 12
_MOST = 400
"""Expressions that are looked at for one condition, and how far one may be from it."""
_LONGEST = 40
"""Operands of one condition that are looked at."""
_DIGITS = 12


class Entry(NamedTuple):
    """A function (key) as one call (key) enters it; ``how`` arguments are bound to parameters, see
    `ldlm_lint.program.calls`."""

    function: int
    call: int
    how: int


Entries = tuple[Entry, ...]
"""The calls that lead to a place, the outermost first."""


class Arms:
    """The possible results of conditions, for the calls that lead to them.

    ``by_default``: assume that options of the command line and environment variables are not set.
    """

    def __init__(self, ask: Queries, *, by_default: bool = False) -> None:
        self.ask = ask
        self.program = ask.program
        self._by_default = by_default
        self._established = Established(ask)
        self._left = _MOST

    def may_take(self, module: Module, guard: int, entries: Entries) -> bool:
        """Whether the code under a guard may run when these calls have entered its function."""
        while guard >= 0:
            one = module.table.guards[guard]
            if one.kind in ("if", "rest") and one.test and one.holds is not None and one.holds not in self.outcomes(module, one.test, entries):
                return False
            guard = one.parent
        return True

    def may_lead(self, chain: Sequence[int]) -> bool:
        """Whether each call (key) of a chain can be made, the innermost first, given what those around it pass, and goes to the
        next one's function on the objects that it is made on: ``checkpoint(path)`` does not come to the branch that saves
        under ``if model is not None``."""
        entries: Entries = ()
        for index in range(len(chain) - 1, -1, -1):
            call = chain[index]
            module = self.program.module_of(call)
            if not self.may_take(module, module.table.sites[call & MASK].guard, entries):
                return False
            if index:
                function = self.program.function_of(chain[index - 1])
                if self._goes_elsewhere(module, call, function):
                    return False
                entries = (*entries, Entry(function, call, self._binding(call, function)))
        return True

    def _goes_elsewhere(self, module: Module, call: int, function: int) -> bool:
        """Whether a call of a method goes to other classes than that of a function: all that its object may be are known."""
        row = module.plain(module.nodes[call & MASK][1])
        if row[0] != "attr" or function not in self.program.owner:
            return False
        targets = self.program.targets_of.get(call, ())
        return bool(targets) and function not in targets and self.ask.is_complete(module.base | row[1])

    def _binding(self, call: int, function: int) -> int:
        """How the arguments of a call are bound to the parameters of a function, see `ldlm_lint.program.calls`."""
        found = {edge.how for edge in self.program.callers(function) if edge.call == call}
        return found.pop() if len(found) == 1 else UNKNOWN

    def outcomes(self, module: Module, test: int, entries: Entries, steps: int = 0) -> frozenset[bool]:
        """The possible results of a condition; both if anything about it is unknown."""
        found = self._by_values(module, test, entries, steps)
        return self._established.outcomes(module, test, entries) if entries and len(found) > 1 else found

    def _by_values(self, module: Module, test: int, entries: Entries, steps: int) -> frozenset[bool]:
        row = module.nodes[test]
        self._left = _MOST if not steps else self._left - 1
        if steps > _STEPS or self._left < 0:
            return _EITHER
        if row[0] == "not":
            return frozenset(not one for one in self.outcomes(module, row[1], entries, steps + 1))
        if row[0] == "bool" and len(row[2]) <= _LONGEST:
            return of_parts(row[1] == "And", [self.outcomes(module, one, entries, steps + 1) for one in row[2]])
        if row[0] == "copy":
            return self.outcomes(module, row[1], entries, steps + 1)
        if row[0] == "cmp":
            return self._of_comparison(module, row[1], row[2], row[3], entries)
        known = self._constants(module, test, entries)
        if known is not None:
            return frozenset(map(bool, known))
        written = self._written(module, test, entries)
        return self.outcomes(*written, steps + 1) if written is not None else _EITHER

    def _written(self, module: Module, number: int, entries: Entries) -> tuple[Module, int, Entries] | None:
        """The one expression that a name or parameter holds, with the calls that lead to it; None if that is not
        one.
        """
        row = module.nodes[number]
        if row[0] == "param" and entries and entries[-1].function == module.base | row[1]:
            function, call, how = entries[-1]
            node = self.program.argument_node(call, function, how, str(row[2])) if how != UNKNOWN else None
            return (self.program.module_of(node), node & MASK, entries[:-1]) if node is not None else None
        if row[0] == "free":
            bound = module.scopes[0].bindings.get(row[2], ())
            return (module, bound[0], ()) if len(bound) == 1 and module.nodes[bound[0]][0] != "free" else None
        return None

    def _of_comparison(self, module: Module, names: tuple[str, ...], left: int, rights: tuple[int, ...], entries: Entries) -> frozenset[bool]:
        if len(names) != 1:
            return _EITHER
        one = self._constants(module, left, entries)
        if names[0] in ("In", "NotIn"):
            return self._of_membership(module, one, rights[0], entries, names[0] == "In")
        other = self._constants(module, rights[0], entries)
        if one is None or other is None:
            return _EITHER
        if names[0] in _ORDERED:
            pairs = [(a, b) for a in one for b in other if isinstance(a, (int, float)) and isinstance(b, (int, float))]
            return frozenset(_ORDERED[names[0]](a, b) for a, b in pairs) if len(pairs) == len(one) * len(other) else _EITHER
        if names[0] not in _COMPARED:
            return _EITHER
        same = _COMPARED[names[0]]
        return frozenset((_is_same(a, b) is same) for a in one for b in other)

    def _of_membership(
        self, module: Module, one: tuple[object, ...] | None, right: int, entries: Entries, wanted: bool
    ) -> frozenset[bool]:
        row = module.plain(right)
        if self._by_default and "os.environ" in self.ask.names_of(self.program.ask(module.base | right)):
            return frozenset([not wanted])
        if one is None or row[0] != "seq" or len(row[2]) > _LONGEST:
            return _EITHER
        members = [self._constants(module, element, entries) for element in row[2]]
        if any(member is None or len(member) != 1 for member in members):
            return _EITHER
        held = [member[0] for member in members if member]
        return frozenset(any(_is_same(a, b) for b in held) is wanted for a in one)

    def _constants(self, module: Module, number: int, entries: Entries, steps: int = 0) -> tuple[object, ...] | None:
        """The constants that an expression may be; None if it may be anything else."""
        number = module.uncopied(number)
        row = module.nodes[number]
        if row[0] == "param" and entries and entries[-1].function == module.base | row[1]:
            return self._given(entries, str(row[2]))
        if self._by_default and row[0] == "call" and steps < _STEPS and (unset := self._by_environment(module, row, entries, steps + 1)) is not None:
            return unset
        found = self.ask.meaning(module.base | number)
        if self._by_default and (found.flags or not found.value):
            return self._by_options(module.base | number, found)
        return found.constants if found.is_complete and _are_known(found) else None

    def _by_environment(
        self, module: Module, row: tuple[object, ...], entries: Entries, steps: int
    ) -> tuple[object, ...] | None:
        """``int(os.environ.get("RANK", -1))`` if the variable is not set; None for other calls."""
        name, args = module.last_name(int(str(row[1]))), row[2]
        if not isinstance(args, tuple) or not args:
            return None
        if name == "int" and len(args) == 1:
            inner = self._constants(module, args[0], entries, steps)
            texts = [str(one) for one in inner or () if isinstance(one, (int, str))]
            return tuple(map(int, texts)) if inner and len(texts) == len(inner) and all(map(_is_whole, texts)) else None
        names = self.ask.names_of(self.program.ask(module.base | int(str(row[1]))))
        if not names & _ENVIRONMENT:
            return None
        return (None,) if len(args) == 1 else self._constants(module, args[1], entries, steps)

    def _by_options(self, key: int, found: Meaning) -> tuple[object, ...] | None:
        """The constants and the defaults of options that an expression may be; None if it may be anything else."""
        flags = found.flags or tuple(self.ask.flags_by_name(key))
        defaults = [self.ask.default_of(self.ask.flag(flag)).only for flag in flags]
        if not defaults or ... in defaults or len(found.constants) + len(found.flags) != len(found.value):
            return None
        return (*found.constants, *defaults)

    def _given(self, entries: Entries, name: str) -> tuple[object, ...] | None:
        """The argument of the innermost of these calls for a parameter, or its default."""
        function, call, how = entries[-1]
        home, caller = self.program.module_of(function), self.program.module_of(call)
        if how == UNKNOWN:
            return None
        node = self.program.argument_node(call, function, how, name)
        if node is not None:
            return self._constants(self.program.module_of(node), node & MASK, entries[:-1])
        scope = home.scopes[function & MASK]
        if name not in scope.defaults or any(keyword is None for keyword, _ in caller.nodes[call & MASK][3]):
            return None
        return self._constants(home, scope.defaults[name], ())


def of_parts(every: bool, parts: list[frozenset[bool]]) -> frozenset[bool]:
    """The possible results of ``and`` (``every``), which holds where all of its parts do, or ``or``, where one does."""
    can_end = any((not every) in part for part in parts)
    can_go_on = all(every in part for part in parts)
    return frozenset([not every] * can_end + [every] * can_go_on)


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal() and len(text) <= _DIGITS


def _is_same(one: object, other: object) -> bool:
    """Whether two constants are equal and of one kind: ``1 == True`` is not what a condition means."""
    return one == other and (one.__class__ is bool) == (other.__class__ is bool)


def _are_known(found: Meaning) -> bool:
    """Whether all values are constants; a text with an unknown part is not one."""
    texts = (one for one in found.constants if isinstance(one, str))
    return len(found.constants) == len(found.value) > 0 and not any("*" in one for one in texts)
