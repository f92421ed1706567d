"""Finds the places that switch gradients of parameters on and off; the project decides whether they run in every
step.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from astroid import nodes

from ldlm_lint.checkers.freezing_moments import (
    FLAG,
    PARAMETER_CLASSES,
    PARAMETER_LISTS,
    is_left_alone,
    last_name,
    loop_of,
)
from ldlm_lint.model import Claim
from ldlm_lint.patterns import lazily
from ldlm_lint.python.freezing_names import (
    ALWAYS_MODULES,
    FREEZES,
    LISTING,
    MODULES,
    OF_MODULES,
    SWITCHES,
    UNWRAPS,
    WEIGHTS,
)
from ldlm_lint.python.names import bindings, qualified
from ldlm_lint.python.places import function_of, loops_around, scope_name
from ldlm_lint.python.values import constant
from ldlm_lint.python.walks import nodes_of
from ldlm_lint.wording import quoted

_PARAMETERS = lazily(r"param|weights$", re.I)
ASKS = MODULES | LISTING | {
    "requires_grad_", "train", "eval", "append", "extend", "items", "keys", "values", "startswith", "endswith",
    "format", "info", "debug", "numel", "isinstance", "print", "list", "tuple", "set", "len", "filter", "getattr",
    "setattr", "hasattr", "any", "all", "zip", "enumerate", "chain", "bool", "type", "ValueError", "TypeError",
}  # fmt: skip


class Toggle(NamedTuple):
    """A place that sets ``requires_grad`` of parameters: its node, a description of the parameters, and the loops that
    repeat it."""

    node: nodes.NodeNG
    target: str
    loops: tuple[int, ...]

    @property
    def scope(self) -> str:
        """The dotted name of the function that it is in."""
        return scope_name(function_of(self.node))

    @property
    def place(self) -> str:
        """Function and loops in the notation of the project's question."""
        return f"{self.scope}|{','.join(map(str, self.loops))}"


def claims_of(group: Sequence[Toggle]) -> tuple[Claim, ...]:
    """What the project has to confirm of the toggles of one function and loop."""
    places = ";".join(f"{one.node.lineno}:{one.node.col_offset}" for one in group)
    return Claim("runs-in-every-step", group[0].place), Claim("switches-more-than-whole-models", places)


class _Setting(NamedTuple):
    node: nodes.NodeNG
    target: nodes.NodeNG


class _Known(NamedTuple):
    """The facts of a file about its names: which are modules, and which attributes are parameters or lists of them."""

    modules: set[str]
    parameters: set[str]
    lists: set[str]


def toggles(module: nodes.Module, switching: Collection[tuple[int, int]] = ()) -> list[list[Toggle]]:
    """The toggles of a file, those of one function and loop together, in order; a helper's are reported at its calls.

    ``switching`` are the places (line and column) of calls of helpers in other files.
    """
    known = _Known(_module_names(module), _attributes(module, PARAMETER_CLASSES), _attributes(module, PARAMETER_LISTS))
    found = {one.node: one.target for one in _settings(module) if _is_parameter(one.target, known)}
    calls = [call for call in nodes_of(module, nodes.Call) if call.args and call not in found]
    named = {call for call in calls if _speaks_of_freezing(last_name(call.func))}
    helpers: set[nodes.NodeNG] = set()
    # A helper may call another one.
    for _ in range(3):
        helpers |= {function_of(node) for node, target in found.items() if _only_switches(node, target, helpers)}
        names = {one.name for one in helpers}
        likely = [call for call in calls if call in named or last_name(call.func) in names] if named or names else []
        found |= {call: call.args[0] for call in likely if _is_switch(call, helpers)}
    found |= {call: call.args[0] for call in calls if (call.lineno, call.col_offset) in switching}
    groups: dict[str, list[Toggle]] = {}
    for node, target in sorted(found.items(), key=lambda one: (one[0].lineno, one[0].col_offset)):
        repeating = _repeating(node, known)
        if function_of(node) not in helpers and not is_left_alone(node, target, bool(repeating)):
            toggle = Toggle(node, _words(target), repeating)
            groups.setdefault(toggle.place, []).append(toggle)
    return list(groups.values())


@functools.lru_cache(1 << 12)
def _speaks_of_freezing(name: str) -> bool:
    return SWITCHES.search(name) is not None or FREEZES.search(name) is not None


def _repeating(node: nodes.NodeNG, known: _Known) -> tuple[int, ...]:
    return tuple(loop.lineno or 0 for loop in loops_around(node) if not _walks_a_model(loop, known))


def _settings(module: nodes.Module) -> Iterator[_Setting]:
    for node in nodes_of(module, (nodes.AssignAttr, nodes.Call)):
        if isinstance(node, nodes.AssignAttr):
            if node.attrname == FLAG and isinstance(node.parent, nodes.Assign):
                yield _Setting(node.parent, node.expr)
        elif isinstance(node.func, nodes.Attribute) and node.func.attrname == "requires_grad_":
            yield _Setting(node, node.func.expr)
        elif last_name(node.func) == "setattr" and len(node.args) == 3 and constant(node.args[1]) == FLAG:
            yield _Setting(node, node.args[0])


