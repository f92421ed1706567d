"""Which settings of a configuration an expression reads: ``config["optimizer"]["name"]`` reads ``optimizer.name``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.outside import Outside

Setting = tuple[str, ...]
"""The last keys of a setting, at most two."""
_SPLITS = frozenset({"rsplit", "rpartition", "split"})
_MOST = 20
"""Expressions behind one that are looked at."""


def settings_read(program: Outside, key: int) -> set[Setting]:
    """The settings that an expression may read, including through parameters."""
    found: set[Setting] = set()
    todo, seen = [key], {key}
    while todo and len(seen) < _MOST:
        key = todo.pop()
        module = program.module_of(key)
        row = module.nodes[key & MASK]
        own = program.class_of_self(module, row[1]) if row[0] == "attr" else None
        name = _key(module, row) if own is None else ""
        if name:
            parent = _key(module, module.plain(_base(module, row)))
            found.add((parent, name) if parent else (name,))
            continue
        for one in _behind(program, module, row, own):
            if one not in seen:
                seen.add(one)
                todo.append(one)
    return found


def taken_apart(module: Module, number: int) -> int:
    """The dotted name of which an expression is the last part: ``module, last = name.rsplit(".", 1)``; 0 for none."""
    row = module.plain(number)
    call = module.plain(row[1]) if row[0] in ("part", "item") else ("",)
    function = module.nodes[call[1]] if call[0] == "call" else ("",)
    return int(function[1]) if function[0] == "attr" and function[2] in _SPLITS else 0


def _key(module: Module, row: Node) -> str:
    """The key that an expression reads from a mapping: ``told["name"]``, ``told.name``, ``told.get("name")``."""
    if row[0] == "attr":
        return str(row[2])
    key = row[2] if row[0] == "item" else row[2][0] if row[0] == "call" and row[2] and module.last_name(row[1]) in ("get", "pop") else 0
    text = module.nodes[key]
    return text[1] if text[0] == "const" and isinstance(text[1], str) else ""


def _base(module: Module, row: Node) -> int:
    """The mapping that is read."""
    if row[0] != "call":
        return int(row[1])
    function = module.nodes[row[1]]
    return int(function[1]) if function[0] == "attr" else 0


def _behind(program: Outside, module: Module, row: Node, own: int | None) -> Iterable[int]:
    """The expressions from which an expression has its value."""
    kind = row[0]
    if own is not None:
        return [value for one in program.order(own) for value in program.own_writes.get((one, row[2]), ())]
    if kind == "param":
        return _given(program, module.base | row[1], row[2])
    if kind in ("phi", "bool"):
        return [module.base | one for one in row[1 if kind == "phi" else 2]]
    if kind == "choice":
        return [module.base | row[2], module.base | row[3]]
    return [module.base | row[1]] if kind in ("copy", "enter") else ()


def _given(program: Outside, function: int, name: str) -> list[int]:
    """The arguments of the known callers for a parameter."""
    edges = (edge for edge in sorted(program.get(("edges", function))) if edge & 3 != UNKNOWN)
    nodes = (program.argument_node(edge >> 2, function, edge & 3, name) for edge in edges)
    return [node for node in nodes if node is not None]
