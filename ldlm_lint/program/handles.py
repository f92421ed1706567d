"""What rules and concepts hold in their hands: calls, expressions, functions and classes of a codebase.

A handle is small and frozen; two of one place are equal. Numbers of expressions, rows and masks stay behind it, see
``docs/core.md``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from ldlm_lint.code import table
from ldlm_lint.code.table import Node, column_of, line_of
from ldlm_lint.program.arms import Entry
from ldlm_lint.program.atoms import DEVICE, FALSE, FALSY, FIRST, HOMES, HOST, HOST_TENSOR, MASK, TENSOR, TRUE
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.conditions import words_below
from ldlm_lint.program.identity import Identity, identity_of
from ldlm_lint.program.operands import operands
from ldlm_lint.program.queries import Argument as Found
from ldlm_lint.program.queries import Meaning, State, destination
from ldlm_lint.program.settings_read import settings_read
from ldlm_lint.program.spots import Event, Spot, Write
from ldlm_lint.program.walks import Through, are_alike, origins

if TYPE_CHECKING:
    from ldlm_lint.code.table import Site
    from ldlm_lint.model import Span
    from ldlm_lint.program.atoms import Value
    from ldlm_lint.program.codebase import Codebase
    from ldlm_lint.program.mappings import Keys
    from ldlm_lint.program.modules import Module
    from ldlm_lint.program.origins import Origin
    from ldlm_lint.program.value_uses import Use

_NAMES = frozenset({"attr", "free", "param", "impf"})
_TENSORS = frozenset({DEVICE, HOST_TENSOR, TENSOR})
_PARTS = frozenset({"attr", "item", "part", "elem", "star", "copy", "enter", "upd", "comp"})
_WAYS = 12
"""Names bound to names that are looked through, as in `Module.plain`."""


class _Handle:
    """Something at a place of a codebase.

    Questions make millions of them, and ask most for their rows: what that takes is kept.
    """

    __slots__ = ("code", "key", "module")

    def __init__(self, code: Codebase, key: int, module: Module | None = None) -> None:
        self.code: Final = code
        self.key: Final = key
        """Its number; for ``program/`` and for concepts that were not written with handles yet."""
        self.module: Final = code.program.module_of(key) if module is None else module
        """The file that it is in."""

    def may_run_with(self, other: _Handle) -> bool:
        """Whether one program may run it and something else: the files of both take part in it."""
        return other.module.index in self.code.program.together.programs_of(self.module)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.module.path}, {self.key & MASK})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, _Handle) and other.key == self.key

    def __hash__(self) -> int:
        return self.key


class Expr(_Handle):
    """An expression."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and other.key == self.key

    __hash__ = _Handle.__hash__

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
        return (Call if number in module.table.sites else Expr)(self.code, module.base | number, module)

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
        return [Function(self.code, one) for one, _ in program.targets(program.get(self.key), None)[0]]

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
            return Function(self.code, self.module.base | site.scope)
        if row[0] in ("param", "free", "vararg", "kwarg"):
            return Function(self.code, self.module.base | row[1])
        return Function(self.code, self.code.function_at(self.module, self.place))

    @property
    def attributes(self) -> list[tuple[Class, str]]:
        """The attributes that methods set to it on ``self``, with the classes."""
        writes = self.code.program.own_writes.items()
        return [(Class(self.code, owner), name) for (owner, name), values in writes if self.key in values]

    @property
    def loop_of_element(self) -> Loop | None:
        """The ``for`` loop that takes it from its iterable."""
        base, loops = self.module.base, enumerate(self.module.table.loops)
        found = (one for one, loop in loops if self.kind == "elem" and loop.kind == "for" and loop.value == self.row[1])
        return next((Loop(self.code, base | one) for one in found), None)

    @property
    def given(self) -> list[Expr]:
        """What the known callers pass for it if it is a parameter."""
        row = self.row
        keys = self.code.ask.given(self.module.base | row[1], row[2]) if row[0] == "param" else []
        return [expression(self.code, one) for one in keys]

    @property
    def passed(self) -> list[Passed]:
        """What each call of its function passes for it if it is a parameter."""
        row, found = self.row, list[Passed]()
        function = self.module.base | row[1] if row[0] == "param" else -1
        for edge in self.code.program.callers(function) if function >= 0 else ():
            node = self.code.program.argument_node(edge.call, function, edge.how, row[2]) if edge.how != UNKNOWN else None
            found.append(Passed(Call(self.code, edge.call), expression(self.code, node) if node is not None else None, edge.how != UNKNOWN))
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
        return Class(self.code, owner) if owner is not None else None

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
        return next((Loop(self.code, self.module.base | at) for at, one in loops if one.kind == "for" and one.value == row[1]), None)

    @property
    def bound_outside(self) -> list[Expr]:
        """What the functions around, or the module, bind it to if it is a name that its function does not bind."""
        keys = self.code.ask.bound_to(self.module, self.row) if self.kind == "free" else ()
        return [expression(self.code, one) for one in keys]

    @property
    def value(self) -> Value:
        """Its possible values, as `ldlm_lint.program.atoms` numbers them."""
        return self.code.program.ask(self.key)

    @property
    def identities(self) -> frozenset[object]:
        """The functions, classes and objects that it may be, to be compared with those of another expression."""
        return frozenset(one for one in self.value if one >= FIRST)

    @property
    def outside_names(self) -> frozenset[str]:
        """The functions, classes and modules of other packages that it may be, by dotted names."""
        return frozenset(fields[1] for fields in self.code.program.atoms.kinds(self.value, "x"))

    @property
    def texts(self) -> frozenset[str]:
        """The texts that it may be, also as options of a command line; ``*`` stands for unknown parts."""
        program = self.code.program
        return frozenset(program.atoms.texts(self.value) | program.texts_of_flags(self.value))

    @property
    def properties(self) -> list[Function]:
        """The methods that reading it runs, if it is an attribute that a class of the project has as a property."""
        program, found = self.code.program, set[int]()
        if self.kind == "attr" and self.name in self.code.property_names:
            of = program.atoms.kinds
            value = program.ask(self.module.base | self.row[1])
            for kind in ("i", "self"):
                found.update(one for fields in of(value, kind) for one in program.methods(fields[1], self.name, exact=kind == "i"))
        return [Function(self.code, one) for one in sorted(found) if program.is_property(one)]

    @property
    def identity(self) -> Identity:
        """What setting it reads, in a form that can be compared, see `ldlm_lint.program.identity`; empty if unknown."""
        return identity_of(self.code.program, self.key)

    @property
    def words(self) -> set[str]:
        """The names in a condition."""
        return words_below(self.module, self.key & MASK)

    @property
    def interfaces(self) -> frozenset[str]:
        """The functions and classes of other packages that it may be, also those that a class of the project extends."""
        return frozenset(self.code.ask.names_of(self.value))

    @property
    def made_by(self) -> frozenset[str]:
        """The functions and classes of other packages that may have made it, by dotted names."""
        return frozenset(fields[1] for fields in self.code.program.atoms.kinds(self.value, "o"))

    @property
    def is_made_outside(self) -> bool:
        """Whether functions and classes of other packages made all that it may be."""
        return bool(self.value) and len(self.code.program.atoms.kinds(self.value, "o")) == len(self.value)

    def made_at(self, name: str) -> list[Call]:
        """The calls of a function or class of another package that may have made it, where the program tells them apart."""
        made = self.code.program.atoms.kinds(self.value, "o")
        return [Call(self.code, fields[2]) for fields in made if fields[1] == name and fields[2:] and fields[2]]

    @property
    def may_be_tensor(self) -> bool:
        """Whether it may be a tensor, wherever that is."""
        return bool(self.value & HOMES)

    @property
    def readings(self) -> list[Expr]:
        """It and all expressions of its file that read the same of the same value: ``output.loss`` here and there."""
        row, base = self.row, self.module.base
        return [expression(self.code, base | number) for number, other in enumerate(self.module.nodes) if other == row]

    @property
    def is_tensor(self) -> bool:
        """Whether it is surely a tensor."""
        return bool(self.value) and self.value <= _TENSORS

    @property
    def is_of_known_class(self) -> bool:
        """Whether all that it may be are objects of classes, see `made_by` and `classes_of`."""
        kinds = self.code.program.atoms.kinds
        return bool(self.value) and sum(len(kinds(self.value, kind)) for kind in ("i", "self", "o")) == len(self.value)

    @property
    def as_classes(self) -> list[Class]:
        """The classes of the project that it may be itself."""
        return [Class(self.code, fields[1]) for fields in self.code.program.atoms.kinds(self.value, "c")]

    @property
    def is_own_object(self) -> bool:
        """Whether all that it may be are objects of the project's classes, and options as a parser gives them."""
        kinds = self.code.program.atoms.kinds
        return bool(self.value) and sum(len(kinds(self.value, kind)) for kind in ("ns", "i")) == len(self.value)

    @property
    def classes_of(self) -> list[Class]:
        """The classes of the project that it may be an object of."""
        kinds = self.code.program.atoms.kinds
        return [Class(self.code, fields[1]) for kind in ("i", "self") for fields in kinds(self.value, kind)]

    @property
    def functions(self) -> list[Function]:
        """The functions and bound methods of the project that it may be."""
        program = self.code.program
        found = {fields[1] for kind in ("f", "b") for fields in program.atoms.kinds(program.ask(self.key), kind)}
        return [Function(self.code, one) for one in sorted(found)]

    def is_just(self, truth: bool) -> bool:
        """Whether the program shows that it may be this truth value, and nothing else; what it does not show may be."""
        return self.value == frozenset([TRUE if truth else FALSE])

    def under(self, key: str) -> list[Expr]:
        """What a mapping may have under a key."""
        return [expression(self.code, one) for one in self.code.ask.mappings.keys_at(self.key).entries.get(key, ())]

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the mapping that it is, those added later too."""
        return frozenset(self.code.ask.mappings.keys_at(self.key).entries)

    def filled_at(self, call: Call) -> Filled:
        """The mapping that it is, as a call gets it."""
        return Filled(self.code, self.code.ask.mappings.keys_at(self.key, call.key))

    @property
    def may_have_other_keys(self) -> bool:
        """Whether the mapping that it is may have keys that nothing shows."""
        return self.code.ask.mappings.keys_at(self.key).is_open

    @property
    def only_classes(self) -> list[Class]:
        """The classes of the project that it is an object of one of; empty if it may be anything else."""
        of = self.code.program.atoms.of
        fields = [of[one] if one >= FIRST else ("",) for one in self.value]
        return [Class(self.code, one[1]) for one in fields] if all(one[0] in ("i", "self") for one in fields) else []

    @property
    def settings(self) -> set[tuple[str, ...]]:
        """The settings of a configuration that it may read, by their last keys: ``("optimizer", "name")``."""
        return settings_read(self.code.program, self.key)

    @property
    def may_be_options(self) -> bool:
        """Whether it may be what a parser of a command line gives: ``args``."""
        return bool(self.code.program.atoms.kinds(self.value, "ns"))

    @property
    def is_of_constants_and_options(self) -> bool:
        """Whether it is nothing but constants that are written and values of options."""
        of = self.code.program.atoms.of
        return HOST not in self.value and all(one < FIRST or of[one][0] in ("flag", "k") for one in self.value)

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

    def may_be_made_by(self, call: Call) -> bool:
        """Whether it may be the object of another package's class that a call creates."""
        program = self.code.program
        return any(fields[2:3] == (call.key,) for fields in program.atoms.kinds(program.ask(self.key), "o"))

    @property
    def containers(self) -> frozenset[Expr]:
        """The containers that it may be, by the expressions that made them."""
        return frozenset(expression(self.code, fields[1]) for fields in self.code.program.atoms.kinds(self.value, "d"))

    @property
    def changed_by(self) -> list[Expr]:
        """The stores into the container that it makes, and the calls of its methods that may change it."""
        program, module = self.code.program, self.module
        container = program.atoms.atom("d", self.key)
        names = program.names_of(self.key)
        changes = {one for name in names for one in (*program.changes.get(name, ()), *program.changes.get((module.index, name), ()))}
        found = [expression(self.code, one) for one in sorted(changes)]
        changed = ((one, one.receiver if isinstance(one, Call) else one.base) for one in found)
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
    def is_view(self) -> bool:
        """Whether it may be what ``zip``, ``enumerate``, ``.keys()`` and the like give."""
        return any(fields[1] != "items" for fields in self.code.program.atoms.kinds(self.value, "view"))

    @property
    def is_object(self) -> bool:
        """Whether it may be anything of Python but a constant and the value of an option."""
        kinds = self.code.program.atoms.of
        return any(one == HOST or (one >= FIRST and kinds[one][0] not in ("k", "flag")) for one in self.value)

    @property
    def is_falsy(self) -> bool:
        """Whether it is surely False or None."""
        return bool(self.value) and self.value <= FALSY

    @property
    def is_bare_tensor(self) -> bool:
        """Whether it may be a tensor and is no object of a class, as far as the program shows."""
        return bool(self.value & HOMES) and all(one < FIRST for one in self.value)

    @property
    def is_of_python(self) -> bool:
        """Whether it is a number, an array or another thing of Python, as far as the program shows."""
        return HOST in self.value and all(one < FIRST for one in self.value)

    def is_container_or(self, made_by: tuple[str, ...]) -> bool:
        """Whether it is surely a container, or made by functions whose dotted names begin like one of these."""
        kinds = self.code.program.atoms.of
        fields = [kinds[one] for one in self.value if one >= FIRST]
        return bool(self.value) and all(one[0] in ("d", "k", "view") or (one[0] == "o" and one[1].startswith(made_by)) for one in fields)

    @property
    def callables(self) -> list[Function]:
        """The functions of the project that a call of it may run: by methods of objects and `functools.partial`, too."""
        atoms, program = self.code.program.atoms, self.code.program
        found, todo = dict[int, None](), [self.value]
        while todo:
            value = todo.pop()
            found.update((fields[1], None) for kind in ("f", "b") for fields in atoms.kinds(value, kind))
            for kind in ("i", "self"):
                for fields in atoms.kinds(value, kind):
                    found.update((one, None) for one in program.methods(fields[1], "__call__", exact=kind == "i"))
            todo += [program.ask(("unwrapped", fields[1])) for fields in atoms.kinds(value, "partial")]
        return [Function(self.code, one) for one in found]

    @property
    def modules(self) -> list[Module]:
        """The modules of the project that it may be."""
        return [self.code.program.modules.all[fields[1]] for fields in self.code.program.atoms.kinds(self.value, "m")]

    @property
    def owner_if_self(self) -> Class | None:
        """The class whose ``self`` it is."""
        owner = self.code.program.class_of_self(self.module, self.key & MASK)
        return Class(self.code, owner) if owner is not None else None

    @property
    def classes(self) -> list[Class]:
        """The classes of the project that it may be."""
        kinds = self.code.program.atoms.kinds
        return [Class(self.code, fields[1]) for kind in ("c", "self") for fields in kinds(self.value, kind)]

    @property
    def options(self) -> list[Option]:
        """The options of a command line whose value it may be."""
        return [Option(self.code, one) for one in self.may_be().flags]

    @property
    def options_by_name(self) -> list[Option]:
        """Those of its name, near it, if it is an attribute of an unknown object: ``args.workers``."""
        return [Option(self.code, one) for one in self.code.ask.flags_by_name(self.key)]

    def may_be(self) -> Meaning:
        """Its possible values, and whether these are all."""
        return self.code.ask.meaning(self.key)

    @property
    def guards_on(self) -> list[Guard]:
        """The conditions of which it is the test."""
        base, number = self.module.base, self.key & MASK
        return [Guard(self.code, base | one) for one, guard in enumerate(self.module.table.guards) if guard.test == number]

    @property
    def returned_by(self) -> list[Function]:
        """The functions that return it."""
        scopes = enumerate(self.module.scopes)
        return [Function(self.code, self.module.base | one) for one, scope in scopes if any(value == self.key & MASK for value, _ in scope.returns)]

    @property
    def names(self) -> frozenset[str]:
        """The names that its value is bound to: of variables, attributes and keys of mappings."""
        return self.code.program.all_names_of(self.key)

    @property
    def is_known_whole(self) -> bool:
        """Whether all its possible values are known."""
        return self.code.ask.is_complete(self.key)

    @property
    def count_of_values(self) -> int:
        """How many different values it may have, those of other packages and of the project together."""
        return len(self.code.program.ask(self.key))

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

    @property
    def objects(self) -> list[Class | str]:
        """The classes that it surely is an object of one of: those of the project, with the subclasses of that of
        ``self``, and those of other packages by dotted names; empty if it may be anything else."""
        program = self.code.program
        atoms = sorted(program.ask(self.key))
        is_whole = self.is_known_whole
        found: list[Class | str] = []
        for atom in atoms:
            fields = program.atoms.of[atom] if atom >= FIRST else ("",)
            if fields[0] == "self" and len(fields) == 2:
                is_whole |= len(atoms) == 1
                found += [Class(self.code, one) for one in program.below(fields[1])]
            elif fields[0] == "i":
                found.append(Class(self.code, fields[1]))
            elif fields[0] == "o":
                found.append(fields[1])
            else:
                return []
        return found if is_whole else []

    def alternatives(self, interfaces: Collection[str]) -> list[Alternative]:
        """Which of these interfaces of other packages it may be, directly or by a class of the project derived from one,
        each with where it is chosen, by their names."""
        return sorted(self._alternatives(frozenset(interfaces)), key=lambda one: (one.name, one.owner.key if one.owner else 0))

    def _alternatives(self, interfaces: frozenset[str]) -> Iterator[Alternative]:
        program, origins = self.code.program, self.code.origins
        for atom in sorted(program.ask(self.key)):
            fields = program.atoms.of[atom] if atom >= FIRST else ("",)
            owner = Class(self.code, fields[1]) if fields[0] == "c" else None
            for name in sorted(self.code.ask.names_of(frozenset([atom])) & interfaces):
                yield Alternative(name, owner, tuple(origins.to(self, atom)))


