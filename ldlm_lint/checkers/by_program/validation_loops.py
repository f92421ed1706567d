"""Validation loops in the function of the training itself: loops that run the model and do not update it."""

from __future__ import annotations

from collections.abc import Iterator, Set

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.code.table import Loop, loops_above
from ldlm_lint.concepts.losses import BACKWARD
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.handles import Call, Function
from ldlm_lint.program.identity import Identity, identity_of
from ldlm_lint.program.modules import Module
from ldlm_lint.vocabulary.models import looks_like_model
from ldlm_lint.vocabulary.purposes import says_evaluation

_LEARNS = frozenset({*BACKWARD, "step", "zero_grad", "grad"})
_WRAPS = frozenset({"enumerate", "tqdm", "zip", "iter", "trange"})


def validation_runs(view: View) -> Iterator[tuple[Module, int]]:
    """The first run of the trained model in each such loop: the module and the call in it."""
    for step in view[Steps].functions:
        module, function = step.module, step.key
        step_loops = view[Steps].loops_of(step)
        trained = {_model(view, module, call) for call in _calls_in(module, function, step_loops)} - {()} if step_loops else set()
        for number, loop in enumerate(module.table.loops):
            if module.base | loop.scope == function and trained and _validates(view, module, number, loop, step_loops):
                first = next((call for call in _calls_in(module, function, {number}) if _model(view, module, call) in trained), None)
                if first is not None:
                    yield module, first


def _calls_in(module: Module, function: int, loops: Set[int]) -> list[int]:
    calls = module.scopes[function & MASK].calls
    return [call for call in calls if not loops.isdisjoint(loops_above(module.table.loops, module.table.sites[call].loop))]


def _model(view: View, module: Module, call: int) -> Identity:
    """The origin of the called model, if it is a parameter or an attribute and gets an argument; else empty."""
    row = module.nodes[call]
    function = module.plain(row[1])
    if not row[2] or function[0] not in ("param", "attr") or (function[0] == "attr" and module.plain(function[1])[0] != "param"):
        return ()
    kinds = view.program.atoms.kinds
    value = view.program.ask(module.base | row[1])
    owners = [fields[1] for kind in ("i", "self") for fields in kinds(value, kind)]
    is_model = any(map(view.program.is_module, owners)) or looks_like_model(module.last_name(row[1]))
    return identity_of(view.program, module.base | row[1]) if is_model else ()


def _validates(view: View, module: Module, number: int, loop: Loop, step_loops: Set[int]) -> bool:
    """Whether a loop iterates over an evaluation set by name, updates nothing, and no later code in the function
    does.
    """
    loops = module.table.loops
    inside = [one for one in step_loops if number in loops_above(loops, one)]
    if loop.kind == "while" or inside or not step_loops.isdisjoint(loops_above(loops, number)) or not says_evaluation(_names(module, loop.value, 0), "", ()):
        return False
    behind = [call for call in module.scopes[loop.scope].calls if module.table.sites[call].place > loop.place]
    return not any(_learns(view, module, call) for call in behind)


def _learns(view: View, module: Module, call: int) -> bool:
    """Whether a call computes gradients or changes parameters, or goes to a function of the project that is a training step."""
    if module.last_name(module.nodes[call][1]) in _LEARNS:
        return True
    return any(view[Reach].has(target) for target in Call(view, module.base | call).targets if not _is_forward(target))


def _is_forward(function: Function) -> bool:
    return function.owner is not None and function.owner.is_module


def _names(module: Module, number: int, depth: int) -> list[str]:
    """The names of a loop's iterable, inside of ``enumerate`` and the like."""
    row = module.nodes[number]
    if row[0] == "call" and row[2] and depth < 4 and module.last_name(row[1]) in _WRAPS:
        return [name for one in row[2] for name in _names(module, one, depth + 1)]
    return [name] if (name := module.last_name(number)) else []
