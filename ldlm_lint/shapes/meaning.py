"""Calls that may mean a function of a library: the rules of `ldlm_lint.python.names.qualified`, read generously.

A call means ``torch.save`` only through the name ``save``, a name that an import or an assignment gives to something that
holds it, or a subclass that adds nothing; what an assignment computes in another way has no known meaning there either.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from ldlm_lint.shapes.outline import Outline, Owner, has_any, last_name
from ldlm_lint.shapes.walks import nodes_below

# What may stand for a function or class, tables of them included.
_NAMING = (ast.Name, ast.Attribute, ast.Subscript, ast.IfExp, ast.Dict)
_LOOKS_UP = frozenset({"getattr", "partial", "get"})


def calls_of(outline: Outline, names: frozenset[str], packages: tuple[str, ...]) -> Iterator[tuple[Owner, ast.Call]]:
    """The calls that may mean a function whose last name is one of ``names``, in a package of one of these first names."""
    known = closure(outline, names)
    words = re.compile(rb"\b(?:" + b"|".join(re.escape(one.encode()) for one in sorted(known)) + rb")\b")
    plain = tuple(one.encode() for one in known)
    if not has_any(outline.data, plain) or not words.search(outline.data):
        return
    roots = standing_for(outline, packages)
    # ``self.saver(…)`` after ``self.saver = torch.save``, and a name bound to the function itself.
    given = frozenset(name for name, inside in _held_by(outline) if not inside.isdisjoint(known))
    for owner in outline.owners:
        text = outline.own_text(owner)
        if not has_any(text, plain) or not words.search(text):
            continue
        yield from ((owner, call) for call in outline.calls(owner) if _may_mean(call.func, known, given, roots))


def mentions(outline: Outline, name: str, packages: tuple[str, ...]) -> bool:
    """Whether a function of this name in one of these packages is imported, looked up or handed on anywhere."""
    word = name.encode()
    if word not in outline.data:
        return False
    if any(one.rpartition(".")[2] == name and _within(one, packages) for meant in outline.imported.values() for one in meant):
        return True
    roots = standing_for(outline, packages)
    nodes = (one for owner in outline.owners if word in outline.own_text(owner) for one in outline.own_nodes(owner))
    return any(
        (isinstance(one, ast.Attribute) and one.attr == name and _is_root(_root_of(one), roots))
        or (isinstance(one, ast.Call) and last_name(one.func) == "getattr" and name in identifiers(one.args))
        for one in nodes
    )


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return name.partition(".")[0] in packages


def standing_for(outline: Outline, packages: tuple[str, ...]) -> frozenset[str]:
    """The names that may stand for one of these packages, or for something in them."""
    return closure(outline, (name for name, meant in outline.imported.items() if any(_within(one, packages) for one in meant)))


def closure(outline: Outline, names: Iterable[str]) -> frozenset[str]:
    """The names, and those that stand for something in the file which holds one of them."""
    held = _held_by(outline)
    found, size = set(names), -1
    while size != len(found):
        size = len(found)
        found |= {name for name, inside in held if not inside.isdisjoint(found)}
    return frozenset(found)


def stood_for(outline: Outline, node: ast.AST) -> set[str]:
    """The identifiers of an expression, and those of what they stand for in the file."""
    found, waiting = set(), set(identifiers([node]))
    while waiting:
        found |= waiting
        waiting = {one for name, inside in _held_by(outline) if name in waiting for one in inside} - found
    return found


def given(outline: Outline) -> frozenset[str]:
    """The names that imports, assignments and classes give to something that stands for itself."""
    return frozenset(name for name, _ in _held_by(outline))


def _held_by(outline: Outline) -> list[tuple[str, frozenset[str]]]:
    if outline.held is None:
        outline.held = list(_held(outline))
    return outline.held


def _held(outline: Outline) -> Iterator[tuple[str, frozenset[str]]]:
    """The names that imports, assignments and classes give, with the identifiers and texts that they stand for."""
    for one in outline.imports:
        yield from ((alias.asname, frozenset({alias.name.rpartition(".")[2]})) for alias in one.names if alias.asname)
    for one in outline.classes:
        if len(one.bases) == 1:
            yield one.name, identifiers(one.bases)
    for one in outline.assigned:
        targets = one.targets if isinstance(one, ast.Assign) else [one.target]
        if one.value is not None and _stands_for(outline, one.value):
            inside = identifiers([one.value])
            yield from ((name, inside) for name in map(last_name, targets) if name)


def _stands_for(outline: Outline, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return isinstance(value, _NAMING)
    name = last_name(value.func)
    return name in _LOOKS_UP or "functools.partial" in outline.imported.get(name, ())


def identifiers(nodes: Iterable[ast.AST]) -> frozenset[str]:
    """The names, attributes and texts in expressions."""
    found = set()
    for node in nodes:
        for one in nodes_below(node):
            if isinstance(one, ast.Name):
                found.add(one.id)
            elif isinstance(one, ast.Attribute):
                found.add(one.attr)
            elif isinstance(one, ast.Constant) and isinstance(one.value, str):
                found.add(one.value)
    return frozenset(found)


def leads_to(outline: Outline, nodes: Iterable[ast.AST], wanted: re.Pattern[str]) -> bool:
    """Whether expressions hold a wanted name or text, or a name that is bound to what does, anywhere in the file."""
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