class Call(Expr):
    """A call."""

    __slots__ = ()

    @property
    def _site(self) -> Site:
        return self.module.table.sites[self.key & MASK]

    @property
    def end(self) -> int:
        """Where it ends, for `Codebase.span`."""
        return self._site.end

    @property
    def spot(self) -> Spot:
        """Where it runs."""
        site = self._site
        return _spot(self, site.scope, site.loop, site.guard, site.place)

    @property
    def span(self) -> Span:
        """Where it is written."""
        return self.code.call_span(self.key)

    @property
    def text(self) -> str:
        """Its code."""
        return self.code.call_text(self.key)

    @property
    def made(self) -> Value:
        """Those of its possible values that no other call makes."""
        of = self.code.program.atoms.of
        return frozenset(one for one in self.value if one >= FIRST and self.key in of[one][1:])

    @property
    def called_name(self) -> str:
        """The last name of what is called: ``AdamW`` of ``torch.optim.AdamW()``."""
        return self.module.last_name(self.row[1])

    @property
    def positional(self) -> list[Expr]:
        """The arguments that are given by position."""
        return [self._at(one) for one in self.row[2]]

    @property
    def keywords(self) -> list[tuple[str, Expr]]:
        """The arguments that are given by name; "" for ``**``."""
        return [(name or "", self._at(one)) for name, one in self.row[3]]

    def parameters_for(self, value: Expr) -> list[Expr]:
        """The parameters of the functions that it goes to for which it passes a value."""
        return [one for target in self.targets for one in target.parameters.values() if self.given_for(one) == value]

    @property
    def has_stars(self) -> bool:
        """Whether it passes arguments by stars, so that they are not written out."""
        return any(name is None for name, _ in self.row[3]) or any(one.kind == "star" for one in self.positional)

    @property
    def attributes_read(self) -> list[Expr]:
        """Its arguments, and its receiver, that are attributes which some class of the project may have as a property."""
        names, nodes, row = self.code.property_names, self.module.nodes, self.row
        function = nodes[row[1]]
        read = [*row[2], *(value for _, value in row[3]), *([function[1]] if function[0] == "attr" else [])]
        return [self._at(one) for one in read if nodes[one][0] == "attr" and nodes[one][2] in names]

    @property
    def arguments(self) -> list[Expr]:
        """All arguments as written."""
        return [*self.positional, *(value for _, value in self.keywords)]

    def given_for(self, parameter: Expr) -> Expr | None:
        """What it passes for a parameter of a function that it goes to; None if nothing shows it."""
        target, name = parameter.function, str(parameter.row[2])
        for edge in self.code.program.callers(target.key):
            if edge.call == self.key and edge.how != UNKNOWN:
                node = self.code.program.argument_node(self.key, target.key, edge.how, name)
                return expression(self.code, node) if node is not None else None
        return None

    def argument_for(self, parameter: Expr) -> Argument:
        """The same with what unpacked mappings hold; open also where another package passes what it wants, and behind
        ``*args``."""
        target, name = parameter.function, str(parameter.row[2])
        how = next((edge.how for edge in self.code.program.callers(target.key) if edge.call == self.key), UNKNOWN)
        node = self.code.program.argument_node(self.key, target.key, how, name) if how != UNKNOWN else None
        if how == UNKNOWN or (node is not None and expression(self.code, node).kind == "star"):
            return Argument(self.code, Found(State.OPEN))
        return self.argument(name) if node is None else Argument(self.code, Found(State.GIVEN, (node,), (self.key,)))

    @property
    def callee_span(self) -> Span:
        """Where what it calls is written."""
        if self.callee.place == self.place:
            return self.callee.span
        return self.span._replace(end=self.span.start + len(self.text.partition("(")[0].rstrip().encode()))

    @property
    def last_line(self) -> int:
        """The line on which it ends, from 1."""
        return line_of(self._site.end)

    @property
    def position(self) -> str:
        """Line and column, as ``12:4``."""
        return f"{line_of(self._site.place)}:{column_of(self._site.place)}"

    @property
    def callee(self) -> Expr:
        """The expression that is called."""
        return self._at(self.row[1])

    @property
    def receiver(self) -> Expr | None:
        """The object whose method is called: ``model`` of ``model.train()``."""
        function = self.module.nodes[self.row[1]]
        return self._at(function[1]) if function[0] == "attr" else None

    @property
    def function(self) -> Function:
        """The function that it is in; that of the module outside of all functions."""
        return Function(self.code, self.module.base | self._site.scope, self.module)

    @property
    def guards(self) -> list[Guard]:
        """The conditions around it in its function, innermost first."""
        return _guards(self, self._site.guard)

    @property
    def loops(self) -> list[Loop]:
        """The loops around it in its function, innermost first."""
        return _loops(self, self._site.loop)

    @property
    def is_possible(self) -> bool:
        """Whether the conditions around it in its function may hold together, for what is known of its parameters."""
        return self.code.arms.may_take(self.module, self._site.guard, ())

    @property
    def may_run_by_default(self) -> bool:
        """Whether the conditions around it in its function may hold together if no option and no variable is set."""
        return self.code.arms_by_default.may_take(self.module, self._site.guard, ())

    def excludes(self, other: Call) -> bool:
        """Whether a condition lets only one of two calls run, in one run of the code around both."""
        mine = {(one.test, one.holds) for one in self.guards if one.is_test}
        return any((one.test, not one.holds) in mine for one in other.guards if one.is_test)

    @property
    def unpacked(self) -> list[Expr]:
        """The mappings that it unpacks: ``**options``."""
        return [self._at(one) for name, one in self.row[3] if name is None]

    @property
    def unpacked_from(self) -> list[Expr | None]:
        """What may bring unknown keys into the mappings that it unpacks; None for what is not an expression."""
        keys = [self.code.ask.mappings.keys_at(one.key, self.key) for one in self.unpacked]
        opened_by = sorted({one for found in keys for one in found.opened_by})
        return [expression(self.code, one) if one else None for one in opened_by]

    @property
    def targets(self) -> list[Function]:
        """The functions of the project that it may go to."""
        return [Function(self.code, one) for one in sorted(self.code.program.targets_of.get(self.key, ()))]

    @property
    def results(self) -> list[Expr]:
        """What the functions of the project return that it goes to."""
        return [one for target in self.targets for one in target.returned]

    @property
    def is_of_process(self) -> bool:
        """Whether another process or thread makes it: ``run`` of ``spawn(run, …)``."""
        return self.key in self.code.program.starts

    @property
    def is_in_handler(self) -> bool:
        """Whether it is in an ``except`` clause: a second attempt of its ``try``."""
        return self.code.program.stands_in_handler(self.key)

    @property
    def is_as_written(self) -> bool:
        """Whether it shows its function and arguments itself: an import of another package, nothing unpacked."""
        if any(name is None for name, _ in self.row[3]):
            return False
        module = self.module
        row = module.nodes[self.row[1]]
        while row[0] == "attr":
            row = module.nodes[row[1]]
        if row[0] == "free":
            bound = module.scopes[0].bindings.get(row[2], ())
            row = module.nodes[bound[0]] if len(bound) == 1 else row
        if row[0] not in ("imp", "impf"):
            return False
        modules = self.code.program.modules
        full = modules.absolute(module, row[1], row[3] if row[0] == "impf" else row[2])
        return not full or modules.find(full, module) is None

    @property
    def is_caught(self) -> bool:
        """Whether an ``except`` may catch what it raises."""
        return any(begin <= self._site.place < end for begin, end in self.module.table.tries)

    def argument(self, name: str, position: int | None = None) -> Argument:
        """What it gives for a parameter, by name or by place among the positional arguments (from 0)."""
        return Argument(self.code, self.code.ask.argument(self.key, name, position))


