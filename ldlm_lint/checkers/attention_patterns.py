"""Recognizes hand-written attention: a product of queries and keys, a softmax, a product with the values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import qualified
from ldlm_lint.python.walks import nodes_of

_PRODUCTS = {"matmul", "bmm", "einsum", "baddbmm"}
_FUNCTIONS = {"torch.softmax", "torch.nn.functional.softmax"}
_SOFTMAX = lazily(r"^_?softmax$", re.I)
_DEPTH = 6
_STORES = lazily(r"append|save_|store|register_hook")
_QUERY_OR_KEY = lazily(
    r"^(q|k|qs|ks|queries|keys|qk\w*)$|(^|_)(q|k|query|key)(_|$)|^(query|key)\w*|^w_?[qk]$|^[qk]_\w+|\w+_[qk]$", re.I
)


def written_out_attention(function: nodes.FunctionDef) -> nodes.Call | None:
    """The softmax of attention in a function; None if its weights are passed on, or there is no attention."""
    defined = _definitions(function)
    for call in nodes_of(function, nodes.Call):
        if not _is_softmax(call) or call.scope() is not function:
            continue
        scores = _scores(call)
        product = next(_products_behind(scores, defined), None) if scores is not None else None
        if product is None or not _speaks_of_queries(product):
            continue
        weights = _names_holding(call, function)
        if _multiplies(function, call, weights) and not _hands_on(function, call, weights):
            return call
    return None


def _definitions(function: nodes.FunctionDef) -> dict[str, list[nodes.NodeNG]]:
    """The right-hand sides that each local name gets."""
    found: dict[str, list[nodes.NodeNG]] = {}
    for statement in nodes_of(function, (nodes.Assign, nodes.AugAssign)):
        targets = statement.targets if isinstance(statement, nodes.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, nodes.AssignName):
                found.setdefault(target.name, []).append(statement.value)
    return found


def _is_softmax(call: nodes.Call) -> bool:
    last = call.func.attrname if isinstance(call.func, nodes.Attribute) else getattr(call.func, "name", "")
    return _SOFTMAX.search(last) is not None


def _scores(call: nodes.Call) -> nodes.NodeNG | None:
    """The argument of a softmax: its first argument, or the tensor whose method it is."""
    function = call.func
    if isinstance(function, nodes.Attribute) and not qualified(function) & _FUNCTIONS:
        # ``scores.softmax(dim=-1)`` against ``self.softmax(scores)``.
        first = call.args[0] if call.args else None
        return first if first is not None and not _is_number(first) else function.expr
    return call.args[0] if call.args else next((one.value for one in call.keywords if one.arg == "input"), None)


def _is_number(node: nodes.NodeNG) -> bool:
    return isinstance(node, (nodes.Const, nodes.UnaryOp))


def _is_product(node: nodes.NodeNG) -> bool:
    if isinstance(node, nodes.BinOp):
        return node.op == "@"
    if isinstance(node, nodes.Call):
        last = node.func.attrname if isinstance(node.func, nodes.Attribute) else getattr(node.func, "name", "")
        return last in _PRODUCTS
    return False


def _products_behind(node: nodes.NodeNG, defined: dict[str, list[nodes.NodeNG]]) -> Iterator[nodes.NodeNG]:
    """The products that an expression is computed from by elementwise steps, through the names of the function."""
    seen: set[str] = set()
    waiting = [(node, 0)]
    while waiting:
        current, depth = waiting.pop()
        if _is_product(current):
            yield current
            continue
        if isinstance(current, nodes.Name):
            if current.name not in seen and depth < _DEPTH:
                seen.add(current.name)
                waiting += [(value, depth + 1) for value in defined.get(current.name, ())]
            continue
        waiting += [(child, depth) for child in _elementwise(current)]


def _elementwise(node: nodes.NodeNG) -> list[nodes.NodeNG]:
    if isinstance(node, nodes.BinOp):
        return [node.left, node.right]
    if isinstance(node, nodes.Call):
        owner = [node.func.expr] if isinstance(node.func, nodes.Attribute) else []
        return [*owner, *node.args]
    if isinstance(node, nodes.IfExp):
        return [node.body, node.orelse]
    return [node.value] if isinstance(node, (nodes.Subscript, nodes.Starred)) else []


def _speaks_of_queries(product: nodes.NodeNG) -> bool:
    """Whether one operand of the product is called like queries or keys, or the function like attention."""
    names = [one.name for one in nodes_of(product, nodes.Name)]
    names += [one.attrname for one in nodes_of(product, nodes.Attribute)]
    return any(_QUERY_OR_KEY.search(name) for name in names)


def _names_holding(call: nodes.Call, function: nodes.FunctionDef) -> set[str]:
    """The local names that hold the weights, also after dropout or a cast."""
    names: set[str] = set()
    for _ in range(_DEPTH):
        before = len(names)
        for statement in nodes_of(function, nodes.Assign):
            if _is_made_of(statement.value, call, names):
                names |= {one.name for one in statement.targets if isinstance(one, nodes.AssignName)}
        if len(names) == before:
            break
    return names


def _is_made_of(value: nodes.NodeNG, call: nodes.Call, names: set[str]) -> bool:
    """Whether a value is the weights after elementwise steps; a product with the values is no longer."""
    if value is call or (isinstance(value, nodes.Name) and value.name in names):
        return True
    return not _is_product(value) and any(_is_made_of(child, call, names) for child in _elementwise(value))


def _multiplies(function: nodes.FunctionDef, call: nodes.Call, names: set[str]) -> bool:
    """Whether the weights are multiplied with something after the softmax."""
    for node in nodes_of(function, (nodes.BinOp, nodes.Call)):
        if not _is_product(node) or (node.end_lineno or 0) < (call.lineno or 0):
            continue
        operands = [node.left] if isinstance(node, nodes.BinOp) else _operands(node)
        if any(_is_made_of(one, call, names) for one in operands):
            return True
    return False


def _operands(call: nodes.Call) -> list[nodes.NodeNG]:
    owner = [call.func.expr] if isinstance(call.func, nodes.Attribute) else []
    return [*owner, *call.args]


def _hands_on(function: nodes.FunctionDef, call: nodes.Call, names: set[str]) -> bool:
    """Whether the weights themselves leave the function: returned, or stored on an object, in a tuple or in a list."""
    for node in nodes_of(function, (nodes.Return, nodes.Assign, nodes.Call)):
        if any(_is_made_of(value, call, names) for value in _handed_on(node)):
            return True
    return False


def _handed_on(node: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """The values that a statement or call returns from the function, or puts into a collection that may be returned."""
    if isinstance(node, nodes.Call):
        if isinstance(node.func, nodes.Attribute) and _STORES.match(node.func.attrname):
            yield from (*node.args, node.func.expr)
        return
    if node.value is None:
        return
    stored = isinstance(node, nodes.Return) or any(
        isinstance(one, (nodes.AssignAttr, nodes.Subscript)) for one in node.targets
    )
    arms = [node.value.body, node.value.orelse] if isinstance(node.value, nodes.IfExp) else [node.value]
    for value in arms:
        if isinstance(value, (nodes.Tuple, nodes.List)):
            yield from value.elts
        elif stored:
            yield value
