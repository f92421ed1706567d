"""Functions that multiply or divide gradients themselves: ``weight.grad /= count``, ``weight.grad.div_(count)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.modules import Module

if TYPE_CHECKING:
    from ldlm_lint.program import Program

_METHODS = frozenset({"div_", "mul_", "true_divide_", "_foreach_div_", "_foreach_mul_"})
_OPERATIONS = frozenset({"Div", "Mult"})


def scales_gradients(program: Program, function: int) -> bool:
    """Whether a function of a program does so with attributes named ``grad``."""
    module = program.module_of(function)
    scope = module.scopes[function & MASK]
    if any(name == "grad" and _is_scaled(module, value) for _, name, value, _ in scope.writes):
        return True
    return any(_is_call_on_gradient(module, call) for call in scope.calls)


def _is_scaled(module: Module, number: int) -> bool:
    row = module.nodes[number]
    return row[0] == "op" and row[1] in _OPERATIONS and any(_is_gradient(module, one) for one in row[2:4])


def _is_call_on_gradient(module: Module, call: int) -> bool:
    row = module.nodes[call]
    function = module.nodes[row[1]]
    if function[0] != "attr" or function[2] not in _METHODS:
        return False
    return _is_gradient(module, function[1]) or any(_is_gradient(module, one) for one in row[2][:1])


def _is_gradient(module: Module, number: int) -> bool:
    """Whether an expression is a gradient, or a list of gradients."""
    row = module.plain(number)
    if row[0] == "comp":
        row = module.plain(row[1])
    return row[0] == "attr" and row[2] == "grad"
