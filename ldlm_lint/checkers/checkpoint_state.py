"""The use of a loaded state: whether its tensors only go into ``load_state_dict``, which moves them itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings, last_name
from ldlm_lint.python.places import function_of
from ldlm_lint.python.walks import nodes_of

_PLAIN = lazily(r"epoch|step|iter|arg|config|cfg|version|arch|name|seed|hparams|hyper", re.I)
_LOOKS = {"print", "len", "isinstance", "bool", "type"}
_TAKEN = {"get", "pop", "items", "keys", "values", "copy"}
_DEPTH = 3


def fills_only(node: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether a state or parts of it are passed to ``load_state_dict``, and otherwise only plain values such as the
    epoch are read."""
    if depth > _DEPTH:
        return False
    taken = _taken(node)
    parent = taken.parent
    if isinstance(parent, nodes.Call) and taken is not parent.func:
        name = last_name(parent.func)
        return name in ("load_state_dict", *_LOOKS) or (name == "dict" and fills_only(parent, depth + 1))
    if isinstance(parent, (nodes.Expr, nodes.Compare, nodes.If, nodes.UnaryOp, nodes.BoolOp, nodes.Delete)):
        return True
    if isinstance(parent, nodes.Assign):
        target = parent.targets[0]
        return len(parent.targets) == 1 and isinstance(target, nodes.AssignName) and _all_fill(target, depth)
    if isinstance(parent, nodes.Comprehension) and isinstance(parent.parent, nodes.DictComp):
        return fills_only(parent.parent, depth + 1)
    return _is_plain(taken)


def _all_fill(target: nodes.AssignName, depth: int) -> bool:
    """Whether every use of a variable is one; a variable of another function is not followed."""
    function = function_of(target)
    if _is_plain(target.parent.value):
        return True
    uses = [
        one
        for one in nodes_of(function, nodes.Name)
        if one.name == target.name and any(binding is target for binding in bindings(one))
    ]
    return bool(uses) and not list(_leaves(function, target.name)) and all(fills_only(one, depth + 1) for one in uses)


def _leaves(function: nodes.NodeNG, name: str) -> Iterator[nodes.NodeNG]:
    """Where a variable becomes visible elsewhere."""
    for one in nodes_of(function, (nodes.Global, nodes.Nonlocal)):
        if name in one.names:
            yield one


def _taken(node: nodes.NodeNG) -> nodes.NodeNG:
    """The parts taken out of a state: ``state["model"]``, ``state.get("model")``, ``state["model"].items()``."""
    while True:
        parent = node.parent
        if isinstance(parent, nodes.Subscript) and parent.value is node:
            node = parent
        elif (
            isinstance(parent, nodes.Attribute) and parent.attrname in _TAKEN and isinstance(parent.parent, nodes.Call)
        ):
            node = parent.parent
        else:
            return node


def _is_plain(node: nodes.NodeNG) -> bool:
    """Whether a taken part is not a tensor, by its key."""
    if isinstance(node, nodes.Subscript):
        key = node.slice
    elif isinstance(node, nodes.Call) and isinstance(node.func, nodes.Attribute) and node.args:
        key = node.args[0]
    else:
        return isinstance(node, nodes.BinOp) and (_is_plain(node.left) or _is_plain(node.right))
    return isinstance(key, nodes.Const) and isinstance(key.value, str) and _PLAIN.search(key.value) is not None
