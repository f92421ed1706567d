"""The data flow inside one file: assignments, calls, returns, loops and iterations, as picklable facts.

This is the summary that the project pass joins over files to answer questions such as "is the loader made here iterated
more than once?" or "is this save in a training loop?". It is a pure function of the file's text.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.patterns import lazily
from ldlm_lint.python.guards import guards_of
from ldlm_lint.python.handed_lists import handed_list, moved_into_list
from ldlm_lint.python.iterations import Iteration, iterations_of, repeating
from ldlm_lint.python.mode_calls import sets_mode
from ldlm_lint.python.names import UNKNOWN, bindings, last_name, qualified
from ldlm_lint.python.places import (
    by_function,
    function_of,
    loops_around,
    loops_around_definition,
    position_of,
    scope_name,
)
from ldlm_lint.python.sites import site_of
from ldlm_lint.python.slots import (
    Slot,
    appended,
    assigned,
    is_call_of,
    opened,
    returned,
    slots_of,
    taken,
)
from ldlm_lint.python.stars import behind_star
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.vocabulary.models import STOPPERS

_TRAINING_STEPS = {"backward", "manual_backward", "zero_grad", "train_batch"}
_TRAINING_CALL = lazily(
    r"train(ing)?_(step|batch|iter|iteration|epoch|one_epoch|one_step)(_fn)?$|optimize_parameters$"
)
_LEARNS = frozenset({"backward", "manual_backward", "train_batch", "step"})
MAPPING = "**"
_PROPERTIES = {"property", "cached_property"}
_OF_MADE_OBJECTS = frozenset({"update"})
_RECORDS = frozenset({"dataclasses.dataclass", "typing.NamedTuple"})
Guards = Mapping[str, tuple[str, ...]]
"""The conditions that may choose one process for a call, by its position; none for a call without any."""
_FACTS = (
    *(nodes.Assign, nodes.AnnAssign, nodes.Return, nodes.With),
    *(nodes.For, nodes.Comprehension, nodes.YieldFrom, nodes.Call),
)

_OWNED = (nodes.FunctionDef, nodes.Call, nodes.Yield, nodes.YieldFrom)


class Callee(NamedTuple):
    """The target of a call: a ``def`` of this file, an ``import``, a method of ``self``, or a ``method`` by name."""

    kind: str
    name: str


_NOBODY = Callee("method", "")


class Passed(NamedTuple):
    """A slot passed as an argument: ``key`` is its position, its keyword or `MAPPING`; ``loops`` repeat it."""

    key: int | str
    slot: Slot
    loops: tuple[int, ...]


class CallSite(NamedTuple):
    """A call, the function it is in and the lines of the loops of that function around it.

    A ``rare`` one runs far less often than the code around it: under an interval, once, after a failure; see
    `ldlm_lint.python.rarity`, and `ldlm_lint.python.off_by_default` for code that few callers enable.
    """

    callee: Callee
    scope: str
    position: str
    loops: tuple[int, ...]
    passed: tuple[Passed, ...]
    rare: bool = False


class Function(NamedTuple):
    """A function or the module itself (empty scope).

    ``backward_lines`` are the lines of the loops around its backward passes, 0 for one outside any loop; ``lightning``
    marks a method of a Lightning class, which a Trainer calls repeatedly; a function that ``yields`` passes on its
    elements.
    """

    scope: str
    line: int
    params: tuple[str, ...]
    backward_lines: tuple[int, ...]
    lightning: bool
    yields: bool


class ModuleFlow(NamedTuple):
    """The facts of one file; not ``complete`` if a syntax error hides the rest of it."""

    path: str
    functions: tuple[Function, ...]
    calls: tuple[CallSite, ...]
    moves: tuple[tuple[Slot, Slot], ...]
    iterations: tuple[Iteration, ...]
    complete: bool = True


def summarize(module: nodes.Module, path: str, complete: bool = True) -> ModuleFlow:
    """The facts of a parsed file; ``complete`` is False if the tree ends at a syntax error."""
    moves: list[tuple[Slot, Slot]] = []
    iterations: list[Iteration] = []
    calls: list[CallSite] = []
    for node in nodes_of(module, _FACTS):
        if isinstance(node, (nodes.Assign, nodes.AnnAssign)):
            moves.extend(assigned(node))
        elif isinstance(node, nodes.Return):
            moves.extend(returned(node))
        elif isinstance(node, nodes.With):
            moves.extend(opened(node))
        elif isinstance(node, nodes.Call) and not is_call_of(node, "iter", "next"):
            site = _call_site(node)
            calls.append(site)
            moves.extend(appended(node))
            moves.extend(one for _, argument in _arguments(node) for one in moved_into_list(argument, site.callee))
        else:
            iterations.extend(iterations_of(node))
            if isinstance(node, (nodes.For, nodes.Comprehension)):
                moves.extend(taken(node.iter, node.target))
    moves.extend(move for node in nodes_of(module, nodes.FunctionDef) for move in _property_moves(node))
    records = [node for node in nodes_of(module, nodes.ClassDef) if _is_record(node)]
    for record in records:
        moves.extend(_record_moves(record))
    owners = by_function(module, nodes_of(module, _OWNED))
    functions = (*_functions(owners), *map(_constructor, records))
    return ModuleFlow(path, functions, tuple(calls), tuple(moves), tuple(iterations), complete)


def guards_in(module: nodes.Module) -> Guards:
    """The guards of the calls of a file, by their positions; see `ldlm_lint.python.guards`."""
    return {position_of(call): guards for call in nodes_of(module, nodes.Call) if (guards := guards_of(call))}


def _property_moves(node: nodes.FunctionDef) -> Iterator[tuple[Slot, Slot]]:
    """The result of a property is read as an attribute."""
    decorators = node.decorators.nodes if node.decorators else []
    if any(one.as_string().rpartition(".")[2] in _PROPERTIES for one in decorators):
        yield Slot("ret", scope_name(node), ""), Slot("attr", "", node.name)


def _is_record(node: nodes.ClassDef) -> bool:
    """A dataclass or named tuple: its constructor stores each argument under the field's name."""
    decorators = node.decorators.nodes if node.decorators else []
    named = [one.func if isinstance(one, nodes.Call) else one for one in decorators]
    return any(qualified(one) <= _RECORDS for one in [*named, *node.bases])


