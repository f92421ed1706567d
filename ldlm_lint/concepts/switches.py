"""Functions that do nothing but set ``requires_grad`` of their argument, and the calls of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.calls import UNKNOWN

if TYPE_CHECKING:
    from ldlm_lint.program import Program
    from ldlm_lint.program.modules import Module

_FLAG, _METHOD = "requires_grad", "requires_grad_"
_LISTS = frozenset({"parameters", "named_parameters", "modules", "named_modules", "children", "named_children"})
_STEPS = 12


def switching_calls(program: Program, asks: Collection[str]) -> Iterator[int]:
    """The calls (keys) of such functions from other files; ``asks`` are the names of calls that change nothing."""
    written = {obj for obj, _ in program.other_writes.get(_FLAG, ())} | set(program.calls.get(_METHOD, ()))
    for module in {program.module_of(one).index: program.module_of(one) for one in sorted(written)}.values():
        for number, scope in enumerate(module.scopes):
            if scope.kind != "def" or scope.name == "<lambda>":
                continue
            switched = set(_switched(module, number))
            names = {module.last_name(module.nodes[call][1]) for call in scope.calls}
            if len(switched) == 1 and names <= {*asks, _METHOD}:
                yield from _calls_from_elsewhere(program, module, number, *next(iter(switched)))


def _switched(module: Module, function: int) -> Iterator[tuple[str, bool]]:
    """The parameters whose flags a function sets (empty: of another object), and whether these can only be models."""
    scope = module.scopes[function]
    for base, name, _, _ in scope.writes:
        if name == _FLAG:
            yield _parameter_behind(module, function, base)
    for call in scope.calls:
        row = module.nodes[module.nodes[call][1]]
        if row[0] == "attr" and row[2] == _METHOD:
            yield _parameter_behind(module, function, row[1])


def _parameter_behind(module: Module, function: int, number: int) -> tuple[str, bool]:
    """The parameter of a function that an expression is taken from, and whether its weights or parts are listed on the way."""
    is_model = False
    for _ in range(_STEPS):
        row = module.nodes[number]
        if row[0] == "param":
            return (str(row[2]), is_model) if row[1] == function else ("", False)
        if row[0] in ("elem", "copy", "attr", "item", "part"):
            number = row[1]
        elif row[0] == "call":
            # `module.parameters()`, `list(module.children())`
            called = module.nodes[row[1]]
            is_model |= called[0] == "attr" and called[2] in _LISTS
            number = called[1] if called[0] == "attr" else row[2][0] if row[2] else 0
        elif row[0] == "phi":
            number = row[1][0]
        else:
            break
    return "", False


def _calls_from_elsewhere(program: Program, module: Module, function: int, parameter: str, is_model: bool) -> Iterator[int]:
    """The calls from other files that give a model as their first argument."""
    if not parameter:
        return
    for edge in program.callers(module.base | function):
        caller = program.module_of(edge.call)
        if edge.how == UNKNOWN or caller is module:
            continue
        given = program.argument_node(edge.call, module.base | function, edge.how, parameter)
        first = caller.nodes[edge.call & MASK][2][:1]
        if (
            given is not None
            and first == (given & MASK,)
            and caller.nodes[given & MASK][0] != "star"
            and (is_model or _is_module(program, given))
        ):
            yield edge.call


def _is_module(program: Program, key: int) -> bool:
    value = program.ask(key)
    owners = [fields[1] for kind in ("i", "self") for fields in program.atoms.kinds(value, kind)]
    made = [fields[1] for fields in program.atoms.kinds(value, "o")]
    return bool(owners or made) and all(map(program.is_module, owners)) and all(one.startswith("torch.nn.") for one in made)


__all__ = ["switching_calls"]
