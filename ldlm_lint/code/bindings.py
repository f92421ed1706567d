"""Bindings of names, attributes and elements: targets, assignments, imports, declarations, patterns."""

from __future__ import annotations

import ast
from typing import Any

from ldlm_lint.code.expressions import Expressions, place_of, type_name

_DECLARES = frozenset({"imp", "impf", "def", "class"})


class Bindings(Expressions):
    """The statements that bind and unbind; each reader returns how control ends: "", since control continues."""

    def bind_target(self, target: ast.expr, number: int) -> None:
        """Bind a target of an assignment, a loop or a ``with``: a name, an attribute, an element, or several of them."""
        if isinstance(target, ast.Name):
            self.bind(target.id, number, place_of(target))
        elif isinstance(target, ast.Attribute):
            self._write(self.value(target.value), target.attr, number, place_of(target))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, number)
        elif isinstance(target, ast.Subscript):
            self._store(target, number)
        elif isinstance(target, ast.Starred):
            self.bind_target(target.value, number)

    def _write(self, base: int, name: str, number: int, place: int) -> None:
        """Set an attribute of something."""
        self.current.writes.append((base, name, number, place))
        self.note("write", number, place, name)

    def _unpack(self, target: ast.Tuple | ast.List, number: int) -> None:
        held = self.nodes[number]
        plain = held[0] == "seq" and len(held[2]) == len(target.elts)
        plain = plain and not any(self.nodes[one][0] == "star" for one in held[2])
        starred = False
        for index, one in enumerate(target.elts):
            if isinstance(one, ast.Starred):
                starred = True
                self.bind_target(one.value, self.add(one, "part", number, -1))
            elif plain and not starred:
                self.bind_target(one, held[2][index])
            else:
                self.bind_target(one, self.add(one, "part", number, -1 if starred else index))

    def _store(self, target: ast.Subscript, number: int) -> None:
        base = self.value(target.value)
        self._put(target, base, self.value(target.slice), number)

    def _put(self, target: ast.Subscript, base: int, key: int, number: int) -> None:
        place = place_of(target)
        updated = self.add(target, "upd", base, key, number)
        self.note("store", updated, place)
        self.table.updates.append(updated)
        if isinstance(target.value, ast.Name):
            self.bind(target.value.id, updated, place)
        elif isinstance(target.value, ast.Attribute):
            self._write(self.nodes[base][1], target.value.attr, updated, place)

    def assign(self, node: ast.Assign) -> str:
        """``a = b = 1``."""
        number = self.value(node.value)
        for target in node.targets:
            self.bind_target(target, number)
        return ""

    def annotated(self, node: ast.AnnAssign) -> str:
        """``a: int = 1``; in a class ``a: int`` too."""
        if isinstance(node.target, ast.Name):
            self.current.annotations[node.target.id] = type_name(node.annotation)
        if node.value is not None:
            self.bind_target(node.target, self.value(node.value))
        elif self.current.kind == "class" and isinstance(node.target, ast.Name):
            self.bind(node.target.id, self.add(node.target, "decl"), place_of(node.target))
        return ""

    def augmented(self, node: ast.AugAssign) -> str:
        """``a += 1``."""
        target, place = node.target, place_of(node)
        before = self.value(target)
        added = self.value(node.value)
        self.note("add", before, place, added)
        after = self.add(target, "op", node.op.__class__.__name__, before, added)
        # Python evaluates the parts of the target once.
        if isinstance(target, ast.Name):
            self.bind(target.id, after, place_of(target))
        elif isinstance(target, ast.Attribute):
            self._write(self.nodes[before][1], target.attr, after, place_of(target))
        else:
            self._put(target, self.nodes[before][1], self.nodes[before][2], after)
        return ""

    def import_modules(self, node: ast.Import) -> str:
        """``import a.b as c``."""
        place = place_of(node)
        for one in node.names:
            self.table.imports.append((one.name, "", 0, place))
            bound = one.name if one.asname else one.name.partition(".")[0]
            self.bind(one.asname or bound, self.add(node, "imp", bound, 0), place)
        return ""

    def import_names(self, node: ast.ImportFrom) -> str:
        """``from a import b as c``."""
        place, module = place_of(node), node.module or ""
        for one in node.names:
            self.table.imports.append((module, one.name, node.level, place))
            if one.name == "*":
                self.current.bindings.setdefault("*", []).append(self.add(node, "imp", module, node.level))
                self._forget_declared()
                continue
            self.bind(one.asname or one.name, self.add(node, "impf", module, one.name, node.level), place)
            if one.asname:
                self.table.aliases.append((one.name, one.asname))
        return ""

    def _forget_declared(self) -> None:
        """What imports and definitions have bound may be replaced by a star import: only the project's other files tell."""
        for name, number in self.names.items():
            if self.nodes[number][0] in _DECLARES:
                self.names[name] = self.outside(name)

    def declare(self, node: ast.Global | ast.Nonlocal) -> str:
        """``global a``, ``nonlocal a``."""
        self.current.globals = (*self.current.globals, *node.names)
        return ""

    def delete(self, node: ast.Delete) -> str:
        """``del a``."""
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.note("delete", self.read(target.id), place_of(node), target.id)
            else:
                self.note("delete", self.value(target), place_of(node))
        return ""

    def type_alias(self, node: Any) -> str:
        """``type A = int``."""
        self.bind(node.name.id, self.add(node, "decl"), place_of(node))
        return ""

    def bind_pattern(self, pattern: ast.pattern, subject: int) -> None:
        """Bind the names of a ``case``."""
        for one in ast.walk(pattern):
            name = getattr(one, "name", None) or getattr(one, "rest", None)
            if isinstance(name, str):
                whole = one is pattern and getattr(one, "pattern", None) is None and not isinstance(one, ast.MatchStar)
                self.bind(name, subject if whole else self.add(None, "elem", subject), place_of(one))
