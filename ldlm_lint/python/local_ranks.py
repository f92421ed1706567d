"""Conditions that select one process on each node: tests of the local rank only."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.guards import block_of, leaves, tests_rank
from ldlm_lint.python.names import last_name
from ldlm_lint.python.scopes import bindings
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of

_DEPTH = 4
# Names of the local rank in frameworks and launchers, and of tests of it.
_LOCAL_NUMBER = lazily(r"(?i)local_?rank$|local_?process_?index$|local_?proc(?:ess)?_?id$|(?:^|_)LOCALID$|node_local_rank$")
_LOCAL_TEST = lazily(r"is_local_main_process$|is_local_process_zero$|is_local_zero$|local_process_zero$|is_local_master$")
_OVERALL = frozenset({"get_rank", "get_global_rank"})
_NUMBERS = ("==", "!=", "in", "not in", "is", ">", "<", "<=")
_DEVICES = lazily(r"device_count$|gpus_per_node$|n?proc_?per_?node$|local_world_size$|local_size$")


def local_test(node: nodes.NodeNG) -> nodes.NodeNG | None:
    """The condition on the way to a node inside its function that tests the local rank; None if the global one is
    tested too."""
    found = None
    for test, holds in _demanded(node):
        for part in _parts(test, holds):
            if _is_local(part):
                found = found or part
            elif tests_rank(part):
                return None
    return found


def _demanded(node: nodes.NodeNG) -> Iterator[tuple[nodes.NodeNG, bool]]:
    """The conditions around a node, and those of earlier statements that end the function or the iteration."""
    child = node
    while child.parent is not None and not isinstance(child, nodes.FunctionDef):
        parent = child.parent
        if isinstance(parent, nodes.If) and child is not parent.test:
            yield parent.test, child in parent.body
        elif isinstance(parent, nodes.IfExp) and child is not parent.test:
            yield parent.test, child is parent.body
        elif isinstance(parent, nodes.BoolOp):
            yield from ((value, parent.op == "and") for value in parent.values[: parent.values.index(child)])
        if child.is_statement:
            yield from _left_before(child)
        child = parent


def _left_before(statement: nodes.NodeNG) -> Iterator[tuple[nodes.NodeNG, bool]]:
    for one in block_of(statement):
        if one is statement:
            return
        if isinstance(one, nodes.If) and leaves(one.body):
            yield one.test, False


def _parts(test: nodes.NodeNG, holds: bool) -> Iterator[nodes.NodeNG]:
    """The certain facts when a condition is true or false: the parts of ``and``, of a false ``or``."""
    if isinstance(test, nodes.BoolOp) and (test.op == "and") is holds:
        for value in test.values:
            yield from _parts(value, holds)
    else:
        yield test


def _is_local(test: nodes.NodeNG, depth: int = 0) -> bool:
    """``local_rank == 0``, ``not local_rank``, ``accelerator.is_local_main_process``, or a variable with such a
    test.
    """
    if isinstance(test, nodes.UnaryOp) and test.op == "not":
        return _is_local(test.operand, depth) or _is_number(test.operand, depth)
    if isinstance(test, nodes.Compare) and len(test.ops) == 1:
        operator, right = test.ops[0]
        options = right.elts if isinstance(right, (nodes.Tuple, nodes.List, nodes.Set)) else [right]
        return operator in _NUMBERS and any(type(one := constant(each)) is int and one in (0, 1) for each in options) and _is_number(test.left, depth)
    if _LOCAL_TEST.search(last_name(test.func if isinstance(test, nodes.Call) else test)):
        return True
    held = _held(test) if depth < _DEPTH else None
    return held is not None and _is_local(held, depth + 1)


def _is_number(node: nodes.NodeNG, depth: int) -> bool:
    """Whether an expression is the local rank; its origin counts more than its name."""
    held = _held(node) if depth < _DEPTH else None
    if held is not None and not (isinstance(held, nodes.Const) and held.value in (-1, 0, None)):
        return _is_number(held, depth + 1)
    if isinstance(node, nodes.Call) and node.args and last_name(node.func) == "int":
        return _is_number(node.args[0], depth)
    if isinstance(node, nodes.Call):
        read = constant(node.args[0]) if node.args and last_name(node.func) in ("get", "getenv") else last_name(node.func)
        return isinstance(read, str) and _LOCAL_NUMBER.search(read) is not None
    if isinstance(node, nodes.Subscript):
        key = constant(node.slice)
        return isinstance(key, str) and _LOCAL_NUMBER.search(key) is not None
    if isinstance(node, nodes.BinOp):
        return node.op == "%" and any(_DEVICES.search(last_name(one)) for one in nodes_of(node.right, (nodes.Name, nodes.Attribute)))
    return _LOCAL_NUMBER.search(last_name(node)) is not None and not (isinstance(node, nodes.Attribute) and _is_overall(node))


def _is_overall(number: nodes.Attribute) -> bool:
    """Whether the file stores the global rank in an attribute named after the local one."""
    stored = (one for one in nodes_of(number.root(), nodes.AssignAttr) if one.attrname == number.attrname)
    values = (one.parent.value for one in stored if isinstance(one.parent, nodes.Assign))
    return any(last_name(call.func) in _OVERALL for value in values for call in nodes_of(value, nodes.Call))


def _held(name: nodes.NodeNG) -> nodes.NodeNG | None:
    """The value of the only binding of a variable or an attribute of ``self``, also from an unpacking; None if it is
    not an assignment."""
    if isinstance(name, nodes.Attribute):
        return _held_by_self(name)
    found = bindings(name) if isinstance(name, nodes.Name) else []
    target = found[0] if len(found) == 1 else None
    if not isinstance(target, nodes.AssignName):
        return None
    if isinstance(target.parent, (nodes.Assign, nodes.AnnAssign)):
        return target.parent.value
    together, statement = target.parent, target.parent.parent
    value = statement.value if isinstance(statement, nodes.Assign) else None
    if isinstance(together, nodes.Tuple) and isinstance(value, nodes.Tuple) and len(value.elts) == len(together.elts):
        return value.elts[together.elts.index(target)]
    return None


def _held_by_self(attribute: nodes.Attribute) -> nodes.NodeNG | None:
    """The value of an attribute that a class sets once."""
    around = next((one for one in attribute.node_ancestors() if isinstance(one, nodes.ClassDef)), None)
    if around is None or last_name(attribute.expr) != "self" or not isinstance(attribute.expr, nodes.Name):
        return None
    stored = [one for one in nodes_of(around, nodes.AssignAttr) if one.attrname == attribute.attrname and one.expr.as_string() == "self"]
    statement = stored[0].parent if len(stored) == 1 else None
    return statement.value if isinstance(statement, (nodes.Assign, nodes.AnnAssign)) else None


__all__ = ["local_test"]
