"""Origins of a value: where a possible value of an expression is written, and in which case it applies.

``maker = torch.optim.AdamW if args.opt == "adamw" else Lion`` may be AdamW *with* ``--opt adamw``: a finding about one
of several possibilities names its case.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ldlm_lint.code.table import guards_above, line_of
from ldlm_lint.patterns import lazily
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.conditions import words_below
from ldlm_lint.program.handles import Expr
from ldlm_lint.program.modules import Module
from ldlm_lint.wording import quoted

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.handles import Call

_RANKS = lazily(r"^(?:is_)?(?:distributed|ddp|multi_?gpu|parallel)$|world_?size|local_rank|^rank$|n_?gpus?$|device_count|is_initialized|_RANK$|WORLD_SIZE", re.I)
VERSIONS = lazily(r"version|hasattr|find_spec|signature|TORCH_|_available$|native_amp")
"""What a condition tests that leaves code to some versions of torch."""
_SOMETIMES = "in some cases"
MOST = 64
"""Expressions that are looked through for one value."""
_LONGEST = 48
_STATEMENTS = frozenset({"imp", "impf", "def", "class"})


@dataclass(frozen=True)
class Origin:
    """The expression in which a possible value is written, and the condition under which the value comes from there; ""
    for always.

    ``home`` and ``place`` are its place, or that of its binding, argument or container if it has none itself; 0 for
    unknown.
    """

    expr: Expr
    case: str
    home: Module
    place: int

    @property
    def is_fallback(self) -> bool:
        """Whether the expression is bound only in an ``except`` clause: the ``try`` is preferred."""
        return self.expr.code.origins.is_fallback(self.expr.key)

    @property
    def line(self) -> Span:
        """The line of the place."""
        return self.expr.code.line_span(self.home, self.place)

    def is_guarded_by(self, words: re.Pattern[str]) -> bool:
        """Whether a condition around the expression mentions a word."""
        return self.expr.code.origins.is_guarded_by(self.expr.key, words)

    def is_away_from(self, call: Call) -> bool:
        """Whether the choice is made on another line than a call; the import at the top of a file is no choice."""
        if self.home is call.module and self.expr.kind == "impf":
            return False
        return bool(self.place) and (self.home is not call.module or line_of(self.place) != call.line)


class _Step(NamedTuple):
    """A step towards where a value comes from: the expression, the case, and the place of the link."""

    key: int
    case: str = ""
    home: Module | None = None
    place: int = 0


class Origins:
    """Where possible values of a codebase's expressions are written."""

    def __init__(self, code: Codebase) -> None:
        self.code = code
        self.program = code.program
        self._guards: dict[int, dict[int, set[int]]] = {}

    def to(self, expr: Expr, atom: int) -> list[Origin]:
        """Where an expression may have one of its values from."""
        found: dict[int, Origin] = {}
        seen: set[int] = set()
        todo = [_Step(expr.key)]
        while todo and len(seen) < MOST:
            at = todo.pop()
            if at.key in seen:
                continue
            seen.add(at.key)
            behind = list(self._behind(at.key, atom))
            if not behind:
                found.setdefault(at.key, self._way(at, self._by_name(at.key, atom)))
            todo += [self._after(at, one) for one in behind if atom in self.program.ask(one.key)]
        return [found[one] for one in sorted(found)]

    @staticmethod
    def _after(before: _Step, step: _Step) -> _Step:
        if step.home is None:
            step = step._replace(home=before.home, place=before.place)
        return step._replace(case=step.case or before.case)

    def _by_name(self, key: int, atom: int) -> str:
        """The case of ``getattr(torch.optim, args.optimizer)``."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        fields = self.program.atoms.of[atom] if atom >= FIRST else ("",)
        if row[0] != "call" or module.last_name(row[1]) != "getattr" or len(row[2]) < 2 or fields[0] != "x":
            return ""
        return self._equal(module, row[2][1], fields[1].rpartition(".")[2])

    def _way(self, step: _Step, case: str = "") -> Origin:
        case = step.case or case
        expr = Expr(self.code, step.key)
        if expr.place:
            return Origin(expr, case, expr.module, expr.place)
        return Origin(expr, case, step.home or expr.module, step.place if step.home is not None else 0)

    def _behind(self, key: int, atom: int) -> Iterator[_Step]:
        """The expressions from which an expression has its value."""
        module = self.program.module_of(key)
        row, base = module.nodes[key & MASK], module.base
        kind = row[0]
        if kind == "phi":
            yield from (_Step(base | one, self.case_of(base | one), module, self.bound_at(base | one)) for one in row[1])
        elif kind in ("copy", "star", "enter"):
            yield _Step(base | row[1])
        elif kind == "choice":
            yield _Step(base | row[2], self._said(module, row[1], True))
            yield _Step(base | row[3], self._said(module, row[1], False))
        elif kind == "bool":
            yield from (_Step(base | one) for one in row[2])
        elif kind == "param":
            yield from self._given(base | row[1], row[2])
        elif kind == "free":
            yield from self._bound(module, row)
        elif kind == "impf":
            yield from self._imported(module, row)
        elif kind == "attr":
            yield from self._set(module, row)
        elif kind in ("item", "call"):
            yield from self._looked_up(module, row)

    def _given(self, function: int, name: str) -> Iterator[_Step]:
        """The arguments of callers for a parameter, and its default."""
        program = self.program
        home = program.module_of(function)
        scope = home.scopes[function & MASK]
        edges = program.callers(function)
        is_left = not edges
        for edge in edges:
            node = program.argument_node(edge.call, function, edge.how, name) if edge.how != UNKNOWN else None
            is_left |= node is None
            if node is not None:
                caller = program.module_of(edge.call)
                yield _Step(node, "", caller, caller.table.sites[edge.call & MASK].place)
        # A default that every known caller overrides is never used.
        if name in scope.defaults and is_left:
            yield _Step(home.base | scope.defaults[name], "", home, scope.place)

    def _bound(self, module: Module, row: tuple[object, ...]) -> Iterator[_Step]:
        """The values that an outer scope binds to a name."""
        at, name = module.scopes[int(str(row[1]))].parent, str(row[2])
        while at >= 0:
            bound = module.scopes[at].bindings.get(name)
            if bound and module.scopes[at].kind != "class":
                yield from self._bindings(module, name, bound)
                return
            at = module.scopes[at].parent

    def _bindings(self, module: Module, name: str, bound: list[int]) -> Iterator[_Step]:
        for one in bound:
            key = module.base | one
            yield _Step(key, self.case_of(key) if len(bound) > 1 else "", module, self.bound_at(key, name))

    def _imported(self, module: Module, row: tuple[object, ...]) -> Iterator[_Step]:
        """The values that a module of the project binds to a name that another one imports."""
        modules, name = self.program.modules, str(row[2])
        full = modules.absolute(module, str(row[1]), int(str(row[3])))
        target = modules.find(full, module) if full else None
        if target is not None and target is not module:
            yield from self._bindings(target, name, target.scopes[0].bindings.get(name, []))

    def bound_at(self, key: int, name: str = "") -> int:
        """The place of the name that an expression is bound to (``name``: to this one); 0 if it is not bound."""
        module = self.program.module_of(key)
        for scope in module.scopes:
            for event in scope.events:
                if event[0] == "bind" and event[1] == key & MASK and (not name or event[5] == name):
                    return int(event[4])
        return 0

    def _set(self, module: Module, row: tuple[object, ...]) -> Iterator[_Step]:
        """The values of an attribute of ``self``, set or bound in the class; the values that a module of the project
        binds to a name."""
        name = str(row[2])
        for fields in self.program.atoms.kinds(self.program.ask(module.base | int(str(row[1]))), "m"):
            target = self.program.modules.all[fields[1]]
            yield from self._bindings(target, name, target.scopes[0].bindings.get(name, []))
        owner = self.program.class_of_self(module, int(str(row[1])))
        if owner is None:
            owner = next((fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | int(str(row[1]))), "c")), None)
        for one in self.program.order(owner) if owner is not None else ():
            home = self.program.module_of(one)
            yield from self._bindings(home, name, home.scopes[one & MASK].bindings.get(name, []))
            yield from (_Step(value, self.case_of(value), *self._written_at(value, name)) for value in self.program.own_writes.get((one, name), ()))

    def _written_at(self, key: int, name: str) -> tuple[Module, int]:
        """Where an attribute is set to an expression."""
        module = self.program.module_of(key)
        writes = (write for scope in module.scopes for write in scope.writes)
        return module, next((place for _, written, value, place in writes if written == name and value == key & MASK), 0)

    def _looked_up(self, module: Module, row: tuple[object, ...]) -> Iterator[_Step]:
        """The values of a table by its keys, or the results of a function of the project by its cases."""
        if row[0] == "item":
            yield from self._entries(module, int(str(row[1])), int(str(row[2])))
            return
        function, args = module.nodes[int(str(row[1]))], row[2]
        if function[0] == "attr" and function[2] == "get" and args:
            yield from self._entries(module, function[1], args[0])  # type: ignore[index]
        for fields in self.program.atoms.kinds(self.program.ask(module.base | int(str(row[1]))), "f"):
            home = self.program.module_of(fields[1])
            for value, guard in home.scopes[fields[1] & MASK].returns:
                if value:
                    yield _Step(home.base | value, self._under(home, guard), home, home.table.places[value] or home.scopes[fields[1] & MASK].place)

    def _entries(self, module: Module, table: int, key: int) -> Iterator[_Step]:
        for fields in self.program.atoms.kinds(self.program.ask(module.base | table), "d"):
            home = self.program.module_of(fields[1])
            made = home.nodes[fields[1] & MASK]
            place = home.table.places[fields[1] & MASK]
            for name, value in _pairs(home, made):
                yield _Step(home.base | value, self._equal(module, key, name), home, place)

    def case_of(self, key: int) -> str:
        """The case in which an expression is bound to a name, put into a container, or called; "" for always.

        A constant that is bound in several cases identifies none of them.
        """
        module = self.program.module_of(key)
        cases = {self._under(module, guard) for guard in self._guards_of(module, key & MASK)}
        return cases.pop() if len(cases) == 1 else _SOMETIMES

    def is_fallback(self, key: int) -> bool:
        """Whether an expression is bound only in an ``except`` clause: the ``try`` is preferred."""
        module = self.program.module_of(key)
        return all(in_handler(module, guard) for guard in self._guards_of(module, key & MASK))

    def is_guarded_by(self, key: int, words: re.Pattern[str]) -> bool:
        """Whether a condition around an expression mentions a word."""
        module = self.program.module_of(key)
        for guard in self._guards_of(module, key & MASK):
            at = guard
            while at >= 0:
                row = module.table.guards[at]
                if row.kind in ("if", "rest") and any(words.search(word) for word in words_below(module, row.test)):
                    return True
                at = row.parent
        return False

    def _guards_of(self, module: Module, number: int) -> set[int]:
        """The guards under which an expression is called, bound to a name, or put into a container."""
        if number in module.table.sites:
            return {module.table.sites[number].guard}
        guards = self._guards.get(module.index)
        if guards is None:
            guards = self._guards[module.index] = defaultdict(set)
            for scope in module.scopes:
                for event in scope.events:
                    if event[0] in ("bind", "store"):
                        guards[event[1]].add(event[3])
        return guards.get(number) or {-1}

    def _under(self, module: Module, guard: int) -> str:
        while guard >= 0:
            row = module.table.guards[guard]
            if row.kind in ("if", "rest") and row.holds is not None and not self._is_of_ranks(module, row.test):
                return self._said(module, row.test, row.holds) or _SOMETIMES
            guard = row.parent
        return ""

    def _is_of_ranks(self, module: Module, test: int) -> bool:
        """Whether a condition only asks whether several processes run: code under it applies to all of them."""
        return any(_RANKS.search(word) for word in words_below(module, test))

    def _said(self, module: Module, test: int, holds: bool) -> str:
        """A condition as text; an option of the command line by its name."""
        row = module.nodes[test]
        if row[0] == "not":
            return self._said(module, row[1], not holds)
        if row[0] == "cmp" and row[1] in (("Eq",), ["Eq"]) and module.nodes[row[3][0]][0] == "const" and holds:
            return self._equal(module, row[2], module.nodes[row[3][0]][1])
        option = self._option(module, test)
        if option:
            return f"with `{option}`" if holds else f"without `{option}`"
        text = self._text(module, test)
        return ("if " if holds else "unless ") + quoted(text, _LONGEST) if text else ""

    def _equal(self, module: Module, value: int, constant: object) -> str:
        option = self._option(module, value)
        if option:
            return f"with `{option} {constant}`"
        text = self._text(module, value)
        return f"if {quoted(text, _LONGEST)} is {quoted(repr(constant))}" if text else ""

    def _option(self, module: Module, number: int) -> str:
        """The option behind an expression, if there is one."""
        atoms = self.program.atoms
        value = self.program.ask(module.base | number)
        flags = [fields[1] for fields in atoms.kinds(value, "flag")]
        if len(flags) != 1 or any(one >= FIRST and atoms.of[one][0] not in ("flag", "k") for one in value):
            return ""
        return self.code.ask.flag(flags[0]).name

    def _text(self, module: Module, number: int) -> str:
        """The code of an expression; empty if it is not written anywhere."""
        row = module.nodes[number]
        if row[0] in ("param", "free"):
            return str(row[2])
        return "" if row[0] in _STATEMENTS else self.code.expression_text(module, number)


def _pairs(module: Module, made: tuple[object, ...]) -> list[tuple[object, int]]:
    """The keys and values of a table literal: ``{"a": x}`` or ``dict(a=x)``."""
    if made[0] == "map":
        pairs = zip(made[1], made[2], strict=True)  # type: ignore[call-overload]
        return [(module.nodes[key][1], value) for key, value in pairs if module.nodes[key][0] == "const"]
    return [(name, value) for name, value in made[3] if name] if made[0] == "call" else []  # type: ignore[attr-defined]


def in_handler(module: Module, guard: int) -> bool:
    """Whether a guard, or one around it, is an ``except`` clause."""
    return any(module.table.guards[one].kind == "except" for one in guards_above(module.table.guards, guard))
