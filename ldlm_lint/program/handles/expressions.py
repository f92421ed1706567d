"""Expressions: how they are written, where their values come from and go."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.code.table import Node, line_of
from ldlm_lint.program import handles
from ldlm_lint.program.atoms import FIRST, MASK, NONE
from ldlm_lint.program.calls import BOUND, UNKNOWN
from ldlm_lint.program.conditions import words_below
from ldlm_lint.program.handles.base import Handle
from ldlm_lint.program.handles.values import Values
from ldlm_lint.program.identity import Identity, identity_of
from ldlm_lint.program.operands import operands
from ldlm_lint.program.spots import Event
from ldlm_lint.program.walks import Through, are_alike, origins

if TYPE_CHECKING:
    from ldlm_lint.model import Span
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.handles.calls import Alternative, Option, Passed
    from ldlm_lint.program.handles.functions import Class, Function
    from ldlm_lint.program.handles.places import Guard, Loop
    from ldlm_lint.program.handles.signatures import Signature
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.origins import Origin
    from ldlm_lint.program.value_uses import Use

_NAMES = frozenset({"attr", "free", "param", "impf"})
_PARTS = frozenset({"attr", "item", "part", "elem", "star", "copy", "enter", "upd", "comp"})
_WAYS = 12
"""Names bound to names that are looked through, as in `Module.plain`."""


class Expr(Values):
    """An expression."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and other.key == self.key

    __hash__ = Handle.__hash__

    @property
    def row(self) -> Node:
        """Its row in the table of its file."""
        return self.module.nodes[self.key & MASK]

    @property
    def kind(self) -> str:
        """Its kind, see `ldlm_lint.code.table`."""
        kind: str = self.module.nodes[self.key & MASK][0]
        return kind

    @property
    def place(self) -> int:
        """Where it begins, for `Codebase.span`; 0 for what is written nowhere."""
        return int(self.module.table.places[self.key & MASK])

    @property
    def line(self) -> int:
        """The line on which it begins, from 1; 0 for what is written nowhere."""
        return line_of(self.place)

    @property
    def span(self) -> Span:
        """Where it is written; it must be written somewhere, see `place`."""
        return self.code.expression_span(self.key)

    @property
    def text(self) -> str:
        """Its code; empty if it is written nowhere."""
        return self.code.expression_text(self.module, self.key & MASK)

    @property
    def line_span(self) -> Span:
        """The line on which it begins."""
        return self.code.line_span(self.module, self.place)

    def called_in(self, function: Function) -> str:
        """What it is called in a function: the name that holds it there, or its code."""
        value = self.unnamed
        ways = [one for one in value.origins(Through.NAMES) if one.kind not in ("copy", "phi")]
        bound = [{event.name for event in one.events if event.kind == "bind" and event.spot.function == function} for one in ways]
        common = set.intersection(*bound) if value.kind == "phi" else bound[0]
        if len(common) == 1:
            return common.pop()
        return value.name if value.kind in ("param", "free") else value.text or repr(value.constant)

    @property
    def unnamed(self) -> Expr:
        """The expression that it stands for if it only reads a name that holds it."""
        return self._at(self.module.uncopied(self.key & MASK))

    @property
    def operands(self) -> list[Expr]:
        """The expressions that it is made of, in the order of evaluation."""
        return [self._at(one) for one in operands(self.row)]

    @property
    def within(self) -> Iterator[Expr]:
        """It and all expressions that it is made of, each once."""
        todo, seen = [self], {self}
        while todo:
            one = todo.pop()
            yield one
            new = [other for other in one.operands if other not in seen]
            seen.update(new)
            todo += new

    @property
    def operator(self) -> str:
        """Its operation: ``Add``, ``Mod``, ``And``, ``Not``, ``Eq`` of one comparison; empty for all else."""
        row = self.row
        if row[0] == "cmp":
            return row[1][0] if len(row[1]) == 1 else ""
        return "Not" if row[0] == "not" else str(row[1]) if row[0] in ("op", "un", "bool") else ""

    @property
    def operators(self) -> tuple[str, ...]:
        """The operations of a chain of comparisons."""
        return tuple(self.row[1]) if self.kind == "cmp" else ()

    @property
    def constant(self) -> object:
        """The number, text, boolean or None that it is, literally; `Ellipsis` for all else."""
        return self.row[1] if self.kind == "const" else ...

    @property
    def last_name(self) -> str:
        """The last name in it: ``AdamW`` of ``torch.optim.AdamW``; empty if it has none."""
        return self.module.last_name(self.key & MASK)

    def _at(self, number: int) -> Expr:
        module = self.module
        return (handles.Call if number in module.table.sites else Expr)(self.code, module.base | number, module)

    @property
    def name(self) -> str:
        """The name that it is written as: ``x`` of ``x`` and of ``self.x``; empty for all else."""
        return str(self.row[2]) if self.kind in _NAMES else ""

    @property
    def base(self) -> Expr | None:
        """What it is a part or the content of: ``x`` of ``x.a``, ``x[0]``, ``*x``, ``for one in x``, ``with x as y``."""
        return self._at(self.row[1]) if self.kind in _PARTS else None

    @property
    def index(self) -> Expr | None:
        """``key`` of ``x[key]``, read or set."""
        return self._at(self.row[2]) if self.kind in ("item", "upd") else None

    @property
    def put(self) -> Expr | None:
        """What a container gets: ``v`` of ``x[key] = v``."""
        return self._at(self.row[3]) if self.kind == "upd" else None

    @property
    def test(self) -> Expr | None:
        """What decides a choice: ``t`` of ``a if t else b``."""
        return self._at(self.row[1]) if self.kind == "choice" else None

    @property
    def part(self) -> int | None:
        """Which one it is of what an unpacking takes; -1 where a star is before it, None for all else."""
        return int(self.row[2]) if self.kind == "part" else None

    @property
    def ways(self) -> list[Expr]:
        """The expressions one of which it is: a name that is bound on several ways, a choice, ``and``, ``or``."""
        row = self.row
        if row[0] in ("copy", "phi"):
            return [self._at(one) for one in ((row[1],) if row[0] == "copy" else row[1])]
        return [self._at(one) for one in (row[2:4] if row[0] == "choice" else row[2] if row[0] == "bool" else ())]

    @property
    def entries(self) -> list[Expr]:
        """The values of a dictionary as written."""
        return [self._at(one) for one in (self.row[2] if self.kind == "map" else ())]

    @property
    def results(self) -> list[Expr]:
        """What the functions of the project return that a call goes to."""
        return []

    def origins(self, through: Through) -> Iterator[Expr]:
        """The expression and all those that its value may come from, through some kinds of links, nearest first."""
        return origins(self, through)

    def precedes(self, other: Expr) -> bool:
        """Whether it is evaluated before another expression of its function."""
        return self.key < other.key

    def is_alike(self, other: Expr) -> bool:
        """Whether another expression is written alike, of the same values."""
        return are_alike(self, other)

    @property
    def targets_if_called(self) -> list[Function]:
        """The functions of the project that a call of it would go to."""
        program = self.code.program
        return [handles.Function(self.code, one) for one, _ in program.targets(program.get(self.key), None)[0]]

    @property
    def signatures(self) -> list[Signature]:
        """How the functions of the project take arguments that a call of it may go to; empty if it may go to others, or if a
        decorator may change them."""
        program, of = self.code.program, self.code.program.atoms.of
        if not self.is_known_whole:
            return []
        found: list[Signature] = []
        for one in self.value - {NONE}:
            is_callable = one >= FIRST and of[one][0] in ("f", "b", "i", "self")
            goes_to = program.targets(frozenset([one]), None)[0] if is_callable else {}
            signatures = [handles.Signature(handles.Function(self.code, function), abs(how) == BOUND) for function, how in goes_to]
            if not signatures or not all(signature.function.keeps_signature for signature in signatures):
                return []
            found += signatures
        return sorted(found, key=lambda one: one.function.key)

    @property
    def users(self) -> list[Expr]:
        """The expressions that are made of it."""
        return [use.by for use in self.uses() if use.by is not None]

    @property
    def plain(self) -> Expr:
        """What a name stands for on the first of its ways."""
        at: Expr = self
        for _ in range(_WAYS):
            if at.kind not in ("copy", "phi"):
                break
            at = at.ways[0]
        return at

    @property
    def function(self) -> Function:
        """The function that it is in; of a parameter and a name that a function reads from outside that one."""
        row, site = self.row, self.module.table.sites.get(self.key & MASK)
        if site is not None:
            return handles.Function(self.code, self.module.base | site.scope)
        if row[0] in ("param", "free", "vararg", "kwarg"):
            return handles.Function(self.code, self.module.base | row[1])
        return handles.Function(self.code, self.code.function_at(self.module, self.place))

    @property
    def attributes(self) -> list[tuple[Class, str]]:
        """The attributes that methods set to it on ``self``, with the classes."""
        writes = self.code.program.own_writes.items()
        return [(handles.Class(self.code, owner), name) for (owner, name), values in writes if self.key in values]

    @property
    def loop_of_element(self) -> Loop | None:
        """The ``for`` loop that takes it from its iterable."""
        base, loops = self.module.base, enumerate(self.module.table.loops)
        found = (one for one, loop in loops if self.kind == "elem" and loop.kind == "for" and loop.value == self.row[1])
        return next((handles.Loop(self.code, base | one) for one in found), None)

    @property
    def given(self) -> list[Expr]:
        """What the known callers pass for it if it is a parameter."""
        row = self.row
        keys = self.code.ask.given(self.module.base | row[1], row[2]) if row[0] == "param" else []
        return [expression(self.code, one) for one in keys]

    @property
    def passed(self) -> list[Passed]:
        """What each call of its function passes for it if it is a parameter."""
        row, found = self.row, list[handles.Passed]()
        function = self.module.base | row[1] if row[0] == "param" else -1
        for edge in self.code.program.callers(function) if function >= 0 else ():
            node = self.code.program.argument_node(edge.call, function, edge.how, row[2]) if edge.how != UNKNOWN else None
            found.append(handles.Passed(handles.Call(self.code, edge.call), expression(self.code, node) if node is not None else None, edge.how != UNKNOWN))
        return found

    @property
    def default(self) -> Expr | None:
        """What it is without an argument if it is a parameter that may be left out."""
        row = self.row
        number = self.module.scopes[row[1]].defaults.get(row[2]) if row[0] == "param" else None
        return self._at(number) if number is not None else None

    @property
    def set_to(self) -> list[Expr]:
        """What the methods of a class, and of its bases, set it to if it is an attribute of their ``self``."""
        owner = self.owner_of_self
        return owner.written(self.name) if owner is not None else []

    @property
    def owner_of_self(self) -> Class | None:
        """The class whose ``self`` it is an attribute of."""
        owner = self.code.program.class_of_self(self.module, self.row[1]) if self.kind == "attr" else None
        return handles.Class(self.code, owner) if owner is not None else None

    @property
    def variables(self) -> list[str]:
        """The variables of its file that it is bound to, also the counter that ``x += 1`` gives."""
        number = self.key & MASK
        return [name for scope in self.module.scopes for name, values in scope.bindings.items() if number in values]

    @property
    def annotation(self) -> str:
        """The last name of the type that a parameter is annotated with, without ``Optional``; empty if there is none."""
        row = self.row
        return self.module.scopes[row[1]].annotations.get(row[2], "") if row[0] == "param" else ""

    @property
    def items(self) -> list[tuple[Expr, Expr]]:
        """The keys and values of ``{key: value}``."""
        row = self.row
        return [(self._at(key), self._at(value)) for key, value in zip(row[1], row[2], strict=True)] if row[0] == "map" else []

    @property
    def loop(self) -> Loop | None:
        """The ``for`` whose element it is."""
        row = self.row
        loops = enumerate(self.module.table.loops) if row[0] == "elem" else ()
        return next((handles.Loop(self.code, self.module.base | at) for at, one in loops if one.kind == "for" and one.value == row[1]), None)

    @property
    def bound_outside(self) -> list[Expr]:
        """What the functions around, or the module, bind it to if it is a name that its function does not bind."""
        keys = self.code.ask.bound_to(self.module, self.row) if self.kind == "free" else ()
        return [expression(self.code, one) for one in keys]

    @property
    def properties(self) -> list[Function]:
        """The methods that reading it runs, if it is an attribute that a class of the project has as a property."""
        program, found = self.code.program, set[int]()
        if self.kind == "attr" and self.name in self.code.property_names:
            of = program.atoms.kinds
            value = program.ask(self.module.base | self.row[1])
            for kind in ("i", "self"):
                found.update(one for fields in of(value, kind) for one in program.methods(fields[1], self.name, exact=kind == "i"))
        return [handles.Function(self.code, one) for one in sorted(found) if program.is_property(one)]

    @property
    def identity(self) -> Identity:
        """What setting it reads, in a form that can be compared, see `ldlm_lint.program.identity`; empty if unknown."""
        return identity_of(self.code.program, self.key)

    @property
    def words(self) -> set[str]:
        """The names in a condition."""
        return words_below(self.module, self.key & MASK)

    @property
    def readings(self) -> list[Expr]:
        """It and all expressions of its file that read the same of the same value: ``output.loss`` here and there."""
        row, base = self.row, self.module.base
        return [expression(self.code, base | number) for number, other in enumerate(self.module.nodes) if other == row]

    def may_mean(self, owner: Class) -> bool:
        """Whether it is a class, or may be: a name that is not resolved may mean any class of that name."""
        if self.kind == "class":
            return bool(self.module.base | self.row[1] == owner.key)
        found = self.as_classes
        return owner in found or not found

    @property
    def is_self(self) -> bool:
        """Whether it is the first parameter of a method."""
        return self.code.program.class_of_self(self.module, self.key & MASK) is not None

    def reads_same_name_as(self, other: Expr) -> bool:
        """Whether both read one variable, or one attribute of one value, without a new binding in between."""
        return self == other or (self.module is other.module and self.kind in ("free", "attr") and self.row == other.row)

    @property
    def changed_by(self) -> list[Expr]:
        """The stores into the container that it makes, and the calls of its methods that may change it."""
        program, module = self.code.program, self.module
        container = program.atoms.atom("d", self.key)
        names = program.names_of(self.key)
        changes = {one for name in names for one in (*program.changes.get(name, ()), *program.changes.get((module.index, name), ()))}
        found = [expression(self.code, one) for one in sorted(changes)]
        changed = ((one, one.receiver if isinstance(one, handles.Call) else one.base) for one in found)
        return [one for one, changing in changed if changing is not None and container in changing.value]

    @property
    def element_taken(self) -> Expr | None:
        """What a comprehension with one loop and no condition takes; None for anything else."""
        module, number = self.module, self.key & MASK
        table = module.table
        comprehensions = [one for one in table.loops if one.kind == "comp"]
        places = {(one.value, one.place) for one in comprehensions}
        taken = (one for one in range(number) if module.nodes[one][0] == "elem" and (module.nodes[one][1], table.places[one]) in places)
        loop = max(taken, default=0) if self.kind == "comp" else 0
        iterable = module.nodes[loop][1] if loop else 0
        inner = [one for one in comprehensions if iterable <= one.value < number]
        is_plain = loop and len(inner) == 1 and not any(loop < one.test < number for one in table.guards)
        return self._at(loop) if is_plain else None

    @property
    def is_tuple(self) -> bool:
        """Whether it is written as a tuple."""
        return self.row[:2] == ("seq", "Tuple")

    @property
    def is_plain_text(self) -> bool:
        """Whether it is an f-string without formats and conversions."""
        return self.kind == "fstr" and bool(self.row[2])

    @property
    def owner_if_self(self) -> Class | None:
        """The class whose ``self`` it is."""
        owner = self.code.program.class_of_self(self.module, self.key & MASK)
        return handles.Class(self.code, owner) if owner is not None else None

    @property
    def options_by_name(self) -> list[Option]:
        """Those of its name, near it, if it is an attribute of an unknown object: ``args.workers``."""
        return [handles.Option(self.code, one) for one in self.code.ask.flags_by_name(self.key)]

    @property
    def guards_on(self) -> list[Guard]:
        """The conditions of which it is the test."""
        base, number = self.module.base, self.key & MASK
        return [handles.Guard(self.code, base | one) for one, guard in enumerate(self.module.table.guards) if guard.test == number]

    @property
    def returned_by(self) -> list[Function]:
        """The functions that return it."""
        scopes = enumerate(self.module.scopes)
        return [handles.Function(self.code, self.module.base | one) for one, scope in scopes if any(value == self.key & MASK for value, _ in scope.returns)]

    @property
    def names(self) -> frozenset[str]:
        """The names that its value is bound to: of variables, attributes and keys of mappings."""
        return self.code.program.all_names_of(self.key)

    @property
    def imported(self) -> tuple[str, str]:
        """The module and the name that it imports, as written; the name is empty for a module, both for all else."""
        row = self.row
        return (row[1], row[2] if row[0] == "impf" else "") if row[0] in ("imp", "impf") else ("", "")

    @property
    def is_outside_import(self) -> bool:
        """Whether it is an import that names another package, not a module of the project."""
        row, module = self.row, self.module
        if row[0] not in ("imp", "impf"):
            return False
        modules = self.code.program.modules
        full = modules.absolute(module, row[1], row[3] if row[0] == "impf" else row[2])
        return not full or modules.find(full, module) is None

    @property
    def is_fallback(self) -> bool:
        """Whether it is bound only in an ``except`` clause: the ``try`` is preferred."""
        return self.code.origins.is_fallback(self.key)

    def origins_of(self, constant: object) -> list[Origin]:
        """Where one of the numbers, texts or booleans that it may be is written."""
        return self.code.origins.to(self, self.code.program.atoms.constant(constant))

    @property
    def case(self) -> str:
        """The case in which it is bound to a name, put into a container, or called: "with `--opt adamw`"; "" for always."""
        return self.code.origins.case_of(self.key)

    def uses(self) -> list[Use]:
        """What happens to its value, one step forward, see `ldlm_lint.program.value_uses`."""
        return self.code.value_uses.of(self)

    @property
    def events(self) -> list[Event]:
        """What happens to it where it is bound, set, tested, formatted, returned, in the order of evaluation."""
        return self.code.value_uses.events_of(self)

    @property
    def is_dropped(self) -> bool:
        """Whether no code gets its value: it is a statement, or all names that hold it are never read again."""
        return self.code.value_uses.is_dropped(self)

    def alternatives(self, interfaces: Collection[str]) -> list[Alternative]:
        """Which of these interfaces of other packages it may be, directly or by a class of the project derived from one,
        each with where it is chosen, by their names."""
        return sorted(self._alternatives(frozenset(interfaces)), key=lambda one: (one.name, one.owner.key if one.owner else 0))

    def _alternatives(self, interfaces: frozenset[str]) -> Iterator[Alternative]:
        program, origins = self.code.program, self.code.origins
        for atom in sorted(program.ask(self.key)):
            fields = program.atoms.of[atom] if atom >= FIRST else ("",)
            owner = handles.Class(self.code, fields[1]) if fields[0] == "c" else None
            for name in sorted(self.code.ask.names_of(frozenset([atom])) & interfaces):
                yield handles.Alternative(name, owner, tuple(origins.to(self, atom)))


def expression(code: Codebase, key: int, module: Module | None = None) -> Expr:
    """The handle of an expression by its number: a `Call` if it is one."""
    module = code.program.module_of(key) if module is None else module
    return (handles.Call if key & MASK in module.table.sites else Expr)(code, key, module)
