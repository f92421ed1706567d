"""How a program gets its local rank: from the environment, through a framework, or only as an option of its command
line."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from ldlm_lint.program.codebase import Concept

if TYPE_CHECKING:
    from ldlm_lint.program.modules import Module

_OPTIONS = frozenset({"--local_rank", "--local-rank"})
_ATTRIBUTE = "local_rank"
_VARIABLE = re.compile(r"\ALOCAL_RANK\Z")
_READERS = ("TrainingArguments", "HfArgumentParser", "Accelerator", "PartialState", "init_distributed", "get_node_local_rank", "Fabric")
"""What reads the environment for its callers: transformers, accelerate, DeepSpeed, Lightning."""
_SETTERS = ("setattr", "set_defaults")


class LocalRanks(Concept):
    """Answers for the programs of a project."""

    @cached_property
    def _with_option(self) -> frozenset[Module]:
        """The files with an option for the rank."""
        added = self.code.calls_named("add_argument")
        return frozenset(call.module for call in added if any(one.constant in _OPTIONS for one in call.positional))

    def is_given(self, modules: Iterable[Module]) -> bool:
        """Whether one of these modules has an option for the rank."""
        return any(module in self._with_option for module in modules)

    def is_only_given(self, entry: Module, modules: Collection[Module]) -> bool:
        """Whether a program of some modules gets its rank from its command line only."""
        if not self.is_given(modules):
            return False
        looks_it_up = any(map(self._reads_variable, modules)) or any(call.module in modules for call in self.code.calls_named(*_READERS))
        return not looks_it_up or self._uses_its_option(entry, modules)

    def _reads_variable(self, module: Module) -> bool:
        return self.code.mentions.are_outside(module, frozenset(), _VARIABLE)

    def _uses_its_option(self, entry: Module, modules: Collection[Module]) -> bool:
        """Whether a program reads its option itself, and no code replaces it by the environment's value."""
        if entry not in self._with_option or self._reads_variable(entry):
            return False
        reads = any(read.owner_of_self is None for read in self.code.reads_in(entry, _ATTRIBUTE))
        is_set = any(target.module in modules for target, _ in self.code.writes_of(_ATTRIBUTE))
        return reads and not is_set and not any(call.module in modules for call in self.code.calls_named(*_SETTERS))


__all__ = ["LocalRanks"]
