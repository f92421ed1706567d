"""The meanings of a file's names, for all scopes, from its light tree."""

from __future__ import annotations

import functools
from itertools import chain

from astroid import nodes
from astroid.nodes import LocalsDictNodeNG

from ldlm_lint.python.walks import nodes_of

_IMPORTS = (nodes.Import, nodes.ImportFrom)


class BoundNames:
    """Same interface as `ldlm_lint.edits.imports.Names`, without another walk over the whole file."""

    def __init__(self, module: nodes.Module) -> None:
        self._module = module

    def only(self, local: str, target: str) -> bool:
        """Whether ``local`` means ``target`` at every binding."""
        return self._imports.get(local) == {target} and not self._is_bound_otherwise(local)

    def free(self, local: str, target: str) -> bool:
        """Whether the top level may bind ``local`` to ``target`` without changing the meaning of the file."""
        if self._imports.get(local, {target}) != {target} or self._is_bound_otherwise(local):
            return False
        return local in self._imports or not self._is_read(local)

    @functools.cached_property
    def _imports(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for node in nodes_of(self._module, _IMPORTS):
            for name, alias in node.names:
                if isinstance(node, nodes.ImportFrom):
                    local, target = alias or name, f"{'.' * (node.level or 0)}{node.modname}.{name}"
                else:
                    local, target = alias or name.partition(".")[0], name if alias else name.partition(".")[0]
                found.setdefault(local, set()).add(target)
        return found

    @functools.cached_property
    def _scopes(self) -> list[dict[str, list[nodes.NodeNG]]]:
        return [scope.locals for scope in nodes_of(self._module, LocalsDictNodeNG)]

    @functools.cached_property
    def _declared(self) -> frozenset[str]:
        return frozenset(name for one in nodes_of(self._module, (nodes.Global, nodes.Nonlocal)) for name in one.names)

    def _is_read(self, local: str) -> bool:
        # astroid does not count a metaclass among the children of its class.
        apart = (one._metaclass for one in nodes_of(self._module, nodes.ClassDef) if one._metaclass is not None)
        read = (one for node in apart for one in node.nodes_of_class(nodes.Name))
        return any(one.name == local for one in chain(nodes_of(self._module, nodes.Name), read))

    def _is_bound_otherwise(self, local: str) -> bool:
        bound = (one for scope in self._scopes for one in scope.get(local, ()))
        return local in self._declared or not all(isinstance(one, _IMPORTS) for one in bound)
