"""The name by which a place has torch itself."""

from __future__ import annotations

from astroid import nodes
from astroid.exceptions import AstroidError

from ldlm_lint.python.scopes import visible


def torch_at(node: nodes.NodeNG) -> str | None:
    """The name under which a place has torch itself, ``torch`` or ``th``; None if it has not."""
    for name in ("torch", "th"):
        try:
            found = visible(node.scope(), name)
        except AstroidError:
            continue
        if found and all(isinstance(one, nodes.Import) and _brings_torch(one, name) for one in found):
            return name
    return None


def _brings_torch(statement: nodes.Import, name: str) -> bool:
    for module, alias in statement.names:
        if (alias or module) == name and module == "torch":
            return True
        if alias is None and name == "torch" and module.startswith("torch."):
            return True
    return False
