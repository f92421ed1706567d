"""Whether the loss of a micro-batch is divided by their number: in the step, in a helper, or in the gradients afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.accumulating import MicroBatches
from ldlm_lint.checkers.step_names import last_name, values_of
from ldlm_lint.patterns import lazily
from ldlm_lint.python.names import bindings
from ldlm_lint.python.places import function_of
from ldlm_lint.python.values import constant, evaluate, only_binding
from ldlm_lint.python.walks import nodes_of

_ACCUMULATION = lazily(r"accum|micro|(^|_)(grad_)?acc(_|\b)|gas\b|num_items|virtual", re.I)
_FACTORS = lazily(r"scal|inv|recip|norm|frac|factor|accum|micro|world|batch|(^|_)bsz?$", re.I)
_PER_SAMPLE = lazily(r"\.sum\(|\.size\(|\.shape|\blen\(|\.numel\(|\.mean\(|\.ndim|\.max\(|\.clamp\(|\.item\(|\.norm\(|\.std\(")
_SIZES = lazily(r"\blen\(|\.shape\b|\.size\(|\.numel\(|\.nelement\(")
_COUNTED = lazily(r"\blen\(|steps|ceil|total|num_|n_|size|samples|tokens|epoch|iters|time|elapsed|\bbs\b", re.I)
_DIVIDES = frozenset({"div", "div_", "true_divide", "true_divide_", "_foreach_div_", "divide"})
_MULTIPLIES = frozenset({"mul", "mul_", "_foreach_mul_"})
_SUMS = (b'"sum"', b"'sum'")
_HANDS_ON = frozenset({"sum", "mean", "stack", "div", "mul", "add", "true_divide", "float", "nan_to_num", "where"})
_KEPT = lazily(r"\bcat\([^)]*\[[^\]]*:|accum|cached", re.I)
# Library helpers that get the gradients, or their owner, and a factor.
_SCALES = lazily(r"(^|_)(re)?(scale|normali[sz]e|divide|multiply)_(the_|all_|model_)?grad(ient)?s?(_|$)")
_DEPTH = 5


def is_scaled(micro: MicroBatches, data: bytes) -> bool:
    """Whether the loss is, or may be, divided: a sum over tokens, an unknown factor."""
    call = micro.backward.node
    words = _words(micro.count)
    return (
        any(word in data for word in _SUMS)
        or any(_settles(one, micro.count, words) for one in _flow(loss_of(call), function_of(call), set()))
        or any(_scales_gradients(one) or _divides_by_count(one, words) for one in _operations(call.root()))
    )


def loss_of(call: nodes.Call) -> nodes.NodeNG:
    """The loss that runs backward: ``loss`` of ``loss.backward()``, ``scaler.scale(loss).backward()``, ``manual_backward(loss)``."""
    if call.args and last_name(call.func) in ("manual_backward", "backward") and "loss" not in last_name(call.func.expr):
        return call.args[0]
    owner = call.func.expr
    if isinstance(owner, nodes.Call) and last_name(owner.func) == "scale" and len(owner.args) == 1:
        return owner.args[0]
    return owner


def _words(count: nodes.NodeNG) -> re.Pattern[str]:
    """Names of the number of micro-batches: its own last name, and words for it."""
    key = constant(count.slice) if isinstance(count, nodes.Subscript) else None
    name = key if isinstance(key, str) else last_name(count)
    return re.compile(rf"\b{re.escape(name)}\b|{_ACCUMULATION.pattern}" if name else _ACCUMULATION.pattern, re.I)


def _flow(node: nodes.NodeNG, function: nodes.NodeNG, seen: set[object], depth: int = 0) -> Iterator[nodes.NodeNG]:
    """The operations on a value, as far as the file shows; arguments of calls do not count."""
    if node in seen or depth > _DEPTH:
        return
    seen.add(node)
    for part in _carriers(node):
        yield part
        if isinstance(part, nodes.Name) and (function, part.name) not in seen:
            seen.add((function, part.name))
            yield from _sources(part, function, seen, depth)
        elif isinstance(part, nodes.Attribute) and part.attrname not in seen and "loss" in part.attrname.lower():
            seen.add(part.attrname)
            for value in values_of(part):
                if value is not None:
                    yield from _flow(value, function_of(value), seen, depth + 1)
        elif isinstance(part, nodes.Call):
            yield from _results(part, seen, depth)


def _carriers(node: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    """An expression and the parts of its value."""
    yield node
    parts: list[nodes.NodeNG] = []
    if isinstance(node, nodes.BinOp):
        parts = [node.left] if node.op in ("/", "//") else [node.left, node.right]
    elif isinstance(node, nodes.Call):
        parts = [node.func.expr] if isinstance(node.func, nodes.Attribute) else []
        if last_name(node.func) in _HANDS_ON or "scale" in last_name(node.func):
            parts += node.args
    elif isinstance(node, (nodes.Tuple, nodes.List)):
        parts = node.elts
    elif isinstance(node, nodes.BoolOp):
        parts = node.values
    elif isinstance(node, nodes.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, (nodes.ListComp, nodes.GeneratorExp)):
        parts = [node.elt]
    elif isinstance(node, nodes.Dict):
        parts = [value for _, value in node.items]
    elif isinstance(node, (nodes.Subscript, nodes.Starred, nodes.Await, nodes.NamedExpr)):
        parts = [node.value]
    elif isinstance(node, nodes.Attribute):
        parts = [node.expr]
    elif isinstance(node, nodes.UnaryOp):
        parts = [node.operand]
    for part in parts:
        yield from _carriers(part)


def _sources(name: nodes.Name, function: nodes.NodeNG, seen: set[object], depth: int) -> Iterator[nodes.NodeNG]:
    """The values assigned to a name or its elements, in-place changes, and arguments of callers."""
    for statement in nodes_of(function, (nodes.Assign, nodes.AnnAssign, nodes.AugAssign, nodes.With)):
        if isinstance(statement, nodes.With):
            bound = [context for context, target in statement.items if target is not None and last_name(target) == name.name]
            values = [argument for context in bound if isinstance(context, nodes.Call) for argument in context.args[:1]]
        elif name.name in _targets(statement):
            yield statement
            values = [statement.value] if statement.value is not None else []
        else:
            continue
        for value in values:
            yield from _flow(value, function, seen, depth + 1)
    for call in nodes_of(function, nodes.Call):
        # ``loss.div_(n)`` and ``losses.append(loss / n)`` change the value of the name.
        if isinstance(call.func, nodes.Attribute) and last_name(call.func.expr) == name.name and isinstance(call.parent, nodes.Expr):
            yield call
            for argument in call.args:
                yield from _flow(argument, function, seen, depth + 1)
    params = [one.name for one in function.args.args or ()] if isinstance(function, nodes.FunctionDef) else []
    if name.name in params:
        yield from _given(function, params.index(name.name), name.name, seen, depth)


def _targets(statement: nodes.Assign | nodes.AnnAssign | nodes.AugAssign) -> set[str]:
    found = statement.targets if isinstance(statement, nodes.Assign) else [statement.target]
    parts = [part for one in found for part in (one.elts if isinstance(one, (nodes.Tuple, nodes.List)) else [one])]
    return {last_name(part) for part in parts if not isinstance(part, nodes.AssignAttr)}


def _given(function: nodes.FunctionDef, position: int, name: str, seen: set[object], depth: int) -> Iterator[nodes.NodeNG]:
    """The arguments of callers in the same file for a parameter."""
    for call in nodes_of(function.root(), nodes.Call):
        if last_name(call.func) != function.name:
            continue
        bound = isinstance(call.func, nodes.Attribute) and function.args.args[0].name == "self"
        at = position - bound
        passed = [*call.args[at : at + 1], *(one.value for one in call.keywords if one.arg == name)]
        for value in passed:
            yield from _flow(value, function_of(call), seen, depth + 1)


def _results(call: nodes.Call, seen: set[object], depth: int) -> Iterator[nodes.NodeNG]:
    """The results of the function of the file that a call calls."""
    name = last_name(call.func)
    if isinstance(call.func, nodes.Name):
        found = [one for one in bindings(call.func) if isinstance(one, nodes.FunctionDef)]
    else:
        found = [one for one in nodes_of(call.root(), nodes.FunctionDef) if one.name == name]
    for function in found[:2]:
        for one in nodes_of(function, nodes.Return):
            if one.value is not None:
                yield from _flow(one.value, function, seen, depth + 1)


def _settles(node: nodes.NodeNG, count: nodes.NodeNG, words: re.Pattern[str]) -> bool:
    """Whether an operation divides by the number of micro-batches, or may compensate for it."""
    if any(_is_number(by, count, words) if divides else _is_factor(by, words) for divides, by in _scalings(node)):
        return True
    if _is_share(node) or any(_is_share(by) for divides, by in _scalings(node) if not divides):
        return True
    if not isinstance(node, nodes.Call) or "scale_loss" in last_name(node.func):
        return False
    if isinstance(node.func, nodes.Attribute) and node.func.attrname == "sum":
        return isinstance(node.parent, (nodes.Assign, nodes.Attribute))
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    # A function that gets the number divides by it; one that gets the outputs of all micro-batches need not.
    return any(words.search(one.as_string()) or _holds_all(one) for one in given)


def _is_share(node: nodes.NodeNG) -> bool:
    """``loss * len(part) / len(batch)``: the share of a micro-batch in its batch, which divides by their number and more."""
    if isinstance(node, nodes.Name) and (value := only_binding(node)) is not None:
        node = value
    if not isinstance(node, nodes.BinOp) or node.op != "/" or not _SIZES.search(whole := node.right.as_string()):
        return False
    part = node.left.right if isinstance(node.left, nodes.BinOp) and node.left.op == "*" else node.left
    text = part.as_string()
    return isinstance(part, (nodes.Call, nodes.Subscript)) and text != whole and _SIZES.search(text) is not None


def _holds_all(node: nodes.NodeNG) -> bool:
    """Whether an argument, or its contents, come from several micro-batches."""
    if not isinstance(node, nodes.Name):
        return False
    statements = nodes_of(function_of(node), (nodes.Assign, nodes.AugAssign))
    return any(_KEPT.search(one.value.as_string()) for one in statements if node.name in _targets(one))


def _scalings(node: nodes.NodeNG) -> Iterator[tuple[bool, nodes.NodeNG]]:
    """The divisors (True) and factors (False) of one operation."""
    if isinstance(node, nodes.BinOp):
        if node.op in ("/", "//"):
            yield True, node.right
        elif node.op == "*":
            yield from ((False, node.left), (False, node.right))
    elif isinstance(node, nodes.AugAssign):
        if node.op in ("/=", "*="):
            yield node.op == "/=", node.value
    elif isinstance(node, nodes.Call) and isinstance(node.func, nodes.Attribute) and node.args:
        name = node.func.attrname
        if name in _DIVIDES or name in _MULTIPLIES:
            yield name in _DIVIDES, node.args[-1]


def _is_number(divisor: nodes.NodeNG, count: nodes.NodeNG, words: re.Pattern[str]) -> bool:
    text = divisor.as_string()
    if words.search(text):
        return True
    values = evaluate(divisor)
    if values is not None:
        return bool(set(values) & set(evaluate(count) or ()))
    if isinstance(divisor, nodes.Name) and (value := only_binding(divisor)) is not None:
        text = value.as_string()
    return _PER_SAMPLE.search(text) is None


def _is_factor(factor: nodes.NodeNG, words: re.Pattern[str]) -> bool:
    if not isinstance(factor, (nodes.Name, nodes.Attribute, nodes.Subscript, nodes.BinOp)):
        return False
    return _FACTORS.search(last_name(factor)) is not None or (
        isinstance(factor, nodes.BinOp) and words.search(factor.as_string()) is not None
    )


def _operations(module: nodes.NodeNG) -> Iterator[nodes.NodeNG]:
    return nodes_of(module, (nodes.BinOp, nodes.AugAssign, nodes.Call))


def _scales_gradients(node: nodes.NodeNG) -> bool:
    """``p.grad /= n``, ``p.grad.div_(n)``, ``scale_grads(model, 1 / n)``: the gradients themselves."""
    if isinstance(node, nodes.AugAssign):
        return node.op in ("/=", "*=") and re.search(r"\bgrad\b", node.target.as_string()) is not None
    if isinstance(node, nodes.Call) and len(node.args) > 1 and _SCALES.search(last_name(node.func)):
        return True
    if isinstance(node, nodes.Call) and isinstance(node.func, nodes.Attribute):
        name = node.func.attrname
        if name.startswith("_foreach_"):
            return name in _DIVIDES | _MULTIPLIES
        return name in _DIVIDES | _MULTIPLIES and re.search(r"\bgrads?\b", node.func.expr.as_string()) is not None
    return False


def _divides_by_count(node: nodes.NodeNG, words: re.Pattern[str]) -> bool:
    """A division by the number of micro-batches anywhere in the file that does not count steps or batches."""
    if not isinstance(node, nodes.BinOp) or node.op != "/":
        return False
    return words.search(node.right.as_string()) is not None and _COUNTED.search(node.left.as_string()) is None
