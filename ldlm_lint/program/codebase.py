"""The code of a repository as concepts and rules see it: its program, and the facts about it, each found out once."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ldlm_lint.code.table import COLUMNS, column_of, line_of
from ldlm_lint.patterns import lazily
from ldlm_lint.program.arms import Arms
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Call, Class, Expr, Function, Guard, Loop, expression
from ldlm_lint.program.iterated import Iterated
from ldlm_lint.program.mentions import Mentions
from ldlm_lint.program.modules import Module
from ldlm_lint.program.origins import Origins
from ldlm_lint.program.program import Program
from ldlm_lint.program.queries import Queries
from ldlm_lint.program.scopes_at import ScopesAt
from ldlm_lint.program.surroundings import Configurations, Files, Trainings
from ldlm_lint.program.value_uses import ValueUses

if TYPE_CHECKING:
    from ldlm_lint.code import Table
    from ldlm_lint.model import Span
    from ldlm_lint.program.spots import Write
    from ldlm_lint.requirements import TorchRange
    from ldlm_lint.source import Source

C = TypeVar("C", bound="Concept")
_READS = frozenset({"free", "attr", "impf"})
_NAME = lazily(r"\w*")


class Concept:
    """One fact about a codebase, such as what its training steps are; ``code[Steps]`` builds it on first use."""

    def __init__(self, code: Codebase) -> None:
        self.code = code
        self.program = code.program
        self.ask = code.ask


class Codebase(ABC):
    """A program with its concepts; what is known of the files around it comes from the host."""

    @property
    @abstractmethod
    def program(self) -> Program:
        """The linked program; no value of it grows any more."""

    @property
    @abstractmethod
    def files(self) -> Files:
        """The configuration files of the project."""

    @property
    @abstractmethod
    def configurations(self) -> Configurations:
        """The configurations of OpenMMLab's runners."""

    @abstractmethod
    def python_files(self) -> list[str]:
        """The Python files of the project by their paths, also those that take part in no training."""

    @abstractmethod
    def table_of(self, path: str) -> Table | None:
        """The table of a Python file of the project; None if it does not parse."""

    @abstractmethod
    def source_of(self, path: str) -> Source:
        """The text of a Python file of the project."""

    @abstractmethod
    def torch_on(self, path: str) -> TorchRange:
        """The versions of torch that a file runs on."""

    @property
    @abstractmethod
    def trainings(self) -> Trainings:
        """What the files show of the repository's trainings."""

    @abstractmethod
    def path(self, module: Module) -> str:
        """The absolute path of a module."""

    @cached_property
    def ask(self) -> Queries:
        """The questions about calls, arguments and values."""
        return Queries(self.program)

    @cached_property
    def _concepts(self) -> dict[type[Concept], Any]:
        return {}

    def __getitem__(self, kind: type[C]) -> C:
        """A concept, built on first use."""
        found = self._concepts.get(kind)
        if found is None:
            found = self._concepts[kind] = kind(self)
        return cast(C, found)

    @abstractmethod
    def is_used_outside(self, module: Module, name: str) -> bool:
        """Whether a configuration has a name, or users of the package that a module belongs to may use it."""

    @abstractmethod
    def is_aside(self, module: Module) -> bool:
        """Whether a module is an example beside a training of the project's own."""

    @abstractmethod
    def is_named_in_configurations(self, *names: str) -> bool:
        """Whether a configuration file of the project, or a script, mentions one of these names."""

    @abstractmethod
    def source(self, module: Module) -> Source:
        """The text of a module."""

    @abstractmethod
    def line_span(self, module: Module, place: int) -> Span:
        """The line of a place."""

    @abstractmethod
    def torch_of(self, module: Module) -> TorchRange:
        """The versions of torch that a module runs on."""

    @abstractmethod
    def compiles_on_its_python(self, module: Module) -> bool:
        """Whether no torch that the project chooses for a module refuses to compile on the Python that it chooses."""

    @cached_property
    def origins(self) -> Origins:
        """Where possible values are written."""
        return Origins(self)

    @cached_property
    def value_uses(self) -> ValueUses:
        """What happens to values."""
        return ValueUses(self)

    @cached_property
    def mentions(self) -> Mentions:
        """Where names are mentioned."""
        return Mentions(self)

    def guards_in(self, module: Module) -> list[Guard]:
        """The conditions of a file, in the order in which they are written."""
        return [Guard(self, module.base | one) for one in range(len(module.table.guards))]

    def may_lead(self, chain: Sequence[Call]) -> bool:
        """Whether calls, each in the function that the next one goes to, can lead to the first one by what they pass."""
        return self.arms.may_lead([one.key for one in chain])

    @cached_property
    def property_names(self) -> frozenset[str]:
        """The names of the properties of the project's classes."""
        program = self.program
        return frozenset(Function(self, one).name for one in program.owner if program.is_property(one))

    @cached_property
    def arms(self) -> Arms:
        """Which branches may be taken."""
        return Arms(self.ask)

    @property
    def modules(self) -> list[Module]:
        """The files that take part in trainings."""
        return list(self.program.live)

    @cached_property
    def classes(self) -> list[Class]:
        """The classes of the project, in the order of its files."""
        owners = sorted(owner for owners in self.program.classes.values() for owner in owners)
        return [Class(self, one) for one in owners]

    @cached_property
    def iterated(self) -> Iterated:
        """What loops go through."""
        return Iterated(self)

    @property
    def functions(self) -> Iterator[Function]:
        """The functions of the program, with class bodies and what modules run themselves."""
        return (Function(self, module.base | one) for module in self.program.live for one in range(len(module.scopes)))

    def sets_of(self, name: str) -> list[Write]:
        """Where an attribute of this name is set on objects other than ``self``."""
        return [one for one in self._sets.get(name, ()) if one.base.owner_if_self is None]

    def all_sets_of(self, name: str) -> list[Write]:
        """The same with those on ``self``."""
        return self._sets.get(name, [])

    @property
    def writes(self) -> Iterator[Write]:
        """Where attributes are set, by their names."""
        return (write for writes in self._sets.values() for write in writes)

    @cached_property
    def _sets(self) -> dict[str, list[Write]]:
        found: dict[str, list[Write]] = {}
        for function in self.functions:
            for write in function.writes:
                found.setdefault(write.name, []).append(write)
        return found

    def functions_in(self, module: Module) -> list[Function]:
        """The same for one module."""
        return [Function(self, module.base | one) for one in range(len(module.scopes))]

    @property
    def container_changes(self) -> Iterator[Expr]:
        """Every call that puts something into a container, and every ``x[key] = value``."""
        return (expression(self, one) for one in dict.fromkeys(key for keys in self.program.changes.values() for key in keys))

    def container_changes_of(self, *names: str) -> Iterator[Expr]:
        """Those of containers that others may reach by these names."""
        return (expression(self, one) for one in dict.fromkeys(key for name in names for key in self.program.changes.get(name, ())))

    def classes_with_field(self, name: str) -> list[Class]:
        """The records of the program with a field of this name."""
        return [one for one in self.classes if self.program.is_field(one.key, name)]

    @property
    def loops(self) -> Iterator[Loop]:
        """The loops of the program."""
        return (Loop(self, module.base | one) for module in self.program.live for one in range(len(module.table.loops)))

    def calls(self, interfaces: Collection[str]) -> Iterator[Call]:
        """Every call that may be a call of one of these functions or classes of other packages, once, under any name."""
        for key in dict.fromkeys(key for key, _ in self.ask.calls_of(interfaces)):
            yield Call(self, key)

    def calls_named(self, *names: str) -> Iterator[Call]:
        """Every call of a function or method of one of these last names."""
        return (Call(self, key) for name in names for key in self.program.calls.get(name, ()))

    def calls_in(self, module: Module, *names: str) -> Iterator[Call]:
        """The calls of a file, those of functions or methods of some last names if any are given."""
        numbers = (one for name in names for one in module.table.named.get(name, ())) if names else module.table.sites
        return (Call(self, module.base | number) for number in numbers)

    def imported_by(self, module: Module) -> frozenset[Module]:
        """The files of the project that run when a file is imported, also those that take part in no training."""
        every = self.program.modules
        return frozenset(every.all[one] for one in every.linked(module))

    def expressions_between(self, first: Expr, last: Expr) -> Iterator[Expr]:
        """All expressions from one to another of the same file, both included, in the order of evaluation."""
        return (expression(self, key) for key in range(first.key, last.key + 1))

    def expressions_in(self, module: Module, kind: str) -> Iterator[Expr]:
        """All expressions of a kind in a file, see `ldlm_lint.code.table`."""
        return (expression(self, module.base | number) for number, row in enumerate(module.nodes) if row[0] == kind)

    @property
    def registered(self) -> list[Expr]:
        """What is put into registries."""
        program = self.program
        return [expression(self, one) for one in sorted(one for definitions in program.registered.values() for one in definitions)]

    def writes_of(self, attribute: str) -> list[tuple[Expr, Expr]]:
        """What is set as an attribute of objects other than ``self``: the object and the value."""
        return [(expression(self, target), expression(self, value)) for target, value in self.program.other_writes.get(attribute, ())]

    def given_by_name(self, name: str) -> list[tuple[Expr, Expr]]:
        """What is given for a keyword or an entry of that name: the call or the dictionary, and the value."""
        return [(expression(self, holder), expression(self, value)) for holder, value in self.program.given.get(name, ())]

    def calls_giving(self, keyword: str) -> Iterator[Call]:
        """Every call that gives something by this name."""
        for module in self.program.live:
            sites = (one for one in module.table.sites if any(name == keyword for name, _ in module.nodes[one][3]))
            yield from (Call(self, module.base | one) for one in sites)

    @property
    def dictionaries(self) -> Iterator[Expr]:
        """Every ``{key: value}``."""
        return (Expr(self, module.base | one) for module in self.program.live for one in module.table.maps)

    @property
    def all_calls(self) -> Iterator[Call]:
        """Every call."""
        return (Call(self, module.base | one) for module in self.program.live for one in module.table.sites)

    def calls_given(self, objects: frozenset[int]) -> Iterator[tuple[Call, int]]:
        """Every call that gets one of some objects as an argument, with the object."""
        program = self.program
        for module in program.live if objects else ():
            for number in module.table.sites:
                _, _, args, keywords = module.nodes[number]
                for one in (*args, *(value for _, value in keywords)):
                    for given in objects & program.ask(module.base | one):
                        yield Call(self, module.base | number), given

    def calls_ending(self, end: str) -> Iterator[Call]:
        """Every call of a function or class whose last name ends like this."""
        return self.calls_named(*sorted(name for name in self.program.calls if name.endswith(end)))

    def calls_matching(self, *patterns: re.Pattern[str]) -> Iterator[Call]:
        """Every call of a function or class in whose last name one of some patterns is found."""
        return self.calls_named(*sorted(name for name in self.program.calls if any(one.search(name) for one in patterns)))

    @cached_property
    def arms_by_default(self) -> Arms:
        """Which branches may be taken if no option and no variable is set."""
        return Arms(self.ask, by_default=True)

    def modules_near(self, module: Module) -> frozenset[Module]:
        """The files that may run in one program with a file, with itself."""
        every = self.program.modules
        return frozenset(every.all[one] for one in self.program.together.programs_of(module))

    def is_read(self, name: str) -> bool:
        """Whether any code reads a name, or has it as a text."""
        if name not in self._read:
            nodes = (row for module in self.program.live for row in module.nodes)
            self._read[name] = any((row[0] in _READS and row[2] == name) or (row[0] == "const" and row[1] == name) for row in nodes)
        return self._read[name]

    @cached_property
    def _read(self) -> dict[str, bool]:
        return {}

    def reads_of(self, attribute: str, near: Call) -> Iterator[Expr]:
        """Every reading of an attribute of this name in the files that may run in one program with a call."""
        for module in sorted(self.modules_near(near.module), key=lambda one: one.path):
            yield from self.reads_in(module, attribute)

    def operations_in(self, module: Module, *operators: str) -> Iterator[Expr]:
        """The operations of these kinds in a file: ``FloorDiv``."""
        return (Expr(self, module.base | number) for number, row in enumerate(module.nodes) if row[0] == "op" and row[1] in operators)

    def reads_in(self, module: Module, attribute: str) -> Iterator[Expr]:
        """Every reading of an attribute of this name in a file."""
        return (Expr(self, module.base | number) for number, row in enumerate(module.nodes) if row[0] == "attr" and row[2] == attribute)

    @property
    def updates(self) -> Iterator[Expr]:
        """Every ``x[key] = value``."""
        return (Expr(self, module.base | one) for module in self.program.live for one in module.table.updates)

    def offset(self, module: Module, place: int) -> int:
        """The offset of a place in its file, in bytes."""
        return self.source(module).offset(line_of(place), column_of(place))

    def span(self, module: Module, place: int, end: int) -> Span:
        """The span from a place to an end; for 0 to the end of the expression that begins there."""
        source, start = self.source(module), self.offset(module, place)
        end = end or module.table.longest_end(place)
        if not end:
            name = _NAME.match(source.lines[line_of(place) - 1].encode()[column_of(place) :].decode())
            end = place + len(name.group().encode()) if name is not None else place
        return source.span(start, max(self.offset(module, end), start))

    def expression_span(self, key: int) -> Span:
        """The span of an expression, by its key; it must be written somewhere, see `Table.places`."""
        table = self.program.module_of(key).table
        return self.span(self.program.module_of(key), table.places[key & MASK], table.end(key & MASK))

    def expression_text(self, module: Module, number: int) -> str:
        """The code of an expression; empty if it is written nowhere."""
        table = module.table
        return self.text(module, table.places[number], table.end(number)) if table.places[number] else ""

    def line(self, module: Module, place: int) -> str:
        """The text of the line of a place, without the line ending."""
        lines = self.source(module).lines
        number = line_of(place)
        return lines[number - 1].rstrip() if 0 < number <= len(lines) else ""

    def text(self, module: Module, place: int, end: int) -> str:
        """The code from a place to an end."""
        source = self.source(module)
        return source.slice(source.span(self.offset(module, place), self.offset(module, end)))

    def function_at(self, module: Module, place: int) -> int:
        """The innermost function (key) around a place; the module itself is scope 0."""
        return module.base | next((one for one in self.scopes_at(module, place) if module.scopes[one].kind == "def"), 0)

    def scopes_at(self, module: Module, place: int) -> Iterator[int]:
        """The scopes around a place, innermost first, without the module's."""
        if module.index not in self._scopes_at:
            self._scopes_at[module.index] = ScopesAt(module)
        return self._scopes_at[module.index].around(place)

    @cached_property
    def _scopes_at(self) -> dict[int, ScopesAt]:
        return {}

    def place_at(self, module: Module, offset: int) -> int:
        """The place of an offset in a file, in bytes."""
        source = self.source(module)
        line = source.position(offset)[0]
        start = source.line_starts[line - 1]
        return (line << COLUMNS) | len(source.data[start:offset].decode(source.encoding, errors="replace").encode())

    def call_at(self, module: Module, place: int) -> int | None:
        """The call (row) that begins at a place, the outermost one."""
        return max((call for call, site in module.table.sites.items() if site.place == place), default=None)

    def call_span(self, call: int) -> Span:
        """The span of a call, by its key."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        return self.span(module, site.place, site.end)

    def call_text(self, call: int) -> str:
        """The code of a call, by its key."""
        module = self.program.module_of(call)
        site = module.table.sites[call & MASK]
        return self.text(module, site.place, site.end)
