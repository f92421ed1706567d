"""Attributes that stay at their default unless a user's configuration file says otherwise, and no file of the project does:

    class Trainer:
        def __init__(self, model, save_folder=None):
            self.save_folder = save_folder

    trainer = Trainer(model, **json.load(file)["trainer"])       # the project's files have no trainer.save_folder
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.concepts.programs import ANY, Programs
from ldlm_lint.concepts.read_settings import ReadSettings
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN, Caller
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.settings_read import settings_read
from ldlm_lint.source import Kind

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_DOCUMENTS = (Kind.YAML, Kind.JSON, Kind.TOML)


class UnsetSettings(Concept):
    """Answers for the attributes of a program's objects.

    ``may_run`` tells whether a program that is seen comes to a function, ``is_read`` whether the unknown arguments of a call are read from a
    configuration file.
    """

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._files = code.files
        self._programs = code[Programs]
        self._is_read = code[ReadSettings].may_be_added
        self._known: dict[tuple[int, str], object] = {}

    def _may_run(self, function: int) -> bool:
        return bool(self._programs.of(function) - {ANY})

    def value_of(self, module: Module, number: int) -> object:
        """The constant that an attribute of ``self`` is unless a user's file sets it; `Ellipsis` for any other expression."""
        row = module.nodes[module.uncopied(number)]
        owner = self.program.class_of_self(module, row[1]) if row[0] == "attr" else None
        if owner is None:
            return ...
        key = (owner, str(row[2]))
        if key not in self._known:
            self._known[key] = self._find(*key)
        return self._known[key]

    def _find(self, owner: int, name: str) -> object:
        program = self.program
        family = {*program.order(owner), *program.below(owner)}
        written = [one for other in family for one in program.own_writes.get((other, name), ())]
        if len(written) != 1 or name in program.other_writes or not any(map(self._is_built_with_mapping, family)):
            return ...
        home = program.module_of(written[0])
        row = home.nodes[home.uncopied(written[0] & MASK)]
        if row[0] != "param" or home.scopes[row[1]].name != "__init__":
            return ...
        default = home.nodes[home.uncopied(home.scopes[row[1]].defaults.get(row[2], 0))]
        return default[1] if default[0] == "const" and self._is_left(home.base | row[1], row[2]) else ...

    def _is_built_with_mapping(self, owner: int) -> bool:
        """Whether a call by the name of a class unpacks a mapping: who calls its constructor is looked for only then."""
        name = self.program.module_of(owner).scopes[owner & MASK].name
        return any(map(self._unpacked, self.program.calls.get(name, ())))

    def _is_left(self, function: int, name: str) -> bool:
        """Whether each call of a constructor leaves a parameter out, and one of them may get it from a user's file."""
        edges = [edge for edge in self.program.callers(function) if self._may_run(self.program.function_of(edge.call))]
        return (
            bool(edges)
            and all(self._leaves(function, edge, name) for edge in edges)
            and any(self._unpacked(edge.call) for edge in edges)
        )

    def _leaves(self, function: int, edge: Caller, name: str) -> bool:
        call, how = edge.call, edge.how
        if how == UNKNOWN or self.program.argument_node(call, function, how, name) is not None:
            return False
        unpacked = self._unpacked(call)
        module = self.program.module_of(call)
        if any(module.nodes[one][0] == "star" for one in module.nodes[call & MASK][2]):
            return False
        return not unpacked or (self._is_read(call) and all(self._is_shown_without(module.base | one, name) for one in unpacked))

    def _unpacked(self, call: int) -> list[int]:
        """The mappings that a call unpacks."""
        return [value for keyword, value in self.program.module_of(call).nodes[call & MASK][3] if keyword is None]

    def _is_shown_without(self, mapping: int, name: str) -> bool:
        """Whether files of the project show the section that a mapping is, and neither they nor a script set a key of it."""
        sections = settings_read(self.program, mapping)
        shown = False
        for path, kind in self._files.others.items():
            document = self._files.document(path) if kind in _DOCUMENTS else None
            if document is None and name.encode() in self._files.data(path):
                return False
            paths = [entry.path for entry in document.entries] if document is not None else []
            if any(one[-len(section) - 1 :] == (*section, name) for one in paths for section in sections):
                return False
            shown = shown or any(one[-len(section) :] == section for one in paths for section in sections)
        return shown


__all__ = ["UnsetSettings"]
