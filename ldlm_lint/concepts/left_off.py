"""Places behind a switch that nothing turns on: ``if self.use_checkpoint:``, and each construction leaves it at False.

What a user may choose (an option of a command line, a configuration, a class of a package that others import) is not off,
nor is an attribute that some code sets on an object whose class is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ldlm_lint.concepts.builders import has_plain_bases
from ldlm_lint.program.arms import of_parts
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Class

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Expr, Function, Guard, Passed

_EITHER = frozenset([True, False])


class LeftOff(Concept):
    """Answers for the calls of a program."""

    def is_left_off(self, call: Call) -> bool:
        """Whether conditions around a call, or around each known call that leads to its function, never let it run."""
        todo, seen = [call], {call}
        for one in todo:
            if self.may_hold(one.guards):
                above = self._callers(one.function)
                if not above:
                    return False
                todo += [call for call in above if call not in seen]
                seen.update(above)
        return True

    def may_hold(self, guards: Iterable[Guard]) -> bool:
        """Whether some conditions may all hold."""
        return all(one.holds in self._truths(one.test) for one in guards if one.is_test)

    def _callers(self, function: Function) -> tuple[Call, ...]:
        """The calls of a function, if these are all; a method that Python or torch calls has others."""
        is_left_to_others = function.is_module or function.is_special or bool(function.decorators) or function.has_unknown_callers
        return () if is_left_to_others or self.code.is_used_outside(function.module, function.name) else function.callers

    def _truths(self, expr: Expr, above: frozenset[Expr] = frozenset()) -> frozenset[bool]:
        """The possible truths of an expression; both if anything about it is not known, or if it rests on itself."""
        todo, seen = [expr], {expr}
        found: frozenset[bool] = frozenset()
        for at in todo:
            held = [] if at.kind in ("const", "not", "bool") else self._held(at)
            if held is None or at in above or found == _EITHER:
                return _EITHER
            if not held:
                found |= self._computed(at, above | {at})
            todo += [one for one in dict.fromkeys(held) if one not in seen]
            seen.update(held)
        return found

    def _computed(self, expr: Expr, above: frozenset[Expr]) -> frozenset[bool]:
        if expr.kind == "const":
            return frozenset([bool(expr.constant)])
        parts = [self._truths(one, above) for one in expr.operands]
        return frozenset(not one for one in parts[0]) if expr.kind == "not" else of_parts(expr.operator == "And", parts)

    def _held(self, expr: Expr) -> list[Expr] | None:
        """The expressions whose values an expression may have; None if there may be others."""
        if expr.kind in ("copy", "phi", "choice"):
            return expr.ways
        if isinstance(expr, Call):
            return expr.positional if expr.called_name == "bool" and len(expr.positional) == 1 and not expr.keywords else None
        if expr.kind == "free":
            return (expr.bound_outside or None) if not self.code.writes_of(expr.name) else None
        if expr.kind == "param":
            return self._given(expr)
        return self._set_on_self(expr) if expr.kind == "attr" else None

    def _given(self, parameter: Expr) -> list[Expr] | None:
        """What callers pass for a parameter, or its default."""
        function = parameter.function
        names = [one.name for one in function.owner.subclasses] if function.owner is not None else [function.name]
        if not parameter.passed or any(self.code.is_used_outside(function.module, one) for one in names):
            return None
        found: list[Expr] = []
        for passed in parameter.passed:
            given = self._passed(passed, parameter)
            if given is None:
                return None
            found += given
        return found

    def _passed(self, passed: Passed, parameter: Expr) -> list[Expr] | None:
        """What one call passes for a parameter; None if that is not known."""
        if not passed.is_visible or any(one.kind == "star" for one in passed.call.positional):
            return None
        if passed.value is not None:
            return [passed.value]
        argument = passed.call.argument(parameter.name)
        if argument.is_given:
            return argument.values
        return None if argument.is_open or parameter.default is None else [*argument.values, parameter.default]

    def _set_on_self(self, attribute: Expr) -> list[Expr] | None:
        """What any code sets an attribute of ``self`` to."""
        owner, name = attribute.owner_of_self, attribute.name
        if owner is None or not has_plain_bases(owner):
            return None
        family = list(dict.fromkeys((*owner.bases, *owner.subclasses)))
        if self._may_be_set_by_name(name, family):
            return None
        found = [value for one in family for value in (*one.set_itself(name), *one.bound(name))]
        for target, written in self.code.writes_of(name):
            classes = target.only_classes
            if not classes:
                return None
            found += [written] if any(one in family for one in classes) else []
        return found or None

    def _may_be_set_by_name(self, name: str, family: list[Class]) -> bool:
        """Whether a call of ``setattr`` may set an attribute of this name: ``for key, value in options: setattr(model, key,
        value)``."""
        for call in self.code.calls_named("setattr"):
            given = call.positional
            classes = given[0].only_classes if len(given) == 3 else []
            if classes and not any(one in family for one in classes):
                continue
            texts = given[1].may_be() if len(given) == 3 else None
            if texts is None or name in texts.constants or not (texts.is_complete and len(texts.constants) == len(texts.value)):
                return True
        return False


__all__ = ["LeftOff"]
