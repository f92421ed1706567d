"""Optional parameters that no code in a program passes: ``mask=None``, through every call that forwards it."""

from __future__ import annotations

from collections.abc import Callable

from ldlm_lint.program.atoms import Value
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call, Expr, Function, Passed

Asked = Callable[[Function], bool]


class LeftOut(Concept):
    """Answers for the parameters of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._is_reached: Asked = lambda _: False
        self._is_step: Asked = lambda _: False

    def know(self, is_reached: Asked, is_step: Asked) -> None:
        """Let only those calls count that training steps make, once it is known what these reach: what others call, no step
        does."""
        self._is_reached, self._is_step = is_reached, is_step

    def decides(self, test: Expr) -> bool | None:
        """How a test comes out because a parameter is always left out; None for another test."""
        if test.kind == "not":
            inner = self.decides(test.operands[0])
            return None if inner is None else not inner
        if test.operator == "And":
            return False if any(self.decides(one) is False for one in test.operands) else None
        if test.operator in ("Is", "IsNot") and test.operands[1].constant is None:
            return test.operator == "Is" if self._is_left_out(test.operands[0]) else None
        return False if test.kind in ("param", "copy") and self._is_left_out(test) else None

    def given_by_all(self, test: Expr) -> Value | None:
        """The arguments of the relevant calls for a parameter with a default; includes the default only if a call omits
        it."""
        parameter = test.plain
        if parameter.default is None or parameter.function.is_hook:
            return None
        values: list[Value] = []
        for one in self._relevant(parameter):
            if one.call.is_in_handler:
                continue
            given = one.value if one.value is not None or one.call.has_stars else parameter.default
            if not one.is_visible or given is None or given.kind == "star":
                return None
            values.append(given.value)
        return frozenset().union(*values) if values and all(values) else None

    def _is_left_out(self, expr: Expr) -> bool:
        """Whether an expression is a parameter that all known callers leave at its default, None."""
        if expr.plain.kind != "param":
            return False
        todo, seen = [expr.plain], {expr.plain}
        while todo:
            behind = self._given(todo.pop())
            if behind is None:
                return False
            todo += [one for one in behind if one not in seen]
            seen.update(behind)
        return True

    def _given(self, parameter: Expr) -> list[Expr] | None:
        """The arguments for a parameter other than None; None if they are not all known, or it is not such a
        parameter.
        """
        if parameter.constant is None:
            return []
        if parameter.default is None or parameter.default.constant is not None or parameter.function.is_hook:
            return None
        given = self._relevant(parameter)
        if not given or any(not one.is_visible or (one.value is None and one.call.has_stars) for one in given):
            return None
        found = [value for holder, value in self.code.given_by_name(parameter.name) if _may_be_meant(holder)]
        return [one.plain for one in (*found, *(one.value for one in given if one.value is not None))]

    def _relevant(self, parameter: Expr) -> list[Passed]:
        """What calls pass that may be a training step's: for a function that a step reaches only those count."""
        function, passed = parameter.function, parameter.passed
        if not self._is_reached(function) or self._is_step(function):
            return passed
        return [one for one in passed if self._is_reached(one.call.function)]


def _may_be_meant(holder: Expr) -> bool:
    """Whether what gives something by a name is a call of an unknown function: it may be the one in question."""
    return isinstance(holder, Call) and not holder.targets and not holder.callee.value