def _fields(record: nodes.ClassDef) -> list[str]:
    return [
        one.target.name
        for one in record.body
        if isinstance(one, nodes.AnnAssign) and isinstance(one.target, nodes.AssignName)
    ]


def _record_moves(record: nodes.ClassDef) -> Iterator[tuple[Slot, Slot]]:
    scope = f"{scope_name(record)}.__init__"
    yield from ((Slot("var", scope, name), Slot("attr", "", name)) for name in _fields(record))


def _constructor(record: nodes.ClassDef) -> Function:
    return Function(
        f"{scope_name(record)}.__init__", record.lineno or 0, ("self", *_fields(record)), (), False, False
    )


def callee_of(call: nodes.Call) -> Callee | None:
    """The target of a call, or None if not even a method name is known."""
    func = call.func
    if isinstance(func, nodes.Name):
        for binding in bindings(func):
            if isinstance(binding, (nodes.FunctionDef, nodes.ClassDef)):
                return Callee("def", scope_name(binding))
    names = qualified(func) - {UNKNOWN}
    name = min(names, default=UNKNOWN)
    if UNKNOWN not in name and (_is_relative_import(func) if name.startswith(".") else len(names) == 1):
        return Callee("import", name)
    if isinstance(func, nodes.Attribute):
        owner = _class_of_self(func.expr)
        if owner:
            return Callee("self", f"{owner}.{func.attrname}")
        return None if sets_mode(call) else _of_made_object(func) or Callee("method", func.attrname)
    return None


def _of_star(func: nodes.NodeNG) -> Callee | None:
    """A function that only one star import may provide: the project knows whether the module has it."""
    origin = behind_star(func) if isinstance(func, nodes.Name) else None
    return Callee("import", origin) if origin is not None else None


def _of_made_object(func: nodes.Attribute) -> Callee | None:
    """``agent.update(batch)`` after ``agent = Agent(…)``: many classes have a method of this name, but the object is
    created here."""
    if func.attrname not in _OF_MADE_OBJECTS or not isinstance(func.expr, nodes.Name):
        return None
    found = bindings(func.expr)
    made = found[0].parent if len(found) == 1 else None
    call = made.value if isinstance(made, nodes.Assign) and found[0] in made.targets else None
    if not isinstance(call, nodes.Call) or not isinstance(call.func, (nodes.Name, nodes.Attribute)):
        return None
    callee = callee_of(call)
    if callee is None or callee.kind not in ("def", "import") or not callee.name.rpartition(".")[2][:1].isupper():
        return None
    return callee._replace(name=f"{callee.name}.{func.attrname}")


def _is_relative_import(node: nodes.NodeNG) -> bool:
    while isinstance(node, nodes.Attribute):
        node = node.expr
    return isinstance(node, nodes.Name) and any(
        isinstance(one, nodes.ImportFrom) and one.level for one in bindings(node)
    )


