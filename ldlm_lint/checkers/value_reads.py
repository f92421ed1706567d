"""Uses of a variable that take tensors for their values: none of them depends on whether there is a graph.

The text of a tensor names its graph (``tensor(1., grad_fn=<AddBackward0>)``), so text counts only if a format specifies
a number: ``f"{total:.4f}"`` is that of a single element, and raises for any other tensor in both cases.
"""

from __future__ import annotations

import string

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import qualified, scope_of
from ldlm_lint.python.values import only_binding
from ldlm_lint.python.walks import nodes_of

_NUMBERS = {"float", "int", "bool", "len"}
_KEEPING_BUILTINS = {"sum", "max", "min", "abs"}
_KEEPING = {"torch.stack", "torch.mean", "torch.sum", "torch.cat"}
_VALUES = {"item", "tolist", "detach", "data", "shape", "dtype", "device", "numel", "size"}
_KEEPING_METHODS = {"mean", "sum", "cpu", "to", "div", "float", "double", "sqrt", "exp", "clone", "append", "clear"}
_TEXT = lazily(r"%[-#0 +]*[\d*]*(?:\.[\d*]+)?[sra]")
_COMPARISONS = {"<", ">", "<=", ">=", "==", "!=", "is", "is not"}
_DEPTH = 3


def is_only_read(owner: nodes.NodeNG, name: str, known: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether each use of a function's variable, apart from the statement ``known``, uses only the value."""
    uses = (one for one in nodes_of(owner, nodes.Name) if one.name == name)
    return depth < _DEPTH and all(scope_of(one) is owner and _is_read(one, owner, known, depth) for one in uses)


def _is_read(use: nodes.NodeNG, owner: nodes.NodeNG, known: nodes.NodeNG, depth: int) -> bool:
    child, parent = use, use.parent
    while True:
        verdict = _verdict(child, parent, known)
        if verdict is not None:
            return verdict
        if isinstance(parent, nodes.Assign):
            return len(parent.targets) == 1 and _goes_on(parent.targets[0], use, owner, known, depth)
        if isinstance(parent, nodes.AugAssign):
            return parent.op == "+=" and _goes_on(parent.target, use, owner, known, depth)
        child, parent = parent, parent.parent


def _verdict(child: nodes.NodeNG, parent: nodes.NodeNG, known: nodes.NodeNG) -> bool | None:
    """Whether the enclosing code reads the value of an expression; None if the enclosing expression decides."""
    if parent is known or isinstance(parent, nodes.Expr):
        return True
    if isinstance(parent, (nodes.If, nodes.While, nodes.Assert)):
        return parent.test is child
    if isinstance(parent, nodes.FormattedValue):
        return parent.conversion == -1 and _asks_for_a_number(parent.format_spec)
    if isinstance(parent, nodes.Compare):
        return all(operator in _COMPARISONS for operator, _ in parent.ops)
    if isinstance(parent, nodes.Attribute):
        return True if parent.attrname in _VALUES else _unless(parent.attrname not in _KEEPING_METHODS)
    if isinstance(parent, nodes.Call):
        return None if child is parent.func else _verdict_of_call(parent)
    if isinstance(parent, nodes.BinOp) and parent.op == "%" and isinstance(parent.left, nodes.Const):
        return (
            child is parent.right
            and isinstance(parent.left.value, str)
            and not _TEXT.search(parent.left.value.replace("%%", ""))
        )
    if isinstance(parent, nodes.Subscript):
        return _unless(child is not parent.value)
    passes = (nodes.BinOp, nodes.UnaryOp, nodes.IfExp, nodes.List, nodes.Tuple, nodes.Assign, nodes.AugAssign)
    return _unless(not isinstance(parent, passes))


def _unless(refused: bool) -> bool | None:
    return False if refused else None


def _verdict_of_call(call: nodes.Call) -> bool | None:
    """How a call uses an argument."""
    if isinstance(call.func, nodes.Name) and scope_of(call.func) is None:
        if call.func.name == "format":
            return len(call.args) == 2 and isinstance(call.args[1], nodes.Const) and bool(call.args[1].value)
        return True if call.func.name in _NUMBERS else _unless(call.func.name not in _KEEPING_BUILTINS)
    if isinstance(call.func, nodes.Attribute) and isinstance(call.func.expr, nodes.Const):
        text = call.func.expr.value
        return call.func.attrname == "format" and isinstance(text, str) and _formats_numbers(text)
    if isinstance(call.func, nodes.Attribute) and call.func.attrname == "add_scalar":
        return _is_summary_writer(call.func.expr)
    return _unless(not qualified(call.func) <= _KEEPING)


def _asks_for_a_number(spec: nodes.NodeNG | None) -> bool:
    parts = spec.values if isinstance(spec, nodes.JoinedStr) else []
    return any(isinstance(one, nodes.Const) and one.value for one in parts)


def _formats_numbers(text: str) -> bool:
    """Whether each field of a format string has a format specification, and none requests the text of an object."""
    try:
        fields = [one for one in string.Formatter().parse(text) if one[1] is not None]
    except ValueError:
        return False
    return all(spec and not conversion for _, _, spec, conversion in fields)


def _goes_on(target: nodes.NodeNG, use: nodes.NodeNG, owner: nodes.NodeNG, known: nodes.NodeNG, depth: int) -> bool:
    """Whether the target of a value is a variable of the function that is also only read."""
    if not isinstance(target, nodes.AssignName) or target.name not in owner.locals:
        return False
    return target.name == use.name or is_only_read(owner, target.name, known, depth + 1)


def _is_summary_writer(node: nodes.NodeNG) -> bool:
    """A TensorBoard writer of the file, which only uses the data of a tensor."""
    value = only_binding(node) if isinstance(node, nodes.Name) else None
    names = qualified(value.func) if isinstance(value, nodes.Call) else frozenset()
    return bool(names) and all(name.endswith(".SummaryWriter") for name in names)