def _is_parameter(target: nodes.NodeNG, known: _Known) -> bool:
    """Whether a target is a parameter or a module; a tensor that requires its own gradient is neither."""
    if isinstance(target, nodes.Name) and (loop := loop_of(target)) is not None:
        return _lists_parameters(loop, known)
    if isinstance(target, nodes.Call):
        return UNWRAPS.search(last_name(target.func)) is not None
    if last_name(_behind(target)) in known.parameters | known.lists:
        return True
    if isinstance(target, nodes.Subscript):
        target = target.value
    if _sets_by_method(target):
        name = last_name(target)
        return name in ALWAYS_MODULES | WEIGHTS or name in known.modules | known.parameters | known.lists
    return isinstance(target, nodes.Attribute) and target.attrname in WEIGHTS | known.parameters | known.lists


def _behind(target: nodes.NodeNG) -> nodes.NodeNG:
    """The attribute behind a name, or an item of one: ``table = self.down``, ``weight = table[i]``."""
    for _ in range(4):
        target = target.value if isinstance(target, nodes.Subscript) else target
        bound = bindings(target) if isinstance(target, nodes.Name) else []
        value = getattr(bound[0].parent, "value", None) if len(bound) == 1 and isinstance(bound[0].parent, nodes.Assign) else None
        if value is None:
            break
        target = value
    return target


def _sets_by_method(target: nodes.NodeNG) -> bool:
    parent = target.parent
    while isinstance(parent, nodes.Subscript):
        parent = parent.parent
    return isinstance(parent, nodes.Attribute) and parent.attrname == "requires_grad_"


def _lists_parameters(iterable: nodes.NodeNG, known: _Known) -> bool:
    for node in nodes_of(iterable, (nodes.Attribute, nodes.Name)):
        name = last_name(node)
        if name in LISTING or (isinstance(node, nodes.Attribute) and name in known.lists) or (_PARAMETERS.search(name) and not isinstance(node.parent, nodes.Attribute)):
            return True
    return False


def _walks_a_model(loop: nodes.NodeNG, known: _Known) -> bool:
    iterable = getattr(loop, "iter", None)
    if iterable is None:
        return False
    names = {node.attrname for node in nodes_of(iterable, nodes.Attribute)}
    return isinstance(iterable, (nodes.Tuple, nodes.List)) or bool(names & MODULES) or _lists_parameters(iterable, known)


def _module_names(module: nodes.Module) -> set[str]:
    """The last names of objects that a file calls, or reads parameters from: they are never tensors."""
    found = set()
    for call in nodes_of(module, nodes.Call):
        found.add(last_name(call.func))
        if isinstance(call.func, nodes.Attribute) and call.func.attrname in OF_MODULES:
            found.add(last_name(call.func.expr))
    return found


def _attributes(module: nodes.Module, classes: set[str]) -> set[str]:
    """The attributes that a file binds to an object of one of these classes."""
    return {
        one.attrname
        for one in nodes_of(module, nodes.AssignAttr)
        if isinstance(value := getattr(one.parent, "value", None), nodes.Call)
        and qualified(value.func) <= classes
    }


def _only_switches(node: nodes.NodeNG, target: nodes.NodeNG, helpers: set[nodes.NodeNG]) -> bool:
    """Whether the enclosing function only switches its arguments."""
    function = function_of(node)
    if not isinstance(function, nodes.FunctionDef):
        return False
    own = {one.name for one in function.args.arguments} - {"self", "cls"}
    if not own & _names_behind(target):
        return False
    calls = nodes_of(function, nodes.Call)
    return all(last_name(call.func) in ASKS or call is node or _goes_to(call, helpers) for call in calls)


def _names_behind(target: nodes.NodeNG, depth: int = 0) -> set[str]:
    """The names in an expression, including those in the loops of its loop variables."""
    found: set[str] = set()
    for name in nodes_of(target, nodes.Name):
        loop = loop_of(name)
        found |= {name.name} if loop is None or depth > 3 else _names_behind(loop, depth + 1)
    return found


def _is_switch(call: nodes.Call, helpers: set[nodes.NodeNG]) -> bool:
    """Whether a call switches gradients by a helper of this file, or by one of another file whose name says so."""
    if not call.args or isinstance(call.args[0], nodes.Const):
        return False
    if _goes_to(call, helpers):
        return True
    if _target_of(call) is not None:
        return False
    name = last_name(call.func)
    flags = [*call.args[1:], *(keyword.value for keyword in call.keywords)]
    if SWITCHES.search(name):
        return any(isinstance(constant(one), bool) for one in flags)
    imported = isinstance(call.func, nodes.Name) and any(
        isinstance(one, nodes.ImportFrom) for one in bindings(call.func)
    )
    return imported and FREEZES.search(name) is not None


def _goes_to(call: nodes.Call, helpers: set[nodes.NodeNG]) -> bool:
    return _target_of(call) in helpers


def _target_of(call: nodes.Call) -> nodes.NodeNG | None:
    """The function of this file that a call goes to by its name, or as a method of its own class."""
    if isinstance(call.func, nodes.Name):
        return next((one for one in bindings(call.func) if isinstance(one, nodes.FunctionDef)), None)
    owner = function_of(call).parent
    if not isinstance(owner, nodes.ClassDef) or not isinstance(call.func, nodes.Attribute):
        return None
    of_self = isinstance(call.func.expr, nodes.Name)
    return next((one for one in owner.mymethods() if of_self and one.name == call.func.attrname), None)


def _words(target: nodes.NodeNG) -> str:
    """The switched object, as named in the code."""
    loop = loop_of(target) if isinstance(target, nodes.Name) else None
    shown = loop if loop is not None else target
    return quoted(shown.as_string())
