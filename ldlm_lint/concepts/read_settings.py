"""The values that a program reads from a configuration file: users write them, and the project's files show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept
from ldlm_lint.program.handles import Call

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ldlm_lint.code.table import Node
    from ldlm_lint.program.handles import Expr
    from ldlm_lint.program.modules import Module

READERS = frozenset(
    [
        *(f"{yaml}.{name}" for yaml in ("yaml", "ruamel.yaml", "ruamel_yaml") for name in ("load", "safe_load", "full_load", "unsafe_load", "load_all")),
        *("json.load", "json.loads", "toml.load", "toml.loads", "tomllib.load", "tomli.load", "hjson.load", "commentjson.load"),
        *("omegaconf.OmegaConf.load", "omegaconf.OmegaConf.from_cli", "hydra.compose", "mmcv.Config.fromfile", "mmengine.Config.fromfile"),
        *("mmengine.config.Config.fromfile", "mmcv.utils.Config.fromfile"),
    ]
)
"""Functions that give what a configuration file holds."""
_SAME = frozenset({"dict", "OrderedDict", "deepcopy", "copy", "EasyDict", "edict", "AttrDict", "Munch", "to_container", "create", "merge", "Box"})
"""Functions and classes, by last name, that give a mapping in another form."""
_DICTIONARIES = frozenset({"dict", "OrderedDict", "UserDict"})
_PARTS = frozenset({"get", "pop", "copy", "setdefault", "items", "values", "__getitem__"})
_MOST = 150
"""Expressions behind a value that are looked at."""


class ReadSettings(Concept):
    """Answers for the expressions of a program."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)


    def may_be_added(self, call: int) -> bool:
        """Whether the unpacked arguments of a call are unknown only because a user's configuration file fills them."""
        module = self.program.module_of(call)
        row = module.nodes[call & MASK]
        unpacked = [self.ask.mappings.keys_at(module.base | value, call) for name, value in row[3] if name is None]
        opened_by = {one for keys in unpacked for one in keys.opened_by}
        may_be = bool(opened_by) and all(one and self.is_read(one) for one in opened_by)
        return may_be and not any(module.nodes[one][0] == "star" for one in row[2])

    def names(self, expr: Expr) -> bool:
        """Whether a file determines what an expression is, as in ``getattr(torch, config["dtype"])``: another file may
        choose something else."""
        found = expr.unnamed
        return isinstance(found, Call) and any(self.is_read(one.key) for one in found.positional)

    def is_read(self, key: int) -> bool:
        """Whether an expression (key) is, or may be, a part of a file that the program reads."""
        todo, seen = [key], {key}
        while todo and len(seen) < _MOST:
            one = todo.pop()
            module = self.program.module_of(one)
            row = module.nodes[one & MASK]
            if self._reads(module, row):
                return True
            for other in self._behind(module, one, row):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return False

    def _reads(self, module: Module, row: Node) -> bool:
        if row[0] == "call":
            function = self.program.ask(module.base | row[1])
            return any(fields[1] in READERS for fields in self.program.atoms.kinds(function, "x"))
        if row[0] != "param":
            return False
        # ``@hydra.main(…)`` passes the composed configuration to the function.
        decorators = module.scopes[row[1]].decorators
        return any(module.last_name(one) in ("()main", "()hydra_main") and self._is_of_hydra(module, one) for one in decorators)

    def _is_of_hydra(self, module: Module, decorator: int) -> bool:
        row = module.nodes[decorator]
        function = self.program.ask(module.base | row[1]) if row[0] == "call" else ()
        return any(fields[1].startswith("hydra.") for fields in self.program.atoms.kinds(frozenset(function), "x"))

    def _behind(self, module: Module, key: int, row: Node) -> Iterable[int]:
        kind = row[0]
        if kind in ("param", "free"):
            return self.program.given_or_bound(module, row)
        if kind == "phi":
            return [module.base | one for one in row[1]]
        if kind == "attr":
            owner = self.program.class_of_self(module, row[1])
            owners = self.program.order(owner) if owner is not None else ()
            written = [value for one in owners for value in self.program.own_writes.get((one, row[2]), ())]
            return written or [module.base | row[1]]
        if kind in ("copy", "item", "upd", "enter", "part", "elem"):
            return [module.base | row[1]]
        return self._behind_call(module, key, row) if kind == "call" else ()

    def _behind_call(self, module: Module, key: int, row: Node) -> Iterable[int]:
        function, name = module.nodes[row[1]], module.last_name(row[1])
        if name in _SAME or self._makes_mapping(module.base | row[1]):
            return [module.base | one for one in (*row[2], *(value for keyword, value in row[3] if keyword is None))]
        if function[0] == "attr" and name in _PARTS:
            return [module.base | function[1]]
        found = []
        for target in sorted(self.program.targets_of.get(key, ())):
            home = self.program.module_of(target)
            found += [home.base | value for value, _ in home.scopes[target & MASK].returns if value]
        return found

    def _makes_mapping(self, function: int) -> bool:
        """Whether a class of the project is a dictionary of another form."""
        owners = [fields[1] for fields in self.program.atoms.kinds(self.program.ask(function), "c")]
        return any(name.rpartition(".")[2] in _DICTIONARIES for owner in owners for name in self.program.outside_of(owner))
