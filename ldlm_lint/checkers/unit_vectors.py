"""Vectors of length one, traced through the names of a function, and the mean squared error between two of them."""

from __future__ import annotations

import re

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.calls import Argument, Arguments
from ldlm_lint.python.names import bindings, last_name, qualified, scope_of
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant, only_binding
from ldlm_lint.python.walks import nodes_of

_NORMALIZE = {"torch.nn.functional.normalize"}
_FOREIGN_NORMALIZE = lazily(r"\.?(^|\.)_*l2_?norm(aliz|alis)?(e|ed)?$", re.I)
_KEEPS = {
    "detach", "float", "to", "contiguous", "view", "reshape", "squeeze", "unsqueeze", "flatten", "transpose", "permute",
    "clone", "half", "double", "bfloat16", "type", "type_as", "cuda", "cpu", "view_as", "reshape_as",
}  # fmt: skip
_NORMS = {"torch.norm": "p", "torch.linalg.norm": "ord", "torch.linalg.vector_norm": "ord"}
_CLAMPS = {"clamp", "clamp_min", "clamp_", "clamp_min_", "maximum", "max"}
_SHAPES = {"unsqueeze", "view", "reshape", "expand_as", "expand", "to", "detach"}
_MSE = {"torch.nn.functional.mse_loss"}
_MSE_CLASS = {"torch.nn.MSELoss", "torch.nn.modules.loss.MSELoss"}
_MSE_POSITIONAL = ("input", "target", "size_average", "reduce", "reduction")
_WIDTH = lazily(r"(^|_)(dims?|width|channels|hidden|embed|features|d)($|_)", re.I)
_BRANCHES = (nodes.If, nodes.For, nodes.While, nodes.Try, nodes.Match)
_DEPTH = 6


def unit_vector_error(call: nodes.Call) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    """The two unit vectors in a mean squared error; None if the call is not one, or the scale is corrected."""
    pair = _mse_loss(call) or _mean_of_squares(call)
    if pair is None or not all(map(is_unit, pair)):
        return None
    return None if _makes_up_for_width(call) else pair


def _mse_loss(call: nodes.Call) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    options = _options(call)
    if options is None or any(options[name].may_be_passed() for name in ("size_average", "reduce")):
        return None
    arguments = Arguments(call, _MSE_POSITIONAL)
    left, right, reduction = arguments["input"].node, arguments["target"].node, options["reduction"]
    if left is None or right is None:
        return None
    averages = reduction.absent or reduction.is_only("mean") or (reduction.is_only("none") and _is_averaged(call))
    return (left, right) if averages else None


def _options(call: nodes.Call) -> Arguments | None:
    """The reduction arguments of a mean squared error; None if the call is not one."""
    if qualified(call.func) <= _MSE:
        return Arguments(call, _MSE_POSITIONAL)
    # Two positional unit vectors are rarer, and cheaper to find, than the binding of an attribute.
    if len(call.args) != 2 or not all(map(is_unit, call.args)):
        return None
    if _is_super_of_mse(call.func):
        return Arguments(call)
    constructor = _constructor(call.func)
    return Arguments(constructor, _MSE_POSITIONAL[2:]) if constructor is not None else None


def _is_super_of_mse(func: nodes.NodeNG) -> bool:
    """``super().forward`` in a class that derives from ``nn.MSELoss``."""
    if not isinstance(func, nodes.Attribute) or func.attrname not in ("forward", "__call__"):
        return False
    if not isinstance(func.expr, nodes.Call) or last_name(func.expr.func) != "super":
        return False
    owner = function_of(func).parent
    return isinstance(owner, nodes.ClassDef) and any(qualified(base) <= _MSE_CLASS for base in owner.bases)


def _constructor(func: nodes.NodeNG) -> nodes.Call | None:
    """The ``nn.MSELoss(...)`` that created the callee: directly, under a name, or as an attribute of the class."""
    if isinstance(func, nodes.Name):
        func = only_binding(func)
    elif isinstance(func, nodes.Attribute):
        held = [
            one.parent.value
            for one in nodes_of(func.root(), nodes.AssignAttr)
            if one.attrname == func.attrname and isinstance(one.parent, nodes.Assign)
        ]
        func = held[0] if len(held) == 1 else None
    return func if isinstance(func, nodes.Call) and qualified(func.func) <= _MSE_CLASS else None