class Option(Call):
    """An option of a command line: the call that adds it."""

    __slots__ = ()

    @property
    def flag(self) -> str:
        """Its name, with its dashes."""
        return self.code.ask.flag(self.key).name

    @property
    def setting(self) -> str:
        """The name of the attribute that has its value: ``save_every`` of ``--save-every``."""
        return self.flag.lstrip("-").replace("-", "_")

    @property
    def default(self) -> Expr | None:
        """The default that is written for it."""
        found = self.code.ask.flag(self.key).default
        return expression(self.code, found) if found is not None else None

    @property
    def destination(self) -> str:
        """The attribute that it is stored as by default."""
        return destination(self.flag)

    @property
    def turns_on(self) -> bool:
        """Whether it is a switch that is off unless it is given."""
        found = self.code.ask.flag(self.key)
        return found.action == "store_true" and found.default is None

    @property
    def meaning_of_default(self) -> Meaning:
        """Its value if it is not given."""
        return self.code.ask.default_of(self.code.ask.flag(self.key))

    @property
    def default_value(self) -> object:
        """The one constant that it is if it is not given; `Ellipsis` if that is not known."""
        return self.code.ask.default_of(self.code.ask.flag(self.key)).only


class Guard(_Handle):
    """A condition on a place: an ``if``, the code behind one that leaves its block, a ``with``, an ``except``, a ``case``."""

    __slots__ = ()

    @property
    def _row(self) -> table.Guard:
        return self.module.table.guards[self.key & MASK]

    @property
    def kind(self) -> str:
        """Its kind, see `ldlm_lint.code.table.Guard`."""
        return self._row.kind

    @property
    def test(self) -> Expr:
        """What is asked, or entered by a ``with``."""
        return expression(self.code, self.module.base | self._row.test, self.module)

    @property
    def holds(self) -> bool | None:
        """The outcome of the test that leads to the place; None for all other conditions."""
        return self._row.holds

    @property
    def ends(self) -> str:
        """How its block ends: ``raise``, ``return``, ``break`` or ``continue``; ``after raise`` of the code behind a block that
        ends so; empty for all else."""
        return self._row.ends

    def may_be_passed(self, call: Call, function: Function) -> bool:
        """Whether the code under it may run when a call has entered the function that it is in."""
        how = next((one.how for one in self.code.program.callers(function.key) if one.call == call.key), UNKNOWN)
        return self.code.arms.may_take(self.module, self.key & MASK, (Entry(function.key, call.key, how),))

    @property
    def outer(self) -> Guard | None:
        """The condition around it."""
        return Guard(self.code, self.module.base | self._row.parent) if self._row.parent >= 0 else None

    @property
    def around(self) -> list[Guard]:
        """The condition itself and those around it, innermost first."""
        return _guards(self, self.key & MASK)

    @property
    def begin(self) -> int:
        """Where it begins, for comparisons with other places of its file."""
        return self._row.place

    @property
    def is_test(self) -> bool:
        """Whether it is an ``if``, or the code behind one that leaves its block."""
        return self._row.kind in ("if", "rest") and self._row.holds is not None

    @property
    def test_span(self) -> Span:
        """Where what is asked or entered is written, or the name that stands for it."""
        if self.test.line == self.line:
            return self.test.span
        start = self._row.place + len(f"{self.kind} ")
        return self.code.span(self.module, start, 0)

    @property
    def line(self) -> int:
        """The line of the statement, from 1."""
        return line_of(self._row.place)

    @property
    def line_span(self) -> Span:
        """The whole line of the statement."""
        return self.code.line_span(self.module, self._row.place)


