"""Facts about the place of a call: its function, the loops around it, the conditions on it.

It is the same for nearly all calls of a statement, and for the statements after it up to the next condition, so it is
computed once and cached on the statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.python.guards import block_of
from ldlm_lint.python.off_by_default import is_off_by_default
from ldlm_lint.python.places import function_of, loops_around, scope_name
from ldlm_lint.python.rarity import is_rare

_SITE = "_ldlm_site"
# Statements that run all of their expressions, each once.
_PLAIN = {
    nodes.Expr,
    nodes.Assign,
    nodes.AnnAssign,
    nodes.AugAssign,
    nodes.Return,
    nodes.If,
    nodes.With,
    nodes.AsyncWith,
}
# Expressions that run parts of themselves conditionally, repeatedly or later.
_OWN = {
    *(nodes.BoolOp, nodes.IfExp, nodes.Lambda, nodes.Comprehension),
    *(nodes.ListComp, nodes.SetComp, nodes.DictComp, nodes.GeneratorExp),
}
# Statements that may leave the block: code after them runs under their conditions too.
_DECIDING = {nodes.If, nodes.Assert}


class Site(NamedTuple):
    """The dotted name of the function, the loops around (innermost first) and their lines; see `CallSite` for
    ``rare``.
    """

    scope: str
    loops: tuple[nodes.NodeNG, ...]
    lines: tuple[int, ...]
    rare: bool


def site_of(node: nodes.NodeNG) -> Site:
    """The site of an expression."""
    statement = _plain_statement(node)
    if statement is None:
        return _found(node)
    known: Site | None = statement.__dict__.get(_SITE)
    if known is None:
        known = _found(node)
        for one in _alike(statement):
            one.__dict__[_SITE] = known
    return known


def _alike(statement: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """A statement, and those after it in its block up to the next one that may decide whether the rest runs."""
    block = block_of(statement)
    behind = block[block.index(statement) :] if block else [statement]
    for one in behind:
        yield one
        if one.__class__ in _DECIDING:
            return


def _plain_statement(node: nodes.NodeNG) -> nodes.NodeNG | None:
    """The statement of an expression that runs whenever the statement does; None for another one."""
    node = node.parent
    while not node.is_statement:
        if node.__class__ in _OWN:
            return None
        node = node.parent
    return node if node.__class__ in _PLAIN else None


def _found(node: nodes.NodeNG) -> Site:
    loops = tuple(loops_around(node))
    lines = tuple(loop.lineno or 0 for loop in loops)
    return Site(scope_name(function_of(node)), loops, lines, is_rare(node) or is_off_by_default(node))
