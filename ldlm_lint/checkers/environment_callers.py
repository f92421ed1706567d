"""The arguments of callers for parameters that a function of the file writes into the environment."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.python.calls import Arguments
from ldlm_lint.python.names import qualified
from ldlm_lint.python.scopes import scope_of
from ldlm_lint.python.walks import nodes_of

_MOST_CALLS = 50


def function_with(name: nodes.NodeNG) -> nodes.FunctionDef | None:
    """The function of the module whose parameter a variable is; None if it is not a parameter, or rebound."""
    function = scope_of(name) if isinstance(name, nodes.Name) else None
    if not isinstance(function, nodes.FunctionDef) or not isinstance(function.parent, nodes.Module) or name.name not in _parameters(function):
        return None
    bound = (one for one in nodes_of(function, nodes.AssignName) if one.name == name.name and isinstance(one.parent, nodes.Arguments))
    others = (one for one in nodes_of(function, nodes.AssignName) if one.name == name.name and not isinstance(one.parent, nodes.Arguments))
    return function if next(others, None) is None and (next(bound, None) is not None or name.name == function.args.kwarg) else None


def calls_of(function: nodes.FunctionDef) -> Iterator[tuple[nodes.Call, Arguments]]:
    """The calls of a function of the module in its own file, with their arguments by parameter name."""
    found = (one for one in nodes_of(function.root(), nodes.Call) if getattr(one.func, "name", "") == function.name)
    own = (one for one in found if qualified(one.func) == {f".{function.name}"})
    for call in itertools.islice(own, _MOST_CALLS):
        yield call, Arguments(call, _parameters(function))


def _parameters(function: nodes.FunctionDef) -> list[str]:
    positional = [one.name for one in (*(function.args.posonlyargs or ()), *(function.args.args or ()), *(function.args.kwonlyargs or ()))]
    return [*positional, *filter(None, (function.args.kwarg,))]


__all__ = ["calls_of", "function_with"]
