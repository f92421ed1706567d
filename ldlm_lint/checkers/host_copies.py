"""Whether a copy to the host that does not block is read before anything waits for it, as far as one function shows."""

from __future__ import annotations

from astroid import nodes

from ldlm_lint.python.names import last_name, qualified, scope_of
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant, only_binding
from ldlm_lint.python.walks import nodes_of

_DEPTH = 8
# A view of the memory, or the tensor itself: nothing is read yet.
_VIEWS = {"detach", "view", "reshape", "squeeze", "unsqueeze", "flatten", "permute", "transpose", "t", "contiguous", "view_as", "expand", "data", "T", "unbind", "split", "chunk"}
_READS = {
    *("item", "tolist", "numpy", "clone", "float", "double", "half", "int", "long", "bool", "sum", "mean", "std", "max", "min"),
    *("argmax", "argmin", "any", "all", "abs", "norm", "nonzero", "unique", "topk", "sort", "exp", "log", "mul", "add", "div", "sub"),
}
_GOES_THROUGH = {"enumerate", "zip", "reversed", "tqdm"}
_READING_BUILTINS = {"float", "int", "bool", "print", "str", "repr", "list", "sum", "max", "min", "sorted"}
_READING_CALLS = {"torch.save", "pickle.dump", "pickle.dumps", "torch.isnan", "torch.isfinite", "torch.equal", "torch.allclose"}
WAITS = {"synchronize", "wait", "wait_stream", "wait_event", "query", "elapsed_time", "barrier", "synchronize_stream", "record", "record_event", "record_stream"}
_FROM_HOST = {"torch.from_numpy", "torch.frombuffer", "torch.tensor", "torch.as_tensor"}
_MOVES = {"to", "cuda", "xpu", "npu", "hpu", "type", "type_as", "new_tensor"}
_BLOCKS = {"item", "tolist", "cpu", "numpy"}


def is_async_copy_to_host(call: nodes.Call) -> bool:
    """Whether a call is ``tensor.to("cpu", …, non_blocking=True)``."""
    if not isinstance(call.func, nodes.Attribute) or call.func.attrname != "to":
        return False
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    target = keywords.get("device") or (call.args[0] if call.args else None)
    asynchronous = constant(keywords.get("non_blocking")) is True and target is not None and _is_host(target)
    return asynchronous and not _is_made_on_host(call.func.expr)


def _is_made_on_host(node: nodes.NodeNG) -> bool:
    """``torch.from_numpy(frame).float()``: it never leaves the host, so there is nothing to wait for."""
    while isinstance(node, nodes.Call):
        if qualified(node.func) <= _FROM_HOST:
            return all(one.arg not in ("device", None) for one in node.keywords)
        if not isinstance(node.func, nodes.Attribute) or node.func.attrname in _MOVES:
            return False
        node = node.func.expr
    return False


def _is_host(node: nodes.NodeNG, depth: int = 0) -> bool:
    if constant(node) == "cpu":
        return True
    if isinstance(node, nodes.Name) and depth < _DEPTH:
        value = only_binding(node)
        return value is not None and _is_host(value, depth + 1)
    if isinstance(node, nodes.Call) and qualified(node.func) <= {"torch.device"} and len(node.args) == 1:
        return constant(node.args[0]) == "cpu"
    return False


def first_read(call: nodes.Call) -> nodes.NodeNG | None:
    """What reads the values of an asynchronous copy before its function waits for anything; None where nothing is known to."""
    function = function_of(call)
    if any(last_name(one.func) in WAITS for one in nodes_of(function, nodes.Call)):
        return None
    read, holder = _follow(call)
    return read if read is not None or holder is None else _read_of(holder, call, function)


def _read_of(holder: nodes.AssignName, copy: nodes.Call, function: nodes.NodeNG, depth: int = 0) -> nodes.NodeNG | None:
    """What first reads the variable that a copy, or a row of it in a loop, is stored in."""
    statement = holder.statement()
    for use in _uses_of(holder, statement):
        if _blocks_between(function, copy.statement(), use, copy):
            return None
        read, onward = _follow(use)
        if onward is not None and _is_looped(onward) and depth < _DEPTH:
            read = _read_of(onward, copy, function, depth + 1)
        if read is not None:
            return read
        if onward is not None or not _only_looks(use):
            return None
    return None