class Loop(_Handle):
    """A loop: ``for``, ``while`` or a comprehension."""

    __slots__ = ()

    @property
    def _row(self) -> table.Loop:
        return self.module.table.loops[self.key & MASK]

    @property
    def kind(self) -> str:
        """``for``, ``while`` or ``comp``."""
        return self._row.kind

    @property
    def value(self) -> Expr:
        """What it iterates over, or the test of a ``while``."""
        return expression(self.code, self.module.base | self._row.value)

    @property
    def function(self) -> Function:
        """The function that it is in."""
        return Function(self.code, self.module.base | self._row.scope)

    @property
    def guards(self) -> list[Guard]:
        """The conditions around it in its function, innermost first."""
        return _guards(self, self._row.guard)

    @property
    def loops(self) -> list[Loop]:
        """The loops around it in its function, innermost first."""
        return _loops(self, self._row.parent)

    @property
    def around(self) -> list[Loop]:
        """The loop itself and those around it in its function, innermost first."""
        return _loops(self, self.key & MASK)

    @property
    def spot(self) -> Spot:
        """Where the loop as a whole runs."""
        row = self._row
        return _spot(self, row.scope, row.parent, row.guard, row.place)

    @property
    def line(self) -> int:
        """The line on which it begins, from 1."""
        return line_of(self._row.place)

    @property
    def calls(self) -> list[Call]:
        """The calls in it, in the order of evaluation."""
        return [call for call in self.function.calls if self in call.loops]


