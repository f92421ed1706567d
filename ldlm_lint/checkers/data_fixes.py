"""Fixes of DataLoader calls: keywords to add, numbers to change."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.autofix.imports import ensure_import
from ldlm_lint.checkers.base import span_of
from ldlm_lint.checkers.data_workers import Amount
from ldlm_lint.model import Applicability, Edit, Fix
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.source import Source

_AMOUNT_REASON = "fewer workers can be too few for a slow dataset"


def amount_fix(source: Source, amount: Amount, limit: int) -> Fix | None:
    """Halve the limit for a number, share the CPUs of the node between its ranks for their count."""
    if not amount.whole_node:
        number = next((one for one in nodes_of(amount.place, nodes.Const) if str(one.value) == amount.text), None)
        if number is None or not isinstance(number.value, int):
            return None
        edit = Edit(span_of(source, number), str(max(limit // 2, 1)))
        return Fix(f"use {edit.text} workers per rank", (edit,), Applicability.UNSAFE, _AMOUNT_REASON)
    added, environ = ensure_import(source, "os", "environ")
    span = span_of(source, amount.place)
    text = source.slice(span)
    node = amount.place
    operand = (
        f"int({text})"
        if isinstance(node, nodes.BinOp) and node.op == "/"
        else f"({text})"
        if isinstance(node, nodes.BinOp)
        else text
    )
    shared = Edit(span, f'max(1, {operand} // int({environ}.get("LOCAL_WORLD_SIZE", 1)))')
    reason = f"{_AMOUNT_REASON}; only torchrun and launchers built on it set LOCAL_WORLD_SIZE"
    return Fix(
        "share the CPUs between the ranks of the node",
        (shared, *([added] if added else [])),
        Applicability.UNSAFE,
        reason,
    )
