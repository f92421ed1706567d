"""What the callers of a function give for a parameter when nothing has failed: a second try after an error is no step of every day."""

from __future__ import annotations

from ldlm_lint.program import Program
from ldlm_lint.program.atoms import FIRST, MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.modules import Module


class Given:
    """The constants that parameters are given."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def may_be(self, module: Module, left: int, right: int) -> bool:
        """Whether a parameter may be equal to a constant; true wherever more than its callers has to be known for it."""
        parameter, constant = module.plain(left), module.nodes[right]
        if parameter[0] != "param" or constant[0] != "const" or constant[1].__class__ is not str:
            return True
        function = module.base | parameter[1]
        edges = self.program.values.get(("edges", function), ())
        usual = [edge for edge in edges if not self._recovers(edge >> 2)]
        if not usual or len(usual) == len(edges):
            return True
        return any(self._may_give(edge, function, parameter[2], constant[1]) for edge in usual)

    def _may_give(self, edge: int, function: int, name: str, text: str) -> bool:
        if edge & 3 == UNKNOWN:
            return True
        node = self.program.argument_node(edge >> 2, function, edge & 3, name)
        if node is None:
            module = self.program.module_of(function)
            default = module.scopes[function & MASK].defaults.get(name)
            node = module.base | default if default is not None else None
        value = self.program.get(node) if node is not None else None
        if not value:
            return True
        return any(
            one < FIRST or self.program.atoms.of[one] in (("k", text),) or self.program.atoms.of[one][0] != "k"
            for one in value
        )

    def _recovers(self, call: int) -> bool:
        """Whether a call stands in the handler of an error."""
        module = self.program.module_of(call)
        guard = module.table.sites[call & MASK].guard
        while guard >= 0:
            if module.table.guards[guard].kind == "except":
                return True
            guard = module.table.guards[guard].parent
        return False