def event_of(function: Function, row: table.Event) -> Event:
    """The handle of an event of a function."""
    kind, number, loop, guard, place, rest = row
    code, base = function.code, function.module.base
    added = expression(code, base | rest) if kind == "add" else None
    spot = _spot(function, function.key & MASK, loop, guard, place)
    return Event(kind, expression(code, base | number), spot, str(rest or "") if added is None else "", added)


def _spot(at: _Handle, scope: int, loop: int, guard: int, place: int) -> Spot:
    code, module = at.code, at.module
    function = Function(code, module.base | scope, module)
    condition = Guard(code, module.base | guard, module) if guard >= 0 else None
    return Spot(function, condition, Loop(code, module.base | loop, module) if loop >= 0 else None, place)


def _guards(at: _Handle, guard: int) -> list[Guard]:
    module = at.module
    return [Guard(at.code, module.base | one, module) for one in table.guards_above(module.table.guards, guard)]


def _loops(at: _Handle, loop: int) -> list[Loop]:
    module = at.module
    return [Loop(at.code, module.base | one, module) for one in table.loops_above(module.table.loops, loop)]


class Function(_Handle):
    """A function, lambda or class body of the project, or what a module runs itself."""

    @property
    def is_module(self) -> bool:
        """Whether it is the code of a module outside of all functions."""
        return self.key & MASK == 0

    @property
    def name(self) -> str:
        """Its name in its module."""
        return self.module.scopes[self.key & MASK].name

    @property
    def owner(self) -> Class | None:
        """The class that it is a method of."""
        owner = self.code.program.owner.get(self.key)
        return Class(self.code, owner) if owner is not None else None

    @property
    def around(self) -> Iterator[Function]:
        """The function itself and those around it, innermost first, without the module."""
        at, scopes = self.key & MASK, self.module.scopes
        while at > 0:
            if scopes[at].kind == "def":
                yield Function(self.code, self.module.base | at)
            at = scopes[at].parent

    @cached_property
    def callers(self) -> tuple[Call, ...]:
        """All calls that go to it."""
        return tuple(Call(self.code, one.call) for one in self.code.program.callers(self.key))

    @property
    def named_callers(self) -> list[Call]:
        """The calls that go to it by its name; anyone who is handed a function may have got another one."""
        return [call for call in self.callers if self.owner is not None or call.called_name == self.name]

    @property
    def leading(self) -> dict[Function, bool]:
        """The function itself and those that lead to it by such calls, nearest first, each with whether others may lead to
        it: it is the code of a module, or something else calls it."""
        found: dict[Function, bool] = {}
        todo = [self]
        for function in todo:
            if function not in found:
                named = [] if function.is_module else function.named_callers
                found[function] = not named or len(named) < len(function.callers)
                todo += [call.function for call in named]
        return found

    @property
    def is_called_from_outside_only(self) -> bool:
        """Whether all its callers are other packages, which were handed the function."""
        return all(one.how == UNKNOWN for one in self.code.program.callers(self.key))

    @property
    def parameter_names(self) -> list[str]:
        """The names of its parameters, in order."""
        return list(self.module.scopes[self.key & MASK].params)

    @property
    def annotations(self) -> Mapping[str, str]:
        """The types that are written for its parameters."""
        return self.module.scopes[self.key & MASK].annotations

    @property
    def has_unknown_callers(self) -> bool:
        """Whether another package, which was handed the function, calls it."""
        return any(one.how == UNKNOWN for one in self.code.program.callers(self.key))

    @property
    def returned(self) -> list[Expr]:
        """The expressions that it returns."""
        module = self.module
        return [expression(self.code, module.base | one) for one, _ in module.scopes[self.key & MASK].returns if one]

    @property
    def decorators(self) -> list[Expr]:
        """Its decorators, as written from top to bottom."""
        return [expression(self.code, self.module.base | one) for one in self.module.scopes[self.key & MASK].decorators]

    @property
    def calls(self) -> list[Call]:
        """The calls in it, in the order of evaluation."""
        module = self.module
        return [Call(self.code, module.base | one, module) for one in module.scopes[self.key & MASK].calls]

    @property
    def is_special(self) -> bool:
        """Whether Python or torch calls it: ``__len__``, ``forward``."""
        return self.name.startswith("__") or self.name == "forward"

    def is_inside(self, owner: Class) -> bool:
        """Whether it is a method of a class, its body, or in one of these."""
        at = self.key & MASK if self.module is owner.module else 0
        while at > 0 and self.module.base | at != owner.key:
            at = self.module.scopes[at].parent
        return at > 0

    @property
    def is_hook(self) -> bool:
        """Whether a framework, or code that is not visible, calls it with what is assumed of that."""
        return self.key in self.code.program.hooks

    @property
    def expressions(self) -> Iterator[Expr]:
        """The expressions that are written in it, without those of its ``def`` itself."""
        table, scope = self.module.table, self.module.scopes[self.key & MASK]
        places = enumerate(table.places)
        return (expression(self.code, self.module.base | one) for one, place in places if place and scope.place < place < scope.end)

    @property
    def takes_object(self) -> bool:
        """Whether it is a method that takes an object first."""
        return self.key in self.code.program.bound

    @property
    def is_generator(self) -> bool:
        """Whether it yields."""
        return bool(self.module.scopes[self.key & MASK].yields)

    @property
    def is_class(self) -> bool:
        """Whether it is the body of a class."""
        return self.module.scopes[self.key & MASK].kind == "class"

    @property
    def is_in_class(self) -> bool:
        """Whether it is the body of a class, a method, or a function inside of one."""
        return self.is_class or (self.outer is not None and self.outer.is_in_class)

    @property
    def outer(self) -> Function | None:
        """The function or class body around it, or the module."""
        parent = self.module.scopes[self.key & MASK].parent
        return Function(self.code, self.module.base | parent) if parent >= 0 and not self.is_module else None

    @property
    def enclosing(self) -> list[Function]:
        """The function itself and all functions and class bodies around it, innermost first, without the module."""
        at: Function | None = self
        found: list[Function] = []
        while at is not None and not at.is_module:
            found.append(at)
            at = at.outer
        return found

    @property
    def spot(self) -> Spot:
        """Where it begins, inside of it and under no condition."""
        return _spot(self, self.key & MASK, -1, -1, self.module.scopes[self.key & MASK].place)

    @property
    def parameters(self) -> dict[str, Expr]:
        """Its parameters by their names."""
        return {name: Expr(self.code, self.module.base | one) for name, one in self.module.scopes[self.key & MASK].parameters.items()}

    def options_for(self, parameter: str) -> list[Option]:
        """The options of a command line that click passes for a parameter."""
        module = self.module
        value = self.code.program.option_of(module, module.scopes[self.key & MASK], parameter)
        return [Option(self.code, fields[1]) for fields in self.code.program.atoms.kinds(value, "flag")]

    @property
    def takes_any(self) -> bool:
        """Whether it has ``*args`` or ``**kwargs``."""
        return self.takes_any_keyword or bool(self.module.scopes[self.key & MASK].vararg)

    @property
    def takes_any_keyword(self) -> bool:
        """Whether it has ``**kwargs``."""
        return bool(self.module.scopes[self.key & MASK].kwarg)

    @property
    def globals(self) -> tuple[str, ...]:
        """The names of its module that it declares global."""
        return self.module.scopes[self.key & MASK].globals

    def default(self, parameter: str) -> Expr | None:
        """The default of a parameter."""
        found = self.module.scopes[self.key & MASK].defaults.get(parameter)
        return expression(self.code, self.module.base | found) if found is not None else None

    @property
    def loops(self) -> list[Loop]:
        """Its loops, in the order of the text."""
        here = self.key & MASK
        return [Loop(self.code, self.module.base | at) for at, one in enumerate(self.module.table.loops) if one.scope == here]

    def loop_defining(self, inner: Function) -> Loop | None:
        """The loop in which it defines a function; None if it does so in none."""
        loops = [event.spot.loop for event in self.events if event.kind == "bind" and event.expr.row == ("def", inner.key & MASK)]
        return next((one for one in loops if one is not None), None)

    @property
    def writes(self) -> Iterator[Write]:
        """The attributes that it sets, in the order of evaluation."""
        scope = self.module.scopes[self.key & MASK]
        events = (event for event in scope.events if event[0] == "write")
        for (base, name, value, place), (_, _, loop, guard, _, _) in zip(scope.writes, events, strict=True):
            spot = _spot(self, self.key & MASK, loop, guard, place)
            yield Write(expression(self.code, self.module.base | base), name, expression(self.code, self.module.base | value), spot)

    @property
    def events(self) -> Iterator[Event]:
        """What happens to values in it, in the order of evaluation."""
        return (event_of(self, row) for row in self.module.scopes[self.key & MASK].events)


