"""Statements of a syntax tree, and with them the table of a file: one pass, in execution order."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from ldlm_lint.code.bindings import Bindings
from ldlm_lint.code.expressions import end_of, place_of, type_name
from ldlm_lint.code.names import Environment, Round
from ldlm_lint.code.table import Scope, Table, Try

_OF_PYTHON = frozenset({"property", "staticmethod", "classmethod"})
_EXITS = frozenset({"exit", "_exit", "quit"})
_RAISE, _RETURN, _BREAK, _CONTINUE = "raise", "return", "break", "continue"


def table_of(tree: ast.Module) -> Table:
    """The table of a file from its syntax tree.

    Raises RecursionError if expressions or statements are nested too deeply for Python itself to walk them.
    """
    builder = _Statements()
    builder.block(tree.body)
    return builder.table


class _Statements(Bindings):
    """The statements of the current scope; each reader returns how control ends, "" if it continues."""

    def block(self, statements: Sequence[ast.stmt]) -> str:
        """Read statements up to one after which control does not continue."""
        for one in statements:
            reader = _READERS.get(one.__class__)
            ends = reader(self, one) if reader is not None else ""
            if ends:
                return ends
        return ""

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        decorators = tuple([self.value(one) for one in node.decorator_list])
        number = self.begin_function(node.name, node, node.args, decorators)
        self.current.returned = type_name(node.returns)
        self.block(node.body)
        self.leave()
        self._define(node, decorators, self.add(node, "def", number))
        return ""

    def _class(self, node: ast.ClassDef) -> str:
        decorators = tuple([self.value(one) for one in node.decorator_list])
        scope = Scope("class", node.name, self.scope, place_of(node), end_of(node))
        scope.bases = tuple([self.value(one) for one in node.bases])
        scope.keywords = tuple([(one.arg or "", self.value(one.value)) for one in node.keywords])
        scope.decorators = decorators
        number = self.enter(scope)
        self.block(node.body)
        self.leave()
        self._define(node, decorators, self.add(node, "class", number))
        return ""

    def _define(self, node: Any, decorators: tuple[int, ...], number: int) -> None:
        self.bind(node.name, number, place_of(node))
        for decorator, written in zip(decorators, node.decorator_list, strict=True):
            held = self.nodes[decorator]
            if held[0] == "free" and held[2] in _OF_PYTHON:
                continue
            call = self.add(written, "call", decorator, (number,), ())
            self.keep_call(call, written)
            self.table.decorations.append((call, decorator, number))

    def _expression(self, node: ast.Expr) -> str:
        held = self.nodes[self.value(node.value)]
        if held[0] != "call":
            return ""
        function = self.nodes[held[1]]
        name = function[2] if function[0] in ("attr", "free") else ""
        if name in _EXITS and (function[0] == "free" or self._is_of_python(function[1])):
            return _RAISE
        return ""

    def _is_of_python(self, number: int) -> bool:
        """Whether an expression is the module ``sys`` or ``os``, by name."""
        held = self.nodes[number]
        while held[0] in ("phi", "copy"):
            held = self.nodes[held[1] if held[0] == "copy" else held[1][0]]
        return held[0] in ("imp", "free") and held[1 if held[0] == "imp" else 2] in _MODULES_THAT_EXIT

    def _return(self, node: ast.Return) -> str:
        number = self.value(node.value)
        self.current.returns.append((number, self.guard))
        self.note("return", number, place_of(node))
        return _RETURN

    def _raise(self, node: ast.Raise) -> str:
        number = self.value(node.exc)
        self.value(node.cause)
        self.note("raise", number, place_of(node))
        return _RAISE

    def _break(self, _: ast.Break) -> str:
        if self.rounds:
            self.rounds[-1].breaks.append(dict(self.names))
        return _BREAK

    def _continue(self, _: ast.Continue) -> str:
        if self.rounds:
            self.rounds[-1].continues.append(dict(self.names))
        return _CONTINUE

    def _for(self, node: ast.For | ast.AsyncFor) -> str:
        iterable = self.value(node.iter)
        outer, loop, guard = self.names, self.loop, self.guard
        self.begin_loop("for", iterable, node)
        head = self._begin_round(outer)
        self.bind_target(node.target, self.add(node.iter, "elem", iterable))
        return self._end_loop(node, head, loop, guard)

    def _while(self, node: ast.While) -> str:
        outer, loop, guard = self.names, self.loop, self.guard
        self.begin_loop("while", 0, node)
        head = self._begin_round(outer)
        test = self.value(node.test)
        self.test(test, node.test)
        # The test is evaluated once more before the loop is left.
        tested = dict(self.names)
        taken = self.taken.pop(test, self.names)
        if self.nodes[test][1:2] == ("And",):
            self.names = taken
        self.table.loops[self.loop] = self.table.loops[self.loop]._replace(value=test)
        return self._end_loop(node, head, loop, guard, tested)

    def _begin_round(self, before: Environment) -> Round:
        head = Round(before)
        self.rounds.append(head)
        self.names = {}
        return head

    def _end_loop(
        self, node: ast.For | ast.AsyncFor | ast.While, head: Round, loop: int, guard: int, tested: Environment | None = None
    ) -> str:
        ends = self.block(node.body)
        self.guard = guard
        # A ``break`` skips the ``else``.
        breaks, head.breaks = (head.breaks, []) if node.orelse or tested else ([], head.breaks)
        self.names = after = self.close(head, head.continues if ends else [self.names, *head.continues], breaks)
        if tested:
            self.names = after = {**after, **tested}
        self.loop = loop
        if not node.orelse and not breaks:
            return ""
        self.names = dict(after)
        ends = self.block(node.orelse)
        if breaks:
            self.names = self.meet([None if ends else self.names, *({**after, **end} for end in breaks)])
            ends = ""
        return ends

    def _if(self, node: ast.If) -> str:
        test = self.value(node.test)
        self.test(test, node.test)
        outer, before = self.guard, self.names
        taken = self.taken.pop(test, before)
        is_and = self.nodes[test][1:2] == ("And",)
        first, then = self._branch(node.body, test, True, node, outer, taken if is_and else before)
        second, other = self._branch(node.orelse, test, False, node, outer, before if is_and else taken)
        self.guard = outer
        if first and second:
            self.names = before
            return first if first == second else _RETURN
        self.names = self.meet([None if first else then, None if second else other])
        # If one branch leaves the block, the rest of it is under the other.
        if first or second:
            ended = first or second
            self.guard = self.begin_guard("rest", test, not first, node)
            self.table.guards[-1] = self.table.guards[-1]._replace(ends=f"after {ended}")
        return ""

    def _branch(
        self, statements: Sequence[ast.stmt], test: int, holds: bool, node: ast.If, outer: int, before: Environment
    ) -> tuple[str, Environment]:
        self.names, self.guard = dict(before), outer
        if not statements:
            return "", self.names
        self.guard = number = self.begin_guard("if", test, holds, node)
        ends = self.block(statements)
        if ends:
            self.table.guards[number] = self.table.guards[number]._replace(ends=ends)
        return ends, self.names

    def _with(self, node: ast.With | ast.AsyncWith) -> str:
        outer = self.guard
        for item in node.items:
            number = self.value(item.context_expr)
            self.guard = self.begin_guard("with", number, None, node)
            if item.optional_vars is not None:
                self.bind_target(item.optional_vars, self.add(item.optional_vars, "enter", number))
        before = self.names
        if self._suppresses(node):
            self.names = dict(before)
            bound = len(self.current.events)
            ends = self.block(node.body)
            self.names = self.meet([None if ends else self.names, self._between(before, bound)])
            ends = ""
        else:
            ends = self.block(node.body)
        self.guard = outer
        return ends

    @staticmethod
    def _suppresses(node: ast.With | ast.AsyncWith) -> bool:
        """Whether an error in the block is suppressed: ``contextlib.suppress``."""
        return any(isinstance(item.context_expr, ast.Call) and type_name(item.context_expr.func) == "suppress" for item in node.items)

    def _between(self, before: Environment, bound: int) -> Environment:
        """The possible values of names when a block is left at any point: the earlier ones, and all its bindings.

        ``bound`` is the number of events of the scope at its beginning.
        """
        held: dict[str, list[int]] = {}
        for event in self.current.events[bound:]:
            if event[0] == "bind":
                held.setdefault(event[5], []).append(event[1])
        names = dict(before)
        for name, numbers in held.items():
            first = before.get(name)
            if first is None:
                first = self._before(len(self.rounds) - 1, name)
            differing = list(dict.fromkeys([first, *numbers]))
            names[name] = first if len(differing) == 1 else self.add(None, "phi", differing)
        return names

    def _try(self, node: Any) -> str:
        outer, before = self.guard, self.names
        bound = len(self.current.events)
        tried, handlers = len(self.table.tries), list[int]()
        if node.handlers:
            self.table.tries.append(Try(self.scope, place_of(node), end_of(node.body[-1]), ()))
        left = (len(self.rounds[-1].breaks), len(self.rounds[-1].continues)) if self.rounds else (0, 0)
        self.names = dict(before)
        ended = [self.block(node.body)]
        self.guard = outer
        between = self._between(before, bound)
        if not ended[0] and node.orelse:
            ended = [self.block(node.orelse)]
            self.guard = outer
        ways: list[Environment | None] = [None if ended[0] else self.names]
        for handler in node.handlers:
            self.names = dict(between)
            kinds = self.value(handler.type)
            self.guard = number = self.begin_guard("except", kinds, None, handler)
            handlers.append(number)
            if handler.name:
                self.bind(handler.name, 0, place_of(handler))
            ends = self.block(handler.body)
            self.table.guards[number] = self.table.guards[number]._replace(ends=ends)
            self.guard = outer
            ended.append(ends)
            ways.append(None if ends else self.names)
        if handlers:
            self.table.tries[tried] = self.table.tries[tried]._replace(handlers=tuple(handlers))
        self.names = self.meet(ways) if any(way is not None for way in ways) else between
        ends = self._finally(node.finalbody, before, bound, left)
        self.guard = outer
        return ends or (ended[0] if all(ended) else "")

    def _finally(self, statements: Sequence[ast.stmt], before: Environment, bound: int, left: tuple[int, int]) -> str:
        """Read code that runs on every exit; after it names have the values of the normal exits.

        ``left`` is how often the loop around the ``try`` was left, and continued, before it.
        """
        if not statements:
            return ""
        usual = self.names
        held = {**usual, **self._between(before, bound)}
        self.names = dict(held)
        through = [*self.rounds[-1].breaks[left[0] :], *self.rounds[-1].continues[left[1] :]] if self.rounds else []
        ends = self.block(statements)
        after = {name: node for name, node in self.names.items() if held.get(name) != node}
        for way in through:
            way.update(after)
        self.names = {**usual, **after}
        return ends

    def _assert(self, node: ast.Assert) -> str:
        test = self.value(node.test)
        self.test(test, node.test)
        if node.msg is not None:
            guard = self.guard
            self.guard = self.begin_guard("if", test, False, node)
            self.table.guards[self.guard] = self.table.guards[self.guard]._replace(ends=_RAISE)
            self.value(node.msg)
            self.guard = guard
        return ""

    def _match(self, node: ast.Match) -> str:
        subject = self.value(node.subject)
        before, outer = self.names, self.guard
        ways: list[Environment | None] = []
        ended = []
        for case in node.cases:
            self.names = dict(before)
            self.guard = self.begin_guard("case", subject, None, case.pattern)
            self.bind_pattern(case.pattern, subject)
            if case.guard is not None:
                test = self.value(case.guard)
                self.test(test, case.guard)
                self.guard = self.begin_guard("if", test, True, case.guard)
            ends = self.block(case.body)
            self.guard = outer
            ended.append(ends)
            ways.append(None if ends else self.names)
        last = node.cases[-1]
        takes_all = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None
        if takes_all and all(ended):
            self.names = before
            return ended[0] if len(set(ended)) == 1 else _RETURN
        self.names = self.meet(ways if takes_all else [before, *ways])
        return ""


_MODULES_THAT_EXIT = frozenset({"sys", "os"})
_READERS: dict[type, Callable[[Any, Any], str]] = {
    ast.FunctionDef: _Statements._function,
    ast.AsyncFunctionDef: _Statements._function,
    ast.ClassDef: _Statements._class,
    ast.Assign: _Statements.assign,
    ast.AnnAssign: _Statements.annotated,
    ast.AugAssign: _Statements.augmented,
    ast.Expr: _Statements._expression,
    ast.Return: _Statements._return,
    ast.For: _Statements._for,
    ast.AsyncFor: _Statements._for,
    ast.While: _Statements._while,
    ast.If: _Statements._if,
    ast.With: _Statements._with,
    ast.AsyncWith: _Statements._with,
    ast.Try: _Statements._try,
    ast.Import: _Statements.import_modules,
    ast.ImportFrom: _Statements.import_names,
    ast.Raise: _Statements._raise,
    ast.Break: _Statements._break,
    ast.Continue: _Statements._continue,
    ast.Global: _Statements.declare,
    ast.Nonlocal: _Statements.declare,
    ast.Assert: _Statements._assert,
    ast.Delete: _Statements.delete,
    ast.Match: _Statements._match,
}
if hasattr(ast, "TryStar"):
    _READERS[ast.TryStar] = _Statements._try
if hasattr(ast, "TypeAlias"):
    _READERS[ast.TypeAlias] = _Statements.type_alias
