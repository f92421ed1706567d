"""Which ranks come to a place, by the tests of the rank around it in its function.

    if rank == 0: save()            # one
    if local_rank == 0: save()      # one of each node
    if rank == 0: log() else: save()   # all but one

A test that has anything to do with the rank lets one process through unless it surely is one of the others.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Guard
from ldlm_lint.program.modules import Module
from ldlm_lint.program.walks import reached
from ldlm_lint.vocabulary.ranks import (
    asks_for_ranks,
    counts_on_node,
    is_about_rank,
    is_local_rank,
    is_local_test,
    is_of_first,
    is_rank_number,
)

_OF_NUMBERS = frozenset({"Eq", "NotEq", "In", "NotIn", "Is", "Gt", "Lt", "LtE"})
_EQUAL = {"Eq": True, "Is": True, "In": True, "NotEq": False, "IsNot": False, "NotIn": False, "Gt": False}
_CONVERTS = frozenset({"int", "bool", "str", "get", "getenv"})
_OVERALL = frozenset({"get_rank", "get_global_rank"})


class Who(enum.Enum):
    """The ranks that come to a place."""

    EVERY = "every rank"
    OTHERS = "every rank but one"
    NODES = "one rank of each node"
    ONE = "one rank"


class Reach(NamedTuple):
    """The ranks that come to a place, and the test that decides it, as written."""

    who: Who
    test: str = ""


class RankTests(Concept):
    """Answers for the calls of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._decisions: dict[Module, frozenset[Expr]] = {}

    def reach(self, call: Call) -> Reach:
        """The ranks that make a call among those that enter its function."""
        found = [self._of(guard) for guard in call.guards if guard.is_test]
        if self._is_demanded(call) or any(map(self._chooses, call.function.around)) or any(one.who is Who.ONE for one in found):
            return Reach(Who.ONE)
        for who in (Who.NODES, Who.OTHERS):
            for one in found:
                if one.who is who:
                    return one
        return Reach(Who.EVERY)

    def _of(self, guard: Guard) -> Reach:
        parts = list(_parts(guard.test, guard.holds is True))
        local = [part for part, _ in parts if self._is_local(part)]
        if local and not any(self._is_about_rank(part) for part, _ in parts if part not in local):
            return Reach(Who.NODES, self._written(guard, local[0]))
        if self._leaves_others(guard.test, guard.holds is True):
            return Reach(Who.OTHERS, self._written(guard, guard.test))
        is_alone = any(_is_of_one_process(part, holds) for part, holds in parts)
        return Reach(Who.ONE if is_alone or self._is_about_rank(guard.test) else Who.EVERY)

    def _written(self, guard: Guard, part: Expr) -> str:
        return self.code.source(guard.module).slice(guard.test_span) if part == guard.test else part.text

    def _is_about_rank(self, test: Expr) -> bool:
        """Whether a test has to do with the rank: a name in it, or in what sets its values or is returned to it."""
        return any(map(is_about_rank, _names_behind(test)))

    def _leaves_others(self, test: Expr, holds: bool) -> bool:
        """Whether all ranks but one surely have this outcome of a test."""
        test = test.unnamed
        if test.operator == "Not":
            return self._leaves_others(test.operands[0], not holds)
        if test.kind == "bool":
            found = [self._leaves_others(one, holds) for one in test.operands]
            # If all parts must have this outcome, one that selects a single rank decides.
            every = (test.operator == "And") is holds
            return any(found) and not (every and any(self._leaves_others(one, not holds) for one in test.operands))
        if test.kind == "cmp":
            return _are_others_by_number(test, holds)
        return is_rank_number(_name(test)) if holds else is_of_first(_name(test))

    def _is_local(self, test: Expr, seen: frozenset[Expr] = frozenset()) -> bool:
        """``local_rank == 0``, ``not local_rank``, ``accelerator.is_local_main_process``, or what is set to such a test."""
        at = test.unnamed
        if at in seen:
            return False
        if at.operator == "Not":
            return self._is_local(at.operands[0], seen | {at}) or self._is_local_number(at.operands[0])
        if at.kind == "cmp" and at.operator in _OF_NUMBERS:
            left, right = at.operands
            options = right.operands if right.kind == "seq" else [right]
            return any(_number(one) in (0, 1) for one in options) and self._is_local_number(left)
        held = at.set_to or at.bound_outside
        return is_local_test(_name(at)) or (len(held) == 1 and self._is_local(held[0], seen | {at}))

    def _is_local_number(self, number: Expr, seen: frozenset[Expr] = frozenset()) -> bool:
        """Whether a number is that of a process on its node; where it comes from counts more than its name."""
        at = number.unnamed
        held = [one for one in (at.set_to or at.bound_outside) if _number(one) is None and one.constant is not None]
        if held and at not in seen:
            return all(self._is_local_number(one, seen | {at}) for one in held)
        if at.operator == "Mod":
            return any(counts_on_node(_name(one)) for one in at.operands[1].within)
        if isinstance(at, Call) and at.positional:
            if at.called_name == "int":
                return self._is_local_number(at.positional[0], seen)
            read = at.positional[0].constant if at.called_name in ("get", "getenv") else at.called_name
            return isinstance(read, str) and is_local_rank(read)
        if at.kind == "item" and at.index is not None:
            return isinstance(at.index.constant, str) and is_local_rank(at.index.constant)
        return is_local_rank(_name(at)) and not (at.kind == "attr" and self._is_overall(at.name))

    def _is_overall(self, attribute: str) -> bool:
        """Whether the global rank is stored in an attribute named after the local one."""
        written = (value for _, value in self.code.writes_of(attribute))
        return any(isinstance(one, Call) and one.called_name in _OVERALL for value in written for one in value.within)

    def _is_demanded(self, call: Call) -> bool:
        """Whether an ``assert`` about the rank is before a call: a test that decides nothing in its function."""
        tested = (one for one in call.function.events if one.kind == "test" and one.spot.place < call.place and any(map(is_about_rank, one.expr.words)))
        beside = (None, *call.guards)
        return any(one.spot.guard in beside and one.expr not in self._deciding(call.module) for one in tested)

    def _deciding(self, module: Module) -> frozenset[Expr]:
        """The tests of a file that decide what runs, or what a value is, and their parts."""
        if module not in self._decisions:
            choices = (one.test for one in self.code.expressions_in(module, "choice"))
            parts = (one for kind in ("not", "bool") for whole in self.code.expressions_in(module, kind) for one in whole.operands)
            loops = (loop.value for function in self.code.functions_in(module) for loop in function.loops)
            tests = (*(guard.test for guard in self.code.guards_in(module)), *(one for one in choices if one is not None), *loops)
            self._decisions[module] = frozenset([*(one for test in tests for one in test.within), *parts])
        return self._decisions[module]

    @staticmethod
    def _chooses(function: Function) -> bool:
        """Whether a decorator of a function chooses a rank by its name; ``@hydra.main`` starts the program."""
        names = map(_name, function.decorators)
        return any(name != "main" and is_about_rank(name) for name in names)


