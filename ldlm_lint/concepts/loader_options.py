"""The arguments of a data loader: its options, also through constructors of the project's own loader classes, and its
workers."""

from __future__ import annotations

from typing import NamedTuple

from ldlm_lint import tables
from ldlm_lint.code.table import Node
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.program.atoms import FALSE, FIRST, HOST, MASK, NONE, TRUE
from ldlm_lint.program.calls import BOUND, UNKNOWN
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.modules import Module
from ldlm_lint.program.queries import Argument, State
from ldlm_lint.tables.training_arguments import TRAINING_ARGUMENTS

_POSITIONS = {name: index for index, name in enumerate(tables.positional("torch.utils.data.DataLoader"))}
_LOOK_UPS = frozenset({"get", "getenv", "getattr"})
_DIGITS = 6
_CASTS = frozenset({"int", "round", "floor"})
WORKERS_OF_TRAINER = "dataloader_num_workers"
"""The field of transformers' TrainingArguments, 0 where nothing sets it."""
ROUNDED_DOWN = "//"
"""Stands for a default where a floor division gives 0 because its divisor is larger."""


class Loader(NamedTuple):
    """A loader: the call (key) that makes it, torch's or another package's class, and the project's class between them (0: none)."""

    call: int
    name: str
    owner: int = 0


class Way(NamedTuple):
    """A possible number of workers: the number (None: unknown), and the default that decides it if none is passed.

    ``default`` is "" for a number that is passed, ``parameter``, or the name of a flag with its dashes. ``giver`` is
    the call that passes the number for a parameter, ``left`` one that leaves a parameter at its default; 0 for none.
    ``setting`` is the name of a parameter without visible callers: a configuration may set it.
    """

    number: int | None
    default: str = ""
    giver: int = 0
    left: int = 0
    setting: str = ""


