"""Finds accumulation steps that are rounded down: ``target // (batch * world_size)`` without a look at the remainder."""

from __future__ import annotations

from collections.abc import Iterator

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker, extent
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Fix
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.batch_size import BATCH_SIZE_DRIFT, RULES, drifts, is_accumulation
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

_REASON = "only the author can decide whether to fail, to round up or to adjust the learning rate"
_COMPARISONS = ("==", "!=")


class BatchSizeChecker(LdlmChecker):
    """How many micro-batches make a step."""

    rules = RULES

    def visit_assign(self, node: nodes.Assign) -> None:
        """Look at accumulation steps that are computed."""
        self._check(node, node.targets[0], node.value)

    def visit_annassign(self, node: nodes.AnnAssign) -> None:
        """Look at accumulation steps that are computed."""
        self._check(node, node.target, node.value)

    def visit_augassign(self, node: nodes.AugAssign) -> None:
        """Look at accumulation steps that are divided."""
        self._check(node, node.target, node.value)

    def _check(self, node: nodes.NodeNG, target: nodes.NodeNG, value: nodes.NodeNG | None) -> None:
        name = _name(target)
        if not name or not is_accumulation(name) or value is None:
            return
        operands = _of_augmented(node) if isinstance(node, nodes.AugAssign) else _of_division(value)
        if operands is None:
            return
        left, right = operands
        if isinstance(left, nodes.Call) and isinstance(left.func, nodes.Name):
            # What a framework says of itself (`get_global_batch_size()`) it has checked where it was set.
            return
        numerator, divisor = set(_names(left)), set(_names(right))
        if not drifts(name, (), divisor) or _is_rounded_up(left) or _is_checked(node.root(), name, numerator | divisor):
            return
        self.report(
            BATCH_SIZE_DRIFT,
            node,
            args={"name": quoted(name), "target": quoted(left.as_string()), "divisor": quoted(right.as_string())},
            confidence=Confidence.MEDIUM,
            claims=(Claim("stands-outside-tests"),),
            fix=lambda source: _fix(source, node, left, right),
        )


def _name(target: nodes.NodeNG) -> str:
    """The name that is assigned: of a variable, an attribute or a constant key."""
    if isinstance(target, (nodes.AssignName, nodes.Name)):
        return target.name
    if isinstance(target, (nodes.AssignAttr, nodes.Attribute)):
        return target.attrname
    if isinstance(target, nodes.Subscript) and isinstance(target.slice, nodes.Const):
        return str(target.slice.value)
    return ""


def _of_augmented(node: nodes.AugAssign) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    return (node.target, node.value) if node.op == "//=" else None


def _of_division(value: nodes.NodeNG) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    """The operands of a floor division, also inside ``max(1, …)``, or of a quotient inside ``int(…)``."""
    if isinstance(value, nodes.BinOp) and value.op == "//":
        return _flattened(value)
    if not isinstance(value, nodes.Call) or not isinstance(value.func, nodes.Name):
        return None
    if value.func.name == "max":
        found = (_of_division(argument) for argument in value.args)
        return next((operands for operands in found if operands), None)
    if value.func.name == "int" and value.args:
        inner = value.args[0]
        if isinstance(inner, nodes.BinOp) and inner.op == "/":
            return inner.left, inner.right
        return _of_division(inner)
    return None


def _flattened(value: nodes.BinOp) -> tuple[nodes.NodeNG, nodes.NodeNG]:
    """``a // b // world``: the last divisor that holds the number of ranks, and what it divides."""
    left, right = value.left, value.right
    while isinstance(left, nodes.BinOp) and left.op == "//" and not drifts("accum_steps", (), _names(right)):
        left, right = left.left, left.right
    return left, right


def _names(node: nodes.NodeNG) -> Iterator[str]:
    """The last names of all variables, attributes, called functions and constant keys in an expression."""
    for one in nodes_of(node, (nodes.Name, nodes.Attribute, nodes.Subscript, nodes.AssignName, nodes.AssignAttr)):
        if name := _name(one):
            yield name


def _is_rounded_up(numerator: nodes.NodeNG) -> bool:
    """``(target + size - 1) // size``, and ``-(-target // size)``."""
    if isinstance(numerator, nodes.UnaryOp):
        return True
    return isinstance(numerator, nodes.BinOp) and numerator.op in ("+", "-")


def _is_checked(module: nodes.Module, result: str, operands: set[str]) -> bool:
    """Whether the module computes a remainder of the operands, or compares their product with the result."""
    for one in nodes_of(module, (nodes.BinOp, nodes.Compare, nodes.Call)):
        if isinstance(one, nodes.BinOp):
            if one.op == "%" and not isinstance(one.left, nodes.Const) and operands & set(_names(one)):
                return True
        elif isinstance(one, nodes.Call):
            if isinstance(one.func, nodes.Name) and one.func.name == "divmod" and operands & set(_names(one)):
                return True
        elif any(operator in _COMPARISONS for operator, _ in one.ops):
            names = set(_names(one))
            if result in names and len(operands & names) > 1:
                return True
    return False


def _fix(source: Source, node: nodes.NodeNG, left: nodes.NodeNG, right: nodes.NodeNG) -> Fix | None:
    """An ``assert`` in front of an assignment that stands on a line of its own."""
    line, column, _, _ = extent(node)
    indent = source.lines[line - 1][:column]
    if indent.strip():
        return None
    place = source.offset(line, 0)
    check = f"{indent}assert ({left.as_string()}) % ({right.as_string()}) == 0, \"the batch size does not divide\"{source.newline}"
    return Fix("stop with an error when a remainder is left", (Edit(source.span(place, place), check),), Applicability.DISPLAY, _REASON)