def _parts(test: Expr, holds: bool) -> Iterator[tuple[Expr, bool]]:
    """The certain facts when a condition is true or false: the parts of ``and``, of a false ``or``."""
    if test.kind == "bool" and (test.operator == "And") is holds:
        for one in test.operands:
            yield from _parts(one, holds)
    else:
        yield test, holds


def _is_of_one_process(test: Expr, holds: bool) -> bool:
    """``not distributed``, ``world_size == 1``, ``world_size > 1`` that fails."""
    test = test.unnamed
    if test.operator == "Not":
        return _is_of_one_process(test.operands[0], not holds)
    is_one = holds and test.operator in ("Eq", "LtE") and _number(test.operands[1]) == 1
    return (is_one or not holds) and any(map(asks_for_ranks, test.words))


def _are_others_by_number(test: Expr, holds: bool) -> bool:
    """``rank == 0`` where it fails, ``rank != 0`` and ``rank > 0`` where they hold."""
    if test.operator not in _EQUAL:
        return False
    left, right = test.operands
    numbers = [_number(one) for one in (right.operands if right.kind == "seq" else [right])]
    is_rank = left.unnamed.kind != "op" and any(map(is_about_rank, _names_behind(left)))
    if not is_rank or not numbers or None in numbers or (test.operator == "Gt" and numbers != [0]):
        return False
    return _EQUAL[test.operator] is not holds


def _name(expr: Expr) -> str:
    return expr.called_name if isinstance(expr, Call) else expr.last_name


def _number(expr: Expr) -> int | None:
    return expr.constant if type(expr.constant) is int else None


def _names_behind(test: Expr) -> Iterator[str]:
    for one in reached([test], _behind):
        yield from (one.name, one.last_name.removeprefix("()"), *one.variables)
        if isinstance(one, Call):
            yield one.called_name
        if isinstance(one.constant, str):
            yield one.constant


def _behind(expr: Expr) -> Iterator[Expr]:
    """What a value is made of: what sets it, what functions return, and the parts of tests; not what calls are given."""
    yield from expr.ways
    yield from (*expr.set_to, *expr.bound_outside, *expr.results, *expr.given)
    if isinstance(expr, Call):
        yield from (expr.positional if expr.called_name in _CONVERTS else [])
    elif expr.kind == "item":
        yield from expr.operands
    elif expr.kind == "attr" and expr.base is not None:
        yield from ([expr.base] if expr.base.kind in ("item", "call", "attr") else [])
        yield from (value for _, value in expr.code.writes_of(expr.name))
    else:
        yield from expr.operands


__all__ = ["RankTests", "Reach", "Who"]
