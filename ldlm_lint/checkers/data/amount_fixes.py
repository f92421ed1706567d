"""Fixes of numbers of workers: half the limit for a number, a rank's share for the CPUs of the node."""

from __future__ import annotations

from ldlm_lint.code.table import Node
from ldlm_lint.edits.imports import ensure_import
from ldlm_lint.model import Applicability, Edit, Fix, Span
from ldlm_lint.source import Source

_REASON = "fewer workers can be too few for a slow dataset"


def fewer_fix(span: Span, limit: int) -> Fix:
    """Write half the limit instead of a number."""
    edit = Edit(span, str(max(limit // 2, 1)))
    return Fix(f"use {edit.text} workers per rank", (edit,), Applicability.UNSAFE, _REASON)


def shared_fix(source: Source, span: Span, row: Node) -> Fix:
    """Share the CPUs of the node between its ranks."""
    added, environ = ensure_import(source, "os", "environ")
    text = source.slice(span)
    is_operation = row[0] == "op"
    operand = f"int({text})" if is_operation and row[1] == "Div" else f"({text})" if is_operation else text
    shared = Edit(span, f'max(1, {operand} // int({environ}.get("LOCAL_WORLD_SIZE", 1)))')
    reason = f"{_REASON}; only torchrun and launchers built on it set LOCAL_WORLD_SIZE"
    edits = (shared, *([added] if added else []))
    return Fix("share the CPUs between the ranks of the node", edits, Applicability.UNSAFE, reason)
