"""Finds accumulation steps that are rounded down: ``target // (batch * world_size)`` without checking the remainder."""

from __future__ import annotations

from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.base import LdlmChecker, extent
from ldlm_lint.checkers.batch_size_flow import (
    counts_ranks,
    holds_steps,
    is_of_one_rank,
    leaves_nothing,
    names_behind,
    names_in,
)
from ldlm_lint.model import Applicability, Claim, Confidence, Edit, Fix
from ldlm_lint.python.micro_batches import name_of
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.rules.batch_size import BATCH_SIZE_DRIFT, RULES
from ldlm_lint.source import Source
from ldlm_lint.wording import quoted

_REASON = "only you can decide whether to stop, to round up or to adjust the learning rate"
_COMPARISONS = ("==", "!=")
OUTSIDE_TESTS = (Claim("stands-outside-tests"),)


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
        found = drift_of(node, target, value)
        if found is None or not holds_steps(target) or not (counts_ranks(found.divisor) or is_of_one_rank(found.total)):
            return
        self.report(
            BATCH_SIZE_DRIFT,
            node,
            args=found.args,
            confidence=Confidence.MEDIUM,
            claims=OUTSIDE_TESTS,
            fix=lambda source: _fix(source, node, found.total, found.divisor),
        )


class Drift(NamedTuple):
    """A quotient that is rounded down without a check: dividend and divisor."""

    name: str
    total: nodes.NodeNG
    divisor: nodes.NodeNG

    @property
    def args(self) -> dict[str, str]:
        """The arguments of the message."""
        return {"name": quoted(self.name), "target": quoted(self.total.as_string()), "divisor": quoted(self.divisor.as_string())}


def drift_of(node: nodes.NodeNG, target: nodes.NodeNG, value: nodes.NodeNG | None) -> Drift | None:
    """The quotient that an assignment rounds down without a look at the remainder, anywhere in its file."""
    name = name_of(target)
    operands = _operands(node, value) if name and value is not None else None
    if operands is None:
        return None
    left, right = operands
    if isinstance(left, nodes.Call) and isinstance(left.func, nodes.Name):
        # Values that a framework reports (`get_global_batch_size()`) were checked when they were set.
        return None
    if _is_rounded_up(left) or leaves_nothing(left, right) or _is_checked(node.root(), name, names_behind(left) | names_behind(right)):
        return None
    return Drift(name, left, right)


def _operands(node: nodes.NodeNG, value: nodes.NodeNG) -> tuple[nodes.NodeNG, nodes.NodeNG] | None:
    return _of_augmented(node) if isinstance(node, nodes.AugAssign) else _of_division(value)


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
    """``a // b // world``: the last divisor with the number of ranks, and its dividend."""
    left, right = value.left, value.right
    while isinstance(left, nodes.BinOp) and left.op == "//" and not counts_ranks(right):
        left, right = left.left, left.right
    return left, right


def _is_rounded_up(numerator: nodes.NodeNG) -> bool:
    """``(target + size - 1) // size``, and ``-(-target // size)``."""
    if isinstance(numerator, nodes.UnaryOp):
        return True
    return isinstance(numerator, nodes.BinOp) and numerator.op in ("+", "-")


def _is_checked(module: nodes.Module, result: str, operands: set[str]) -> bool:
    """Whether the module computes a remainder of the operands, or compares their product with the result."""
    for one in nodes_of(module, (nodes.BinOp, nodes.Compare, nodes.Call)):
        if isinstance(one, nodes.BinOp):
            if one.op == "%" and not isinstance(one.left, nodes.Const) and operands & set(names_in(one)):
                return True
        elif isinstance(one, nodes.Call):
            if isinstance(one.func, nodes.Name) and one.func.name == "divmod" and operands & set(names_in(one)):
                return True
        elif any(operator in _COMPARISONS for operator, _ in one.ops):
            names = set(names_in(one))
            if result in names and len(operands & names) > 1:
                return True
    return False


def _fix(source: Source, node: nodes.NodeNG, left: nodes.NodeNG, right: nodes.NodeNG) -> Fix | None:
    """An ``assert`` in front of an assignment that is on a line of its own."""
    line, column, _, _ = extent(node)
    indent = source.lines[line - 1][:column]
    if indent.strip():
        return None
    place = source.offset(line, 0)
    check = f"{indent}assert ({left.as_string()}) % ({right.as_string()}) == 0, \"the batch size does not divide\"{source.newline}"
    return Fix("stop with an error when a remainder is left", (Edit(source.span(place, place), check),), Applicability.DISPLAY, _REASON)
