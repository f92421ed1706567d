"""Counters of steps, epochs or saves: loop indices, sums in variables, attributes and dictionaries, counters of
frameworks."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from ldlm_lint.concepts.outcomes import Outcomes
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Guard

_COUNTS = frozenset({"global_step", "current_epoch", "global_steps"})
"""What Lightning, DeepSpeed and the Trainer count in objects of their own."""
_TESTS = frozenset({"bool", "cmp", "not", "copy", "op"})


class Counting(Concept):
    """Answers for the values of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._known: dict[Expr, bool] = {}
        self._outcomes = code[Outcomes]

    def counts(self, expr: Expr) -> bool:
        """Whether a value differs from step to step or epoch to epoch: loop indices, sums, or counters of a
        framework."""
        known = self._known.get(expr)
        if known is None:
            self._known[expr] = False
            known = self._known[expr] = self._counts(expr)
        return known

    def is_asked_in(self, test: Expr) -> bool:
        """Whether a test mentions a counter: ``step % every == 0 and step > 0``."""
        return self.counts(test) or (test.kind in _TESTS and any(map(self.is_asked_in, test.operands)))

    def ways(self, expr: Expr) -> list[Expr]:
        """The expressions of which one is a value, without those that the known calls never lead to."""
        return [one for one in expr.ways if not isinstance(one, Call) or self._may_run(one)]

    def _may_run(self, call: Call) -> bool:
        """Whether a conditional call can run with the arguments of the callers: ``if name is None: name = str(epoch)``."""
        return all(self._outcomes.may_hold(one) and _may_be_left_out(one) for one in call.guards if one.is_test)

    def _counts(self, expr: Expr) -> bool:
        if isinstance(expr, Call):
            plain = expr.positional[:1] if expr.called_name in ("int", "str") else []
            return self.counts(plain[0]) if plain else self._returns_count(expr)
        kind = expr.kind
        if kind == "phi":
            return _adds_to_itself(expr) or any(map(self.counts, self.ways(expr)))
        if kind == "op":
            return self._is_counting_sum(expr)
        if kind in ("copy", "choice"):
            return any(map(self.counts, expr.ways))
        if kind in ("part", "elem"):
            return _is_number_of_round(expr)
        if kind in ("param", "free"):
            return any(map(self.counts, expr.given if kind == "param" else expr.bound_outside))
        return (kind == "attr" and self._is_counted_attribute(expr)) or (kind == "item" and self._is_counted_item(expr))

    def _is_counting_sum(self, expr: Expr) -> bool:
        left, right = expr.operands
        if is_text(left) or is_text(right):
            return False
        if expr.operator == "Div":
            # A path is divided as well, by a name.
            return self.counts(left)
        return expr.operator in ("Add", "Sub", "Mult", "FloorDiv") and (self.counts(left) or self.counts(right))

    def _returns_count(self, call: Call) -> bool:
        """Whether a method of the project returns its counter: ``self.total_steps()``."""
        returned = [one for target in call.targets if not target.is_generator for one in target.returned]
        return bool(returned) and all(one.kind in ("attr", "op") and self.counts(one) for one in returned)

    def _is_counted_attribute(self, expr: Expr) -> bool:
        """Whether an attribute of an object of the project is added up, by its own methods or by others: ``self.state.steps += 1``."""
        own, holder = expr.owner_of_self, expr.base
        owners = [own] if own is not None else holder.classes_of if holder is not None else []
        if not owners:
            return expr.name in _COUNTS and holder is not None and not holder.value
        written = [one for owner in owners for one in owner.written(expr.name)]
        elsewhere = [value for target, value in self.code.writes_of(expr.name) if not set(owners).isdisjoint(target.classes_of)]
        if any(_adds(one, expr.name) for one in (*written, *elsewhere)):
            return True
        return own is not None and any(map(self.counts, written))

    def _is_counted_item(self, expr: Expr) -> bool:
        """Whether an item of a dictionary is a counter, in any function of the program."""
        key = expr.index.constant if expr.index is not None else ...
        return isinstance(key, str) and any(expr.may_run_with(one) for one in self._added_items.get(key, ()))

    @cached_property
    def _added_items(self) -> dict[object, list[Expr]]:
        """The items that are increased, by their keys: ``state["step"] += 1``."""
        found: dict[object, list[Expr]] = defaultdict(list)
        for update in self.code.updates:
            old = update.put.operands[0] if update.put is not None and update.put.operator == "Add" else None
            if old is not None and old.kind == "item" and update.index is not None and old.index is not None:
                key = update.index.constant
                if key is not ... and key == old.index.constant:
                    found[key].append(update)
        return found