class LoaderOptions(Concept):
    """The options of loaders."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._settings = code[ReadSettings]

    def option(self, loader: Loader, name: str) -> Argument:
        """The value that a loader gets for an option of torch's loader."""
        return self._given(loader.call, loader.owner, name, ())

    def _given(self, call: int, owner: int, name: str, outer: tuple[int, ...]) -> Argument:
        """The arguments of a constructor call of a class; ``outer`` are the calls of the enclosing constructors."""
        init = self._constructor(owner) if owner else 0
        if not init:
            return self._argument(call, name, outer)
        inner = self._call_of_base(init)
        if not inner:
            return Argument(State.OPEN)
        return self._given(inner, self._above(owner, init), name, (*outer, call))

    def _constructor(self, owner: int) -> int:
        """The ``__init__`` of a class of the project, 0 if it has none."""
        return next((one for one in self.program.methods(owner, "__init__")), 0)

    def _above(self, owner: int, init: int) -> int:
        """The class of the project after the constructor's class, 0 if another package's comes next."""
        order = self.program.order(owner)
        at = self.program.owner.get(init)
        behind = order[order.index(at) + 1 :] if at in order else []
        return next((one for one in behind if self._constructor(one)), 0)

    def _call_of_base(self, init: int) -> int:
        """The one call of ``super().__init__`` in a constructor, 0 for none or several."""
        module = self.program.module_of(init)
        found = []
        for call in module.scopes[init & MASK].calls:
            function = module.nodes[module.nodes[call][1]]
            if function[0] == "attr" and function[2] == "__init__":
                found.append(module.base | call)
        return found[0] if len(found) == 1 else 0

    def _argument(self, call: int, name: str, outer: tuple[int, ...]) -> Argument:
        if not outer:
            return self.ask.argument(call, name, self.position(call, name))
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        for keyword, value in row[3]:
            if keyword == name:
                return self._translated(module, value, outer)
        position = _POSITIONS.get(name)
        for index, value in enumerate(row[2]):
            given = module.nodes[value]
            if given[0] == "star" and position is not None and index <= position:
                return self._from_positions(module, given[1], position - index, name, outer)
            if index == position:
                return self._translated(module, value, outer)
        return self._from_keywords(module, row, name, outer)

    def position(self, call: int, name: str) -> int | None:
        """The place of an option among the positional arguments of a call, as far as its loader takes torch's."""
        module = self.program.module_of(call)
        names = self.ask.names_of(self.program.ask(module.base | module.nodes[call & MASK][1]))
        same = all(one.startswith(("torch.", "torchdata.", "webdataset.")) for one in names)
        return _POSITIONS.get(name) if same or name == "dataset" else None

    def _from_positions(self, module: Module, value: int, index: int, name: str, outer: tuple[int, ...]) -> Argument:
        """The arguments that ``*args`` of a constructor forwards, and its keywords if they are too few."""
        row = module.plain(value)
        call = outer[-1]
        own = self.program.module_of(call)
        if row[0] != "vararg":
            return Argument(State.OPEN)
        scope = module.scopes[row[1]]
        given = own.nodes[call & MASK][2]
        at = scope.positional - 1 + index
        if any(own.nodes[one][0] == "star" for one in given[: at + 1]):
            return Argument(State.OPEN)
        if at < len(given):
            return self._translated(own, given[at], outer[:-1])
        inner = next(one for one in self._sites(module, row[1]))
        return self._from_keywords(module, module.nodes[inner], name, outer)

    def _sites(self, module: Module, scope: int) -> list[int]:
        call = self._call_of_base(module.base | scope)
        return [call & MASK]

    def _from_keywords(self, module: Module, row: Node, name: str, outer: tuple[int, ...]) -> Argument:
        """The arguments of the constructor call that ``**kwargs`` forwards."""
        for keyword, value in row[3]:
            if keyword is None:
                found = self._from_mapping(module, value, name, outer)
                if found.state is not State.ABSENT:
                    return found
        return Argument(State.ABSENT)

    def _from_mapping(self, module: Module, value: int, name: str, outer: tuple[int, ...]) -> Argument:
        """The arguments that ``**mapping`` of a constructor provides; keywords come from the call that creates the
        object."""
        mappings = self.ask.mappings
        atoms = self.program.atoms
        own = [fields[1] for fields in atoms.kinds(self.program.ask(module.base | value), "d") if self._is_kwarg(fields[1])]
        if not own:
            keys = mappings.keys_at(module.base | value)
            if name in keys.entries:
                return Argument(State.GIVEN if name in keys.certain else State.MAYBE, tuple(keys.entries[name]))
            return Argument(State.OPEN if keys.is_open else State.ABSENT)
        params = module.scopes[module.nodes[own[0] & MASK][1]].params
        found = self._keyword_of(outer, name) if name not in params else Argument(State.ABSENT)
        put = mappings.put_into(own[0]).entries.get(name)
        if found.state is State.ABSENT and put:
            return Argument(State.MAYBE, tuple(put))
        return found

    def _is_kwarg(self, place: int) -> bool:
        return self.program.module_of(place).nodes[place & MASK][0] == "kwarg"

    def _keyword_of(self, outer: tuple[int, ...], name: str) -> Argument:
        call = outer[-1]
        if len(outer) == 1:
            return self.ask.argument(call, name)
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        for keyword, value in row[3]:
            if keyword == name:
                return self._translated(module, value, outer[:-1])
        return self._from_keywords(module, row, name, outer[:-1])

    def _translated(self, module: Module, value: int, outer: tuple[int, ...]) -> Argument:
        """An expression of a constructor: a parameter stands for the argument of the call that creates the object, or
        its default."""
        row = module.plain(value)
        if row[0] != "param" or not outer:
            return Argument(State.GIVEN, (module.base | value,))
        function, name = module.base | row[1], row[2]
        node = self.program.argument_node(outer[-1], function, BOUND, name)
        if node is not None:
            own = self.program.module_of(node)
            if own.nodes[node & MASK][0] == "star":
                return Argument(State.OPEN)
            return self._translated(own, node & MASK, outer[:-1])
        given = self._keyword_of(outer, name)
        if given.state is not State.ABSENT:
            return given
        default = module.scopes[row[1]].defaults.get(name)
        return Argument(State.GIVEN, (module.base | default,)) if default is not None else Argument(State.OPEN)

    def ways(self, argument: Argument) -> list[Way]:
        """The possible numbers of workers, with their origins."""
        return [way for source in argument.sources for way in self._ways(source, "", set())]

    def _ways(self, key: int, default: str, seen: set[int]) -> list[Way]:
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        kind = row[0]
        if key in seen and kind != "const":
            return []
        seen.add(key)
        if kind == "phi":
            return [way for one in row[1] for way in self._ways(module.base | one, default, seen)]
        if kind == "bool" and row[1] == "Or":
            # A 0 is replaced by the next operand.
            ways = [self._ways(module.base | one, default, seen) for one in row[2]]
            return [way for some in ways[:-1] for way in some if way.number != 0] + ways[-1]
        if kind == "choice":
            return [way for one in row[2:4] for way in self._ways(module.base | one, default, seen)]
        if kind == "copy":
            return self._ways(module.base | row[1], default, seen)
        if kind == "param":
            return self._ways_of_parameter(module, row, default, seen)
        if kind == "attr" and (written := self._written(module, row)):
            return [way for one in written for way in self._ways(one, default, seen)]
        if kind == "op":
            return self._ways_of_operation(module, row, default, seen) or self._ways_of_value(key, default)
        if kind == "call":
            return self._ways_of_look_up(module, row, seen) or self._ways_of_extreme(module, row, seen) or self._ways_of_value(key, default)
        return self._ways_of_value(key, default)

    def _ways_of_look_up(self, module: Module, row: Node, seen: set[int]) -> list[Way]:
        """``int(…)`` of a number, and the default of ``cfg.get(name, default)``, ``os.environ.get(…)`` and ``getattr(cfg, name, default)``."""
        name, args = module.last_name(row[1]), row[2]
        if name in _CASTS and len(args) == 1:
            return self._ways(module.base | args[0], "", seen)
        wanted = 3 if name == "getattr" else 2
        if name not in _LOOK_UPS or len(args) != wanted:
            return []
        asked, given = module.nodes[args[-2]], module.nodes[args[-1]]
        if asked[0] != "const" or given[0] != "const" or not str(given[1]).isdecimal():
            return []
        return [Way(int(str(given[1])), str(asked[1]))] if len(str(given[1])) < _DIGITS else []

    def _written(self, module: Module, row: Node) -> list[int]:
        """The value that a class sets for an attribute of ``self``, if no other code sets it."""
        owner, program = self.program.class_of_self(module, row[1]), self.program
        if owner is None or row[2] in program.other_writes:
            return []
        return [value for one in program.order(owner) for value in program.own_writes.get((one, row[2]), ())]

    def _ways_of_operation(self, module: Module, row: Node, default: str, seen: set[int]) -> list[Way]:
        """A product of 0, and a division that rounds down; empty if the value itself must decide."""
        left, right = (self._ways(module.base | one, default, seen) for one in row[2:4])
        if row[1] == "Mult" and any(way.number == 0 for way in (*left, *right)):
            return [Way(None), *(way for way in (*left, *right) if way.number == 0)]
        if row[1] != "FloorDiv" or any(way.number is not None for way in right):
            # A division by a small constant is 0 on one CPU only.
            return []
        rounds_up = module.plain(row[2])[:2] in (("op", "Add"), ("op", "Sub")) or module.plain(row[2])[0] == "un"
        zeros = [way for way in left if way.number == 0]
        return [Way(None), *(zeros if rounds_up else [*zeros, Way(0, ROUNDED_DOWN)])]

    def _ways_of_extreme(self, module: Module, row: Node, seen: set[int]) -> list[Way]:
        """The smallest of some numbers may be any of them, the largest is 0 only if all may be 0."""
        name, args = module.last_name(row[1]), row[2]
        if name not in ("min", "max") or len(args) < 2:
            return []
        each = [self._ways(module.base | one, "", seen) for one in args]
        zeros = [next((way for way in ways if way.number == 0), None) for ways in each]
        found = [way for way in zeros if way is not None]
        if name == "max" and len(found) < len(each):
            found = []
        return [Way(None), *found[:1]] if found else []

    def _ways_of_parameter(self, module: Module, row: Node, default: str, seen: set[int]) -> list[Way]:
        program = self.program
        function, name = module.base | row[1], row[2]
        written = module.scopes[row[1]].defaults.get(name)
        flags = program.atoms.kinds(program.option_of(module, module.scopes[row[1]], name), "flag")
        if flags:
            return [self._way_of_flag(fields[1]) for fields in flags]
        edges = program.callers(function)
        ways = []
        if not edges and written is not None:
            ways += [way._replace(setting=way.setting or name) for way in self._ways(module.base | written, default or "parameter", seen)]
        elif not edges:
            ways.append(Way(None))
        for edge in edges:
            node = program.argument_node(edge.call, function, edge.how, name) if edge.how != UNKNOWN else None
            if node is not None and program.module_of(node).nodes[node & MASK][0] != "star":
                ways += [way if way.giver else way._replace(giver=edge.call) for way in self._ways(node, default, seen)]
                continue
            given = self.ask.argument(edge.call, name) if edge.how != UNKNOWN and node is None else Argument(State.OPEN)
            if given.state is State.ABSENT and written is not None:
                ways += [
                    way._replace(left=way.left or edge.call)
                    for way in self._ways(module.base | written, default or "parameter", seen)
                ]
            elif given.sources:
                ways += [way for one in given.sources for way in self._ways(one, default, seen)]
            else:
                ways.append(Way(None))
        return ways

    def _ways_of_value(self, key: int, default: str) -> list[Way]:
        value = self.program.ask(key)
        atoms = self.program.atoms
        ways = []
        for one in sorted(value):
            fields = atoms.of[one] if one >= FIRST else ("",)
            if fields[0] == "k" and fields[1].__class__ is int:
                ways.append(Way(fields[1], default))
            elif fields[0] == "flag":
                ways.append(self._way_of_flag(fields[1]))
            elif one == FALSE:
                ways.append(Way(0, default))
            elif one in (HOST, TRUE, NONE) or fields[0]:
                ways.append(Way(None, default))
        return ways or self._ways_by_name(key) or [Way(None, default)]

    def _way_of_flag(self, call: int) -> Way:
        flag = self.ask.flag(call)
        known = self.ask.default_of(flag)
        number = known.only
        return Way(number if number.__class__ is int else None, flag.name, call)

    def _ways_by_name(self, key: int) -> list[Way]:
        """An attribute of an unknown object, such as ``args.workers``: the flags of this name in the file and in files
        connected by imports."""
        module = self.program.module_of(key)
        row = module.nodes[key & MASK]
        if row[0] == "attr" and row[2] == WORKERS_OF_TRAINER:
            return self._ways_of_fields(row[2], None)
        if row[0] != "attr" or self.program.ask(module.base | row[1]):
            return []
        constructor = self._constructor_of_hyperparameters(module, row)
        if constructor:
            return self._ways_of_parameter(module, ("param", constructor & MASK, row[2]), "", set())
        # What a configuration file gives is not what a command line gives.
        flags = [] if self._settings.is_read(module.base | row[1]) else self.ask.flags_by_name(key)
        return [self._way_of_flag(call) for call in flags] or self._ways_of_fields(row[2], self.program.together.programs_of(module))

    def _constructor_of_hyperparameters(self, module: Module, row: Node) -> int:
        """The ``__init__`` whose argument ``self.hparams.name`` of Lightning is, 0 for none."""
        held = module.nodes[row[1]]
        owner = self.program.class_of_self(module, held[1]) if held[0] == "attr" and held[2] == "hparams" else None
        init = self._constructor(owner) if owner is not None else 0
        home = self.program.module_of(init) if init else module
        return init if init and home is module and row[2] in home.scopes[init & MASK].params else 0

    def _ways_of_fields(self, name: str, near: frozenset[int] | None) -> list[Way]:
        """The defaults of the settings of this name in the records of some modules (None: all): a parser fills these."""
        program = self.program
        owners = [one for classes in program.classes.values() for one in classes if program.is_field(one, name)]
        owners = [one for one in owners if near is None or program.module_of(one).index in near]
        sources = [source for owner in owners for source in program.field_sources(owner, name)]
        if name == WORKERS_OF_TRAINER:
            given = [self.ask.argument(call, name) for call, _ in self.ask.calls_of(TRAINING_ARGUMENTS)]
            sources += [source for argument in given for source in argument.sources]
            if not sources:
                return [Way(0, name)]
        return [way._replace(default=name) for source in sources for way in self._ways_of_value(source, name)]