def _is_averaged(node: nodes.NodeNG) -> bool:
    """Whether a mean is the first operation on a value: ``mse_loss(..., reduction="none").mean()``."""
    parent = node.parent
    if isinstance(parent, nodes.Attribute):
        return parent.attrname == "mean"
    if isinstance(parent, nodes.Call):
        return qualified(parent.func) <= {"torch.mean"}
    if isinstance(parent, nodes.Assign) and isinstance(parent.targets[0], nodes.AssignName):
        name = parent.targets[0].name
        names = nodes_of(function_of(node), nodes.Name)
        uses = [one for one in names if one.name == name and one.lineno > node.lineno]
        return bool(uses) and _is_averaged(uses[0])
    return False


def _mean_of_squares(call: nodes.Call) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    """``((a - b) ** 2).mean()``, ``torch.mean((a - b).pow(2))`` and ``(a - b).square().mean()``."""
    if qualified(call.func) <= {"torch.mean"} and call.args:
        square = call.args[0]
    elif isinstance(call.func, nodes.Attribute) and call.func.attrname == "mean":
        square = call.func.expr
    else:
        return None
    difference = _squared(square)
    if isinstance(difference, nodes.BinOp) and difference.op == "-":
        return difference.left, difference.right
    return None


def _squared(node: nodes.NodeNG) -> nodes.NodeNG | None:
    """The base of a squared expression."""
    if isinstance(node, nodes.BinOp) and node.op == "**" and constant(node.right) == 2:
        return node.left
    if isinstance(node, nodes.Call) and isinstance(node.func, nodes.Attribute):
        name = node.func.attrname
        if name == "square" and not node.args:
            return node.func.expr
        if name == "pow" and len(node.args) == 1 and constant(node.args[0]) == 2:
            return node.func.expr
        if qualified(node.func) <= {"torch.square", "torch.pow"} and (name == "square" or constant(node.args[-1]) == 2):
            return node.args[0]
    return None


def _makes_up_for_width(node: nodes.NodeNG) -> bool:
    """Whether the result is directly multiplied by the vectors' width, which undoes the mean over their elements."""
    while isinstance(node.parent, nodes.BinOp) and node.parent.op in "*/":
        other = node.parent.right if node.parent.left is node else node.parent.left
        for part in nodes_of(other, (nodes.Name, nodes.Attribute)):
            name = last_name(part)
            if name in ("shape", "size", "numel") or _WIDTH.search(name):
                return True
        node = node.parent
    return False


def is_unit(node: nodes.NodeNG | None, depth: int = 0) -> bool:
    """Whether an expression is certainly a vector of Euclidean length one."""
    if node is None or depth > _DEPTH:
        return False
    if isinstance(node, nodes.Name):
        return _holds_unit(node, depth)
    if isinstance(node, nodes.Call):
        return _returns_unit(node, depth)
    if isinstance(node, nodes.BinOp) and node.op == "/":
        return _is_norm_of(node.right, node.left)
    if isinstance(node, nodes.Subscript) and isinstance(node.slice, (nodes.Name, nodes.Const)):
        return is_unit(node.value, depth + 1)
    return False


def _returns_unit(call: nodes.Call, depth: int) -> bool:
    if normalizes(call.func, depth):
        power = Arguments(call, ("input", "p"))["p"]
        return power.absent or power.is_only(2) or power.is_only(2.0)
    if not isinstance(call.func, nodes.Attribute):
        return False
    if call.func.attrname in _KEEPS:
        return is_unit(call.func.expr, depth + 1)
    return call.func.attrname in ("div", "div_") and len(call.args) == 1 and _is_norm_of(call.args[0], call.func.expr)


