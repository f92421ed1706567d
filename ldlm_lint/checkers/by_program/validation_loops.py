"""Validation loops in the function of the training itself: loops that run the model and do not update it."""

from __future__ import annotations

from collections.abc import Iterator

from ldlm_lint.checkers.by_program.view import View
from ldlm_lint.checkers.data_purposes import says_evaluation
from ldlm_lint.code.table import Loop
from ldlm_lint.concepts.backward import BACKWARD
from ldlm_lint.concepts.reach import Reach
from ldlm_lint.concepts.steps import Steps
from ldlm_lint.program.atoms import MASK
from ldlm_lint.program.identity import Identity, identity_of
from ldlm_lint.program.modules import Module
from ldlm_lint.python.model_names import looks_like_model

_LEARNS = frozenset({*BACKWARD, "step", "zero_grad", "grad"})
_WRAPS = frozenset({"enumerate", "tqdm", "zip", "iter", "trange"})


def validation_runs(view: View) -> Iterator[tuple[Module, int]]:
    """The first run of the trained model in each such loop: the module and the call in it."""
    for function, steps in list(view[Steps].loops.items()):
        module = view.program.module_of(function)
        step_loops = {loop for loop in steps if loop is not None}
        trained = {_model(view, module, call) for call in _calls_in(module, function, step_loops)} - {()} if step_loops else set()
        for number, loop in enumerate(module.table.loops):
            if module.base | loop.scope == function and trained and _validates(view, module, number, loop, step_loops):
                first = next((call for call in _calls_in(module, function, {number}) if _model(view, module, call) in trained), None)
                if first is not None:
                    yield module, first


def _calls_in(module: Module, function: int, loops: set[int]) -> list[int]:
    calls = module.scopes[function & MASK].calls
    return [call for call in calls if not loops.isdisjoint(_loops_above(module, module.table.sites[call].loop))]


def _loops_above(module: Module, loop: int) -> list[int]:
    found = []
    while loop >= 0:
        found.append(loop)
        loop = module.table.loops[loop].parent
    return found


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


def _validates(view: View, module: Module, number: int, loop: Loop, step_loops: set[int]) -> bool:
    """Whether a loop iterates over an evaluation set by name, updates nothing, and no later code in the function
    does.
    """
    around = _loops_above(module, number)
    inside = [one for one in step_loops if number in _loops_above(module, one)]
    if loop.kind == "while" or inside or not step_loops.isdisjoint(around) or not says_evaluation(_names(module, loop.value, 0), "", ()):
        return False
    function = module.base | loop.scope
    behind = [call for call in module.scopes[loop.scope].calls if module.table.sites[call].place > loop.place]
    return not any(_learns(view, module, call) for call in behind) and view[Steps].loops.get(function) is not None


def _learns(view: View, module: Module, call: int) -> bool:
    """Whether a call computes gradients or changes parameters, or goes to a function of the project that is a training step."""
    if module.last_name(module.nodes[call][1]) in _LEARNS:
        return True
    targets = view.program.targets_of.get(module.base | call, set())
    return any(target in view[Steps].loops or target in view[Reach].functions for target in targets if not _is_forward(view, target))


def _is_forward(view: View, function: int) -> bool:
    owner = view.program.owner.get(function)
    return owner is not None and view.program.is_module(owner)


def _names(module: Module, number: int, depth: int) -> list[str]:
    """The names of a loop's iterable, inside of ``enumerate`` and the like."""
    row = module.nodes[number]
    if row[0] == "call" and row[2] and depth < 4 and module.last_name(row[1]) in _WRAPS:
        return [name for one in row[2] for name in _names(module, one, depth + 1)]
    return [name] if (name := module.last_name(number)) else []
