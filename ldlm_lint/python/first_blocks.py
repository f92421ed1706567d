"""Blocks that a context manager may let one process run before the others: ``with accelerator.main_process_first():``."""

from __future__ import annotations

from typing import NamedTuple

from astroid import nodes

from ldlm_lint.python.names import last_name
from ldlm_lint.python.places import function_of, position_of, scope_name
from ldlm_lint.python.walks import nodes_of


class Block(NamedTuple):
    """The body of a ``with``: the function around it, its lines, and the place and last name of the call that is entered."""

    scope: str
    first: int
    last: int
    position: str
    entered: str


def blocks_of(module: nodes.Module) -> list[Block]:
    """Every ``with`` of a file that enters the result of a call."""
    found = []
    for node in nodes_of(module, nodes.With):
        calls = [context for context, _ in node.items if isinstance(context, nodes.Call)]
        scope = scope_name(function_of(node))
        found += [Block(scope, node.body[0].lineno or 0, node.tolineno or 0, position_of(one), last_name(one.func)) for one in calls]
    return found
