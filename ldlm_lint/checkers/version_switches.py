"""Code that a version check, ``hasattr`` or an except clause restricts to certain torch versions."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.places import function_of

_VERSION_TEST = lazily(
    r"version|hasattr\(\s*(?:torch|th|amp|autocast|GradScaler)\b|find_spec|\btorch_?(?:ge|gt|lt|le|min|2)|TORCH_"
    r"|native_amp|amp_(?:is_)?available|signature\("
)
_TORCH_2 = lazily(r"\b2\.\d|[(\[]2,|>=? *2\b|< *2\b")
_MISSING_NAME = lazily(r"Import|ModuleNotFound|Attribute|TypeError")


def switched_by_version(node: nodes.NodeNG) -> bool:
    """Whether only some versions of torch reach a node, or the import that binds its name."""
    if _stands_behind_switch(node):
        return True
    while isinstance(node, nodes.Attribute):
        node = node.expr
    return isinstance(node, nodes.Name) and any(_stands_behind_switch(one) for one in bindings(node))


def tells_apart_torch_2(node: nodes.NodeNG) -> bool:
    """Whether a version of torch 2 is mentioned in a test around a node, around the binding of its name, or in its
    function."""
    root = node
    while isinstance(root, nodes.Attribute):
        root = root.expr
    places = [node, *(bindings(root) if isinstance(root, nodes.Name) else ())]
    tests = [parent.test for one in places for parent in one.node_ancestors() if isinstance(parent, (nodes.If, nodes.IfExp, nodes.While))]
    tests += [one.test for one in getattr(function_of(node), "body", ()) if isinstance(one, nodes.If)]
    return any(_TORCH_2.search(one.as_string()) for one in tests)


def first_choice(name: nodes.Name) -> frozenset[str]:
    """The value that a ``try`` binds to a name if all other bindings are in its handlers; empty for other names."""
    found = bindings(name)
    tried = [one for one in found if isinstance(one.statement().parent, nodes.Try) and one.statement() in one.statement().parent.body]
    if len(tried) != 1:
        return frozenset()
    statement = tried[0].statement()
    handlers = statement.parent.handlers
    if not all(one is tried[0] or any(parent in handlers for parent in one.node_ancestors()) for one in found):
        return frozenset()
    if isinstance(statement, nodes.ImportFrom):
        return frozenset(f"{statement.modname}.{one}" for one, alias in statement.names if (alias or one) == name.name)
    return qualified(statement.value) if isinstance(statement, nodes.Assign) else frozenset()


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
