"""Distinguishes gradients of an input that requires them from all other gradients."""

from __future__ import annotations

from ldlm_lint.program.modules import Module


def asks_for_gradient(module: Module, number: int) -> bool:
    """Whether an expression creates a tensor that requires gradients: an input, not a parameter of a model."""
    row = module.plain(number)
    if row[0] != "call":
        return False
    function = module.nodes[row[1]]
    if (function[0] == "attr" and function[2] == "requires_grad_") or any(name == "requires_grad" for name, _ in row[3]):
        return True
    asked = (module.nodes[module.nodes[call][1]] for call in module.table.named.get("requires_grad_", ()))
    written = any(name == "requires_grad" and target == number for scope in module.scopes for target, name, _, _ in scope.writes)
    return written or any(one[0] == "attr" and one[1] == number for one in asked)
