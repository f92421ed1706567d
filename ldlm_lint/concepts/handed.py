"""The arguments of all callers for a parameter; for queries about a few functions only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN

if TYPE_CHECKING:
    from ldlm_lint.code.table import Node
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module


def handed_in(program: Program, function: int, name: str) -> list[tuple[int, int]]:
    """The known calls (keys) of a function with the expressions that they pass for a parameter.

    Methods of any object are included: ``model.save(step)`` calls the method of a class from a registry.
    """
    found = []
    for edge in program.callers(function):
        node = None if edge.how == UNKNOWN else program.argument_node(edge.call, function, edge.how, name)
        if node is not None:
            found.append((edge.call, node))
    return found


def callers_of(program: Program, function: int) -> list[int]:
    """The known calls (keys) of a function, including calls of a method on any object."""
    return list(dict.fromkeys(edge.call for edge in program.callers(function)))


def modules_above(program: Program, call: int, most: int = 100) -> list[Module]:
    """The modules of the functions that lead to a call (key), without its own."""
    own = program.module_of(call)
    todo, seen = [program.function_of(call)], {program.function_of(call)}
    found: dict[int, Module] = {}
    while todo and len(seen) < most:
        function = todo.pop()
        for one in callers_of(program, function) if function & MASK else ():
            above = program.function_of(one)
            if above not in seen:
                seen.add(above)
                todo.append(above)
                module = program.module_of(one)
                if module is not own:
                    found[module.index] = module
    return list(found.values())


def behind(program: Program, module: Module, row: Node) -> list[int]:
    """What a ``param`` or ``free`` row may hold: arguments of callers, bindings of its module."""
    if row[0] == "param":
        return [node for _, node in handed_in(program, module.base | row[1], row[2])]
    return [module.base | one for one in module.scopes[0].bindings.get(row[2], ())]


