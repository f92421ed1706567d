"""The queries that rules use: calls of an interface under any name, their arguments, and the arguments' possible
values.

They always distinguish three cases: a *default* of the code, what *the user may override*, and what is *not resolved*.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from ldlm_lint.code.table import Node
from ldlm_lint.program.atoms import FALSE, FIRST, HOST, MASK, NONE, TRUE, Value
from ldlm_lint.program.calls import BOUND, UNKNOWN, Caller
from ldlm_lint.program.mappings import Mappings
from ldlm_lint.program.modules import Module
from ldlm_lint.program.program import Program

_SMALL = {TRUE: True, FALSE: False, NONE: None}


class State(enum.Enum):
    """Whether a call returns an argument."""

    ABSENT = "absent"
    """It surely does not."""
    GIVEN = "given"
    MAYBE = "maybe"
    """In some of the cases that the program shows."""
    OPEN = "open"
    """Nothing in the program gives it, and something that it does not show may."""


class Meaning(NamedTuple):
    """The possible values of an expression. ``constants`` are numbers, texts, booleans and None; a text may contain
    ``*`` for an unknown part.

    ``names`` are functions, classes and objects of other packages by dotted name, ``classes`` classes of the project,
    ``flags`` the calls that add the options whose value it is: the user may override them. ``is_complete``: there are
    no other values.
    """

    value: Value
    constants: tuple[object, ...]
    names: tuple[str, ...]
    classes: tuple[int, ...]
    flags: tuple[int, ...]
    is_complete: bool

    @property
    def only(self) -> object:
        """The only constant; `Ellipsis` if there are other possible values."""
        return self.constants[0] if len(self.constants) == 1 and self.is_complete and len(self.value) == 1 else ...


class Argument(NamedTuple):
    """An argument of a call: its state, the possible expressions (keys), and the source of each: a call or the code
    that fills a dictionary.

    ``flags``: an OPEN argument can only come from these options of a command line.
    """

    state: State
    sources: tuple[int, ...] = ()
    given_by: tuple[int, ...] = ()
    flags: tuple[int, ...] = ()


class Flag(NamedTuple):
    """An option of a command line: its name (``--lr``), its default as an expression (key; None if it has no default),
    and its action."""

    call: int
    name: str
    default: int | None
    action: str


class Queries:
    """The queries that rules use."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.mappings = Mappings(program)
        self._complete: dict[int, bool] = {}

    def calls_of(self, names: Collection[str]) -> Iterator[tuple[int, str]]:
        """The calls (keys) of functions or classes of other packages, by dotted name, with the name that is meant.

        Those through aliases, parameters, tables and choices are among them, and constructors of the project's subclasses.
        """
        return iter(sorted((call, name) for name in frozenset(names) for call in self._calls.get(name, ())))

    @cached_property
    def _calls(self) -> dict[str, list[int]]:
        """All calls of functions and classes of other packages, by dotted name."""
        program = self.program
        found: dict[str, list[int]] = defaultdict(list)
        known: dict[Value, set[str]] = {}
        for module in program.live:
            for call in module.table.sites:
                value = program.ask(module.base | module.nodes[call][1])
                if value not in known:
                    known[value] = self.names_of(value)
                for name in known[value]:
                    found[name].append(module.base | call)
        return dict(found)

    def names_of(self, value: Value) -> set[str]:
        """The dotted names of a function's value: of other packages, and of external bases of classes."""
        found: set[str] = set()
        for one in value:
            fields = self.program.atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "x":
                found.add(fields[1])
            elif fields[0] == "c" or (fields[0] == "self" and fields[2:] == ("cls",)):
                found |= self.program.outside_of(fields[1])
            elif fields[0] == "partial":
                found |= self.names_of(self.program.ask(("unwrapped", fields[1])))
        return found

    def argument(self, call: int, name: str, position: int | None = None) -> Argument:
        """The argument of a call for a parameter by its name, or by its place among the positional ones (from 0).

        The arguments of a ``functools.partial`` that is called count.
        """
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        for keyword, value in row[3]:
            if keyword == name:
                return Argument(State.GIVEN, (module.base | value,), (call,))
        if position is not None:
            written = [one for one in row[2] if not self._is_never_given(module, one)]
            for index, value in enumerate(written):
                if module.nodes[value][0] == "star":
                    return Argument(State.OPEN)
                if index == position:
                    return Argument(State.GIVEN, (module.base | value,), (call,))
        return self._unpacked(call, name)

    def _is_never_given(self, module: Module, number: int) -> bool:
        """Whether an argument is the ``*args`` of its function, and each known call fills only the parameters before it."""
        row = module.nodes[number]
        row = module.plain(row[1]) if row[0] == "star" else row
        if row[0] != "vararg":
            return False
        program, function = self.program, module.base | row[1]
        edges = program.callers(function)
        return bool(edges) and all(
            edge.how != UNKNOWN and self._fits(edge, module.scopes[row[1]].positional) for edge in edges
        )

    def _fits(self, edge: Caller, places: int) -> bool:
        """Whether a call returns at most some positional arguments; a bound method has one of them already."""
        given = self.program.module_of(edge.call)
        row = given.nodes[edge.call & MASK]
        is_plain = all(given.nodes[one][0] != "star" for one in row[2])
        return is_plain and len(row[2]) + (edge.how == BOUND) <= places

    def _unpacked(self, call: int, name: str) -> Argument:
        """The arguments from ``**`` or a ``partial``."""
        module = self.program.module_of(call)
        sources: list[tuple[int, int]] = []
        flags: set[int] = set()
        is_open = is_certain = False
        for keyword, value in module.nodes[call & MASK][3]:
            if keyword is None:
                keys = self.mappings.keys_at(module.base | value, call)
                sources += zip(keys.entries.get(name, ()), keys.put_by.get(name, ()), strict=True)
                is_certain |= name in keys.certain
                # The default of a parameter is not the only mapping if a caller may pass another one.
                is_open |= keys.unresolved or not (keys.flags or self.is_complete(module.base | value))
                flags |= keys.flags
        functions = self.program.ask(module.base | module.nodes[call & MASK][1])
        partials = self.program.atoms.kinds(functions, "partial")
        all_give = 0 < len(partials) == len(functions)
        for fields in partials:
            inner = self.argument(fields[1], name)
            all_give &= inner.state is State.GIVEN
            sources += zip(inner.sources, inner.given_by, strict=True)
            is_open |= inner.state is State.OPEN and not inner.flags
            flags.update(inner.flags)
        if sources:
            given = list(dict.fromkeys(sources))
            return Argument(State.GIVEN if is_certain or all_give else State.MAYBE, tuple(one for one, _ in given), tuple(by for _, by in given))
        if is_open:
            return Argument(State.OPEN)
        return Argument(State.OPEN, flags=tuple(sorted(flags))) if flags else Argument(State.ABSENT)

    def meaning(self, *keys: int) -> Meaning:
        """The possible values of several expressions."""
        value = frozenset().union(*(self.program.ask(key) for key in keys))
        atoms = self.program.atoms
        constants = [_SMALL[one] for one in sorted(value) if one in _SMALL]
        constants += [fields[1] for fields in atoms.kinds(value, "k")]
        names = [fields[1] for kind in ("x", "o") for fields in atoms.kinds(value, kind)]
        classes = [fields[1] for kind in ("c", "i", "self") for fields in atoms.kinds(value, kind)]
        flags = [fields[1] for fields in atoms.kinds(value, "flag")]
        complete = all(self.is_complete(key) for key in keys)
        return Meaning(value, tuple(constants), tuple(names), tuple(classes), tuple(flags), complete and HOST not in value)

    def flag(self, call: int) -> Flag:
        """The option that a call of ``add_argument`` adds."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        given = {keyword: value for keyword, value in row[3] if keyword}
        texts = [str(module.nodes[one][1]) for one in row[2] if module.nodes[one][0] == "const"]
        long = [text for text in texts if text.startswith("--")] or texts
        action: Node = module.nodes[given["action"]] if "action" in given else ("",)
        default = module.base | given["default"] if "default" in given else None
        return Flag(call, long[0] if long else "", default, str(action[1]) if action[0] == "const" else "")

    def default_of(self, flag: Flag) -> Meaning:
        """The value of an option that is not given: its default, False for a switch, else None."""
        if flag.default is not None:
            return self.meaning(flag.default)
        value = {"store_true": FALSE, "store_false": TRUE}.get(flag.action, NONE)
        return Meaning(frozenset([value]), (_SMALL[value],), (), (), (), True)

    def flags_by_name(self, key: int) -> list[int]:
        """For an attribute of an unknown object, as ``args.workers``, the options of this name: those of its own file,
        or else those of the programs that its file takes part in."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] != "attr" or self.program.ask(module.base | row[1]):
            return []
        flags = [call for call in self.program.calls.get("add_argument", ()) if _ends_with(module, row, destination(self.flag(call).name))]
        near = self.program.together.programs_of(module) if flags else ()
        own = [call for call in flags if self.program.module_of(call) is module]
        return own or [call for call in flags if self.program.module_of(call).index in near]

    def is_complete(self, key: int) -> bool:
        """Whether all possible values of an expression are known."""
        known = self._complete.get(key)
        if known is None:
            known = self._all_known(key)
        return known

    def _all_known(self, key: int) -> bool:
        """Walk all parts of an expression without recursion: a file may have ten thousand branches in a row."""
        readers: dict[int, int | None] = {key: None}
        todo = [key]
        while todo:
            one = todo.pop()
            rests_on = [] if self._complete.get(one) else self._rests_on(one) if one not in self._complete else None
            if rests_on is None:
                at: int | None = one
                while at is not None:
                    self._complete[at] = False
                    at = readers[at]
                return False
            # A cycle adds nothing new.
            new = [other for other in dict.fromkeys(rests_on) if other not in readers and other not in self._complete]
            readers.update(dict.fromkeys(new, one))
            todo += new
        self._complete.update(dict.fromkeys(readers, True))
        return True

    def _rests_on(self, key: int) -> Iterable[int] | None:
        """The expressions that must be complete for this one; None if it is incomplete."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if kind == "phi":
            return [module.base | one for one in row[1]]
        if kind in ("copy", "enter", "star"):
            return [module.base | row[1]]
        if kind == "choice":
            return [module.base | row[2], module.base | row[3]]
        if kind == "bool":
            return [module.base | one for one in row[2]]
        if kind == "param":
            return self._given_for(module, row)
        bound = self.bound_to(module, row) if kind == "free" else ()
        if bound:
            return bound
        if kind == "attr" and self._is_left_open(module, row):
            return None
        if not self.program.ask(key):
            return None
        if kind == "part":
            return self._returned(module, module.uncopied(row[1]), row[2])
        return self._returned(module, key & MASK) if kind == "call" else ()

    def _returned(self, module: Module, call: int, part: int = -1) -> list[int]:
        """What functions of the project return to a call, or one part of it (keys): a result that is None on one way may be
        anything where another way is not known."""
        found = []
        for target in self.program.targets_of.get(module.base | call, ()):
            home = self.program.module_of(target)
            scope = home.scopes[target & MASK]
            for number in () if scope.yields else (one for one, _ in scope.returns if one):
                result = home.nodes[home.uncopied(number)]
                has_part = result[0] == "seq" and 0 <= part < len(result[2])
                found.append(home.base | (result[2][part] if has_part else number))
        return found

    def _is_left_open(self, module: Module, row: Node) -> bool:
        """Whether an attribute is a field of a record that some construction may fill with a value that is not known:
        ``Config(**json.load(file))``."""
        records = [fields[1] for fields in self.program.atoms.kinds(self.program.ask(module.base | row[1]), "i")]
        made = (call for owner in records if self.program.is_field(owner, row[2]) for call in self.program.constructions(owner))
        return any(given.state is State.OPEN for given in (self.argument(call, row[2]) for call in made))

    @staticmethod
    def bound_to(module: Module, row: Node) -> Iterable[int]:
        """What a free name is bound to in the innermost scope around that binds it (keys)."""
        at, name = module.scopes[row[1]].parent, row[2]
        while at >= 0:
            bound = module.scopes[at].bindings.get(name)
            if bound and module.scopes[at].kind != "class":
                return [module.base | one for one in bound]
            at = module.scopes[at].parent
        return ()

    def given(self, function: int, name: str) -> list[int]:
        """The expressions (keys) that known callers pass for a parameter; those of a ``partial`` by their names, for its
        positions are unknown."""
        nodes = [self._given_by(edge, function, name) for edge in self.program.callers(function)]
        return [node for node in nodes if node is not None]

    def _given_by(self, edge: Caller, function: int, name: str) -> int | None:
        if edge.how != UNKNOWN:
            return self.program.argument_node(edge.call, function, edge.how, name)
        module = self.program.module_of(edge.call)
        return next((module.base | one for keyword, one in module.nodes[edge.call & MASK][3] if keyword == name), None)

    def _given_for(self, module: Module, row: Node) -> Iterable[int] | None:
        """The arguments of all callers for a parameter; None if unknown."""
        program = self.program
        function, name = module.base | row[1], row[2]
        found = []
        for edge in program.callers(function):
            if edge.how == UNKNOWN:
                return None
            node = program.argument_node(edge.call, function, edge.how, name)
            if node is not None:
                found.append(node)
                continue
            caller = program.module_of(edge.call)
            unpacked = any(keyword is None for keyword, _ in caller.nodes[edge.call & MASK][3])
            if unpacked or name not in module.scopes[row[1]].defaults:
                return None
        return found if program.callers(function) else None


def destination(flag: str) -> str:
    """The attribute that an option is stored as by default."""
    return flag.lstrip("-").replace("-", "_")


def _ends_with(module: Module, row: Node, dotted: str) -> bool:
    """Whether an attribute is read by a dotted name: ``args.data.workers`` by ``data.workers``."""
    last, *rest = reversed(dotted.split("."))
    if row[2] != last:
        return False
    for part in rest:
        row = module.nodes[row[1]]
        if row[0] != "attr" or row[2] != part:
            return False
    return True
