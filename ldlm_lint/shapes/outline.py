"""The functions of a Python file, with their context and text, on the syntax tree of the standard library.

Walking only the statements takes a fiftieth of the parsing time; expressions are walked only if a condition needs them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from ldlm_lint.shapes.owners import FUNCTIONS, Definition, Owner
from ldlm_lint.shapes.places import BLOCKS, Places, first_line
from ldlm_lint.shapes.walks import Kinds, kinds_below

if TYPE_CHECKING:
    from ldlm_lint.shapes.meaning import Standing

# Text between a name and the next token: blanks, the end of a line in brackets or after a backslash, a comment.
GAP = rb"(?:[ \t\r\n\f\\]|#[^\n]*\n)*"
_NAMED = (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


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
        self.standing: Standing | None = None
        self.evaluations: Any = None
        self.models: dict[ast.ClassDef, bool] = {}
        self.maybe_models: dict[ast.ClassDef, bool] = {}
        self.closures: dict[frozenset[str], frozenset[str]] = {}
        self._pieces: list[Any] = []
        self._with: list[Owner] = []
        self._assigned: dict[str, bool] = {}
        self._texts: dict[ast.AST, bytes] = {}
        self._own: dict[Owner, Kinds] = {}
        self._collect()

    def part(self) -> None:
        """Release objects that reference this outline, so that its tree is freed immediately, not by garbage
        collection."""
        self.standing = self.evaluations = None

    def _collect(self) -> None:
        """Note the statements in their order; blocks wait on a stack, since branches can be nested by the thousand."""
        top = Owner(self.module)
        self.owners.append(top)
        self._sinks: dict[type[ast.AST], Callable[[Any], None]] = {
            **dict.fromkeys((ast.Import, ast.ImportFrom), self.imports.append),
            **dict.fromkeys((ast.Assign, ast.AnnAssign), self.assigned.append),
            ast.AugAssign: self.augmented.append,
        }
        stack: list[tuple[Iterator[ast.AST], Owner, tuple[Definition, ...]]] = [(iter(self.module.body), top, ())]
        while stack:
            statements, owner, around = stack[-1]
            held = self._note(statements, owner)
            if held is None:
                stack.pop()
            else:
                stack.append((_inside(held), *self._opened(held, owner, around)))

    def _note(self, statements: Iterator[ast.AST], owner: Owner) -> ast.AST | None:
        """Note statements up to the first compound one, which is returned."""
        sinks, pieces, owners = self._sinks, self._pieces, self._with
        for one in statements:
            kind = one.__class__
            if kind in BLOCKS:
                return one
            pieces.append(one)
            owners.append(owner)
            if kind in sinks:
                sinks[kind](one)
        return None

    def _opened(self, node: ast.AST, owner: Owner, around: tuple[Definition, ...]) -> tuple[Owner, tuple[Definition, ...]]:
        """Note a compound statement; with the owner and parent of its statements."""
        if isinstance(node, FUNCTIONS):
            inner = Owner(node, around)
            owner.inner.append(inner)
            self.owners.append(inner)
            owner, around = inner, (*around, node)
        elif isinstance(node, ast.ClassDef):
            self.classes.append(node)
            around = (*around, node)
        else:
            self.compound.append(node)
        self._pieces.append(node)
        self._with.append(owner)
        return owner, around

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
        """The meanings of imported names: leading dots kept, a package by its first part."""
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
        """The values that assignments give to names, anywhere; each name of a tuple gets the whole value."""
        found: dict[str, list[ast.expr]] = {}
        for one in self.assigned:
            value = one.value
            if value is None:
                continue
            for target in targets_of(one):
                for part in getattr(target, "elts", [target]):
                    if isinstance(part, ast.Name):
                        found.setdefault(part.id, []).append(value)
        return found

    @cached_property
    def named(self) -> dict[str, list[ast.expr]]:
        """As `bound`, only for assignments to a single name."""
        found: dict[str, list[ast.expr]] = {}
        for one in self.assigned:
            value = one.value
            if value is None:
                continue
            for target in targets_of(one):
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(value)
        return found

    def is_assigned(self, name: str) -> bool:
        """Whether a name may be bound otherwise than by an import or a definition."""
        if name not in self._assigned:
            self._assigned[name] = any(_binds(one, name) for _, nodes in self.places.near((name,)) for one in nodes)
        return self._assigned[name]

    def binds(self, name: str) -> bool:
        """Whether a name may be bound otherwise than by an import."""
        return self.is_assigned(name) or name in self.local_classes or any(one.name == name for one in self.owners)

    def text(self, node: ast.stmt | ast.Module) -> bytes:
        """The whole lines of a statement, decorators included."""
        if isinstance(node, ast.Module):
            return self.data
        if node not in self._texts:
            self._texts[node] = b"".join(self.lines[first_line(node) - 1 : node.end_lineno])
        return self._texts[node]

    @cached_property
    def places(self) -> Places[Owner]:
        """The places of the words of the file."""
        return Places(self.data, self._pieces, self._with)

    @property
    def looping(self) -> set[Owner]:
        """The functions with a loop, or a loop keyword in their code."""
        return self.places.looping

    def own(self, owner: Owner, *kinds: type[ast.AST]) -> list[Any]:
        """The nodes of some classes in a function, but not in the functions inside it, unordered.

        Classes inside it run with it. The arguments' defaults and the decorators count as its own, as in the light
        tree. Constants and the keywords of calls are excluded.
        """
        found = self._own.get(owner)
        if found is None:
            found = self._own[owner] = kinds_below(owner.node, FUNCTIONS)
        if len(kinds) == 1:
            return found.get(kinds[0], [])
        return [one for kind in kinds for one in found.get(kind, ())]

    def calls(self, owner: Owner) -> list[ast.Call]:
        """The calls among a function's own nodes."""
        return self.own(owner, ast.Call)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly inside of one, in the order of the text."""
    blocks = BLOCKS[node.__class__]
    return iter(getattr(node, blocks[0])) if len(blocks) == 1 else chain(*(getattr(node, one) for one in blocks))


def _binds(node: Any, name: str) -> bool:
    kind = node.__class__
    if kind is ast.Name:
        return node.id == name and isinstance(node.ctx, ast.Store)
    if kind is ast.arg:
        return node.arg == name
    if kind is ast.MatchMapping:
        return node.rest == name
    return kind in _NAMED and node.name == name


_AT_HAND: list[Outline] = []


def outline_of(module: ast.Module, data: bytes) -> Outline:
    """The outline of the current file, for several callers."""
    known = next((one for one in _AT_HAND if one.module is module and one.data == data), None)
    if known is None:
        for one in _AT_HAND:
            one.part()
        known = Outline(module, data)
        _AT_HAND[:] = [known]
    return known


def targets_of(statement: ast.Assign | ast.AnnAssign | ast.AugAssign) -> list[ast.expr]:
    """The targets of an assignment."""
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def last_name(node: ast.AST | None) -> str:
    """The last part of a dotted name; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def dotted(node: ast.AST | None) -> str:
    """``a.b.c`` as text; empty for other expressions."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