class Class(_Handle):
    """A class of the project."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name in its module."""
        return self.module.scopes[self.key & MASK].name

    @property
    def is_module(self) -> bool:
        """Whether it is a `torch.nn.Module`."""
        return self.code.program.is_module(self.key)

    @property
    def outside_bases(self) -> frozenset[str]:
        """The dotted names of its bases of other packages."""
        return self.code.program.outside_of(self.key)

    @property
    def decorators(self) -> list[Expr]:
        """Its decorators, as written from top to bottom."""
        return [expression(self.code, self.module.base | one) for one in self.module.scopes[self.key & MASK].decorators]

    @property
    def keywords(self) -> list[tuple[str, Expr]]:
        """What its statement gives by name: ``metaclass=ABCMeta``."""
        return [(name or "", expression(self.code, self.module.base | one)) for name, one in self.module.scopes[self.key & MASK].keywords]

    @property
    def functions(self) -> list[Function]:
        """The methods that are written in it."""
        scopes = enumerate(self.module.scopes)
        return [Function(self.code, self.module.base | one) for one, scope in scopes if scope.kind == "def" and scope.parent == self.key & MASK]

    @property
    def span(self) -> Span:
        """``class Name``, as it is written."""
        place = self.module.scopes[self.key & MASK].place
        return self.code.span(self.module, place, place + len(f"class {self.name}".encode()))

    @property
    def line_span(self) -> Span:
        """The line on which it begins."""
        return self.code.line_span(self.module, self.module.scopes[self.key & MASK].place)

    def mentions(self, names: re.Pattern[str]) -> bool:
        """Whether its code mentions a name that contains this, see `ldlm_lint.program.mentions`."""
        return self.code.mentions.are_in(self, names)

    def methods(self, name: str) -> list[Function]:
        """The functions of the project that a method of this name may be for its objects."""
        return [Function(self.code, one) for one in self.code.program.methods(self.key, name)]

    @property
    def body(self) -> Function:
        """What its body runs."""
        return Function(self.code, self.key)

    @property
    def text(self) -> str:
        """Its code."""
        scope = self.module.scopes[self.key & MASK]
        return self.code.text(self.module, scope.place, scope.end)

    @property
    def own_names(self) -> list[str]:
        """The names that its body binds."""
        return list(self.module.scopes[self.key & MASK].bindings)

    def own_methods_named(self, name: str) -> list[Function]:
        """The functions that its body binds to a name, on several ways."""
        rows = [self.module.nodes[one] for one in self.module.scopes[self.key & MASK].bindings.get(name, ())]
        return [Function(self.code, self.module.base | row[1]) for row in rows if row[0] == "def"]

    @property
    def own_methods(self) -> list[Function]:
        """The functions that its body binds to names."""
        rows = [self.module.nodes[bound[-1]] for bound in self.module.scopes[self.key & MASK].bindings.values()]
        return [Function(self.code, self.module.base | row[1]) for row in rows if row[0] == "def"]

    @property
    def reads(self) -> list[Expr]:
        """What its methods read of ``self``, and by names that they do not bind."""
        module, program = self.module, self.code.program
        found = []
        for number, row in enumerate(module.nodes):
            of_self = row[0] == "attr" and program.class_of_self(module, row[1]) == self.key
            if of_self or (row[0] == "free" and row[1] and _class_at(module, row[1]) == self.key & MASK):
                found.append(expression(self.code, module.base | number))
        return found

    def field_values(self, name: str) -> list[Expr]:
        """What its constructions give a field, if it is a record, and its default where one omits it or none is known."""
        return [expression(self.code, one) for one in self.code.program.field_sources(self.key, name)]

    def callables(self, name: str) -> list[Function]:
        """The same with functions that are assigned to them, also by `functools.partial`: ``self.load = self._load``."""
        program = self.code.program
        value = program.ask(("attr", self.key, name, False))
        for fields in program.atoms.kinds(value, "partial"):
            value |= program.ask(("unwrapped", fields[1]))
        return [Function(self.code, fields[1]) for kind in ("f", "b") for fields in program.atoms.kinds(value, kind)]

    @property
    def bases(self) -> list[Class]:
        """The class itself and its bases of the project, nearest first."""
        return [Class(self.code, one) for one in self.code.program.order(self.key)]

    @property
    def subclasses(self) -> list[Class]:
        """The class itself and its subclasses of the project."""
        return [Class(self.code, one) for one in self.code.program.below(self.key)]

    def written(self, attribute: str) -> list[Expr]:
        """What its methods, and those of its bases of the project, set as an attribute of ``self``."""
        program = self.code.program
        return [expression(self.code, value) for one in program.order(self.key) for value in program.own_writes.get((one, attribute), ())]

    def set_itself(self, attribute: str) -> list[Expr]:
        """What its own methods set as an attribute of ``self``."""
        return [expression(self.code, one) for one in self.code.program.own_writes.get((self.key, attribute), ())]

    def bound(self, name: str) -> list[Expr]:
        """What its own body binds a name to."""
        return [expression(self.code, self.module.base | one) for one in self.module.scopes[self.key & MASK].bindings.get(name, ())]

    def line_of(self, name: str) -> Span | None:
        """The line on which its body binds a name; None if it does not."""
        events = self.module.scopes[self.key & MASK].events
        place = next((event[4] for event in events if event[0] == "bind" and event[5] == name), None)
        return None if place is None else self.code.line_span(self.module, place)

    def changes(self, *names: str) -> bool:
        """Whether it, or one of its bases of the project, has a method or attribute of one of these names."""
        program = self.code.program
        bound = (program.module_of(one).scopes[one & MASK].bindings for one in program.order(self.key))
        return any(name in one for one in bound for name in names)


