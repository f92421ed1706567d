"""The functions of a Python file, with what stands around them and their text, on the syntax tree of the standard library.

Going through the statements alone costs a fiftieth of parsing; expressions are gone through only where a condition asks.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from ldlm_lint.shapes.walks import nodes_below

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
# Between a name and what follows it: blanks, the end of a line in brackets or behind a backslash, a comment.
GAP = rb"(?:[ \t\r\n\f\\]|#[^\n]*\n)*"
_FOR = re.compile(rb"for(?!\w)")
_WHILE = re.compile(rb"while(?!\w)")
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


@dataclass(eq=False)
class Owner:
    """A function, or the module: what runs when it is called, without the functions defined inside it.

    ``around`` are the definitions that it stands in, outermost first, ``inner`` the functions directly inside it.
    """

    node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
    around: tuple[Definition, ...] = ()
    inner: list[Owner] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the function; empty for the module."""
        return getattr(self.node, "name", "")

    @property
    def scope(self) -> str:
        """The dotted name of the function in its file; empty for the module."""
        return ".".join(one.name for one in (*self.around, *([] if isinstance(self.node, ast.Module) else [self.node])))

    @property
    def holder(self) -> ast.ClassDef | None:
        """The class whose method it is."""
        last = self.around[-1] if self.around else None
        return last if isinstance(last, ast.ClassDef) else None

    def within(self) -> Iterator[Owner]:
        """The function and all that are defined inside of it."""
        yield self
        for one in self.inner:
            yield from one.within()


