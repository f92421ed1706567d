"""Integer arithmetic of the shell, restricted to sums, products, quotients and powers of known numbers."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from ldlm_lint.patterns import lazily

_OPERATIONS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_DIVISIONS = (ast.FloorDiv, ast.Mod)
_EXPANSION = lazily(r"\$\{?(\w+)\}?")
# An argument of the script is not a number.
_POSITIONAL = lazily(r"\$\{?\d")
MAX_CHARACTERS = 400


def bare(expression: str) -> str:
    """An expression in one line without expansion syntax: ``$((${A} * 2))`` contains ``A * 2``."""
    return " ".join(_EXPANSION.sub(r"\1", expression).split())


def evaluate(expression: str, number: Callable[[str], int | None]) -> int | None:
    """The value of an expression whose names ``number`` resolves; None for anything else.

    The shell rounds towards zero and Python down, so a negative number ends the evaluation.
    """
    if len(expression) > MAX_CHARACTERS or _POSITIONAL.search(expression):
        return None
    try:
        return _value(ast.parse(bare(expression).replace("/", "//"), mode="eval").body, number)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, number: Callable[[str], int | None]) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return number(node.id)
    if not isinstance(node, ast.BinOp) or type(node.op) not in _OPERATIONS:
        return None
    left, right = _value(node.left, number), _value(node.right, number)
    if left is None or right is None or (isinstance(node.op, _DIVISIONS) and not right):
        return None
    result = _OPERATIONS[type(node.op)](left, right)
    return result if result >= 0 else None