class Passed(NamedTuple):
    """What a call passes for a parameter; None if the call does not show it, or leaves it out. Without ``is_visible``
    another package makes the call."""

    call: Call
    value: Expr | None
    is_visible: bool


@dataclass(frozen=True)
class Alternative:
    """One of several interfaces that an expression may be: its dotted name, the class of the project between, and where
    and in which case it is chosen."""

    name: str
    owner: Class | None
    origins: tuple[Origin, ...]

    @property
    def is_fallback(self) -> bool:
        """Whether it is chosen only where something else failed."""
        return all(one.is_fallback for one in self.origins)


@dataclass(frozen=True)
class Filled:
    """What a mapping holds at one place."""

    code: Codebase
    found: Keys

    @property
    def names(self) -> frozenset[str]:
        """Its keys."""
        return frozenset(self.found.entries)

    @property
    def is_open(self) -> bool:
        """Whether it may have other keys."""
        return self.found.is_open

    def may_be(self, name: str) -> Meaning:
        """The possible values of a key."""
        return self.code.ask.meaning(*self.found.entries.get(name, ()))

    def givers(self, name: str) -> list[Expr]:
        """What puts these values there."""
        return [expression(self.code, one) for one in self.found.put_by.get(name, ())]


@dataclass(frozen=True)
class Argument:
    """What a call gives for a parameter: surely not, surely, in some cases, or what nothing in the program shows."""

    code: Codebase
    found: Found

    @property
    def is_absent(self) -> bool:
        """Whether the call surely does not give it."""
        return self.found.state is State.ABSENT

    @property
    def is_given(self) -> bool:
        """Whether the call surely gives it."""
        return self.found.state is State.GIVEN

    def may_be(self) -> Meaning:
        """The possible values of all that it may be, and whether these are all."""
        return self.code.ask.meaning(*self.found.sources)

    @property
    def givers(self) -> list[Expr]:
        """The calls and dictionaries that give each of its `values`, as far as they are known."""
        return [expression(self.code, one) for one in self.found.given_by]

    @property
    def is_open(self) -> bool:
        """Whether nothing in the program gives it, and something that it does not show may."""
        return self.found.state is State.OPEN

    @property
    def values(self) -> list[Expr]:
        """The expressions that it may be."""
        return [expression(self.code, one) for one in self.found.sources]

    @property
    def options(self) -> list[str]:
        """The options of a command line that alone can give it: ``--fused``."""
        return [self.code.ask.flag(one).name for one in self.found.flags]

    @property
    def only(self) -> object:
        """The only constant that it may be; `Ellipsis` if there are others, or if it may be left out."""
        return self.code.ask.meaning(*self.found.sources).only if self.is_given and self.found.sources else ...

    @property
    def option(self) -> Option | None:
        """The option of a command line whose value it is, and nothing else."""
        meaning = self.code.ask.meaning(*self.found.sources) if self.found.sources else None
        if meaning is None or len(meaning.flags) != 1 or len(meaning.value) != 1:
            return None
        return Option(self.code, meaning.flags[0])


def _class_at(module: Module, scope: int) -> int:
    """The innermost class around a scope; 0 for none."""
    while scope > 0 and module.scopes[scope].kind != "class":
        scope = module.scopes[scope].parent
    return max(scope, 0)


def leading_to(functions: Iterable[Function]) -> frozenset[Function]:
    """Some functions, and those that call them, directly or through others."""
    todo = list(dict.fromkeys(functions))
    found = set(todo)
    for function in todo:
        above = {call.function for call in function.callers} - found
        found |= above
        todo += above
    return frozenset(found)


def expression(code: Codebase, key: int, module: Module | None = None) -> Expr:
    """The handle of an expression by its number: a `Call` if it is one."""
    module = code.program.module_of(key) if module is None else module
    return (Call if key & MASK in module.table.sites else Expr)(code, key, module)
