"""The names mentioned by the parts of a Python file: the code of the module itself, and each function and class at its
top level.

Every word that may be a name counts: reads, attributes, keywords, words in texts. An import alone mentions nothing,
unless it renames, nor does ``__all__``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.patterns import lazily

_WORD = lazily(r"[A-Za-z_]\w*")
# The results of these decorators are called as before, without registering the function.
_QUIET = frozenset(
    ("property", "cached_property", "staticmethod", "classmethod", "abstractmethod", "dataclass", "contextmanager", "lru_cache", "cache", "wraps")
)
_QUIET_MODULES = frozenset(("torch", "functools", "contextlib", "dataclasses", "abc", "typing"))
_Unit = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Code:
    """Some statements and expressions of a file, and the words that they mention, found on demand."""

    def __init__(self, nodes: list[ast.AST]) -> None:
        self._nodes = nodes

    @cached_property
    def words(self) -> frozenset[str]:
        """The names that the code mentions."""
        return frozenset(_words(self._nodes))

    @cached_property
    def pieces(self) -> frozenset[str]:
        """The beginnings and ends of names that the code puts together: ``f"{task}_step"``, ``"on_" + event``."""
        joined = (one for node in self._nodes for one in ast.walk(node) if isinstance(one, (ast.JoinedStr, ast.BinOp)))
        texts = (text for one in joined for text in ast.iter_child_nodes(one) if isinstance(text, ast.Constant))
        return frozenset(word for text in texts if isinstance(text.value, str) for word in _WORD.findall(text.value) if len(word) > 1)


class Method(NamedTuple):
    """A method of a class: its name, its lines and its code; ``announced``: a decorator gets it when it is defined."""

    name: str
    first: int
    last: int
    announced: bool
    code: Code


class Part(NamedTuple):
    """A function or class at the top level of a module: its name, its lines, and the code that runs only when it is
    used; of a class the last names of its bases (empty for one that is computed), its methods, and the code beside them.

    ``announced``: a decorator or a metaclass gets it when it is defined.
    """

    name: str
    first: int
    last: int
    announced: bool
    code: Code
    bases: tuple[str, ...] = ()
    methods: tuple[Method, ...] = ()
    beside: Code | None = None

    @property
    def derived(self) -> bool:
        """Whether it is a class with bases, which may get it when it is defined."""
        return bool(self.bases)

    def method_at(self, line: int) -> Method | None:
        """The method that a line (from 1) is in."""
        return next((one for one in self.methods if one.first <= line <= one.last), None)


class Mentions(NamedTuple):
    """The parts of a file, the code that runs when it is imported, and whether that does more than define names."""

    parts: tuple[Part, ...]
    own: Code
    acts: bool

    def part_at(self, line: int) -> Part | None:
        """The part that a line (from 1) is in."""
        return next((one for one in self.parts if one.first <= line <= one.last), None)


def mentions_in(tree: ast.Module) -> Mentions:
    """The parts of a file and their mentions."""
    parts: list[Part] = []
    own: list[ast.AST] = []
    for unit in _units(tree.body, own):
        at_once, inside = _split(unit)
        own += at_once
        part = Part(unit.name, _first(unit), unit.end_lineno or unit.lineno, _announced(unit), Code(inside))
        parts.append(_with_methods(part, unit) if isinstance(unit, ast.ClassDef) else part)
    return Mentions(tuple(parts), Code(own), any(map(_acts, tree.body)))


def _with_methods(part: Part, unit: ast.ClassDef) -> Part:
    bases = tuple(one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in unit.bases)
    functions = [one for one in unit.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    methods = tuple(Method(one.name, _first(one), one.end_lineno or one.lineno, _announced(one), Code([*_split(one)[0], *_split(one)[1]])) for one in functions)
    beside = Code([*unit.bases, *(one.value for one in unit.keywords), *(one for one in unit.body if one not in functions and not _is_docstring(one))])
    return part._replace(bases=bases, methods=methods, beside=beside)


def _units(body: Iterable[ast.stmt], own: list[ast.AST]) -> Iterator[_Unit]:
    """The functions and classes of a module; all other code is added to ``own``."""
    # In the tree, a chain of ``elif`` is nested as deep as it is long.
    waiting = list(body)[::-1]
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, _Unit):
            yield statement
        elif isinstance(statement, (ast.If, ast.Try, ast.With)):
            inner = [one for name in ("body", "orelse", "finalbody") for one in getattr(statement, name, [])]
            inner += [one for handler in getattr(statement, "handlers", []) for one in handler.body]
            waiting += reversed(inner)
            own += (one for one in ast.iter_child_nodes(statement) if not isinstance(one, (ast.stmt, ast.ExceptHandler)))
        elif not _is_docstring(statement) and not _offers(statement):
            own.append(statement)


def _split(unit: _Unit) -> tuple[list[ast.AST], list[ast.AST]]:
    """The code of a definition that runs when it is defined, and the code that runs only when it is used."""
    body = [one for one in unit.body if not _is_docstring(one)]
    if isinstance(unit, ast.ClassDef):
        at_once = [one for one in body if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.AnnAssign))]
        return [*unit.decorator_list, *at_once], [*unit.bases, *(one.value for one in unit.keywords), *body]
    defaults = [one for one in (*unit.args.defaults, *unit.args.kw_defaults) if one is not None]
    return [*unit.decorator_list, *defaults], [unit.args, *([unit.returns] if unit.returns else []), *body]


def _first(unit: _Unit) -> int:
    return min([unit.lineno, *(one.lineno for one in unit.decorator_list)])


def _announced(unit: _Unit) -> bool:
    """Whether a decorator or the class of a class may register the definition."""
    return bool(isinstance(unit, ast.ClassDef) and unit.keywords) or not all(map(_is_quiet, unit.decorator_list))


def _is_quiet(decorator: ast.expr) -> bool:
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    last = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
    while isinstance(node, ast.Attribute):
        node = node.value
    return last in _QUIET or getattr(node, "id", "") in _QUIET_MODULES


def _words(nodes: Iterable[ast.AST]) -> Iterator[str]:
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        kind = node.__class__
        if kind is ast.Name:
            yield node.id  # type: ignore[attr-defined]  # told by the class
            continue
        if kind is ast.Attribute:
            yield node.attr  # type: ignore[attr-defined]  # told by the class
        elif kind is ast.Constant:
            if isinstance(node.value, str):  # type: ignore[attr-defined]  # told by the class
                yield from _WORD.findall(node.value)  # type: ignore[attr-defined]  # told by the class
            continue
        elif isinstance(node, ast.alias) and node.asname:
            yield from node.name.split(".")
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        waiting += _children(node)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            yield from (one for one in value if isinstance(one, ast.AST) and not _is_docstring(one))
        elif isinstance(value, ast.AST):
            yield value


def _is_docstring(node: ast.AST) -> bool:
    """Whether a statement is a text without effect."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _offers(statement: ast.stmt) -> bool:
    """Whether a statement is ``__all__ = […]``: who takes a name from there mentions it."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target] if isinstance(statement, (ast.AugAssign, ast.AnnAssign)) else []
    return any(isinstance(one, ast.Name) and one.id == "__all__" for one in targets)


def _acts(statement: ast.stmt) -> bool:
    """Whether a statement at the top level is a step of a program: a call, a loop, the block after a test of
    ``__name__``."""
    if isinstance(statement, (ast.For, ast.While, ast.AsyncFor)):
        return True
    if isinstance(statement, ast.If):
        return "__main__" in {one.value for one in ast.walk(statement.test) if isinstance(one, ast.Constant)}
    return isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Call, ast.Await))


NOTHING = Mentions((), Code([]), acts=True)
