"""Checks the names that an edit adds to a Python file."""

from __future__ import annotations

import ast
import builtins
from typing import Any

from ldlm_lint.autofix.moves import Moves
from ldlm_lint.edits.import_places import bindings
from ldlm_lint.edits.imports import Names
from ldlm_lint.source import Source

_KNOWN = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__spec__", "__path__", "__package__"}


def misused(old: Source, old_tree: ast.Module, new: Source, new_tree: ast.Module, moves: Moves) -> str | None:
    """The error in the names of the edits: an import or function hides another one, or a name is unbound."""
    kept = Names.of(node for node in ast.walk(old_tree) if not _is_edited(old, node, moves))
    for node in ast.walk(new_tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or not moves.is_new(_start(new, node)):
            continue
        for local, target, _ in bindings(node):
            if local in kept.others or kept.imports.get(local, {target}) != {target}:
                return f"the import of `{local}` would hide another `{local}` of the file"
    for node in new_tree.body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)) or not moves.is_new(_start(new, node)):
            continue
        if node.name in kept.others or node.name in kept.imports:
            return f"`{node.name}` would hide another `{node.name}` of the file"
    return _unbound(Names.of(ast.walk(old_tree)), new, new_tree, moves)


def _unbound(before: Names, new: Source, tree: ast.Module, moves: Moves) -> str | None:
    after = Names.of(ast.walk(tree))
    if "*" in after.imports:
        return None
    bound = _KNOWN | after.others | after.imports.keys() | before.read
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in bound and moves.is_new(_start(new, node)):
            return f"nothing in the file defines `{node.id}`"
    return None


def _is_edited(source: Source, node: Any, moves: Moves) -> bool:
    imports = isinstance(node, (ast.Import, ast.ImportFrom, ast.alias))
    return imports and bool(moves.touching(_start(source, node), source.offset(node.end_lineno, node.end_col_offset)))


def _start(source: Source, node: Any) -> int:
    """The beginning of a node with a position."""
    return source.offset(node.lineno, node.col_offset)
