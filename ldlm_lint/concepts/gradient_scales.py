"""Functions that multiply or divide gradients themselves: ``weight.grad /= count``, ``weight.grad.div_(count)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ldlm_lint.program.handles import Call, Expr, Function

_METHODS = frozenset({"div_", "mul_", "true_divide_", "_foreach_div_", "_foreach_mul_"})
_OPERATIONS = frozenset({"Div", "Mult"})


def scales_gradients(function: Function) -> bool:
    """Whether a function does so with attributes named ``grad``."""
    return any(one.name == "grad" and _is_scaled(one.value) for one in function.writes) or any(map(_is_call_on_gradient, function.calls))


def _is_scaled(value: Expr) -> bool:
    return value.operator in _OPERATIONS and any(map(_is_gradient, value.operands))


def _is_call_on_gradient(call: Call) -> bool:
    if call.receiver is None or call.called_name not in _METHODS:
        return False
    return _is_gradient(call.receiver) or any(map(_is_gradient, call.positional[:1]))


def _is_gradient(expr: Expr) -> bool:
    """Whether an expression is a gradient, or a list of gradients."""
    plain = expr.plain
    plain = plain.operands[0].plain if plain.kind == "comp" else plain
    return plain.kind == "attr" and plain.name == "grad"
