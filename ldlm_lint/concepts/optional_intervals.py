"""Intervals that users must turn on: one that is tested before it is divided by, ``if every > 0 and step % every == 0``,
and that no default, configuration or launch sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.handles import Call, Expr

_ABOVE = frozenset({("Gt", 0), ("NotEq", 0), ("Gt", -1), ("NotEq", -1), ("GtE", 1), ("IsNot", None)})
_VALUES = frozenset({"attr", "item", "param", "free", "copy", "phi", "call"})


class _Setting(NamedTuple):
    """The name that an interval has outside (``save_every``), and its defaults in the code, as Python writes them."""

    name: str
    defaults: tuple[str, ...] = ()


class OptionalIntervals(Concept):
    """Answers for the calls of a program."""

    def leave_out(self, call: Call) -> bool:
        """Whether a call waits for an interval that is off everywhere."""
        return any(self.code.trainings.leave_off(one.name, one.defaults) for one in _asked_around(call))


def _asked_around(call: Call) -> Iterator[_Setting]:
    """The intervals that are tested in the conditions around a call."""
    tests = [one.test for one in call.guards if one.kind == "if" and one.holds is True]
    tested = [value for test in tests for part in _conjuncts(test) for value in _tested(part)]
    for divisor in (one for test in tests for one in _divisors(test)):
        setting = _setting(divisor, set()) if any(divisor.is_alike(other) for other in tested) else None
        if setting is not None:
            yield setting


def _conjuncts(test: Expr) -> list[Expr]:
    return [part for one in test.operands for part in _conjuncts(one)] if test.operator == "And" else [test]


def _tested(part: Expr) -> list[Expr]:
    """``every``, ``every > 0``, ``every is not None``."""
    if part.kind != "cmp":
        return [part] if part.kind in _VALUES else []
    sides = part.operands
    return sides[:1] if (part.operator, _constant(sides[1])) in _ABOVE else []


def _divisors(test: Expr) -> Iterator[Expr]:
    """The divisors of remainders in a test."""
    if test.kind == "op" and test.operator == "Mod":
        yield test.operands[1]
    for one in test.operands if test.kind in ("cmp", "bool", "not", "copy") else ():
        yield from _divisors(one)


def _setting(value: Expr, seen: set[Expr]) -> _Setting | None:
    at = value.unnamed
    if at in seen:
        return None
    seen.add(at)
    if at.kind == "attr":
        return _Setting(at.name)
    if at.kind == "item":
        key = at.index.constant if at.index is not None else ...
        return _Setting(key) if isinstance(key, str) else None
    if isinstance(at, Call):
        return _read(at)
    if at.kind not in ("param", "free"):
        return None
    # The argument of the only known caller, the only binding; else its own name and default.
    held = at.given if at.kind == "param" else at.bound_outside
    found = _setting(held[0], seen) if len(held) == 1 else None
    default = (at.default if not held else None) if at.kind == "param" else held[0] if len(held) == 1 else None
    return found or _Setting(at.name, _written(default) if default is not None else ())


def _read(call: Call) -> _Setting | None:
    """``settings.get("save_every", -1)``, ``getattr(args, "save_every", 0)``."""
    given = call.positional[1:] if call.called_name == "getattr" else call.positional if call.called_name == "get" else []
    key = given[0].constant if given else ...
    if not isinstance(key, str):
        return None
    default = next(iter([*given[1:], *(value for name, value in call.keywords if name == "default")]), None)
    return _Setting(key, _written(default) if default is not None else ("None",))


def _constant(expr: Expr) -> object:
    if expr.operator == "USub":
        inner = expr.operands[0].constant
        return -inner if isinstance(inner, int) else ...
    return expr.constant


def _written(expr: Expr) -> tuple[str, ...]:
    value = _constant(expr)
    return () if value is ... else (str(value),)


__all__ = ["OptionalIntervals"]
