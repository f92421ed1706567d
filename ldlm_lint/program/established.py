"""What the conditions on the way to a place say about the values there: behind ``if args.kind == "audio": raise`` the
option is another one, in this function and in all that it calls from there.

A condition counts where its value cannot have changed since: an expression of the same call, or an attribute that only
constructors set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import guards_above
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN

if TYPE_CHECKING:
    from ldlm_lint.program.arms import Entries
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.queries import Queries

_EITHER = frozenset([True, False])
_EQUAL = {"Eq": True, "Is": True, "In": True, "NotEq": False, "IsNot": False, "NotIn": False}
_NUMBERS = (bool, int, float)
Subject = tuple[object, ...]
"""A value in a run: an expression (key) of a function as some calls enter it, or an attribute of such a value."""


class Fact(NamedTuple):
    """That a value is, or is not, one of some constants; without constants: that it is true, or not."""

    subject: Subject
    constants: frozenset[tuple[bool, object]] | None
    """Each with whether it is a number: ``1`` and ``True`` are equal."""
    holds: bool


class Established:
    """Answers for the calls that lead to a place; ``Entries`` as in `ldlm_lint.program.arms`."""

    def __init__(self, ask: Queries) -> None:
        self.ask = ask
        self.program = ask.program
        self._known: dict[Entries, dict[Subject, list[Fact]]] = {(): {}}
        self._set_later: dict[str, bool] = {}

    def outcomes(self, module: Module, test: int, entries: Entries) -> frozenset[bool]:
        """The results of a condition that the conditions above the calls leave."""
        known = self._above(entries)
        if not known:
            return _EITHER
        asked = self._fact(module, test, True, entries)
        facts = known.get(asked.subject, ()) if asked is not None else ()
        found = _EITHER
        for fact in facts:
            if asked is not None:
                found &= _left_by(asked, fact)
        return found or _EITHER

    def _above(self, entries: Entries) -> dict[Subject, list[Fact]]:
        """The facts that hold where the last of some calls is made."""
        if entries not in self._known:
            call = entries[-1].call
            module = self.program.module_of(call)
            found = {subject: list(facts) for subject, facts in self._above(entries[:-1]).items()}
            for number in guards_above(module.table.guards, module.table.sites[call & MASK].guard):
                one = module.table.guards[number]
                if one.kind in ("if", "rest") and one.test and one.holds is not None:
                    for fact in self._facts(module, one.test, one.holds, entries[:-1]):
                        found.setdefault(fact.subject, []).append(fact)
            self._known[entries] = found
        return self._known[entries]

    def _facts(self, module: Module, test: int, holds: bool, entries: Entries) -> Iterator[Fact]:
        """What a condition says if it holds, or not: each part of an ``and`` that holds, or of an ``or`` that does not."""
        row = module.nodes[module.uncopied(test)]
        if row[0] == "not":
            yield from self._facts(module, row[1], not holds, entries)
        elif row[0] == "bool" and (row[1] == "And") is holds:
            for part in row[2]:
                yield from self._facts(module, part, holds, entries)
        elif row[0] != "bool" and (fact := self._fact(module, test, holds, entries)) is not None:
            yield fact

    def _fact(self, module: Module, test: int, holds: bool, entries: Entries) -> Fact | None:
        """A condition that is not made of others as a fact; None if it does not compare with constants."""
        row = module.nodes[module.uncopied(test)]
        if row[0] != "cmp":
            subject = self._subject(module, test, entries)
            return Fact(subject, None, holds) if subject is not None else None
        if len(row[1]) != 1 or row[1][0] not in _EQUAL:
            return None
        others = module.nodes[module.uncopied(row[3][0])]
        several = row[1][0] in ("In", "NotIn")
        if several and others[0] != "seq":
            return None
        rows = [module.nodes[module.uncopied(one)] for one in (others[2] if several else row[3])]
        subject = self._subject(module, row[2], entries)
        if subject is None or any(one[0] != "const" for one in rows):
            return None
        return Fact(subject, frozenset((one[1].__class__ in _NUMBERS, one[1]) for one in rows), holds is _EQUAL[row[1][0]])

    def _subject(self, module: Module, number: int, entries: Entries) -> Subject | None:
        """The value that an expression reads, the same for each way to write it; None if other code may change it."""
        number = module.uncopied(number)
        row = module.nodes[number]
        if row[0] == "attr":
            may_change = self._is_set_later(row[2]) or self._is_of_outside(module, row[1], row[2])
            base = self._subject(module, row[1], entries) if not may_change else None
            return (base, row[2]) if base is not None else None
        if row[0] == "free":
            bound = module.scopes[0].bindings.get(row[2]) or []
            is_only = len(bound) == 1 and list(self.ask.bound_to(module, row)) == [module.base | bound[0]]
            return (module.base | module.uncopied(bound[0]), ()) if is_only else None
        if row[0] == "param" and entries and entries[-1].function == module.base | row[1] and entries[-1].how != UNKNOWN:
            function, call, how = entries[-1]
            node = self.program.argument_node(call, function, how, str(row[2]))
            if node is not None:
                return self._subject(self.program.module_of(node), node & MASK, entries[:-1])
        return (module.base | number, entries)

    def _is_set_later(self, name: str) -> bool:
        """Whether code outside of constructors may set an attribute of this name."""
        if name not in self._set_later:
            owners = [owner for owner, own in self.program.own_writes if own == name]
            self._set_later[name] = name in self.program.other_writes or any(self._is_set_in_method(owner, name) for owner in owners)
        return self._set_later[name]

    def _is_of_outside(self, module: Module, number: int, name: str) -> bool:
        """Whether another package's class may set an attribute: ``training`` of a module."""
        value = self.program.ask(module.base | number)
        owners = [fields[1] for kind in ("i", "self") for fields in self.program.atoms.kinds(value, kind)]
        return any(self.program.outside_of(one) and (one, name) not in self.program.own_writes for one in owners)

    def _is_set_in_method(self, owner: int, name: str) -> bool:
        scopes = self.program.module_of(owner).scopes
        return any(written[1] == name for scope in scopes if scope.name != "__init__" for written in scope.writes)


def _left_by(asked: Fact, fact: Fact) -> frozenset[bool]:
    """The results of a condition on a value of which a fact is known."""
    if asked.constants is None or fact.constants is None:
        return _left_for_truth(asked, fact)
    if fact.holds:
        inside = fact.constants <= asked.constants
        apart = not fact.constants & asked.constants
    else:
        inside, apart = False, asked.constants <= fact.constants
    return frozenset([asked.holds]) if inside else frozenset([not asked.holds]) if apart else _EITHER


def _left_for_truth(asked: Fact, fact: Fact) -> frozenset[bool]:
    """The same where one of both asks only whether the value is true."""
    if asked.constants is None and fact.constants is None:
        return frozenset([asked.holds is fact.holds])
    if asked.constants is None:
        truths = {bool(value) for _, value in fact.constants or ()}
        return frozenset([truths.pop() is asked.holds]) if fact.holds and len(truths) == 1 else _EITHER
    others = {bool(value) for _, value in asked.constants} == {not fact.holds}
    return frozenset([not asked.holds]) if others else _EITHER