class Outline:
    """The functions and classes of one file; ``data`` is its text in UTF-8, without a byte order mark."""

    def __init__(self, module: ast.Module, data: bytes) -> None:
        self.module = module
        self.data = data
        self.classes: list[ast.ClassDef] = []
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.assigned: list[ast.Assign | ast.AnnAssign] = []
        self.augmented: list[ast.AugAssign] = []
        self.compound: list[ast.AST] = []
        self.owners: list[Owner] = []
        self.held: list[tuple[str, frozenset[str]]] | None = None
        self.model_words: tuple[bytes, ...] | None = None
        self.models: dict[ast.ClassDef, bool] = {}
        self._texts: dict[ast.AST, bytes] = {}
        self._own_texts: dict[Owner, bytes] = {}
        self._own_nodes: dict[Owner, list[ast.AST]] = {}
        self._calls: dict[Owner, list[ast.Call]] = {}
        self._collect()

    def _collect(self) -> None:
        waiting: list[tuple[ast.AST, Owner, tuple[Definition, ...]]] = [(self.module, Owner(self.module), ())]
        self.owners.append(waiting[0][1])
        while waiting:
            node, owner, around = waiting.pop()
            for name in _BLOCKS:
                for child in reversed(getattr(node, name, None) or ()) if _is_block(node, name) else ():
                    if isinstance(child, FUNCTIONS):
                        inner = Owner(child, around)
                        owner.inner.append(inner)
                        self.owners.append(inner)
                        waiting.append((child, inner, (*around, child)))
                    elif isinstance(child, ast.ClassDef):
                        self.classes.append(child)
                        waiting.append((child, owner, (*around, child)))
                    elif isinstance(child, (ast.Import, ast.ImportFrom)):
                        self.imports.append(child)
                    elif isinstance(child, (ast.Assign, ast.AnnAssign)):
                        self.assigned.append(child)
                    elif isinstance(child, ast.AugAssign):
                        self.augmented.append(child)
                    elif hasattr(child, "body") or hasattr(child, "cases"):
                        self.compound.append(child)
                        waiting.append((child, owner, around))

    @cached_property
    def methods(self) -> dict[tuple[ast.ClassDef, str], list[Owner]]:
        """The methods of the classes, by class and name."""
        found: dict[tuple[ast.ClassDef, str], list[Owner]] = {}
        for one in self.owners:
            if one.holder is not None:
                found.setdefault((one.holder, one.name), []).append(one)
        return found

    @cached_property
    def lines(self) -> list[bytes]:
        """The lines with their endings, split where Python splits them."""
        return self.data.splitlines(keepends=True)

    @cached_property
    def local_classes(self) -> dict[str, list[ast.ClassDef]]:
        """The classes of the file, nested ones included, by name."""
        found: dict[str, list[ast.ClassDef]] = {}
        for one in self.classes:
            found.setdefault(one.name, []).append(one)
        return found

    @cached_property
    def imported(self) -> dict[str, list[str]]:
        """What the names that imports bind stand for: leading dots kept, a package by its first part."""
        found: dict[str, list[str]] = {}
        for one in self.imports:
            for alias in one.names:
                if isinstance(one, ast.Import):
                    name, meant = (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
                else:
                    module = "." * one.level + (one.module or "")
                    name, meant = alias.asname or alias.name, f"{module}{'' if module.endswith('.') else '.'}{alias.name}"
                found.setdefault(name, []).append(meant)
        return found

    @cached_property
    def bound(self) -> dict[str, list[ast.expr]]:
        """The values that assignments give to names, wherever they stand; to each name of a tuple the whole value."""
        found: dict[str, list[ast.expr]] = {}
        for one in self.assigned:
            for target in targets_of(one) if one.value is not None else ():
                for part in getattr(target, "elts", [target]):
                    if isinstance(part, ast.Name):
                        found.setdefault(part.id, []).append(one.value)
        return found

    @cached_property
    def named(self) -> dict[str, list[ast.expr]]:
        """As `bound`, where the name alone takes the value."""
        found: dict[str, list[ast.expr]] = {}
        for one in self.assigned:
            for target in targets_of(one) if one.value is not None else ():
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(one.value)
        return found

    @cached_property
    def _stored(self) -> frozenset[str]:
        """The names that parameters and statements bind, other than imports and definitions."""
        targets: list[ast.AST] = [part for one in (*self.assigned, *self.augmented) for part in targets_of(one)]
        for one in self.compound:
            targets += [one.target] if isinstance(one, (ast.For, ast.AsyncFor)) else getattr(one, "items", [])
            targets += [one.pattern] if isinstance(one, ast.match_case) else []
        nodes = [inner for one in targets for inner in nodes_below(one)]
        nodes += [inner for owner in self.owners if isinstance(owner.node, FUNCTIONS) for inner in nodes_below(owner.node.args)]
        named = (*self.compound, *nodes)
        found = {one.name for one in named if isinstance(one, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and one.name}
        found |= {one.rest for one in nodes if isinstance(one, ast.MatchMapping) and one.rest}
        return frozenset(found | {one.id for one in nodes if isinstance(one, ast.Name)} | {one.arg for one in nodes if isinstance(one, ast.arg)})

    def is_assigned(self, name: str) -> bool:
        """Whether a name may be bound otherwise than by an import or a definition."""
        walrus = b":=" in self.data and re.search(rb"\b%s\s*:=" % name.encode(), self.data) is not None
        return walrus or name in self._stored

    def text(self, node: ast.stmt | ast.Module) -> bytes:
        """The whole lines of a statement, decorators included."""
        if isinstance(node, ast.Module):
            return self.data
        if node not in self._texts:
            self._texts[node] = b"".join(self.lines[first_line(node) - 1 : node.end_lineno])
        return self._texts[node]

    def own_text(self, owner: Owner) -> bytes:
        """The lines of a function without those of the functions inside it."""
        if owner not in self._own_texts:
            self._own_texts[owner] = self._lines_of(owner)
        return self._own_texts[owner]

    def own_nodes(self, owner: Owner) -> list[ast.AST]:
        """Every node of a function, but not of the functions inside it, in no order.

        Classes inside it run with it. The arguments' defaults and the decorators count as its own, as in the light tree.
        """
        if owner not in self._own_nodes:
            self._own_nodes[owner] = nodes_below(owner.node, FUNCTIONS)
        return self._own_nodes[owner]

    def calls(self, owner: Owner) -> list[ast.Call]:
        """The calls among a function's own nodes."""
        if owner not in self._calls:
            self._calls[owner] = [one for one in self.own_nodes(owner) if isinstance(one, ast.Call)]
        return self._calls[owner]

    def _lines_of(self, owner: Owner) -> bytes:
        start, end = (1, len(self.lines)) if isinstance(owner.node, ast.Module) else _lines(owner.node)
        spans = sorted(_lines(one.node) for one in owner.inner)
        parts = []
        for first, last in spans:
            parts += self.lines[start - 1 : first - 1]
            start = max(start, last + 1)
        return b"".join([*parts, *self.lines[start - 1 : end]])


def _is_block(node: ast.AST, name: str) -> bool:
    """Whether a field holds statements: ``body`` of a lambda or a conditional expression holds none."""
    return isinstance(getattr(node, name, None), list)


@functools.lru_cache(maxsize=1)
def outline_of(module: ast.Module, data: bytes) -> Outline:
    """The outline of the file at hand, which several ask for."""
    return Outline(module, data)


def has_any(text: bytes, words: tuple[bytes, ...]) -> bool:
    """Whether a text holds one of some words; ten times faster than a pattern of alternatives."""
    return any(word in text for word in words)


def may_loop(text: bytes) -> bool:
    """Whether a text holds the word of a loop."""
    return _FOR.search(text) is not None or _WHILE.search(text) is not None


def targets_of(statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> list[ast.expr]:
    """What an assignment binds."""
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def first_line(node: ast.stmt) -> int:
    """The first line of a statement, that of its first decorator where it has one."""
    decorators = getattr(node, "decorator_list", ())
    return min([node.lineno, *(one.lineno for one in decorators)])


def _lines(node: ast.stmt) -> tuple[int, int]:
    return first_line(node), node.end_lineno or node.lineno


def last_name(node: ast.AST | None) -> str:
    """The last part of a dotted name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def dotted(node: ast.AST | None) -> str:
    """``a.b.c`` as text; empty for what is no chain of names."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