def _follow(node: nodes.NodeNG) -> tuple[nodes.NodeNG | None, nodes.AssignName | None]:
    """The read that a value is put to in its own expression, or the one variable that it, or each of its rows, is stored in."""
    for _ in range(_DEPTH):
        parent = node.parent
        if isinstance(parent, nodes.Attribute) and parent.expr is node:
            method = isinstance(parent.parent, nodes.Call) and parent.parent.func is parent
            if parent.attrname in _VIEWS:
                node = parent.parent if method else parent
                continue
            return (parent.parent, None) if method and parent.attrname in _READS else (None, None)
        if isinstance(parent, nodes.Subscript) and parent.value is node:
            node = parent
            continue
        if isinstance(parent, (nodes.For, nodes.Comprehension)):
            return None, _target_of(parent.target) if parent.iter is node else None
        if isinstance(parent, nodes.Call) and node in parent.args and last_name(parent.func) in _GOES_THROUGH:
            return None, _element_of(parent, node)
        if isinstance(parent, (nodes.ListComp, nodes.DictComp, nodes.List, nodes.Tuple, nodes.Dict)):
            node = parent
            continue
        if isinstance(parent, nodes.Assign) and parent.value is node:
            return None, _target_of(parent.targets[0]) if len(parent.targets) == 1 else None
        return (parent, None) if _reads_operand(parent, node) else (None, None)
    return None, None


def _target_of(target: nodes.NodeNG) -> nodes.AssignName | None:
    return target if isinstance(target, nodes.AssignName) else None


def _element_of(call: nodes.Call, given: nodes.NodeNG) -> nodes.AssignName | None:
    """The variable that takes a row of what is ``given`` in ``for i, row in enumerate(rows)`` and ``for row, name in zip(rows, names)``."""
    loop = call.parent
    if not isinstance(loop, (nodes.For, nodes.Comprehension)) or loop.iter is not call:
        return None
    parts = loop.target.elts if isinstance(loop.target, (nodes.Tuple, nodes.List)) else []
    name = last_name(call.func)
    if name == "zip" and len(parts) == len(call.args):
        return _target_of(parts[call.args.index(given)])
    if name == "enumerate" and len(parts) == 2:
        return _target_of(parts[1])
    return _target_of(loop.target) if name in ("reversed", "tqdm") else None


def _is_looped(holder: nodes.AssignName) -> bool:
    return _loop_of(holder) is not None


def _loop_of(holder: nodes.AssignName) -> nodes.For | nodes.Comprehension | None:
    """The loop that a variable takes its values from."""
    owner = holder.parent.parent if isinstance(holder.parent, (nodes.Tuple, nodes.List)) else holder.parent
    return owner if isinstance(owner, (nodes.For, nodes.Comprehension)) else None


def _reads_operand(parent: nodes.NodeNG, node: nodes.NodeNG) -> bool:
    if isinstance(parent, nodes.Call) and node in parent.args:
        if isinstance(parent.func, nodes.Name) and scope_of(parent.func) is None:
            return parent.func.name in _READING_BUILTINS
        return all(name in _READING_CALLS or name.startswith("numpy.") for name in qualified(parent.func))
    if isinstance(parent, nodes.Compare):
        # ``x is None`` asks for the object alone.
        return all(operator not in ("is", "is not", "in", "not in") for operator, _ in parent.ops)
    if isinstance(parent, (nodes.If, nodes.While)):
        return parent.test is node
    return isinstance(parent, (nodes.FormattedValue, nodes.BinOp, nodes.AugAssign))


def _uses_of(holder: nodes.AssignName, statement: nodes.NodeNG) -> list[nodes.Name]:
    """The uses of a variable behind the statement that binds it, or in the loop that does."""
    loop = _loop_of(holder)
    place = loop.parent if isinstance(loop, nodes.Comprehension) else loop if loop is not None else holder.scope()
    uses = [one for one in nodes_of(place, nodes.Name) if one.name == holder.name]
    uses = [one for one in uses if loop is not None or (one.lineno or 0) > (statement.end_lineno or 0)]
    return sorted(uses, key=lambda one: (one.lineno, one.col_offset))


def _only_looks(use: nodes.Name) -> bool:
    """A use that neither reads the values nor hands them to somebody who may wait for them."""
    parent = use.parent
    if isinstance(parent, nodes.Call) and use in parent.args:
        return last_name(parent.func) in ("len", "isinstance")
    return isinstance(parent, nodes.Compare) or (isinstance(parent, nodes.Attribute) and parent.attrname in ("shape", "dtype", "device", "ndim"))


def _blocks_between(function: nodes.NodeNG, statement: nodes.NodeNG, use: nodes.Name, copy: nodes.Call) -> bool:
    """Whether another copy to the host, one that blocks, stands between: the same stream then has done this one too."""
    for one in nodes_of(function, nodes.Call):
        between = (statement.lineno or 0) <= (one.lineno or 0) <= (use.lineno or 0)
        if not between or one is copy or copy.parent_of(one) or one.parent_of(use) or use is one or _runs_on_rows(one, use):
            continue
        if last_name(one.func) in _BLOCKS or (last_name(one.func) == "to" and one.args and _is_host(one.args[0]) and not is_async_copy_to_host(one)):
            return True
    return False


def _runs_on_rows(call: nodes.Call, use: nodes.Name) -> bool:
    """Whether a call stands in the element of a comprehension that goes through a use: it comes after it."""
    loops = (one for one in use.node_ancestors() if isinstance(one, nodes.Comprehension))
    return any(loop.iter is use or loop.iter.parent_of(use) for loop in loops if loop.parent.parent_of(call) and not loop.parent_of(call))