def normalizes(func: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether a function divides its argument by its length: torch's, one of the file, or one with such a name."""
    names = qualified(func)
    if names <= _NORMALIZE:
        return True
    if isinstance(func, nodes.Attribute):
        owner = function_of(func).parent
        methods = owner.mymethods() if isinstance(owner, nodes.ClassDef) and last_name(func.expr) == "self" else ()
        return any(one.name == func.attrname and _gives_unit(one, depth) for one in methods)
    if not isinstance(func, nodes.Name):
        return False
    return any(_is_normalizer(one, depth) for one in bindings(func)) and len(bindings(func)) == 1


def _is_normalizer(binding: nodes.NodeNG, depth: int) -> bool:
    if isinstance(binding, nodes.FunctionDef):
        return _gives_unit(binding, depth)
    if isinstance(binding, nodes.ImportFrom):
        return any(_FOREIGN_NORMALIZE.search(name) for name, _ in binding.names)
    value = getattr(binding.parent, "value", None)
    if isinstance(value, nodes.Lambda):
        return is_unit(value.body, depth + 1)
    if isinstance(value, nodes.Call) and qualified(value.func) <= {"functools.partial"} and value.args:
        power = Arguments(value)["p"]
        return normalizes(value.args[0], depth + 1) and (power.absent or power.is_only(2))
    return False


def _gives_unit(function: nodes.FunctionDef, depth: int) -> bool:
    returns = [one.value for one in nodes_of(function, nodes.Return) if one.value is not None]
    return depth < _DEPTH and bool(returns) and all(is_unit(one, depth + 1) for one in returns)


def _holds_unit(name: nodes.Name, depth: int) -> bool:
    """Whether the last value bound to a name before its use, on every path to it, is a unit vector."""
    use = name.statement()
    if scope_of(name) is not function_of(name):
        return False
    before = [one for one in bindings(name) if one.lineno <= name.lineno and one.statement() is not use]
    for binding in sorted(before, key=lambda one: (one.lineno, one.col_offset or 0), reverse=True):
        reach = _reach(binding.statement(), use)
        if reach is not None:
            return reach and isinstance(binding, nodes.AssignName) and _binds_unit(binding, depth)
    return False


def _reach(statement: nodes.NodeNG, use: nodes.NodeNG) -> bool | None:
    """True if a statement runs on every path to its use, False if on some, None if on no path."""
    around = [use, *use.node_ancestors()]
    child = statement
    while not isinstance(child, (nodes.FunctionDef, nodes.Module)):
        parent = child.parent
        if isinstance(parent, _BRANCHES):
            if parent not in around:
                return False
            inner = around[around.index(parent) - 1]
            if isinstance(parent, nodes.If) and (child in parent.body) is not (inner in parent.body):
                return None
        child = parent
    return True


def _binds_unit(binding: nodes.AssignName, depth: int) -> bool:
    parent = binding.parent
    if isinstance(parent, nodes.AugAssign):
        return parent.op == "/=" and _is_norm_of(parent.value, binding)
    if isinstance(parent, (nodes.Assign, nodes.AnnAssign)):
        return is_unit(parent.value, depth + 1)
    if isinstance(parent, nodes.Tuple) and isinstance(parent.parent, nodes.Assign):
        return _gives_units(parent.parent.value, parent.elts.index(binding), depth)
    return False


def _gives_units(value: nodes.NodeNG, index: int, depth: int) -> bool:
    """``a, b = F.normalize(a), F.normalize(b)``, ``map(l2norm, (a, b))`` or ``(F.normalize(t) for t in (a, b))``."""
    if isinstance(value, nodes.Tuple):
        return index < len(value.elts) and is_unit(value.elts[index], depth + 1)
    if isinstance(value, nodes.Call) and last_name(value.func) == "map" and value.args:
        return normalizes(value.args[0], depth + 1)
    return isinstance(value, (nodes.GeneratorExp, nodes.ListComp)) and is_unit(value.elt, depth + 1)


def _is_norm_of(norm: nodes.NodeNG, vector: nodes.NodeNG, depth: int = 0) -> bool:
    """Whether an expression is the Euclidean norm of another, kept away from zero or not."""
    if depth > _DEPTH:
        return False
    if isinstance(norm, nodes.BinOp) and norm.op == "+":
        return any(_is_norm_of(side, vector, depth + 1) for side in (norm.left, norm.right))
    if isinstance(norm, nodes.Name):
        value = only_binding(norm)
        return value is not None and _is_norm_of(value, vector, depth + 1)
    if not isinstance(norm, nodes.Call):
        return False
    names, arguments = qualified(norm.func), Arguments(norm, ("input", "p"))
    function = next((_NORMS[name] for name in names if name in _NORMS), None)
    if function is not None:
        power = Arguments(norm, ("input", function))[function]
        return _is_euclidean(power) and _same(arguments["input"].node, vector)
    name = last_name(norm.func)
    if name in _CLAMPS and names <= {f"torch.{name}"}:
        return any(_is_norm_of(one, vector, depth + 1) for one in norm.args)
    if isinstance(norm.func, nodes.Attribute):
        if name == "norm":
            return _is_euclidean(Arguments(norm, ("p",))["p"]) and _same(norm.func.expr, vector)
        return name in _CLAMPS | _SHAPES and _is_norm_of(norm.func.expr, vector, depth + 1)
    return False


def _is_euclidean(power: Argument) -> bool:
    return power.absent or any(power.is_only(value) for value in (2, 2.0, "fro", None))


def _same(left: nodes.NodeNG | None, right: nodes.NodeNG) -> bool:
    return left is not None and left.as_string() == right.as_string()
