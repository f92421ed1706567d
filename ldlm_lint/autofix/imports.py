"""Making a name of another module usable in a Python file, by an import it has or by a new line."""

from __future__ import annotations

import ast
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ldlm_lint.model import Edit
from ldlm_lint.source import Source


def ensure_import(source: Source, module: str, name: str) -> tuple[Edit | None, str]:
    """The edit that makes ``name`` of ``module`` usable (None if it already is) and the expression to use.

    An import of the file's top level is used if nothing else in the file binds its name, in whatever scope;
    otherwise a new line is added: ``from module import name``, or ``import module`` where the file uses ``name``
    for something else, or an alias where it uses both. A submodule counts as usable only if an import names it.
    The line goes behind the block of imports that already loads the same package, so that what the file does
    before (such as setting environment variables) still happens first; else behind the leading block.
    Raises SyntaxError for a file that does not parse.
    """
    tree = _parse(source.text)
    names = _Names.of(tree)
    known = _usable(tree.body, names, module, name)
    if known:
        return None, known
    line, expression = _new_import(names, module, name)
    return _insertion(source, tree.body, line, module.split(".")[0]), expression


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


@dataclass(slots=True)
class _Names:
    """What the names of a file stand for, all scopes together.

    ``imports`` maps a local name to the dotted targets that import statements give it, ``others`` are bound by
    anything else, ``read`` are read somewhere.
    """

    imports: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    others: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, tree: ast.Module) -> _Names:
        """Collect the names of a module."""
        names = cls()
        for node in ast.walk(tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for local, target, _ in _bindings(node):
                    names.imports[local].add(target)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                names.read.add(node.id)
            else:
                names.others.update(_bound(node))
        return names

    def only(self, local: str, target: str) -> bool:
        """Whether ``local`` stands for ``target`` wherever it is bound."""
        return local not in self.others and self.imports.get(local) == {target}

    def free(self, local: str, target: str) -> bool:
        """Whether the top level may bind ``local`` to ``target`` without changing what the file means."""
        unknown = local in self.others or (local in self.read and local not in self.imports)
        return not unknown and self.imports.get(local, {target}) == {target}


def _bindings(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """The (local name, its target, the module that is loaded) of each name of an import statement."""
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            origin = "." * node.level + (node.module or "")
            yield alias.asname or alias.name, f"{origin}.{alias.name}", origin
        elif alias.asname:
            yield alias.asname, alias.name, alias.name
        else:
            root = alias.name.split(".")[0]
            yield root, root, alias.name


def _bound(node: ast.AST) -> Iterable[str]:
    """The names that a node other than an import binds itself."""
    if isinstance(node, (ast.keyword, ast.alias)):
        return ()
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return node.names
    values = (getattr(node, key, None) for key in ("id", "name", "arg", "rest"))
    return [value for value in values if isinstance(value, str)]


def _usable(body: Sequence[ast.stmt], names: _Names, module: str, name: str) -> str | None:
    """The expression by which the top level's imports already reach the name."""
    reachable: list[str] = []
    for node in body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for local, target, loaded in _bindings(node):
            if not names.only(local, target):
                continue
            if target == f"{module}.{name}":
                return local
            if target == module:
                reachable.append(f"{local}.{name}")
            elif target == local and isinstance(node, ast.Import) and f"{loaded}.".startswith(f"{module}."):
                reachable.append(f"{module}.{name}")
    return reachable[0] if reachable else None


def _new_import(names: _Names, module: str, name: str) -> tuple[str, str]:
    """The import statement to add and the expression that then reaches the name."""
    if names.free(name, f"{module}.{name}"):
        return f"from {module} import {name}", name
    root = module.split(".")[0]
    if names.free(root, root):
        return f"import {module}", f"{module}.{name}"
    alias = f"{root}_{name}"
    while not names.free(alias, f"{module}.{name}"):
        alias += "_"
    return f"from {module} import {name} as {alias}", alias


def _insertion(source: Source, body: Sequence[ast.stmt], line: str, root: str) -> Edit:
    """The edit that adds the line as one of the top level's statements."""
    anchor = _anchor(body, root)
    if anchor is None:
        head = 0
        while head < len(source.lines) and source.lines[head].lstrip().startswith("#"):
            head += 1
        return _new_line(source, head, line, alone=True)
    alone = _is_text(body[anchor]) or _roots(body[anchor]) == {"__future__"}
    return _new_line(source, _end_of_lines(body, anchor), line, alone)


def _new_line(source: Source, index: int, line: str, alone: bool) -> Edit:
    """Insert a line before the one with that 0-based index, between blank lines if it stands ``alone``."""
    newline = source.newline
    above = newline if alone and index else ""
    if index >= len(source.lines):
        return _insert(source, len(source.data), f"{newline}{above}{line}")
    below = newline if alone and source.lines[index].strip() else ""
    return _insert(source, source.line_starts[index], f"{above}{line}{newline}{below}")


def _insert(source: Source, offset: int, text: str) -> Edit:
    return Edit(source.span(offset, offset), text)


def _anchor(body: Sequence[ast.stmt], root: str) -> int | None:
    """The index of the statement that the new import follows, None where it comes first."""
    start = 1 if body and _is_text(body[0]) else 0
    loading = [i for i, node in enumerate(body) if root in _roots(node)]
    position = loading[0] if loading else start
    while position < len(body) and isinstance(body[position], (ast.Import, ast.ImportFrom)):
        position += 1
    return position - 1 if position else None


def _roots(node: ast.stmt) -> set[str]:
    """The packages that a statement of the top level imports."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {loaded.split(".")[0] for _, _, loaded in _bindings(node)}
    return set()


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _end_of_lines(body: Sequence[ast.stmt], index: int) -> int:
    """The 0-based number of the line behind a statement and all that shares its last line."""
    end = body[index].end_lineno or body[index].lineno
    for node in body[index + 1 :]:
        if node.lineno > end:
            break
        end = node.end_lineno or node.lineno
    return end
