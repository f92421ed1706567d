"""Makes a name of another module usable in a Python file, by an existing or a new import."""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ldlm_lint.edits.import_places import bindings, insertion, joining
from ldlm_lint.model import Edit
from ldlm_lint.python.ast_walks import nodes_below
from ldlm_lint.python.syntax import parses, required
from ldlm_lint.source import Source

_NAMES = "_ldlm_names"
WITH_MODULE = frozenset(("glob", "math", "os", "shutil", "signal", "sys", "time", "torch"))


def ensure_import(source: Source, module: str, name: str) -> tuple[Edit | None, str]:
    """The edit that makes ``name`` of ``module`` usable (None if it already is) and the expression to use.

    An import of the file's top level is used if nothing else in the file binds its name, in whatever scope; otherwise a
    new line is added: ``from module import name``, or ``import module`` where the file uses ``name`` for something
    else, or an alias where it uses both. A submodule counts as usable only if an import names it. Names that are
    unclear alone (`WITH_MODULE`) are used through their module. `import_places` chooses the position. Nothing is
    added to a file that does not parse: its findings have no fixes.
    """
    if not parses(source):
        return None, f"{module}.{name}"
    tree = required(source)
    names = names_of(source)
    known = _usable(tree.body, names, module, name)
    if known:
        return None, known
    line, expression = _new_import(names, module, name)
    if line == f"from {module} import {name}":
        joined = joining(source, tree.body, module, name)
        if joined:
            return joined, expression
    return insertion(source, tree.body, line), expression


def names_of(source: Source) -> Names:
    """The names of a file, for all its fixes; cached with the source. Raises SyntaxError if it does not parse."""
    names: Names | None = source.__dict__.get(_NAMES)
    if names is None:
        names = source.__dict__[_NAMES] = Names.of(nodes_below(required(source)))
    return names


@dataclass(slots=True)
class Names:
    """The meanings of a file's names, for all scopes together.

    ``imports`` maps a local name to the dotted targets of import statements, ``others`` are bound by anything else,
    ``read`` are read somewhere.
    """

    imports: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    others: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, nodes: Iterable[ast.AST]) -> Names:
        """Collect the names of a module's nodes."""
        names = cls()
        # Its class is compared by identity, which is faster and equivalent here.
        node: Any
        for node in nodes:
            kind = node.__class__
            if kind is ast.Name:
                (names.read if node.ctx.__class__ is ast.Load else names.others).add(node.id)
            elif kind is ast.Import or kind is ast.ImportFrom:
                for local, target, _ in bindings(node):
                    names.imports[local].add(target)
            elif kind is ast.Global or kind is ast.Nonlocal:
                names.others.update(node.names)
            elif binders := _binders(kind):
                values = [getattr(node, key, None) for key in binders]
                names.others.update(value for value in values if isinstance(value, str))
        return names

    def only(self, local: str, target: str) -> bool:
        """Whether ``local`` means ``target`` at every binding."""
        return local not in self.others and self.imports.get(local) == {target}

    def free(self, local: str, target: str) -> bool:
        """Whether the top level may bind ``local`` to ``target`` without changing the meaning of the file."""
        unknown = local in self.others or (local in self.read and local not in self.imports)
        return not unknown and self.imports.get(local, {target}) == {target}


@functools.cache
def _binders(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of a kind of nodes that may contain a bound name."""
    if kind in (ast.keyword, ast.alias):
        return ()
    return tuple(name for name in ("id", "name", "arg", "rest") if name in kind._fields)


def _usable(body: Sequence[ast.stmt], names: Names, module: str, name: str) -> str | None:
    """The expression by which the top level's imports already reach the name."""
    reachable: list[str] = []
    for node in body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for local, target, loaded in bindings(node):
            leads = isinstance(node, ast.Import) and target == local and f"{loaded}.".startswith(f"{module}.")
            if not (leads or target in (module, f"{module}.{name}")) or not names.only(local, target):
                continue
            if target == f"{module}.{name}":
                return local
            reachable.append(f"{local if target == module else module}.{name}")
    return reachable[0] if reachable else None


def _new_import(names: Names, module: str, name: str) -> tuple[str, str]:
    """The import statement to add and the expression that then reaches the name."""
    if module in WITH_MODULE and names.free(module, module):
        return f"import {module}", f"{module}.{name}"
    if names.free(name, f"{module}.{name}"):
        return f"from {module} import {name}", name
    root = module.split(".")[0]
    if names.free(root, root):
        return f"import {module}", f"{module}.{name}"
    alias = f"{root}_{name}"
    while not names.free(alias, f"{module}.{name}"):
        alias += "_"
    return f"from {module} import {name} as {alias}", alias
