"""Options of a module's ``forward`` that are off unless a caller asks for them: the loop of a training may never do."""

from __future__ import annotations

import re

from astroid import nodes
from astroid.exceptions import NoDefault

from ldlm_lint.patterns import lazily
from ldlm_lint.python.places import function_of

_LEARNS = lazily(r"loss|train|grad", re.I)


def is_off_by_default(node: nodes.NodeNG) -> bool:
    """Whether ``forward`` waits only for callers that ask for it: under a parameter of its own whose default is False.

    That every step calls it is taken for granted, that a step asks for more than its loss is not.
    """
    function = function_of(node)
    if not isinstance(function, nodes.FunctionDef) or function.name != "forward":
        return False
    tests = [one.test for one in node.node_ancestors() if isinstance(one, nodes.If) and _holds(one.body, node)]
    return any(isinstance(one, nodes.Name) and _is_off(function, one.name) for one in tests)


def _holds(body: list[nodes.NodeNG], node: nodes.NodeNG) -> bool:
    return any(one is node or one.parent_of(node) for one in body)


def _is_off(function: nodes.FunctionDef, name: str) -> bool:
    try:
        default = function.args.default_value(name)
    except NoDefault:
        return False
    return isinstance(default, nodes.Const) and default.value is False and not _LEARNS.search(name)


__all__ = ["is_off_by_default"]