def _call_site(call: nodes.Call) -> CallSite:
    site = site_of(call)
    callee = callee_of(call) or _of_star(call.func) or _NOBODY
    passed: list[Passed] = []
    for key, node in _arguments(call):
        passed += [Passed(key, slot, repeating(node, slot, site.loops)) for slot in slots_of(node)]
        passed += [Passed(key, slot, site.lines) for slot in handed_list(node, callee)]
    return CallSite(callee, site.scope, position_of(call), site.lines, tuple(passed), site.rare)


def _arguments(call: nodes.Call) -> Iterator[tuple[int | str, nodes.NodeNG]]:
    yield from enumerate(call.args)
    yield from ((keyword.arg or MAPPING, keyword.value) for keyword in call.keywords)


def _class_of_self(node: nodes.NodeNG) -> str:
    """The class whose method this is, where the expression is its first parameter; empty otherwise."""
    function = function_of(node)
    if isinstance(function, nodes.Module) or not isinstance(function.parent, nodes.ClassDef):
        return ""
    first = function.args.args[:1] if function.args.args else []
    return scope_name(function.parent) if isinstance(node, nodes.Name) and first and first[0].name == node.name else ""


def _functions(owners: Mapping[nodes.NodeNG, list[nodes.NodeNG]]) -> Iterator[Function]:
    calls_in = {node: [one for one in inner if one.__class__ is nodes.Call] for node, inner in owners.items()}
    backward: dict[nodes.NodeNG, list[int]] = {node: [] for node in owners}
    for node, calls in calls_in.items():
        for call in filter(is_backward, calls):
            for owner, loops in _loops_of(node, loops_around(call)):
                backward[owner] += [0, *(loop.lineno or 0 for loop in loops)]
    for node, inner in owners.items():
        calls = calls_in[node]
        yield Function(
            scope=scope_name(node),
            line=node.lineno or 0,
            params=_parameters(node),
            backward_lines=tuple(backward[node]),
            lightning=_in_lightning_class(node),
            yields=any(isinstance(one, (nodes.Yield, nodes.YieldFrom)) for one in inner),
        )


def _loops_of(function: nodes.NodeNG, loops: list[nodes.NodeNG]) -> Iterator[tuple[nodes.NodeNG, list[nodes.NodeNG]]]:
    """The function with a backward pass, and each enclosing one that defines the inner one again in a loop.

    A closure created in every iteration of a loop belongs to that iteration, wherever it is passed:
    ``optimizer.step(closure)``.
    """
    yield function, loops
    while isinstance(function, nodes.FunctionDef) and (around := loops_around_definition(function)):
        function, loops = function_of(function.parent), [*loops, *around]
        yield function, loops


def _parameters(node: nodes.NodeNG) -> tuple[str, ...]:
    if not isinstance(node, nodes.FunctionDef):
        return ()
    arguments = node.args
    return tuple(
        one.name for one in [*(arguments.posonlyargs or []), *(arguments.args or []), *(arguments.kwonlyargs or [])]
    )


@functools.lru_cache(1 << 14)
def _names_step(name: str) -> bool:
    return _TRAINING_CALL.match(name) is not None


def is_backward(call: nodes.Call) -> bool:
    """A mark of a training step: ``loss.backward()``, ``engine.backward(loss)``, ``optimizer.zero_grad()``.

    Scalers and loss objects often hide the backward pass, but rarely ``zero_grad``; closures hide both behind a
    ``train_step_fn``. A ``backward`` inside a method ``backward`` belongs to an autograd function.
    """
    last = call.func.attrname if isinstance(call.func, nodes.Attribute) else getattr(call.func, "name", "")
    if _names_step(last):
        return True
    if not isinstance(call.func, nodes.Attribute) or last not in _TRAINING_STEPS or (last == "zero_grad" and _clears_nothing(call)):
        return False
    function = function_of(call)
    return not (isinstance(function, nodes.FunctionDef) and function.name == "backward")


def _clears_nothing(call: nodes.Call) -> bool:
    """Whether each pass of the loop around turns gradients off without a step, next to a loop that computes some: a
    validation.

    If no backward pass is visible in the function, a scaler or a helper may hide it in any loop.
    """
    loop = next(iter(loops_around(call)), None)
    if loop is None:
        return False
    called = {last_name(one.func) for one in nodes_of(loop, nodes.Call)}
    if called.isdisjoint(STOPPERS) or not called.isdisjoint(_LEARNS) or any(map(_names_step, called)):
        return False
    return any(last_name(one.func) == "backward" for one in nodes_of(function_of(call), nodes.Call))


def _in_lightning_class(node: nodes.NodeNG) -> bool:
    owner = node.parent
    if not isinstance(owner, nodes.ClassDef):
        return False
    return any(name.startswith("lightning.") for base in owner.bases for name in qualified(base))
