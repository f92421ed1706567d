"""Calls that may mean a function of a library: a superset of `ldlm_lint.python.names.qualified`.

A call means ``torch.save`` only through the name ``save``, a name bound by an import or an assignment to something
containing it, or a subclass without changes; other computed values have no known meaning there either.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from ldlm_lint.shapes.outline import Outline, last_name, targets_of
from ldlm_lint.shapes.owners import Owner
from ldlm_lint.shapes.walks import held

# Expressions that may mean a function or class, including tables of them.
_NAMING: frozenset[Any] = frozenset({ast.Name, ast.Attribute, ast.Subscript, ast.IfExp, ast.Dict})
_LOOKS_UP = frozenset({"getattr", "partial", "get"})


class Standing(NamedTuple):
    """The bindings by imports, assignments and classes: the meanings of a name, and the names with a meaning."""

    holds: dict[str, set[str]]
    names: dict[str, set[str]]


def calls_of(outline: Outline, names: frozenset[str], packages: tuple[str, ...]) -> Iterator[tuple[Owner, ast.Call]]:
    """The calls that may mean a function whose last name is one of ``names``, in a package of one of these first names."""
    if not outline.places.lines_with(names):
        return
    known = closure(outline, names)
    roots = standing_for(outline, packages)
    # ``self.saver(…)`` after ``self.saver = torch.save``, and a name bound to the function itself.
    stands = standing(outline).names
    given = frozenset(name for one in known for name in stands.get(one, ()))
    for owner, nodes in outline.places.near(known):
        for one in nodes:
            if isinstance(one, ast.Call) and _may_mean(one.func, known, given, roots):
                yield owner, one


def mentions(outline: Outline, name: str, packages: tuple[str, ...]) -> bool:
    """Whether a function of this name in one of these packages is imported, looked up or passed on anywhere."""
    if not outline.places.lines_with((name,)):
        return False
    if any(one.rpartition(".")[2] == name and _within(one, packages) for meant in outline.imported.values() for one in meant):
        return True
    roots = standing_for(outline, packages)
    return any(
        (isinstance(one, ast.Attribute) and one.attr == name and _is_root(_root_of(one), roots))
        or (isinstance(one, ast.Call) and last_name(one.func) == "getattr" and name in identifiers(one.args))
        for _, nodes in outline.places.near((name,))
        for one in nodes
    )


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return name.partition(".")[0] in packages


def standing_for(outline: Outline, packages: tuple[str, ...]) -> frozenset[str]:
    """The names that may mean one of these packages, or something in them."""
    return closure(outline, (name for name, meant in outline.imported.items() if any(_within(one, packages) for one in meant)))


def closure(outline: Outline, names: Iterable[str]) -> frozenset[str]:
    """The names, and those bound to expressions with one of them."""
    asked = frozenset(names)
    if asked not in outline.closures:
        stands, found, waiting = standing(outline).names, set(asked), list(asked)
        while waiting:
            new = stands.get(waiting.pop(), set()) - found
            found |= new
            waiting += new
        outline.closures[asked] = frozenset(found)
    return outline.closures[asked]


def given(outline: Outline) -> Collection[str]:
    """The names that imports, assignments and classes bind to a direct meaning."""
    return standing(outline).holds.keys()


def standing(outline: Outline) -> Standing:
    """The meanings of names in a file."""
    if outline.standing is None:
        outline.standing = found = Standing({}, {})
        for name, inside in _held(outline):
            found.holds.setdefault(name, set()).update(inside)
            for one in inside:
                found.names.setdefault(one, set()).add(name)
    return outline.standing


def _held(outline: Outline) -> Iterator[tuple[str, Collection[str]]]:
    """The names bound by imports, assignments and classes, with the identifiers and texts behind them."""
    for one in outline.imports:
        yield from ((alias.asname, (alias.name.rpartition(".")[2],)) for alias in one.names if alias.asname)
    for kind in outline.classes:
        if len(kind.bases) == 1:
            yield kind.name, identifiers(kind.bases)
    looks_up = _LOOKS_UP.union(name for name, meant in outline.imported.items() if "functools.partial" in meant)
    for assignment in outline.assigned:
        value: Any = assignment.value
        if value.__class__ in _NAMING or (value.__class__ is ast.Call and last_name(value.func) in looks_up):
            inside = identifiers([value])
            for target in targets_of(assignment):
                if name := last_name(target):
                    yield name, inside


def identifiers(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names, attributes and texts in expressions."""
    found: set[str] = set()
    waiting: list[Any] = list(nodes)
    while waiting:
        one = waiting.pop()
        kind = one.__class__
        if kind is ast.Name:
            found.add(one.id)
        elif kind is ast.Attribute:
            found.add(one.attr)
            waiting.append(one.value)
        elif kind is ast.Constant:
            if isinstance(one.value, str):
                found.add(one.value)
        elif one is not None:
            waiting += held(one)
    return frozenset(found)


def leads_to(outline: Outline, nodes: Iterable[ast.AST], wanted: re.Pattern[str]) -> bool:
    """Whether expressions contain a wanted name or text, or a name bound to one, anywhere in the file."""
    waiting = set(identifiers(nodes))
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        if wanted.search(name) or any(map(wanted.search, outline.imported.get(name, ()))):
            return True
        new = identifiers(outline.bound.get(name, ())) - seen
        seen |= new
        waiting |= new
    return False


def _may_mean(function: ast.expr, known: frozenset[str], given: frozenset[str], roots: frozenset[str]) -> bool:
    if not isinstance(function, (ast.Name, ast.Attribute)):
        return isinstance(function, (ast.Subscript, ast.IfExp, ast.Call)) and not identifiers([function]).isdisjoint(known)
    name = last_name(function)
    if name not in known:
        return False
    if name in given or isinstance(function, ast.Name):
        return name in given or name in roots
    return _is_root(_root_of(function), roots)


def _root_of(function: ast.expr) -> ast.expr:
    while isinstance(function, ast.Attribute):
        function = function.value
    return function


def _is_root(root: ast.expr, roots: frozenset[str]) -> bool:
    if isinstance(root, ast.Name):
        return root.id in roots
    return isinstance(root, (ast.Subscript, ast.IfExp, ast.Call)) and not identifiers([root]).isdisjoint(roots)
