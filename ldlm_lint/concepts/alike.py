"""Whether two expressions have the same form and operands: two such tests have the same result within one iteration."""

from __future__ import annotations

from ldlm_lint.code.table import Node
from ldlm_lint.program.modules import Module

_DEPTH = 8


def is_alike(module: Module, one: int, other: int, steps: int = 0) -> bool:
    """Whether two expressions are written alike, of the same values."""
    if one == other:
        return True
    (mine, inner), (its, others) = _parts(module.nodes[one]), _parts(module.nodes[other])
    if steps > _DEPTH or not inner or mine != its or len(inner) != len(others):
        return False
    return all(is_alike(module, left, right, steps + 1) for left, right in zip(inner, others, strict=True))


def _parts(row: Node) -> tuple[tuple[object, ...], list[int]]:
    """The fixed parts of an expression and its operands; empty if it has no operands."""
    kind = row[0]
    if kind == "call":
        return (kind, len(row[2]), *(name for name, _ in row[3])), [row[1], *row[2], *(one for _, one in row[3])]
    if kind == "cmp":
        return (kind, row[1]), [row[2], *row[3]]
    if kind == "op":
        return (kind, row[1]), [row[2], row[3]]
    if kind == "bool":
        return (kind, row[1]), list(row[2])
    if kind in ("attr", "not"):
        return (kind, *row[2:]), [row[1]]
    return (kind,), []


__all__ = ["is_alike"]
