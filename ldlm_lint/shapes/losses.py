"""Conditions of findings about losses: a loss bounded from above, or a mean squared error and two unit vectors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.shapes.meaning import closure, identifiers, leads_to, mentions
from ldlm_lint.shapes.outline import Outline, dotted, last_name

# Every loss for the checkers has one of these in its name, or in the name of its creator.
_SPEAKS = re.compile(r"loss|criterion|entropy|kl_div", re.I)
_BOUNDS = frozenset({"clamp", "clamp_", "clip", "clip_", "clamp_max", "clamp_max_"})
_LESSER = frozenset({"min", "minimum"})
_NORMALIZERS = lazily(r"\.?(^|\.)_*l2_?norm(aliz|alis)?(e|ed)?$", re.I)
_NORMS = frozenset({"norm", "vector_norm"})
_SQUARES = lazily(rb"\*\*|\b(?:pow|square)\b")


def speaks_of_loss(outline: Outline, nodes: Iterable[ast.AST]) -> bool:
    """Whether expressions name a loss, or a name bound to one, anywhere in the file."""
    return leads_to(outline, nodes, _SPEAKS)


def may_bound_loss(outline: Outline) -> bool:
    """Whether a call may return the minimum of a loss and another value."""
    bounds, lesser = closure(outline, _BOUNDS), closure(outline, _LESSER)
    return any(
        isinstance(one, ast.Call) and _may_bound(one, bounds, lesser) and speaks_of_loss(outline, [one])
        for _, nodes in outline.places.near(bounds | lesser)
        for one in nodes
    )


def _may_bound(call: ast.Call, bounds: frozenset[str], lesser: frozenset[str]) -> bool:
    """Whether a call has an upper bound: ``loss.clamp(min=0)`` has none."""
    name = last_name(call.func)
    if name in lesser or not name:
        return _is_called(call, bounds | lesser)
    # The bound is the second argument of the method, the third of the function; ``clamp_max`` has no other.
    by_place = len(call.args) >= (2 if name in ("clamp", "clamp_", "clip", "clip_") else 1)
    starred = any(isinstance(one, ast.Starred) for one in call.args)
    return name in bounds and (by_place or starred or any(one.arg in ("max", None) for one in call.keywords))


def _is_called(call: ast.Call, names: frozenset[str]) -> bool:
    name = last_name(call.func)
    return name in names if name else not identifiers([call.func]).isdisjoint(names)


def may_compare_units(outline: Outline) -> bool:
    """Whether there may be a mean squared error, and code that creates unit vectors."""
    squares = b"mse" in outline.data or b"MSELoss" in outline.data
    if not squares and not (b"mean" in outline.data and _SQUARES.search(outline.data)):
        return False
    return mentions(outline, "normalize", ("torch",)) or _imports_normalizer(outline) or _divides_by_norm(outline)


def _imports_normalizer(outline: Outline) -> bool:
    every = (alias.name for one in outline.imports if isinstance(one, ast.ImportFrom) for alias in one.names)
    return any(map(_NORMALIZERS.search, every))


def _divides_by_norm(outline: Outline) -> bool:
    """Whether something is divided, by a norm of the same object."""
    norms = closure(outline, _NORMS)
    asked = {
        name
        for _, nodes in outline.places.near(norms)
        for one in nodes
        if isinstance(one, ast.Call) and _is_called(one, norms)
        for name in _measured(one)
    }
    return bool(asked) and not asked.isdisjoint(_divided(outline))


def _measured(call: ast.Call) -> Iterator[str]:
    """The possible operand of a norm, as a dotted name: the object of a method, or an argument; empty for another
    expression."""
    if isinstance(call.func, ast.Attribute):
        yield dotted(call.func.value)
    yield from (dotted(one.value if isinstance(one, ast.Starred) else one) for one in call.args[:1])
    yield from (dotted(one.value) for one in call.keywords)


def _divided(outline: Outline) -> set[str]:
    found = {dotted(one.target) for one in outline.augmented if isinstance(one.op, ast.Div)}
    for _, nodes in outline.places.near(("/", "div"), parts=True):
        for one in nodes:
            if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div):
                found.add(dotted(one.left))
            elif isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr in ("div", "div_"):
                found.add(dotted(one.func.value))
    return found


__all__ = ["may_bound_loss", "may_compare_units", "speaks_of_loss"]
