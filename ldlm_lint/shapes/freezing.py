"""Conditions of findings about frozen parameters: a place that sets ``requires_grad``, directly or by a helper with
such a name."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ldlm_lint.patterns import lazily
from ldlm_lint.python.freezing_names import ALWAYS_MODULES, FREEZES, MAKES, OF_MODULES, SWITCHES, UNWRAPS, WEIGHTS
from ldlm_lint.shapes.outline import Outline, last_name, outline_of
from ldlm_lint.shapes.owners import Owner
from ldlm_lint.shapes.walks import nodes_below

_FLAG = "requires_grad"
_WORDS = ("requires_grad", "freez", "set_trainable", "toggle_grad", "setattr")
_LISTS = (b"ParameterList", b"ParameterDict")
_INSIDE = lazily(rb"\.\s*module\b")
# A lambda runs whenever it is called.
_REPEATED = (ast.For, ast.AsyncFor, ast.While, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def may_freeze_wrapped(outline: Outline) -> bool:
    """Whether gradients may be switched next to a model that DDP wraps, or of a part of an already wrapped one."""
    wraps = b"DistributedDataParallel" in outline.data
    return any(wraps or _INSIDE.search(outline.own_text(owner)) for owner, _, _ in _settings(outline))


def may_toggle(outline: Outline) -> bool:
    """Whether gradients may be switched on a possible module or parameter that was not just created here."""
    known = _Modules(outline)
    looped: dict[Owner, set[ast.AST]] = {}
    for owner, place, target in _settings(outline):
        if target is None:
            return True
        if not known.may_hold(target, by_method=isinstance(place, ast.Call)):
            continue
        if owner not in looped:
            looped[owner] = _looped(outline, owner)
        if place in looped[owner] or not _is_new(outline, owner, target):
            return True
    return False


def toggling_functions(module: ast.Module, data: bytes) -> tuple[str, ...]:
    """The dotted names of the functions that may switch gradients, or call one of the file by its name that does."""
    outline = outline_of(module, data)
    found = {owner for owner, _, _ in _settings(outline)}
    waiting = {owner.name for owner in found}
    while waiting:
        callers = {owner for owner, nodes in outline.places.near(waiting) if any(_calls_one(one, waiting) for one in nodes)} - found
        found |= callers
        waiting = {owner.name for owner in callers}
    return tuple(sorted({owner.scope for owner in found}))


def _calls_one(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in names


def _settings(outline: Outline) -> Iterator[tuple[Owner, ast.AST, ast.expr | None]]:
    """The places that set the flag, with their functions and targets; None if a helper or ``setattr`` gets the flag."""
    for owner, nodes in outline.places.near(_WORDS, parts=True):
        for one in nodes:
            if isinstance(one, ast.Assign):
                flags = (part for part in _parts(one.targets) if isinstance(part, ast.Attribute) and part.attr == _FLAG)
                yield from ((owner, one, part.value) for part in flags)
            elif isinstance(one, ast.Call):
                name = last_name(one.func)
                if name == "requires_grad_" and isinstance(one.func, ast.Attribute):
                    yield owner, one, one.func.value
                elif (name == "setattr" and len(one.args) == 3) or _is_helper(one, name):
                    yield owner, one, None


def _parts(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for one in targets:
        yield from getattr(one, "elts", [one])


def _is_helper(call: ast.Call, name: str) -> bool:
    """Whether a call may switch gradients by its name: ``freeze(model.encoder)``, ``model.module.freeze()``."""
    if SWITCHES.search(name):
        return len(call.args) + len(call.keywords) > 1
    return FREEZES.search(name) is not None and (bool(call.args) or isinstance(call.func, ast.Attribute))


class _Modules:
    """The names of a file that may be modules or parameters; computed only if a place must be judged."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline

    def may_hold(self, target: ast.expr, *, by_method: bool) -> bool:
        """Whether the switched object may be a module or a parameter; a tensor that requires its own gradient is
        neither."""
        if isinstance(target, ast.Call):
            return UNWRAPS.search(last_name(target.func)) is not None
        while isinstance(target, ast.Subscript):
            target = target.value
        name = last_name(target)
        if name in WEIGHTS or (isinstance(target, ast.Attribute) and b"Parameter" in self._outline.data):
            return True
        if any(word in self._outline.data for word in _LISTS):
            # ``weight = self.weights[i]``
            return True
        if by_method and (name in ALWAYS_MODULES or not name):
            return True
        nodes = [one for _, found in self._outline.places.near((name,)) for one in found]
        return any(_binds(one, name) or (by_method and _uses(one, name)) for one in nodes)


def _binds(loop: ast.AST, name: str) -> bool:
    """Whether a loop binds a name."""
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.comprehension)):
        return False
    return any(isinstance(part, ast.Name) and part.id == name for part in nodes_below(loop.target))


def _uses(call: ast.AST, name: str) -> bool:
    """Whether an object with a name is called, or used through module attributes."""
    if not isinstance(call, ast.Call):
        return False
    if last_name(call.func) == name:
        return True
    if not (isinstance(call.func, ast.Attribute) and call.func.attr in OF_MODULES):
        return False
    value = call.func.value
    while isinstance(value, ast.Subscript):
        value = value.value
    return last_name(value) == name


def _looped(outline: Outline, owner: Owner) -> set[ast.AST]:
    """The nodes in loops of a function."""
    return {inner for loop in outline.own(owner, *_REPEATED) for inner in nodes_below(loop)}


def _is_new(outline: Outline, owner: Owner, target: ast.expr) -> bool:
    """Whether a function has certainly just created the switched object: ``net = Net(); net.requires_grad_(False)``."""
    names = {one.id for one in nodes_below(target) if isinstance(one, ast.Name)}
    return any(
        isinstance(one.value, ast.Call)
        and MAKES.search(_name_of(one.value.func)) is not None
        and any(isinstance(part, ast.Name) and part.id in names for part in one.targets)
        for one in outline.own(owner, ast.Assign)
    ) and not outline.own(owner, ast.Global, ast.Nonlocal, ast.ClassDef)


def _name_of(node: ast.expr) -> str:
    return _name_of(node.value) if isinstance(node, ast.Subscript) else last_name(node)


__all__ = ["may_freeze_wrapped", "may_toggle", "toggling_functions"]