def written(counter: Expr) -> str:
    """A counter as the code writes it: a name, or its expression without the conversion to text; empty for one that is
    written nowhere."""
    at = _unconverted(counter)
    if at.kind == "param":
        return at.name
    parameters = [one.name for one in at.ways if one.kind == "param"] if at.kind == "phi" else []
    names = parameters or ([name for one in (at, *at.ways) for name in one.variables] if at.kind in ("elem", "part", "phi", "op") else [])
    return names[0] if names else at.text


def _unconverted(counter: Expr) -> Expr:
    """What is converted to text: ``i`` of ``str(i)`` and ``str(i).zfill(6)``."""
    if isinstance(counter, Call) and counter.receiver is not None:
        # A method of a text gives a text; any other object's stands for itself.
        inner = _unconverted(counter.receiver)
        return counter if inner == counter.receiver else inner
    is_text = isinstance(counter, Call) and counter.called_name == "str" and len(counter.positional) == 1
    return counter.positional[0] if is_text and isinstance(counter, Call) else counter


def _may_be_left_out(guard: Guard) -> bool:
    """Whether ``parameter is None`` can hold: not if all known callers pass something else."""
    test = guard.test
    if test.operator != "Is" or guard.holds is not True or test.operands[1].constant is not None:
        return True
    parameter = test.operands[0].plain
    given = parameter.given
    if not given or len(given) < len(parameter.function.callers):
        return True
    return any(not one.value or None in one.may_be().constants for one in given)


def _is_number_of_round(expr: Expr) -> bool:
    """What ``range`` gives, or ``enumerate`` as its first part, also through a progress bar."""
    element = expr.base if expr.kind == "part" and expr.part == 0 else expr
    if element is None or element.kind != "elem" or element.base is None:
        return False
    names = ("enumerate",) if expr.kind == "part" else ("range", "trange", "count")
    at, seen = element.base.plain, set[Expr]()
    while isinstance(at, Call) and at not in seen:
        seen.add(at)
        if at.called_name in names:
            return True
        at = at.positional[0].plain if at.positional else element
    return False


def _adds(value: Expr, name: str) -> bool:
    """Whether an attribute is increased by something."""
    old = value.operands[0].plain if value.operator == "Add" else value
    return old is not value and old.kind == "attr" and old.name == name


def _adds_to_itself(phi: Expr) -> bool:
    """``step += 1`` in a loop, in some branch of it: an operation on the value that the round began with."""
    todo, seen = [phi], {phi}
    while todo:
        for one in todo.pop().ways:
            if one.kind == "op" and one.operator == "Add" and one.operands[0].unnamed == phi:
                return True
            if one.kind in ("phi", "copy") and one not in seen:
                seen.add(one)
                todo.append(one)
    return False


def is_text(expr: Expr) -> bool:
    """Whether an expression is a text as written: ``folder + "/step-"``, ``str(step)``."""
    todo = [expr]
    while todo:
        one = todo.pop().unnamed
        if one.kind == "op" and one.operator == "Add":
            todo += one.operands
        elif one.kind == "fstr" or isinstance(one.constant, str) or (isinstance(one, Call) and one.callee.plain.kind == "free" and one.called_name == "str"):
            return True
    return False
