"""Expressions of a syntax tree as rows of a table."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from ldlm_lint.code.names import Environment, Names
from ldlm_lint.code.table import COLUMNS, Guard, Loop, Scope, Site

_KEPT = frozenset({int, float, str, bool, type(None)})
_PLAIN = frozenset({"const", "map", "seq"})
_WRAPPERS = frozenset({"Optional", "Annotated", "Final", "ClassVar", "InitVar"})
# The constructor of a named tuple, without its way through Python: half the time of a table went into it.
_SITE = tuple.__new__


def place_of(node: Any) -> int:
    """The place where a node of a syntax tree begins."""
    return (node.lineno << COLUMNS) | node.col_offset


def end_of(node: Any) -> int:
    """The place after a node of a syntax tree."""
    return (node.end_lineno << COLUMNS) | node.end_col_offset


def type_name(node: ast.expr | None) -> str:
    """The last name of an annotation, without ``Optional`` and the like; empty if it is not a name.

    >>> type_name(ast.parse("Optional[torch.Tensor]", mode="eval").body)
    'Tensor'
    """
    while node is not None:
        if isinstance(node, ast.BinOp):
            node = node.right if isinstance(node.left, ast.Constant) else node.left
        elif isinstance(node, ast.Subscript):
            if type_name(node.value) not in _WRAPPERS:
                return type_name(node.value)
            node = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
        elif isinstance(node, ast.Constant):
            return node.value.rpartition(".")[2].strip() if isinstance(node.value, str) else ""
        else:
            break
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _name_within(node: ast.expr) -> str:
    """The last name of a call whose result is called immediately: ``()build`` for ``build(x)(y)``."""
    outer = node
    while isinstance(node, (ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return f"(){name}" if node is not outer else name


class Expressions(Names):
    """The expressions of the scope that is being read."""

    def value(self, node: ast.expr | None) -> int:
        """The number of an expression, 0 if there is none."""
        if node is None:
            return 0
        reader = _READERS.get(node.__class__)
        return reader(self, node) if reader is not None else self._other(node)

    def _constant(self, node: ast.Constant) -> int:
        value = node.value
        kind = value.__class__
        if kind not in _KEPT:
            value, kind = "", str
        # A constant has no place: one row for all equal ones.
        key = (kind, value)
        known = self.constants.get(key)
        if known is None:
            known = self.constants[key] = self.add(None, "const", value)
        return known

    def _name(self, node: ast.Name) -> int:
        return self.read(node.id)

    def _attribute(self, node: ast.Attribute) -> int:
        row = ("attr", self.value(node.value), node.attr)
        line = node.lineno
        self.nodes.append(row)
        self.places.append((line << COLUMNS) | node.col_offset)
        self.ends.append(((node.end_lineno - line) << COLUMNS) | node.end_col_offset)  # type: ignore[operator]
        return len(self.nodes) - 1

    def _call(self, node: ast.Call) -> int:
        value = self.value
        function = value(node.func)
        args = tuple([value(one) for one in node.args])
        keywords = tuple([(one.arg, value(one.value)) for one in node.keywords])
        line: int = node.lineno
        place = (line << COLUMNS) | node.col_offset
        end = (node.end_lineno << COLUMNS) | node.end_col_offset  # type: ignore[operator]
        self.nodes.append(("call", function, args, keywords))
        self.places.append(place)
        self.ends.append(end - (line << COLUMNS))
        number = len(self.nodes) - 1
        self.table.sites[number] = _SITE(Site, (self.scope, self.loop, self.guard, place, end))
        self.current.calls.append(number)
        called = node.func
        kind = called.__class__
        name = called.attr if kind is ast.Attribute else called.id if kind is ast.Name else _name_within(called)  # type: ignore[attr-defined]
        named = self.table.named.get(name)
        if named is None:
            self.table.named[name] = [number]
        else:
            named.append(number)
        return number

    def keep_call(self, number: int, node: Any) -> None:
        """Record the place of a call."""
        self.table.sites[number] = Site(self.scope, self.loop, self.guard, place_of(node), end_of(node))
        self.current.calls.append(number)

    def _star(self, node: ast.Starred) -> int:
        return self.add(node, "star", self.value(node.value))

    def _item(self, node: ast.Subscript) -> int:
        number = self.add(node, "item", self.value(node.value), self.value(node.slice))
        self.note("item", number, self.places[number])
        return number

    def _slice(self, node: ast.Slice) -> int:
        return self.add(None, "slice", self.value(node.lower), self.value(node.upper), self.value(node.step))

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set) -> int:
        return self.add(node, "seq", node.__class__.__name__, tuple([self.value(one) for one in node.elts]))

    def _dictionary(self, node: ast.Dict) -> int:
        keys = []
        values = []
        for key, value in zip(node.keys, node.values, strict=True):
            keys.append(self.value(key))
            values.append(self.value(value))
        number = self.add(node, "map", tuple(keys), tuple(values))
        self.table.maps.append(number)
        return number

    def _operation(self, node: ast.BinOp) -> int:
        left, right = self.value(node.left), self.value(node.right)
        if node.op.__class__ is ast.Mod and self._is_text(left):
            is_tuple = isinstance(node.right, ast.Tuple)
            parts = zip(self.nodes[right][2], node.right.elts, strict=True) if is_tuple else ((right, node.right),)  # type: ignore[attr-defined]
            for part, written in parts:
                self.note("format", part, place_of(written))
        return self.add(node, "op", node.op.__class__.__name__, left, right)

    def _is_text(self, number: int) -> bool:
        """Whether an expression is a text composed of literals: ``"%s" * 2 + "%g"``."""
        row = self.nodes[number]
        if row[0] == "op":
            return row[1] in ("Add", "Mult") and self._is_text(row[2])
        return row[0] == "fstr" or (row[0] == "const" and row[1].__class__ is str)

    def _boolean(self, node: ast.BoolOp) -> int:
        values = []
        outer = self.guard
        holds = node.op.__class__ is ast.And
        last = len(node.values) - 1
        bound = 0
        for index, one in enumerate(node.values):
            number = self.value(one)
            values.append(number)
            if not index:
                bound = len(self.walruses)
            if index < last:
                self.test(number, one)
                # The following operands are evaluated depending on its outcome.
                self.guard = self.begin_guard("if", number, holds, one)
        guard, self.guard = self.guard, outer
        number = self.add(node, "bool", node.op.__class__.__name__, tuple(values))
        self.last[number] = (values[-1], guard, node.values[-1])
        if len(self.walruses) > bound:
            self.taken[number] = dict(self.names)
            self.may_have_bound(bound)
        return number

    def test(self, number: int, node: ast.expr) -> None:
        """Record that the truth of a value is tested."""
        if self.nodes[number][0] not in _PLAIN:
            self.note("test", number, place_of(node))
        if number in self.last:
            # The last operand decides if it is evaluated at all.
            operand, guard, inner = self.last.pop(number)
            outer, self.guard = self.guard, guard
            self.test(operand, inner)
            self.guard = outer

    def begin_guard(self, kind: str, test: int, holds: bool | None, node: Any) -> int:
        """The number of a new guard inside of the present one."""
        self.table.guards.append(Guard(kind, test, holds, self.guard, place_of(node), ""))
        return len(self.table.guards) - 1

    def _unary(self, node: ast.UnaryOp) -> int:
        number = self.value(node.operand)
        if node.op.__class__ is ast.Not:
            self.test(number, node.operand)
            return self.add(node, "not", number)
        held = self.nodes[number]
        if node.op.__class__ is ast.USub and held[0] == "const" and held[1].__class__ in (int, float):
            return self._constant(ast.Constant(-held[1]))
        return self.add(node, "un", node.op.__class__.__name__, number)

    def _comparison(self, node: ast.Compare) -> int:
        names = tuple([op.__class__.__name__ for op in node.ops])
        left = self.value(node.left)
        return self.add(node, "cmp", names, left, tuple([self.value(one) for one in node.comparators]))

    def _choice(self, node: ast.IfExp) -> int:
        test = self.value(node.test)
        self.test(test, node.test)
        outer = self.guard
        self.guard = self.begin_guard("if", test, True, node)
        before, bound = self.names, len(self.walruses)
        self.names = dict(before)
        then = self.value(node.body)
        self.guard = outer
        self.guard = self.begin_guard("if", test, False, node)
        if len(self.walruses) == bound:
            self.names = before
            other = self.value(node.orelse)
        else:
            ways: list[Environment | None] = [self.names]
            self.names = dict(before)
            other = self.value(node.orelse)
            self.names = self.meet([*ways, self.names])
        self.guard = outer
        return self.add(node, "choice", test, then, other)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> int:
        names, loop, guard, bound = self.names, self.loop, self.guard, len(self.walruses)
        self.names = dict(names)
        for generator in node.generators:
            iterable = self.value(generator.iter)
            self.begin_loop("comp", iterable, generator.iter)
            self.take(generator.target, self.add(generator.iter, "elem", iterable))
            for condition in generator.ifs:
                test = self.value(condition)
                self.test(test, condition)
                self.guard = self.begin_guard("if", test, True, condition)
        if isinstance(node, ast.DictComp):
            number = self.add(node, "dcomp", self.value(node.key), self.value(node.value))
        else:
            number = self.add(node, "comp", self.value(node.elt), node.__class__.__name__)
        self.names, self.loop, self.guard = names, loop, guard
        if len(self.walruses) > bound:
            self.may_have_bound(bound)
        return number

    def begin_loop(self, kind: str, value: int, node: Any) -> None:
        """Go into a new loop."""
        self.table.loops.append(Loop(kind, value, self.loop, self.scope, self.guard, place_of(node)))
        self.loop = len(self.table.loops) - 1

    def take(self, target: ast.expr, number: int) -> None:
        """Bind the names of a comprehension, which are its own."""
        if isinstance(target, ast.Name):
            self.names[target.id] = number
        elif isinstance(target, (ast.Tuple, ast.List)):
            starred = False
            for index, one in enumerate(target.elts):
                if isinstance(one, ast.Starred):
                    starred = True
                    self.take(one.value, number)
                else:
                    self.take(one, self.add(one, "part", number, -1 if starred else index))

    def _formatted(self, node: ast.JoinedStr) -> int:
        parts = []
        is_plain = True
        for one in node.values:
            if isinstance(one, ast.FormattedValue):
                part = self.value(one.value)
                self.note("format", part, place_of(one.value), one.format_spec is not None and one.conversion < 0)
                is_plain &= one.conversion < 0
                if one.format_spec is not None:
                    is_plain = False
                    self.value(one.format_spec)
            else:
                part = self.value(one)
            parts.append(part)
        return self.add(node, "fstr", tuple(parts), is_plain)

    def _lambda(self, node: ast.Lambda) -> int:
        number = self.begin_function("<lambda>", node, node.args, ())
        self.current.returns.append((self.value(node.body), -1))
        self.leave()
        return self.add(node, "def", number)

    def begin_function(self, name: str, node: Any, arguments: ast.arguments, decorators: tuple[int, ...]) -> int:
        """Enter the scope of a function with its parameters bound; returns its number."""
        scope = Scope("def", name, self.scope, place_of(node), end_of(node))
        scope.decorators = decorators
        positional = [*arguments.posonlyargs, *arguments.args]
        scope.positional = len(positional)
        given = zip(reversed(positional), reversed(arguments.defaults), strict=False)
        scope.defaults = {one.arg: self.value(default) for one, default in given}
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                scope.defaults[one.arg] = self.value(default)
        number = self.enter(scope)
        parameters = [*positional, *arguments.kwonlyargs]
        scope.params = tuple([one.arg for one in parameters])
        for one in parameters:
            scope.parameters[one.arg] = node_number = self.add(one, "param", number, one.arg)
            self.bind(one.arg, node_number, place_of(one))
            if one.annotation is not None:
                scope.annotations[one.arg] = type_name(one.annotation)
        for kind, star in (("vararg", arguments.vararg), ("kwarg", arguments.kwarg)):
            if star is not None:
                setattr(scope, kind, star.arg)
                self.bind(star.arg, self.add(star, kind, number), place_of(star))
        return number

    def _walrus(self, node: ast.NamedExpr) -> int:
        number = self.value(node.value)
        name = node.target.id
        self.walruses.append((name, self.names.get(name), number))
        self.bind(name, number, place_of(node.target))
        return number

    def _yield(self, node: ast.Yield) -> int:
        number = self.value(node.value)
        self.current.yields.append(number)
        self.note("yield", number, place_of(node))
        return 0

    def _yield_from(self, node: ast.YieldFrom) -> int:
        number = self.add(node, "elem", self.value(node.value))
        self.current.yields.append(number)
        self.note("yield", number, place_of(node))
        return 0

    def _await(self, node: ast.Await) -> int:
        return self.value(node.value)

    def _other(self, node: ast.expr) -> int:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return 0


_READERS: dict[type, Callable[[Any, Any], int]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.Call: Expressions._call,
    ast.Subscript: Expressions._item,
    ast.Slice: Expressions._slice,
    ast.Tuple: Expressions._sequence,
    ast.List: Expressions._sequence,
    ast.Set: Expressions._sequence,
    ast.Dict: Expressions._dictionary,
    ast.BinOp: Expressions._operation,
    ast.BoolOp: Expressions._boolean,
    ast.UnaryOp: Expressions._unary,
    ast.Compare: Expressions._comparison,
    ast.IfExp: Expressions._choice,
    ast.ListComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.JoinedStr: Expressions._formatted,
    ast.Lambda: Expressions._lambda,
    ast.NamedExpr: Expressions._walrus,
    ast.Starred: Expressions._star,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
    ast.Await: Expressions._await,
}
