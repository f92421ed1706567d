"""Properties that are read: each read runs the method like a call."""

from __future__ import annotations

from functools import cached_property

from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.codebase import Concept
from ldlm_lint.program.modules import Module


class Properties(Concept):
    """Answers for the calls of a program, and the reads in their arguments and receivers."""

    @cached_property
    def _names(self) -> frozenset[str]:
        """The names of the properties of the project's classes; those of modules are mostly layers, without cost."""
        program = self.program
        return frozenset(program.module_of(one).scopes[one & MASK].name for one in program.owner if program.is_property(one))

    def read_at(self, module: Module, call: int) -> set[int]:
        """The properties (functions) that a call reads: ``kept.append(output.entropy)``, ``output.entropy.mean()``."""
        if not self._names:
            return set()
        row = module.nodes[call]
        function = module.nodes[row[1]]
        read = [*row[2], *(value for _, value in row[3]), *(function[1:2] if function[0] == "attr" else ())]
        return {one for number in read if module.nodes[number][0] == "attr" for one in self._functions(module, number)}

    def _functions(self, module: Module, number: int) -> set[int]:
        _, base, name = module.nodes[number]
        if name not in self._names:
            return set()
        program = self.program
        value = program.ask(module.base | base)
        objects = [program.atoms.of[one] for one in sorted(value) if one >= FIRST]
        found = [one for fields in objects if fields[0] in ("i", "self") for one in program.methods(fields[1], name, exact=fields[0] == "i")]
        return {one for one in found if program.is_property(one)}
