"""Conditions of findings in a training step: a loss that is kept beyond it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ldlm_lint.shapes.outline import Outline, dotted, last_name, targets_of
from ldlm_lint.shapes.owners import Owner

_DIFFERENTIATES = ("backward", "manual_backward")
_SUMS = (ast.Add, ast.Sub, ast.Mult, ast.Div)
_KEEPING = frozenset({"mean", "sum", "clone", "float", "squeeze", "view", "reshape", "to", "cpu", "cuda", "double", "half"})
_METHODS = frozenset({"append", "extend", "update", "add", "push", "record", "log"})
_PASS_WORDS = ("backward", "scale_loss")
_HOOK = "training_step"


def may_keep_graph(outline: Outline) -> bool:
    """Whether a differentiated value of a step may be added to, or put into, an object that outlives the step."""
    passes = outline.places.lines_with((*_PASS_WORDS, _HOOK), parts=True)
    helpers = {one.name for one in outline.owners if one.name and outline.holds_line(one.node, passes)}
    lines = sorted({*passes, *outline.places.lines_with(helpers)})
    losses: set[str] | None = None
    for owner in outline.owners if lines else ():
        if not outline.holds_line(owner.node, lines):
            continue
        loops = owner in outline.looping
        for value, into in _collected(outline, owner):
            if not (loops or into.startswith("self.")):
                continue
            if _is_by(value, helpers):
                return True
            parts = list(_kept(value))
            if parts and losses is None:
                losses = set(_differentiated(outline, helpers))
            if any(not part or part in (losses or ()) or "loss" in part.lower() for part in parts):
                return True
    return False


def _collected(outline: Outline, owner: Owner) -> Iterator[tuple[ast.expr, str]]:
    """The values that are added or collected, and their targets."""
    for one in outline.places.statements(owner):
        if isinstance(one, ast.AugAssign) and isinstance(one.op, ast.Add):
            yield one.value, _key(one.target)
        elif isinstance(one, ast.Assign):
            yield from _assigned(one)
        elif isinstance(one, ast.Expr) and isinstance(call := one.value, ast.Call) and last_name(call.func) in _METHODS:
            into = call.func.value if isinstance(call.func, ast.Attribute) else call.func
            yield from ((argument, _key(into)) for argument in call.args)


def _assigned(statement: ast.Assign) -> Iterator[tuple[ast.expr, str]]:
    """The value that an assignment adds to a target, or stores under a key."""
    target, value = statement.targets[0], statement.value
    pairs = zip(target.elts, value.elts, strict=False) if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [(target, value)]
    for into, given in pairs:
        if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Add):
            yield from ((side, _key(into)) for side in (given.left, given.right))
        elif isinstance(into, ast.Subscript):
            yield given, _key(into)


def _is_by(value: ast.expr, helpers: set[str]) -> bool:
    """Whether a value comes straight from a function of the file that may differentiate."""
    return isinstance(value, ast.Call) and last_name(value.func) in helpers


def _key(node: ast.expr) -> str:
    """A dotted name; all elements of one object count as the same. Empty for other expressions."""
    base = node
    while isinstance(base, ast.Subscript):
        base = base.value
    return dotted(base) if base is node else f"{dotted(base)}[]"


def _kept(value: ast.expr) -> Iterator[str]:
    """The dotted names whose graph a value keeps alive; empty for an element of an unnamed object."""
    waiting: list[ast.AST | None] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, (ast.Name, ast.Attribute, ast.Subscript)):
            name = _key(one)
            if not name.endswith(".data"):
                yield name
        elif isinstance(one, ast.BinOp) and isinstance(one.op, _SUMS):
            waiting += [one.left] if isinstance(one.op, ast.Div) else [one.left, one.right]
        elif isinstance(one, ast.UnaryOp):
            waiting.append(one.operand)
        elif isinstance(one, (ast.Tuple, ast.List)):
            waiting += one.elts
        elif isinstance(one, ast.Dict):
            waiting += one.values
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in _KEEPING:
            waiting.append(one.func.value)


def _differentiated(outline: Outline, helpers: set[str]) -> Iterator[str]:
    """The dotted names that may be differentiated: objects of a backward pass, and results of helpers with one."""
    for _, nodes in outline.places.near(_PASS_WORDS, parts=True):
        for one in (inner for inner in nodes if isinstance(inner, ast.Call)):
            if isinstance(one.func, ast.Attribute) and one.func.attr in _DIFFERENTIATES:
                yield from _kept(one.func.value)
                yield from (name for inner in (one.args[:1], getattr(one.func.value, "args", [])[:1]) for value in inner for name in _kept(value))
            elif last_name(one.func) == "scale_loss":
                yield from (name for value in one.args[:1] for name in _kept(value))
    for assignment in outline.assigned:
        if isinstance(assignment.value, ast.Call) and last_name(assignment.value.func) in helpers:
            yield from (_key(part) for target in targets_of(assignment) for part in getattr(target, "elts", [target]))


__all__ = ["may_keep_graph"]
