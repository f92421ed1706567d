"""How a program gets its local rank: from the environment, through a framework, or only as an option of its command
line."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.codebase import Codebase, Concept

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_OPTIONS = frozenset({"--local_rank", "--local-rank"})
_ATTRIBUTE, _VARIABLE = "local_rank", "LOCAL_RANK"
_READERS = ("TrainingArguments", "HfArgumentParser", "Accelerator", "PartialState", "init_distributed", "get_node_local_rank", "Fabric")
"""What reads the environment for its callers: transformers, accelerate, DeepSpeed, Lightning."""
_SETTERS = ("setattr", "set_defaults")


class LocalRanks(Concept):
    """Answers for the programs of a project."""

    def __init__(self, code: Codebase) -> None:
        super().__init__(code)
        self._program = code.ask.program
        self._options = {
            code.ask.program.module_of(call).index for call in code.ask.program.calls.get("add_argument", ()) if code.ask.flag(call).name in _OPTIONS
        }

    def is_given(self, modules: Iterable[Module]) -> bool:
        """Whether one of these modules has an option for the rank."""
        return any(module.index in self._options for module in modules)

    def is_only_given(self, entry: Module, modules: Collection[Module]) -> bool:
        """Whether a program of some modules gets its rank from its command line only."""
        if not self.is_given(modules):
            return False
        return not any(map(self._looks_it_up, modules)) or self._uses_its_option(entry, modules)

    def _looks_it_up(self, module: Module) -> bool:
        """Whether a module reads the variable, or lets a framework read it."""
        return self._reads_variable(module) or any(name in module.table.named for name in _READERS)

    @staticmethod
    def _reads_variable(module: Module) -> bool:
        return any(row == ("const", _VARIABLE) for row in module.nodes)

    def _uses_its_option(self, entry: Module, modules: Collection[Module]) -> bool:
        """Whether a program reads its option itself, and no code replaces it by the environment's value."""
        if entry.index not in self._options or self._reads_variable(entry):
            return False
        reads = any(row[0] == "attr" and row[2] == _ATTRIBUTE and not self._is_own(entry, row[1]) for row in entry.nodes)
        return reads and not any(map(self._sets_option, modules))

    def _sets_option(self, module: Module) -> bool:
        written = (base for scope in module.scopes for base, name, _, _ in scope.writes if name == _ATTRIBUTE)
        return any(not self._is_own(module, base) for base in written) or any(name in module.table.named for name in _SETTERS)

    def _is_own(self, module: Module, number: int) -> bool:
        return self._program.class_of_self(module, number & MASK) is not None


__all__ = ["LocalRanks"]
