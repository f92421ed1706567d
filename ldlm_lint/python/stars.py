"""Star imports: the origin of a name that no line of a file binds."""

from __future__ import annotations

import builtins

from astroid import nodes

from ldlm_lint.python.memo import remembered
from ldlm_lint.python.scopes import scope_of
from ldlm_lint.python.walks import nodes_of

_BUILTINS = frozenset(dir(builtins))


def behind_star(name: nodes.Name) -> str | None:
    """``from utils import *`` and then ``save_model(…)``: the dotted name of its object.

    None if the file binds the name, or if several modules may provide it.
    """
    if name.name in _BUILTINS or scope_of(name) is not None:
        return None
    module = name.root()
    modules = remembered(module, ("stars",), lambda: _starred(module))
    if len(modules) != 1:
        return None
    return f"{modules[0]}{'' if modules[0].endswith('.') else '.'}{name.name}"


def _starred(module: nodes.Module) -> list[str]:
    found = (one for one in nodes_of(module, nodes.ImportFrom) if one.names[0][0] == "*")
    return sorted({f"{'.' * (one.level or 0)}{one.modname}" for one in found})


__all__ = ["behind_star"]
