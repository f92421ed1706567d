"""Values that are Python's own numbers for certain: no graph depends on them, and they have no tensor methods."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import bindings, last_name, scope_of

_MAKES_NUMBERS = frozenset({"float", "int", "len", "bool"})
_READS = frozenset({"item", "numel", "dim", "nelement"})
_DEPTH = 6


def is_plain_number(node: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether an expression is always a number: ``float(stop - start) / float(size)``, ``loss.item()``."""
    if depth > _DEPTH:
        return False
    if isinstance(node, nodes.Const):
        return isinstance(node.value, (int, float))
    if isinstance(node, nodes.BinOp):
        return is_plain_number(node.left, depth + 1) and is_plain_number(node.right, depth + 1)
    if isinstance(node, nodes.UnaryOp):
        return is_plain_number(node.operand, depth + 1)
    if isinstance(node, nodes.IfExp):
        return is_plain_number(node.body, depth + 1) and is_plain_number(node.orelse, depth + 1)
    if isinstance(node, nodes.Call):
        return _makes_number(node)
    return isinstance(node, nodes.Name) and _holds_number(node, depth)


def _makes_number(call: nodes.Call) -> bool:
    if isinstance(call.func, nodes.Attribute):
        return call.func.attrname in _READS and not call.args
    return last_name(call.func) in _MAKES_NUMBERS and scope_of(call.func) is None


def _holds_number(name: nodes.Name, depth: int) -> bool:
    found = bindings(name)
    return bool(found) and all(_is_bound_to_number(one, depth) for one in found)


def _is_bound_to_number(binding: nodes.NodeNG, depth: int) -> bool:
    statement = binding.parent
    if isinstance(statement, (nodes.Assign, nodes.AnnAssign, nodes.AugAssign)) and statement.value is not None:
        return is_plain_number(statement.value, depth + 1)
    loops = isinstance(statement, nodes.For) and statement.target is binding and isinstance(statement.iter, nodes.Call)
    return loops and last_name(statement.iter.func) == "range"
