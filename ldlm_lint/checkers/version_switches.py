"""Code that a version check, ``hasattr`` or an except clause restricts to certain torch versions."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings
from ldlm_lint.python.places import function_of

_VERSION_TEST = lazily(
    r"version|hasattr\(\s*(?:torch|th|amp|autocast|GradScaler)\b|find_spec|\btorch_?(?:ge|gt|lt|le|min|2)|TORCH_"
    r"|native_amp|amp_(?:is_)?available|signature\("
)
_MISSING_NAME = lazily(r"Import|ModuleNotFound|Attribute|TypeError")


def switched_by_version(node: nodes.NodeNG) -> bool:
    """Whether only some versions of torch reach a node, or the import that binds its name."""
    if _stands_behind_switch(node):
        return True
    while isinstance(node, nodes.Attribute):
        node = node.expr
    return isinstance(node, nodes.Name) and any(_stands_behind_switch(one) for one in bindings(node))


def _stands_behind_switch(node: nodes.NodeNG) -> bool:
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, (nodes.If, nodes.IfExp, nodes.While)) and child is not parent.test:
            if _VERSION_TEST.search(parent.test.as_string()):
                return True
        elif isinstance(parent, nodes.ExceptHandler) or (
            isinstance(parent, nodes.Try) and child in parent.body and _asks_for_a_name(parent, child)
        ):
            return True
        child, parent = parent, parent.parent
    return _follows_an_early_return(node)


def _asks_for_a_name(statement: nodes.Try, tried: nodes.NodeNG) -> bool:
    """Whether a ``try`` tests for a name that only some versions have: by an import, or by the error it waits for."""
    if isinstance(tried, (nodes.Import, nodes.ImportFrom)):
        return bool(statement.handlers)
    kinds = [one.type.as_string() for one in statement.handlers if one.type is not None]
    return any(_MISSING_NAME.search(kind) for kind in kinds) and not isinstance(
        tried, (nodes.For, nodes.With, nodes.While)
    )


def _follows_an_early_return(node: nodes.NodeNG) -> bool:
    """``if hasattr(torch.amp, "GradScaler"): return …`` leaves the rest of a function to older versions."""
    function = function_of(node)
    if not isinstance(function, nodes.FunctionDef):
        return False
    return any(
        isinstance(one, nodes.If)
        and (one.lineno or 0) < (node.lineno or 0)
        and _VERSION_TEST.search(one.test.as_string())
        and isinstance(one.body[-1], nodes.Return)
        for one in function.body
    )
