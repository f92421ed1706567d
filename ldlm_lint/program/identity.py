"""What setting an expression reads, in a comparable form: two places that read one setting read the same value."""

from __future__ import annotations

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN
from ldlm_lint.program.modules import Module
from ldlm_lint.program.program import Program

_STEPS = 12
Identity = tuple[object, ...]


def identity_of(program: Program, key: int, steps: int = 0) -> Identity:
    """The origin of an expression's value: an option, a constant of a module, an attribute; empty if that is not known.

    A parameter has the origin of its only known argument, an attribute of ``self`` that of its only assignment; other
    objects are identified by the attribute path: ``cfg.amp`` in two functions is one setting.
    """
    module = program.module_of(key)
    row = module.nodes[key & MASK]
    flags = [fields[1] for fields in program.atoms.kinds(program.ask(key), "flag")]
    if len(flags) == 1 == len(program.ask(key)):
        return ("flag", flags[0])
    if steps > _STEPS:
        return ()
    if row[0] == "copy" or (row[0] == "call" and module.last_name(row[1]) == "bool" and len(row[2]) == 1):
        return identity_of(program, module.base | (row[1] if row[0] == "copy" else row[2][0]), steps + 1)
    if row[0] == "param":
        return _of_parameter(program, module, row, steps)
    if row[0] == "attr":
        return _of_attribute(program, module, row, steps)
    if row[0] == "item" and module.nodes[row[2]][0] == "const":
        base = identity_of(program, module.base | row[1], steps + 1)
        return ("item", module.nodes[row[2]][1], base) if base else ()
    return _of_name(program, module, row)


def _of_parameter(program: Program, module: Module, row: tuple[object, ...], steps: int) -> Identity:
    function, name = module.base | int(str(row[1])), str(row[2])
    edges = program.callers(function)
    if len(edges) == 1 and edges[0].how != UNKNOWN:
        node = program.argument_node(edges[0].call, function, edges[0].how, name)
        found = identity_of(program, node, steps + 1) if node is not None else ()
        if found:
            return found
    return ("param", function, name)


def _of_attribute(program: Program, module: Module, row: tuple[object, ...], steps: int) -> Identity:
    base, name = int(str(row[1])), str(row[2])
    owner = program.class_of_self(module, base)
    if owner is not None:
        set_to = program.own_writes.get((owner, name), ())
        found = identity_of(program, set_to[0], steps + 1) if len(set_to) == 1 else ()
        return found or ("attr", name, ("class", owner))
    inner = identity_of(program, module.base | base, steps + 1)
    if inner[:1] == ("module",):
        return ("global", inner[1], name)
    # An object that is handed to several functions has one name in all of them.
    return ("attr", name, ("name", inner[2]) if inner[0] == "param" else inner) if inner else ()


def _of_name(program: Program, module: Module, row: tuple[object, ...]) -> Identity:
    """A name of a module, by the module that binds it."""
    if row[0] == "free":
        bound = module.scopes[0].bindings.get(str(row[2]), ())
        inner = module.nodes[bound[0]] if len(bound) == 1 else ("none",)
        return _of_name(program, module, inner) if inner[0] in ("imp", "impf") else ("global", module.index, row[2]) if bound else ()
    if row[0] not in ("imp", "impf"):
        return ()
    full = program.modules.absolute(module, str(row[1]), int(str(row[3] if row[0] == "impf" else row[2])))
    target = program.modules.find(full, module) if full else None
    if row[0] == "imp":
        return ("module", target.index if target is not None else full)
    return ("global", target.index, row[2]) if target is not None else ("global", full, row[2])


__all__ = ["Identity", "identity_of"]
