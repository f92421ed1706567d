"""What expressions may be: their possible values, and what these values tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program import handles
from ldlm_lint.program.atoms import DEVICE, FALSE, FALSY, FIRST, HOMES, HOST, HOST_TENSOR, TENSOR, TRUE
from ldlm_lint.program.handles.base import Handle
from ldlm_lint.program.queries import Meaning
from ldlm_lint.program.settings_read import settings_read

if TYPE_CHECKING:
    from ldlm_lint.program.atoms import Value
    from ldlm_lint.program.handles.calls import Call, Filled, Option
    from ldlm_lint.program.handles.expressions import Expr
    from ldlm_lint.program.handles.functions import Class, Function
    from ldlm_lint.program.modules import Module

_TENSORS = frozenset({DEVICE, HOST_TENSOR, TENSOR})


class Values(Handle):
    """An expression by its possible values, computed once for the settled program."""

    __slots__ = ()

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
    def interfaces(self) -> frozenset[str]:
        """The functions and classes of other packages that it may be, also those that a class of the project extends."""
        return frozenset(self.code.ask.names_of(self.value))

    @property
    def made_by(self) -> frozenset[str]:
        """The functions and classes of other packages that may have made it, by dotted names."""
        return frozenset(fields[1] for fields in self.code.program.atoms.kinds(self.value, "o"))

    def made_at(self, name: str) -> list[Call]:
        """The calls of a function or class of another package that may have made it, where the program tells them apart."""
        made = self.code.program.atoms.kinds(self.value, "o")
        return [handles.Call(self.code, fields[2]) for fields in made if fields[1] == name and fields[2:] and fields[2]]

    @property
    def may_be_tensor(self) -> bool:
        """Whether it may be a tensor, wherever that is."""
        return bool(self.value & HOMES)

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
        return [handles.Class(self.code, fields[1]) for fields in self.code.program.atoms.kinds(self.value, "c")]

    @property
    def is_own_object(self) -> bool:
        """Whether all that it may be are objects of the project's classes, and options as a parser gives them."""
        kinds = self.code.program.atoms.kinds
        return bool(self.value) and sum(len(kinds(self.value, kind)) for kind in ("ns", "i")) == len(self.value)

    @property
    def classes_of(self) -> list[Class]:
        """The classes of the project that it may be an object of."""
        kinds = self.code.program.atoms.kinds
        return [handles.Class(self.code, fields[1]) for kind in ("i", "self") for fields in kinds(self.value, kind)]

    @property
    def functions(self) -> list[Function]:
        """The functions and bound methods of the project that it may be."""
        program = self.code.program
        found = {fields[1] for kind in ("f", "b") for fields in program.atoms.kinds(program.ask(self.key), kind)}
        return [handles.Function(self.code, one) for one in sorted(found)]

    def is_just(self, truth: bool) -> bool:
        """Whether the program shows that it may be this truth value, and nothing else; what it does not show may be."""
        return self.value == frozenset([TRUE if truth else FALSE])

    def under(self, key: str) -> list[Expr]:
        """What a mapping may have under a key."""
        return [handles.expression(self.code, one) for one in self.code.ask.mappings.keys_at(self.key).entries.get(key, ())]

    @property
    def keys(self) -> frozenset[str]:
        """The keys of the mapping that it is, those added later too."""
        return frozenset(self.code.ask.mappings.keys_at(self.key).entries)

    def filled_at(self, call: Call) -> Filled:
        """The mapping that it is, as a call gets it."""
        return handles.Filled(self.code, self.code.ask.mappings.keys_at(self.key, call.key))

    @property
    def may_have_other_keys(self) -> bool:
        """Whether the mapping that it is may have keys that nothing shows."""
        return self.code.ask.mappings.keys_at(self.key).is_open

    @property
    def only_classes(self) -> list[Class]:
        """The classes of the project that it is an object of one of; empty if it may be anything else."""
        of = self.code.program.atoms.of
        fields = [of[one] if one >= FIRST else ("",) for one in self.value]
        return [handles.Class(self.code, one[1]) for one in fields] if all(one[0] in ("i", "self") for one in fields) else []

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

    def may_be_made_by(self, call: Call) -> bool:
        """Whether it may be the object of another package's class that a call creates."""
        program = self.code.program
        return any(fields[2:3] == (call.key,) for fields in program.atoms.kinds(program.ask(self.key), "o"))

    @property
    def containers(self) -> frozenset[Expr]:
        """The containers that it may be, by the expressions that made them."""
        return frozenset(handles.expression(self.code, fields[1]) for fields in self.code.program.atoms.kinds(self.value, "d"))

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
        return [handles.Function(self.code, one) for one in found]

    @property
    def modules(self) -> list[Module]:
        """The modules of the project that it may be."""
        return [self.code.program.modules.all[fields[1]] for fields in self.code.program.atoms.kinds(self.value, "m")]

    @property
    def classes(self) -> list[Class]:
        """The classes of the project that it may be."""
        kinds = self.code.program.atoms.kinds
        return [handles.Class(self.code, fields[1]) for kind in ("c", "self") for fields in kinds(self.value, kind)]

    @property
    def options(self) -> list[Option]:
        """The options of a command line whose value it may be."""
        return [handles.Option(self.code, one) for one in self.may_be().flags]

    def may_be(self) -> Meaning:
        """Its possible values, and whether these are all."""
        return self.code.ask.meaning(self.key)

    @property
    def is_known_whole(self) -> bool:
        """Whether all its possible values are known."""
        return self.code.ask.is_complete(self.key)

    @property
    def count_of_values(self) -> int:
        """How many different values it may have, those of other packages and of the project together."""
        return len(self.code.program.ask(self.key))

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
                found += [handles.Class(self.code, one) for one in program.below(fields[1])]
            elif fields[0] == "i":
                found.append(handles.Class(self.code, fields[1]))
            elif fields[0] == "o":
                found.append(fields[1])
            else:
                return []
        return found if is_whole else []
