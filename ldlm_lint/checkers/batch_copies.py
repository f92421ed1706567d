"""The copies of a batch to the GPU that the body of a loop makes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.places import function_of, loops_around
from ldlm_lint.python.slots import is_call_of
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

_DEVICE = lazily(r"device|cuda|gpu|rank|^dev$", re.I)
_HOST = lazily(r"cpu|host", re.I)
_VIEWS = {"view", "reshape", "flatten", "squeeze", "unsqueeze", "permute", "transpose", "expand", "detach", "get", "pop"}
_MOVES = (nodes.Assign, nodes.Call, nodes.For, nodes.Comprehension)


def batch_of_next(call: nodes.Call) -> tuple[nodes.NodeNG, list[nodes.NodeNG]] | None:
    """The loop around ``batch = next(iterator)`` and its target; None for any other call."""
    if not is_call_of(call, "next") or not call.args or not isinstance(call.parent, nodes.Assign):
        return None
    around = loops_around(call)
    return (around[0], call.parent.targets) if around else None


def blocking_copies(loop: nodes.NodeNG, targets: list[nodes.NodeNG]) -> list[nodes.Call]:
    """The blocking copies of the targets, or parts of them, to a GPU; empty if some of them do not block."""
    names = {one.name for target in targets for one in _names(target)}
    found, asynchronous = [], False
    for call in _copies(loop, names):
        keyword = next((one for one in call.keywords if one.arg == "non_blocking"), None)
        if keyword is None and not any(one.arg is None for one in call.keywords):
            found.append(call)
        asynchronous = asynchronous or keyword is not None
    return [] if asynchronous else found


def _names(node: nodes.NodeNG) -> Iterator[nodes.AssignName]:
    yield from nodes_of(node, nodes.AssignName)


def _copies(loop: nodes.NodeNG, names: set[str]) -> Iterator[nodes.Call]:
    """The copies to a GPU in the loop's body of values that come from the named ones; each value once."""
    own = function_of(loop)
    inner = [one for part in loop.body for one in nodes_of(part, _MOVES) if function_of(one) is own]
    for node in inner:
        # A comprehension's element is visited before its iterable, so the calls are handled in a second pass.
        if isinstance(node, nodes.Assign) and _takes_from(node.value, names) and not _holds_copy(node.value):
            names |= {one.name for target in node.targets for one in _names(target)}
        elif isinstance(node, (nodes.For, nodes.Comprehension)) and _root(node.iter) in names:
            names |= {one.name for one in _names(node.target)}
    moved: set[str] = set()
    for node in inner:
        if isinstance(node, nodes.Call) and _copied(node) in names and node.func.expr.as_string() not in moved:
            moved.add(node.func.expr.as_string())
            yield node


def _takes_from(value: nodes.NodeNG, names: set[str]) -> bool:
    parts = value.elts if isinstance(value, nodes.Tuple) else [value]
    return any(_root(part) in names for part in parts)


def _holds_copy(value: nodes.NodeNG) -> bool:
    return any(_copied(one) for one in nodes_of(value, nodes.Call))


def _copied(call: nodes.Call) -> str:
    """The variable that a call copies to a GPU, itself or a part of it; empty for any other call."""
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname not in ("to", "cuda"):
        return ""
    if call.func.attrname == "to":
        device = next((one.value for one in call.keywords if one.arg == "device"), call.args[0] if call.args else None)
        if device is None or not _is_gpu(device):
            return ""
    # Results of other methods on the host are not in pinned memory.
    methods = [one.func for one in nodes_of(call.func.expr, nodes.Call) if isinstance(one.func, nodes.Attribute)]
    return _root(call.func.expr) if all(one.attrname in _VIEWS for one in methods) else ""


def _is_gpu(node: nodes.NodeNG) -> bool:
    value = constant(node)
    if isinstance(value, str):
        return value.startswith("cuda")
    if isinstance(value, int):
        return not isinstance(value, bool)
    text = node.as_string()
    return _DEVICE.search(text.rpartition(".")[2]) is not None and not _HOST.search(text)


def _root(node: nodes.NodeNG | None) -> str:
    """The variable at the root of an expression, through attributes, elements and methods; empty if there is none."""
    while node is not None and not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Call):
            # ``enumerate(batch)`` passes its argument on.
            node = node.args[0] if isinstance(node.func, nodes.Name) and node.args else getattr(node.func, "expr", None)
        elif isinstance(node, (nodes.Attribute, nodes.Starred)):
            node = node.expr if isinstance(node, nodes.Attribute) else node.value
        elif isinstance(node, nodes.Subscript):
            node = node.value
        else:
            return ""
    return node.name if node is not None else ""
