"""Autograd functions without a backward pass: nothing that trains goes through them, so no training step runs them."""

from __future__ import annotations

from ldlm_lint.program import Program
from ldlm_lint.program.atoms import MASK

_FUNCTIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function", "torch.autograd.function.InplaceFunction"})
_GRADIENTS = ("backward", "vjp")
"""The methods by which one gives gradients."""


def is_forward_only(program: Program, owner: int) -> bool:
    """Whether a class is an autograd function that gives no gradients: a pass back through it is an error."""
    if _FUNCTIONS.isdisjoint(program.outside_of(owner)):
        return False
    methods = [function for name in _GRADIENTS for function in program.methods(owner, name)]
    return all(_only_raises(program, function) for function in methods)


def _only_raises(program: Program, function: int) -> bool:
    scope = program.module_of(function).scopes[function & MASK]
    return not scope.returns and any(kind == "raise" and guard < 0 for kind, _, _, guard, _, _ in scope.events)


__all__ = ["is_forward_only"]
